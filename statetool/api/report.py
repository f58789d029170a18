"""Collect all findings about a snapshot and write them as one HTML page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from statetool.api.inspect import StatisticsOptions, checked, compared, each_of, growth, measured
from statetool.connectors.tables import connector_rows
from statetool.directories.snapshots import chain_of, list_snapshots
from statetool.errors import NO_FINDING, OptionError, StatetoolError, TargetExistsError, UnknownNameError
from statetool.io import files
from statetool.io.targets import put_new
from statetool.report.facts import Answer, Connections, Differences, Facts
from statetool.report.page import inline, page
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows
from statetool.types.options import refuse_unknown
from statetool.verification.verify import Verification, verify_inventory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.statistics.records import GrowthRow

T = TypeVar("T")


class ReportOptions(TypedDict, total=False):
    """Options of :meth:`statetool.Savepoint.report`."""

    deep: bool
    allow_unread: bool
    history: str | None
    flink: str | None
    backend: Literal["heap", "rocksdb"] | None
    largest: int
    parallelism: int | None
    ttl_ms: int | None
    now_ms: int | None
    spark: SparkSession | None
    threads: int | None


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


def reported(inventory: Inventory, other: Inventory | None, target: str | None, options: ReportOptions) -> Facts:
    """Collect all findings, and write them if there is a target; see :meth:`statetool.Savepoint.report`."""
    refuse_unknown(options, list(ReportOptions.__annotations__))
    file = None if target is None else _new_file(target)
    facts = _facts(inventory, other, options)
    if file is not None:
        put_new(file, page(facts).encode())
    return facts


def _new_file(target: str) -> str:
    file = files.canonical(target)
    if files.exists(file):
        raise TargetExistsError(f"{target} already exists", hint="name a new file; nothing is overwritten")
    return file


def _facts(inventory: Inventory, other: Inventory | None, options: ReportOptions) -> Facts:
    """Collect all findings. A failed analysis yields its error as the finding and does not affect the others."""
    spark, threads, history = options.get("spark"), options.get("threads"), options.get("history")
    now_ms = options.get("now_ms")
    if now_ms is None:
        now_ms = time.time_ns() // 1_000_000
    operators = inventory.operators.values()
    flink = options.get("flink")
    judged = other is not None or flink is not None
    return Facts(
        path=inventory.path,
        checkpoint_id=inventory.metadata.checkpoint_id,
        metadata_version=inventory.metadata.version,
        now_ms=now_ms,
        operators=metadata_rows("operators", operators),
        states=_attempt(lambda: metadata_rows("states", operators)),
        statistics=_attempt(lambda: measured(inventory, **_measuring(options, now_ms))),
        verification=_attempt(lambda: _verified(inventory, options)),
        connections=_attempt(lambda: _connections(inventory)),
        growth=None if history is None else _attempt(lambda: _growth(history, inventory, threads)),
        against=" and ".join(t for t in (other.path if other else "", f"Flink {flink}" if flink else "") if t),
        other="" if other is None else other.path,
        check=_attempt(lambda: checked(inventory, other, flink, options.get("backend"))) if judged else None,
        differences=None if other is None else _attempt(lambda: _differences(inventory, other, spark, threads)),
        allow_unread=options.get("allow_unread", False),
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


def _measuring(options: ReportOptions, now_ms: int) -> StatisticsOptions:
    measuring = StatisticsOptions(now_ms=now_ms)
    for name in StatisticsOptions.__annotations__.keys() & options.keys() - {"now_ms"}:
        measuring[name] = options[name]  # type: ignore[literal-required]
    return measuring


def _verified(inventory: Inventory, options: ReportOptions) -> Verification:
    each = each_of(options.get("spark"), options.get("threads"))
    # Facts.unread counts unread state here, as for other findings.
    return verify_inventory(inventory, each, deep=options.get("deep", False), allow_unread=True)


def _connections(inventory: Inventory) -> Connections:
    operators = inventory.operators.values()
    return Connections(
        sources=connector_rows("sources", operators),
        checks=connector_rows("source_checks", operators),
        sinks=connector_rows("sinks", operators),
    )


def _growth(root: str, inventory: Inventory, threads: int | None) -> list[GrowthRow]:
    """Return the growth over the snapshots of the same job below a directory."""
    rebase = dict(inventory.rebase)
    snapshots = list_snapshots(root, rebase=rebase)
    folder = files.parent(inventory.metadata_file)
    jobs = {chain_of(s) for s in snapshots if files.canonical(s.path) == folder}
    same = {s.path for s in snapshots if not jobs or chain_of(s) in jobs}
    return [row for row in growth(root, rebase=rebase, threads=threads) if row.path in same]


def _differences(before: Inventory, after: Inventory, spark: SparkSession | None, threads: int | None) -> Differences:
    comparison = compared(before, after, spark, threads=threads)
    return Differences(
        equal=comparison.equal, structure=comparison.structure, counts=comparison.summary(), unread=comparison.unread
    )
