"""Cross-check of a source: is each split where it should be, in a reader, or known to the enumerator as waiting or done?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from statetool.connectors.model import KnownSplit
from statetool.connectors.sources import Source

Finding: TypeAlias = Literal[
    "assigned_held_by_none",
    "held_twice",
    "unknown_to_enumerator",
    "held_but_unassigned",
    "unassigned_twice",
    "partition_missing",
    "marker",
]
_WHAT: Final[dict[Finding, str]] = {
    "assigned_held_by_none": "assigned, and in no reader: it is not read on (or had come to its end)",
    "held_twice": "in more than one reader: its records come twice",
    "unknown_to_enumerator": "in a reader, and the enumerator does not know it: it may be discovered again",
    "held_but_unassigned": "in a reader, and waiting in the enumerator: it will be assigned again, its records come twice",
    "unassigned_twice": "waiting more than once in the enumerator",
    "partition_missing": "the partitions of this topic have a gap",
    "marker": "where it begins, or ends, is found when the job starts",
}
#: What is worth to know, and no fault.
_NOTES: Final = frozenset({"marker", "partition_missing"})
#: Missing partitions that are named.
_MOST_MISSING: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheck:
    """One finding; ``subtasks`` are those of readers, separated by commas."""

    operator: str
    check: str
    split_id: str | None
    subtasks: str
    is_problem: bool
    message: str


def check_source(source: Source) -> list[SourceCheck]:
    """Return what is wrong, or worth to know, about the splits of a source."""
    return list(_checks(source))


def _checks(source: Source) -> Iterator[SourceCheck]:
    if source.connector is None:
        return
    holders: dict[str, list[int]] = defaultdict(list)
    for held in source.state.held:
        if held.split is not None:
            holders[held.split.split_id].append(held.subtask)
    known: dict[str, list[KnownSplit]] = defaultdict(list)
    enumerator = source.state.enumerator
    for one in () if enumerator is None else enumerator.splits:
        known[one.split.split_id].append(one)
    whole = all(h.split is not None for h in source.state.held)
    for split_id, ones in known.items():
        statuses = {k.status for k in ones}
        if statuses == {"assigned"} and split_id not in holders and whole:
            yield _found(source, "assigned_held_by_none", split_id)
        if "unassigned" in statuses and split_id in holders:
            yield _found(source, "held_but_unassigned", split_id, holders[split_id])
        if [k.status for k in ones].count("unassigned") > 1:
            yield _found(source, "unassigned_twice", split_id)
    for split_id, subtasks in holders.items():
        if len(subtasks) > 1:
            yield _found(source, "held_twice", split_id, subtasks)
        if enumerator is not None and enumerator.lists_assigned and split_id not in known:
            yield _found(source, "unknown_to_enumerator", split_id, subtasks)
    yield from _markers(source)
    yield from _gaps(source)


def _markers(source: Source) -> Iterator[SourceCheck]:
    assert source.connector is not None
    for held in source.state.held:
        if held.split is None:
            continue
        place = source.connector.place(held.split)
        if place.marker:
            yield _found(source, "marker", held.split.split_id, [held.subtask], f": no record read, {place.marker}")
        if place.stop in source.connector.markers:
            yield _found(source, "marker", held.split.split_id, [held.subtask], f": stops at {place.stop}")


def _gaps(source: Source) -> Iterator[SourceCheck]:
    """Name partitions that are missing in a row of numbers."""
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
        # Damaged numbers may be large: the missing ones are not gathered.
        missing = list(islice((n for n in range(max(numbers)) if n not in numbers), _MOST_MISSING + 1))
        if missing:
            shown = ", ".join(map(str, missing[:_MOST_MISSING])) + (", ..." if len(missing) > _MOST_MISSING else "")
            yield _found(source, "partition_missing", None, more=f": {topic} has no {shown}")


def _found(
    source: Source, check: Finding, split_id: str | None, subtasks: list[int] | None = None, more: str = ""
) -> SourceCheck:
    return SourceCheck(
        operator=source.label,
        check=check,
        split_id=split_id,
        subtasks=", ".join(map(str, subtasks or ())),
        is_problem=check not in _NOTES,
        message=_WHAT[check] + more,
    )
