"""Put dealt entries together again: one sorted canonical stream for a target subtask.

Runs in a task. Memory: about ``memory_bytes``; a key group that is larger is sorted and merged on local disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from statetool.errors import FormatError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, open_large
from statetool.formats.keyed.entries import EntryBatch, Int64s, concat
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.keyed.writer import GroupJoiner, KeyedStreamWriter
from statetool.formats.stream import Stream
from statetool.kernels.codes import OK
from statetool.kernels.walk import FULL, WALK_MESSAGES, walk
from statetool.ops.hashing import Bytes
from statetool.ops.runs import PackedRun, StoredRun, packed, sorted_order, store_runs

MEMORY_BYTES: Final = 64 << 20
_LEAST_WINDOW: Final = 64 << 10
_SMALLEST_ENTRY: Final = 9


def gather_runs(
    writer: KeyedStreamWriter,
    runs: Sequence[StoredRun],
    groups: range,
    *,
    states: Sequence[str],
    max_parallelism: int,
    memory_bytes: int = MEMORY_BYTES,
) -> None:
    """Append the key groups of a range to a stream, merged from all runs.

    Parameters
    ----------
    states
        Names of the states by id, for messages.

    Raises
    ------
    FormatError
        A state has two entries with the same key.
    """
    gatherer = _Gatherer(states, max_parallelism)
    parts = [part for run in runs if (part := run.within(groups)) is not None]
    sizes = np.zeros(len(groups), dtype=np.int64)
    for part in parts:
        sizes[part.numbers - groups.start] += np.diff(part.starts)
    for some in _steps(sizes, groups.start, memory_bytes):
        here = [piece for part in parts if (piece := part.within(some)) is not None]
        if not here:
            continue
        if len(some) == 1 and sum(p.size_bytes for p in here) > memory_bytes:
            with writer.group(some.start) as append:
                joiner = GroupJoiner(append)
                for batch in gatherer.merged(here, some.start, memory_bytes):
                    gatherer.join(joiner, batch)
                joiner.finish()
        else:
            run, _ = gatherer.sorted(gatherer.walked([p.load() for p in here]))
            writer.add_groups(run.data, run.numbers, run.starts)


def _steps(sizes: Int64s, start: int, memory_bytes: int) -> Iterator[range]:
    """Cut key groups into ranges of at most ``memory_bytes``; a larger one stands alone."""
    first, total = 0, 0
    for i, size in enumerate(sizes.tolist()):
        if total and total + size > memory_bytes:
            yield range(start + first, start + i)
            first, total = i, 0
        total += size
    if len(sizes):
        yield range(start + first, start + len(sizes))


class _Gatherer:
    def __init__(self, states: Sequence[str], max_parallelism: int) -> None:
        self.states = tuple(states)
        self.max_parallelism = max_parallelism
        self.prefix = prefix_size(max_parallelism)

    def walked(self, runs: Sequence[PackedRun]) -> EntryBatch:
        """Return the entries of runs, one run after another."""
        data = runs[0].data if len(runs) == 1 else np.concatenate([r.data for r in runs])
        bases = np.cumsum([0, *(len(r.data) for r in runs)])
        starts = np.concatenate([r.starts[:-1] + b for r, b in zip(runs, bases, strict=False)])
        ends = np.concatenate([r.starts[1:] + b for r, b in zip(runs, bases, strict=False)])
        numbers = np.concatenate([r.numbers for r in runs])
        cursor = np.array([0, -1, 0], dtype=np.int64)
        pieces = []
        while True:
            left = len(data) - max(int(cursor[1]), 0)
            outs = [np.empty(min(left // _SMALLEST_ENTRY + 1, 1 << 20), dtype=np.int64) for _ in range(6)]
            code, n, at = walk(data, starts, ends, numbers, self.prefix, len(self.states), cursor, len(data), *outs)
            pieces.append([o[:n] for o in outs])
            if code == OK:
                break
            if code != FULL:
                raise FormatError(f"spilled entries were damaged: {WALK_MESSAGES[int(code)]}").at(offset=int(at))
        return _batch(data, [np.concatenate(c) for c in zip(*pieces, strict=True)])

    def sorted(self, batch: EntryBatch) -> tuple[PackedRun, int]:
        """Return entries sorted and packed, and the index of the last one."""
        order = sorted_order(batch, self.states)
        return packed(batch, order, batch.group, batch.state, self.prefix), int(order[-1])

    def join(self, joiner: GroupJoiner, batch: EntryBatch) -> None:
        """Append entries that follow all before them to a key group that is larger than memory."""
        run, last = self.sorted(batch)
        size = batch.key_end[last] - batch.key[last] + batch.value_end[last] - batch.value[last] + 8 + self.prefix
        joiner.add(
            run.data,
            first_state=int(batch.state.min()),
            last_state=int(batch.state[last]),
            last_entry_bytes=int(size),
        )

    def merged(self, runs: Sequence[StoredRun], number: int, memory_bytes: int) -> Iterator[EntryBatch]:
        """Sort the runs of one key group on local disk and merge them: yield batches whose entries all come before those of the next."""
        layout = StreamLayout(prefix=self.prefix, states=len(self.states), compressed=False)
        with tempfile.NamedTemporaryFile(prefix="statetool-") as f:
            pieces = (self.sorted(b)[0] for run in runs for b in _windows(run, number, layout, memory_bytes // 2))
            ordered = list(store_runs(pieces, f.write, f.name))
            f.flush()
            window = max(_LEAST_WINDOW, memory_bytes // (2 * len(ordered)))
            sources = [_Source(_windows(run, number, layout, window)) for run in ordered]
            while sources := [s for s in sources if s.fill()]:
                bound = min(s.last() for s in sources)
                yield concat([part for s in sources if (part := s.take(bound)) is not None])


def _windows(run: StoredRun, number: int, layout: StreamLayout, window: int) -> Iterator[EntryBatch]:
    size = run.offset + int(run.starts[-1])
    with Stream(file=run.path, start=0, size_bytes=size).open() as f:
        group = KeyGroupRange(number, run.offset + int(run.starts[0]), run.size_bytes)
        with open_large(f, group, layout) as large:
            yield from large.windows(window)


class _Source:
    """One sorted run, a window at a time."""

    def __init__(self, windows: Iterator[EntryBatch]) -> None:
        self.windows = windows
        self.batch: EntryBatch | None = None
        self.at = 0

    def fill(self) -> bool:
        """Make sure that there is an entry; ``False`` at the end."""
        while self.batch is None or self.at == len(self.batch):
            self.batch = next(self.windows, None)
            self.at = 0
            if self.batch is None:
                return False
        return True

    def entry(self, i: int) -> tuple[int, bytes]:
        assert self.batch is not None
        b = self.batch
        return int(b.state[i]), bytes(b.data[b.key[i] : b.key_end[i]])

    def last(self) -> tuple[int, bytes]:
        assert self.batch is not None
        return self.entry(len(self.batch) - 1)

    def take(self, bound: tuple[int, bytes]) -> EntryBatch | None:
        """Return the entries up to ``bound``, over the bytes that they lie in alone."""
        assert self.batch is not None
        low, high = self.at, len(self.batch)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken = self.batch.span(self.at, low) if low > self.at else None
        self.at = low
        return taken


def _batch(data: Bytes, columns: Sequence[Int64s]) -> EntryBatch:
    state, group, key, key_end, value, value_end = columns
    return EntryBatch(
        data=data,
        state=state,
        group=group,
        key=key,
        key_end=key_end,
        value=value,
        value_end=value_end,
        regions=(),
        file="",
    )
