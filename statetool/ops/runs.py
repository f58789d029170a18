"""Entries packed as runs of canonical key groups: how they are ordered, packed, and kept on local disk in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from statetool.errors import FormatError
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.kernels.deal import count_order, key_heads, pack_groups, sort_segments
from statetool.ops.hashing import Bytes

#: Counting needs a number for each pair of key group and state; where these are many more than entries, they are compared.
_MOST_PLACES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class PackedRun:
    """Canonical key groups one after another, in ascending order.

    ``numbers`` int64[k] are the key groups, ``starts`` int64[k + 1] where each starts in ``data``, and the end.
    """

    data: Bytes
    numbers: Int64s
    starts: Int64s


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A packed run in a file on local disk, from ``offset`` on; the rest as in :class:`PackedRun`."""

    path: str
    offset: int
    numbers: Int64s
    starts: Int64s

    def within(self, groups: range) -> StoredRun | None:
        """Return the part with the key groups of a range, ``None`` where there is none."""
        low, high = np.searchsorted(self.numbers, (groups.start, groups.stop))
        if low == high:
            return None
        return StoredRun(self.path, self.offset, self.numbers[low:high], self.starts[low : high + 1])

    @property
    def size_bytes(self) -> int:
        return int(self.starts[-1] - self.starts[0])

    def load(self) -> PackedRun:
        """Read it into memory."""
        with open(self.path, "rb") as f:
            f.seek(self.offset + int(self.starts[0]))
            raw = f.read(self.size_bytes)
        return PackedRun(np.frombuffer(raw, dtype=np.uint8), self.numbers, self.starts - self.starts[0])


def store_runs(runs: Iterable[PackedRun], write: Callable[[memoryview], object], path: str) -> Iterator[StoredRun]:
    """Write packed runs one after another to a file, and yield where each is."""
    at = 0
    for run in runs:
        write(run.data.data)
        yield StoredRun(path, at, run.numbers, run.starts)
        at += len(run.data)


def order_of(group: Int64s, state: Int64s) -> Int64s:
    """Return the order of entries by key group and state; those of one state keep their order."""
    base = int(group.min())
    states = int(state.max()) + 1
    places = (int(group.max()) - base + 1) * states
    major = (group - base) * states + state
    if places > _MOST_PLACES + 8 * len(group):
        return np.argsort(major, kind="stable").astype(np.int64)
    order = np.empty(len(group), dtype=np.int64)
    count_order(major, np.zeros(places + 1, dtype=np.int64), order)
    return order


def sorted_order(batch: EntryBatch, states: Sequence[str]) -> Int64s:
    """Return the order of entries by key group, state and key.

    Parameters
    ----------
    states
        Names of the states by id, for messages.

    Raises
    ------
    FormatError
        A state has two entries with the same key.
    """
    order = order_of(batch.group, batch.state)
    head = np.empty(len(batch), dtype=np.uint64)
    key_heads(batch.data, batch.key, batch.key_end, head)
    major = batch.group << 16 | batch.state
    twin = int(sort_segments(batch.data, major, head, batch.key, batch.key_end, order, np.empty_like(order)))
    if twin >= 0:
        at = int(order[twin])
        raise FormatError(
            f"a state has two entries with the key {bytes(batch.data[batch.key[at] : batch.key_end[at]]).hex()}",
            hint="two subtasks hold the same keys, which no job leaves behind",
        ).at(state=states[int(batch.state[at])], key_group=int(batch.group[at]))
    return order


def packed(batch: EntryBatch, order: Int64s, group: Int64s, state: Int64s, prefix: int) -> PackedRun:
    """Return entries as canonical key groups.

    Parameters
    ----------
    order
        Their order by key group and state.
    group, state
        The key group and state id that each gets.
    prefix
        Bytes of the new key-group prefix.
    """
    n = len(order)
    size = int((batch.key_end - batch.key + batch.value_end - batch.value).sum()) + (12 + prefix) * n
    out = np.empty(size, dtype=np.uint8)
    numbers = np.empty(n, dtype=np.int64)
    starts = np.empty(n + 1, dtype=np.int64)
    columns = (batch.key, batch.key_end, batch.value, batch.value_end)
    written, count = pack_groups(batch.data, order, group, state, *columns, prefix, out, numbers, starts)
    starts[count] = written
    return PackedRun(out[:written], numbers[:count].copy(), starts[: count + 1].copy())
