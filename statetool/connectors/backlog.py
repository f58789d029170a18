"""Backlog of sources at the time of the snapshot, inferred from their state: no snapshot stores it.

A running source reports it (``isProcessingBacklog``, FLIP-309) by rules that its state shows: a hybrid source has a backlog until its last
source, change data capture until the binlog split is assigned. For other sources, the user sets the lag above which a source has a backlog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from statetool.connectors.lag import lag_rows
from statetool.connectors.layouts.hybrid import CURRENT, HybridSource
from statetool.connectors.rows import SourceRow, inferred_from
from statetool.connectors.sources import Source, source_of
from statetool.connectors.tables import connector_rows
from statetool.errors import NO_FINDING, OptionError, StatetoolError, UnknownNameError, several
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRules:
    """Rules from the user about backlog that state does not store.

    Attributes
    ----------
    ends
        End offset by split, as for :func:`~statetool.connectors.lag.lag_rows`.
    behind
        Lag above which a split has a backlog.
    last_source
        Index of the last source of hybrid sources, counted from 0.

    Raises
    ------
    OptionError
        ``ends`` and ``behind`` are not given together, or a number is below 0.
    """

    ends: Mapping[str, int | str] | None = None
    behind: int | None = None
    last_source: int | None = None

    def __post_init__(self) -> None:
        if (self.ends is None) != (self.behind is None):
            raise OptionError("ends= and behind= must be given together")
        for name in ("behind", "last_source"):
            if (getattr(self, name) or 0) < 0:
                raise OptionError(f"{name}={getattr(self, name)} is below 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRow(OperatorRecord):
    """Backlog of a source (``None`` if unknown), and the state it is inferred from."""

    connector: str
    backlog: bool | None
    backlog_inferred_from: str


def source_rows(operators: Iterable[OperatorInventory], rules: BacklogRules) -> list[SourceRow]:
    """Return the sources as :func:`~statetool.connectors.tables.connector_rows` does, with the backlog that the rules imply.

    Raises
    ------
    OptionError
        An end is not a number.
    FormatError
        State is damaged.
    """
    inventories = list(operators)
    rows = connector_rows("sources", inventories)
    readable = {r.operator for r in rows}
    sources = {s.label: s for o in inventories if o.label in readable and (s := source_of(o)) is not None}
    return [replace(r, **_inferred_backlog(sources[r.operator], rules)) if r.operator in sources else r for r in rows]


def backlog_rows(operators: Iterable[OperatorInventory]) -> list[BacklogRow]:
    """Return the sources whose state shows whether they had a backlog, and operators that may be such sources but cannot be read.

    Only operators with coordinator state are read: no other source has phases.
    """
    rows = []
    for operator in operators:
        if operator.state.coordinator is None:
            continue
        try:
            source = source_of(operator)
        except NO_FINDING:
            raise
        except StatetoolError as error:
            why = f"not known: {error.message}"
            rows.append(BacklogRow(operator=operator.label, connector="", backlog=None, backlog_inferred_from=why))
            continue
        if source is not None and source.state.backlog is not None:
            rows.append(
                BacklogRow(
                    operator=source.label,
                    connector=source.name,
                    backlog=source.state.backlog,
                    backlog_inferred_from=inferred_from(source),
                )
            )
    return rows


def _inferred_backlog(source: Source, rules: BacklogRules) -> dict[str, bool | str | None]:
    """Return the inferred backlog of a source. A rule that implies a backlog outweighs the others."""
    inferred = [(source.state.backlog, inferred_from(source)), _by_index(source, rules), _by_positions(source, rules)]
    known = [rule for rule in inferred if rule is not None and rule[0] is not None]
    backlog, why = next((rule for rule in known if rule[0]), known[-1] if known else (None, ""))
    return {"backlog": backlog, "backlog_inferred_from": why}


def _by_index(source: Source, rules: BacklogRules) -> tuple[bool, str] | None:
    enumerator = source.state.enumerator
    if rules.last_source is None or not isinstance(source.connector, HybridSource) or enumerator is None:
        return None
    current = enumerator.facts[CURRENT]
    return current < rules.last_source, f"it reads its source {current}, the last is {rules.last_source}"


def _by_positions(source: Source, rules: BacklogRules) -> tuple[bool, str] | None:
    if rules.ends is None or rules.behind is None:
        return None
    try:
        rows = lag_rows(source, rules.ends)
    except UnknownNameError:
        # ends of another source
        return None
    late = [r for r in rows if r.lag is not None and r.lag > rules.behind]
    if late:
        return (
            True,
            f"{len(late)} of {several(len(rows), 'split')} {'is' if len(late) == 1 else 'are'} more than {rules.behind} behind, the first {late[0].split_id}",
        )
    if not rows or any(r.lag is None for r in rows):
        return None
    return False, f"no split is more than {rules.behind} behind"
