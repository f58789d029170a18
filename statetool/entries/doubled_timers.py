"""Timers with two state ids in one stream, as one state.

After a switch of the timer service, the database of RocksDB's backend still has the timers from before, and the heap has the newer ones.
A canonical savepoint contains both under one name. Flink restores both, and a timer that both have fires once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.words import copy_ranges


def join_doubled(batches: Iterable[EntryBatch], stored_ids: Sequence[int]) -> Iterator[EntryBatch]:
    """Yield batches with the ids of states instead of stored ids, and each timer once.

    Parameters
    ----------
    stored_ids
        The index of the state of each stored id (:attr:`~statetool.formats.keyed.header.KeyedHeader.stored_ids`).
    """
    ids = np.array(stored_ids, dtype=np.int64)
    doubled = np.bincount(ids) > 1
    seen = _Timers.none()
    for batch in batches:
        renumbered = replace(batch, state=ids[batch.state])
        at = np.flatnonzero(doubled[renumbered.state])
        if not len(at):
            yield renumbered
            continue
        timers = _Timers.of(renumbered.take(at), len(doubled))
        if len(seen.tag) and seen.last_group(len(doubled)) == timers.tag[0] // len(doubled):
            earlier = len(seen.tag)
            timers = seen.with_more(timers)
        else:
            earlier = 0
        _, first = distinct(timers.data, timers.start, timers.end, timers.tag)
        repeated = np.ones(len(timers.tag), dtype=np.bool_)
        repeated[first] = False
        left_out = at[repeated[earlier:]]
        yield renumbered.take(np.delete(np.arange(len(batch)), left_out)) if len(left_out) else renumbered
        of_last_group = timers.tag[first] // len(doubled) == timers.last_group(len(doubled))
        seen = timers.packed(first[of_last_group])


@dataclass(frozen=True, slots=True)
class _Timers:
    """Timers as ranges of bytes; the tag of each is a number of its key group and state."""

    data: npt.NDArray[np.uint8]
    start: Int64s
    end: Int64s
    tag: Int64s

    @classmethod
    def none(cls) -> _Timers:
        none = np.empty(0, dtype=np.int64)
        return cls(np.empty(0, dtype=np.uint8), none, none, none)

    @classmethod
    def of(cls, batch: EntryBatch, states: int) -> _Timers:
        return cls(batch.data, batch.key, batch.key_end, batch.group * states + batch.state)

    def last_group(self, states: int) -> int:
        return int(self.tag[-1]) // states

    def packed(self, index: Int64s) -> _Timers:
        """Return some timers over their own bytes, without those between them."""
        sizes = self.end[index] - self.start[index]
        ends = np.cumsum(sizes)
        data = np.empty(int(ends[-1]), dtype=np.uint8)
        copy_ranges(self.data, self.start[index], sizes, data, ends - sizes)
        return _Timers(data, ends - sizes, ends, self.tag[index])

    def with_more(self, more: _Timers) -> _Timers:
        """Return these timers, and others after them."""
        more = more.packed(np.arange(len(more.tag)))
        return _Timers(
            np.concatenate([self.data, more.data]),
            np.concatenate([self.start, more.start + len(self.data)]),
            np.concatenate([self.end, more.end + len(self.data)]),
            np.concatenate([self.tag, more.tag]),
        )
