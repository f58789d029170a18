"""Entries packed as runs of canonical key groups: how they are ordered, packed, and kept on local disk in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from statetool.errors import FormatError
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.kernels.deal import pack_groups
from statetool.ops.hashing import Bytes
from statetool.write.order import order_of_keys


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
    order, twin = order_of_keys(batch.data, batch.group, batch.state, batch.key, batch.key_end)
    if twin is not None:
        raise FormatError(
            f"a state has two entries with the key {bytes(batch.data[batch.key[twin] : batch.key_end[twin]]).hex()}",
            hint="two subtasks hold the same keys, which no job leaves behind",
        ).at(state=states[int(batch.state[twin])], key_group=int(batch.group[twin]))
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
