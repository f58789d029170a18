"""Number of timers in a snapshot, as text: all of them if they are few, otherwise a lower bound."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from statetool.entries.form import EntryRequest, KeyGroupReader
from statetool.errors import several
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory

#: Counting stops after this many bytes of state: the first timer is what matters.
_MOST_BYTES: Final = 64 << 20
_MOST_STATE_BYTES: Final = 1 << 30


def count_timers(operator: OperatorInventory, names: Collection[str]) -> str:
    """Return the number of timers in some queues of an operator, such as ``200 timers``, or ``more than 10,000 timers``.

    Timers of an operator with much state are not counted: ``timers``.
    """
    if operator_row(operator).state_bytes > _MOST_STATE_BYTES:
        return "timers"
    count, is_whole = count_entries(operator, names)
    if is_whole:
        return several(count, "timer") if count else "no timers"
    return f"more than {several(count, 'timer')}" if count else "timers"


def overdue_timers(operator: OperatorInventory, names: Collection[str], now_ms: int) -> tuple[int, int]:
    """Return the number of timers in some queues that are due before a time, and the time of the first one; 0 if there is none."""
    from statetool.kernels.entries.layout import decode_times  # it needs numpy, which most checks do not

    count, first = 0, now_ms
    for source in operator.keyed.sources(raw=True):
        wanted = {i: m.name for i, m in enumerate(source.header().states) if m.name in names}
        for batch in source.batches(EntryRequest(states=tuple(wanted.values()))) if wanted else ():
            for number in wanted.keys() & set(batch.states()):
                entries = batch.of_state(number)
                times = decode_times(entries.data, entries.key)
                count += int((times < now_ms).sum())
                first = min(first, int(times.min(initial=now_ms)))
    return count, first if count else 0


def count_entries(operator: OperatorInventory, names: Collection[str]) -> tuple[int, bool]:
    """Return the number of entries in some states of an operator, and whether all were counted."""
    count = read = 0
    for source in operator.keyed.sources(raw=True):
        states = source.header().states
        wanted = {i for i, meta in enumerate(states) if meta.name in names}
        if not wanted:
            continue
        for rows, size in _batches(source, tuple(states[i].name for i in sorted(wanted)), wanted):
            count += rows
            read += size
            if read > _MOST_BYTES:
                return count, False
    return count, True


def _batches(source: KeyGroupReader, names: tuple[str, ...], wanted: Collection[int]) -> Iterator[tuple[int, int]]:
    for batch in source.batches(EntryRequest(states=names)):
        bounds = batch.bounds()
        yield sum(bounds[i][1] - bounds[i][0] for i in wanted if i in bounds), len(batch.data)
