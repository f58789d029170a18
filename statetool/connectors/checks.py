"""Cross-check of a source: each split is in a reader, or the enumerator knows it as unassigned or finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from statetool.connectors.model import KnownSplit, SourceState
from statetool.connectors.sources import Source
from statetool.snapshot.operator import OperatorInventory

Finding: TypeAlias = Literal[
    "unknown",
    "assigned_held_by_none",
    "held_twice",
    "unknown_to_enumerator",
    "held_but_unassigned",
    "unassigned_twice",
    "partition_missing",
    "marker",
]
_MESSAGES: Final[dict[Finding, str]] = {
    "unknown": "not checked, at least in part: ",
    "assigned_held_by_none": "the enumerator has assigned it, but no reader has it: it is not read further, unless it was read to its end",
    "held_twice": "more than one reader has it: its records are read twice",
    "unknown_to_enumerator": "a reader has it, but the enumerator does not know it: it may be discovered again",
    "held_but_unassigned": "a reader has it, and it also waits in the enumerator: it is assigned again, and its records are read twice",
    "unassigned_twice": "it waits in the enumerator more than once",
    "partition_missing": "the partition numbers have a gap",
    "marker": "its start or its end is determined when the job starts",
}
#: Findings worth reporting that are not faults.
_NOTES: Final = frozenset({"marker", "partition_missing"})
#: Maximum number of missing partitions that a finding names.
_MOST_MISSING: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheck:
    """One finding. ``subtasks`` are the subtasks of the readers, separated by commas."""

    operator: str
    check: str
    split_id: str | None
    subtasks: str
    is_problem: bool
    message: str

    @property
    def is_unknown(self) -> bool:
        """Return True if all or part of the source was not checked because no connector reads it."""
        return self.check == "unknown"


def check_source(source: Source) -> list[SourceCheck]:
    """Return the faults in the splits of a source, and other findings worth reporting."""
    return list(_checks(source))


def unreadable_check(operator: OperatorInventory, note: str) -> SourceCheck:
    """Return the finding for an operator that may be a source."""
    source = Source(operator=operator, state=SourceState(held=()))
    return _finding(source, "unknown", None, detail=note)


def _checks(source: Source) -> Iterator[SourceCheck]:
    if source.note:
        yield _finding(source, "unknown", None, detail=source.note)
    if source.connector is None:
        return
    holders: dict[str, list[int]] = defaultdict(list)
    for held in source.state.held:
        if held.split is not None:
            holders[held.split.split_id].append(held.subtask)
    in_enumerator: dict[str, list[KnownSplit]] = defaultdict(list)
    enumerator = source.state.enumerator
    for known in () if enumerator is None else enumerator.splits:
        in_enumerator[known.split.split_id].append(known)
    all_read = all(h.split is not None for h in source.state.held)
    for split_id, entries in in_enumerator.items():
        statuses = {k.status for k in entries}
        if statuses == {"assigned"} and split_id not in holders and all_read:
            yield _finding(source, "assigned_held_by_none", split_id)
        if "unassigned" in statuses and split_id in holders:
            yield _finding(source, "held_but_unassigned", split_id, holders[split_id])
        if [k.status for k in entries].count("unassigned") > 1:
            yield _finding(source, "unassigned_twice", split_id)
    for split_id, subtasks in holders.items():
        if len(subtasks) > 1:
            yield _finding(source, "held_twice", split_id, subtasks)
        if enumerator is not None and enumerator.lists_assigned and split_id not in in_enumerator:
            yield _finding(source, "unknown_to_enumerator", split_id, subtasks)
    yield from _markers(source)
    yield from _gaps(source)


def _markers(source: Source) -> Iterator[SourceCheck]:
    assert source.connector is not None
    for held in source.state.held:
        if held.split is None:
            continue
        place = source.connector.place(held.split)
        if place.marker:
            yield _finding(source, "marker", held.split.split_id, [held.subtask], f": no record read, {place.marker}")
        if place.stop in source.connector.markers:
            yield _finding(source, "marker", held.split.split_id, [held.subtask], f": stops at {place.stop}")


def _gaps(source: Source) -> Iterator[SourceCheck]:
    """Yield the topics whose partition numbers have gaps."""
    assert source.connector is not None
    enumerator = source.state.enumerator
    splits: list[Any] = [h.split for h in source.state.held if h.split is not None]
    splits += [k.split for k in (() if enumerator is None else enumerator.splits)]
    partitions: dict[str | None, set[int]] = defaultdict(set)
    for split in splits:
        place = source.connector.place(split)
        if place.partition is not None:
            partitions[place.source].add(place.partition)
    for topic, numbers in partitions.items():
        # Damaged numbers can be large: only the first missing partitions are collected.
        missing = list(islice((n for n in range(max(numbers)) if n not in numbers), _MOST_MISSING + 1))
        if missing:
            shown = ", ".join(map(str, missing[:_MOST_MISSING])) + (", ..." if len(missing) > _MOST_MISSING else "")
            yield _finding(source, "partition_missing", None, detail=f": {topic} has no partition {shown}")


def _finding(
    source: Source, check: Finding, split_id: str | None, subtasks: list[int] | None = None, detail: str = ""
) -> SourceCheck:
    return SourceCheck(
        operator=source.label,
        check=check,
        split_id=split_id,
        subtasks=", ".join(map(str, subtasks or ())),
        is_problem=check not in _NOTES,
        message=_MESSAGES[check] + detail,
    )
