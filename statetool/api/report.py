"""Findings about a snapshot, collected and written as one HTML page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from statetool.analysis.comparison.plan import ComparisonRequest, plan_comparison
from statetool.analysis.statistics.growth import growth_rows
from statetool.analysis.statistics.records import GrowthRow
from statetool.analysis.statistics.statistics import MOST_LARGEST, StatisticsRequest, statistics_of
from statetool.analysis.verification.verify import verify_inventory
from statetool.api.comparison import Comparison
from statetool.api.execution import Execution
from statetool.api.job_classes import new_job_classes
from statetool.compatibility.check import check_inventories
from statetool.connectors.tables import connector_rows
from statetool.errors import NO_FINDING, OptionError, StatetoolError, TargetExistsError, UnknownNameError
from statetool.io import files
from statetool.io.targets import put_new
from statetool.operations.directories.snapshots import chain_of, list_snapshots
from statetool.reporting.report.facts import Answer, Connections, Differences, Facts
from statetool.reporting.report.page import inline, page
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows

T = TypeVar("T")


class Report:
    """All findings about a snapshot. Notebooks show them, and :meth:`write` writes them as one HTML page."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and everything was read or may stay unread. A report is true as a condition if it is ``ok``."""
        return self._facts.ok

    @property
    def unread(self) -> tuple[str, ...]:
        """State that could not be read: its location, and the reason."""
        return self._facts.unread

    def html(self) -> str:
        """Return the report as an HTML page, which loads no resources and runs no scripts."""
        return page(self._facts)

    def write(self, target: str) -> None:
        """Write the page to a new file.

        Raises
        ------
        TargetExistsError, WriteFailedError
            The file already exists or cannot be written.
        """
        put_new(_new_file(target), self.html().encode())

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"Report({self._facts.path!r}, ok={self.ok})"

    def _repr_html_(self) -> str:
        return inline(self._facts)


def _new_file(target: str) -> str:
    file = files.canonical(target)
    if files.exists(file):
        raise TargetExistsError(f"{target} already exists", hint="pass the name of a new file; nothing is overwritten")
    return file


def collect_report(
    inventory: Inventory,
    other: Inventory | None,
    target: str | None,
    execution: Execution,
    *,
    history: str | None = None,
    deep: bool = False,
    allow_unread: bool = False,
    flink_version: str | None = None,
    backend: Literal["heap", "rocksdb", "forst"] | None = None,
    other_jars: Iterable[str | os.PathLike[str]] | None = None,
    largest: int = MOST_LARGEST,
    parallelism: int | None = None,
    ttl_ms: int | None = None,
    now_ms: int | None = None,
) -> Facts:
    """Collect all findings, and write them to a page if there is a target; see :meth:`statetool.Savepoint.report`.

    A failed analysis yields its error as the finding and does not affect the others.
    """
    file = None if target is None else _new_file(target)
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    request = StatisticsRequest.of(largest=largest, parallelism=parallelism, ttl_ms=ttl_ms, now_ms=now_ms)
    operators = list(inventory.operators.values())
    new_classes = new_job_classes(other_jars, other)
    facts = Facts(
        path=inventory.path,
        checkpoint_id=inventory.metadata.checkpoint_id,
        metadata_version=inventory.metadata.version,
        now_ms=now_ms,
        operators=metadata_rows("operators", operators),
        states=_attempt(lambda: metadata_rows("states", operators)),
        statistics=_attempt(lambda: statistics_of(operators, request, execution.map)),
        # Facts.unread counts unread state here, as for other findings.
        verification=_attempt(lambda: verify_inventory(inventory, execution.map, deep=deep, allow_unread=True)),
        connections=_attempt(lambda: _connections(inventory)),
        growth=None if history is None else _attempt(lambda: _growth(history, inventory, execution)),
        against=" and ".join(
            text
            for text in (
                other.path if other else "",
                "the classes of its jar" if new_classes is not None else "",
                f"Flink {flink_version}" if flink_version else "",
            )
            if text
        ),
        other="" if other is None else other.path,
        check=None
        if other is None and flink_version is None and new_classes is None
        else _attempt(lambda: check_inventories(inventory, other, flink_version, backend, new_classes)),
        differences=None if other is None else _attempt(lambda: _differences(inventory, other, execution)),
        allow_unread=allow_unread,
    )
    if file is not None:
        put_new(file, page(facts).encode())
    return facts


def describe(inventory: Inventory, execution: Execution) -> Facts:
    """Return the facts of a snapshot that need no read of keyed state: sizes, types, missing files, sources and sinks."""
    operators = list(inventory.operators.values())
    return Facts(
        path=inventory.path,
        checkpoint_id=inventory.metadata.checkpoint_id,
        metadata_version=inventory.metadata.version,
        now_ms=time.time_ns() // 1_000_000,
        operators=metadata_rows("operators", operators),
        states=_attempt(lambda: metadata_rows("states", operators)),
        statistics=statistics_of([], StatisticsRequest.of(), execution.map),
        verification=_attempt(lambda: verify_inventory(inventory, execution.map, allow_unread=True)),
        connections=_attempt(lambda: _connections(inventory)),
        growth=None,
        against="",
        other="",
        check=None,
        differences=None,
        allow_unread=True,
    )


def _attempt(answer: Callable[[], T]) -> Answer[T]:
    """Return an answer, or the error that prevented it.

    Errors in the user's options and names, and errors that are not findings, are raised.
    """
    try:
        return answer()
    except (OptionError, UnknownNameError, *NO_FINDING):
        raise
    except StatetoolError as error:
        return error


def _connections(inventory: Inventory) -> Connections:
    operators = inventory.operators.values()
    return Connections(
        sources=connector_rows("sources", operators),
        checks=connector_rows("source_checks", operators),
        sinks=connector_rows("sinks", operators),
    )


def _growth(root: str, inventory: Inventory, execution: Execution) -> list[GrowthRow]:
    """Return the growth over the snapshots of the same job below a directory."""
    snapshots = list_snapshots(root, rebase=dict(inventory.rebase))
    folder = files.parent(inventory.metadata_file)
    jobs = {chain_of(s) for s in snapshots if files.canonical(s.path) == folder}
    same = {s.path for s in snapshots if not jobs or chain_of(s) in jobs}
    in_process = Execution(threads=execution.threads)
    return [row for row in growth_rows(root, inventory.rebase, in_process.map) if row.path in same]


def _differences(before: Inventory, after: Inventory, execution: Execution) -> Differences:
    comparison = Comparison(plan_comparison(before, after, ComparisonRequest()), execution)
    return Differences(
        equal=comparison.equal, structure=comparison.structure, counts=comparison.summary(), unread=comparison.unread
    )
