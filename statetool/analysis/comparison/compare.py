"""Comparison of a unit: batches of its differences, or their counts and the first few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import assert_never

from statetool.analysis.comparison.elements import ElementUnit, compare_elements
from statetool.analysis.comparison.keyed import KeyedUnit, compare_keyed
from statetool.analysis.comparison.plan import Unit
from statetool.analysis.comparison.records import DIFFERENCES, DifferenceCounts, NotComparedError
from statetool.errors import UNREAD, FormatError, UnsupportedError
from statetool.io.glibc import keep_in_own_process


@dataclass(frozen=True, slots=True)
class CountTask:
    """A unit whose differences are counted. The first ``most`` of them are returned."""

    unit: Unit
    most: int


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """Counts by state, and by ``before`` and ``after`` (of entries) or change (of differences).

    ``first`` has the first differences (IPC bytes). ``unread`` has the reason if the unit, or some
    of its values, could not be compared.
    """

    operator: str
    counts: Counter[tuple[str, str]]
    first: bytes = b""
    unread: str = ""


def differences(unit: Unit, counts: Counter[tuple[str, str]] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the differences of a unit, in a task.

    Raises
    ------
    FormatError, DecodeError, UnknownSerializerError
        Bytes are damaged, or their ends cannot be found.
    UnsupportedError
        Some values cannot be compared, or do not have the key type or the subclasses that only the other side describes.
    """
    keep_in_own_process()
    counts = Counter() if counts is None else counts
    try:
        yield from _differences(unit, counts)
    except FormatError as error:
        if not unit.learned or isinstance(error, UNREAD):
            raise
        raise UnsupportedError(
            f"not of the key type or the subclasses that only the other snapshot describes, or damaged: {error}",
            hint="look for damage with statetool verify --deep",
        ) from error


def _differences(unit: Unit, counts: Counter[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    match unit:
        case KeyedUnit():
            yield from compare_keyed(unit, counts)
        case ElementUnit():
            yield from compare_elements(unit, counts)
        case _:
            assert_never(unit)


def count_differences(task: CountTask) -> UnitCounts:
    """Count the differences of a unit, in a task. Damage raises an error; state that only statetool cannot read is noted in ``unread``."""
    try:
        return _counts(task)
    except UNREAD as error:
        return UnitCounts(task.unit.operator, Counter(), unread=str(error.at(operator=task.unit.operator)))


def _counts(task: CountTask) -> UnitCounts:
    counts: Counter[tuple[str, str]] = Counter()
    first: list[pa.RecordBatch] = []
    remaining = task.most
    unread = ""
    try:
        for batch in differences(task.unit, counts):
            for state, change, n in _changes_by_state(batch):
                counts[state, change] += n
            if remaining > 0:
                first.append(batch.slice(0, remaining))
                remaining -= first[-1].num_rows
    except NotComparedError as error:
        unread = str(error.at(operator=task.unit.operator))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, DIFFERENCES) as writer:
        for batch in first:
            writer.write_batch(batch)
    return UnitCounts(task.unit.operator, counts, sink.getvalue().to_pybytes(), unread)


def _changes_by_state(batch: pa.RecordBatch) -> Iterator[tuple[str, str, int]]:
    table = pa.Table.from_batches([batch])
    for row in table.group_by(["state", "change"]).aggregate([("operator", "count")]).to_pylist():
        yield row["state"], row["change"], row["operator_count"]


def rows_of(unit: UnitCounts) -> pa.Table:
    """Return the first differences of a unit."""
    return pa.ipc.open_stream(unit.first).read_all() if unit.first else DIFFERENCES.empty_table()


def sum_counts(units: Sequence[UnitCounts]) -> list[DifferenceCounts]:
    """Sum the counts by operator and state, those with differences first."""
    total: Counter[tuple[str, str, str]] = Counter()
    for unit in units:
        for (state, what), n in unit.counts.items():
            total[unit.operator, state, what] += n
    rows = [
        DifferenceCounts(
            operator=operator,
            state=state,
            entries_before=total[operator, state, "before"],
            entries_after=total[operator, state, "after"],
            added=total[operator, state, "added"],
            removed=total[operator, state, "removed"],
            changed=total[operator, state, "changed"],
        )
        for operator, state in dict.fromkeys((o, s) for o, s, _ in total)
    ]
    return sorted(rows, key=lambda r: -(r.added + r.removed + r.changed))
