"""Put the entries of each key of a huge key group together by merging its states, whose keys ascend (RocksDB writes them so).

Each state is read in windows of its own, so no more is held than a window of each state, or the largest single key where that is more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from statetool.arrow.keyed import KeyedTable
from statetool.errors import FormatError
from statetool.formats.keyed.canonical import LargeKeyGroup, Section
from statetool.formats.keyed.complete import complete_keys
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.kernels.walk import count_below, descent


def mergeable(sections: list[Section], table: KeyedTable) -> list[Section] | None:
    """Return the sections of the table's states, ``None`` where their keys are not in order."""
    wanted = [s for s in sections if s.state in table.ids.values()]
    in_order = all(s.ordered for s in wanted) and len({s.state for s in wanted}) == len(wanted)
    return wanted if in_order else None


def merged(
    group: LargeKeyGroup, sections: list[Section], table: KeyedTable, *, memory_bytes: int
) -> Iterator[EntryBatch]:
    """Yield the entries of one key group such that all entries of a key are in one batch, keys in ascending order.

    Raises
    ------
    FormatError
        The keys of a state are not in order.
    """
    window = max(1, memory_bytes // (4 * max(1, len(sections))))
    names = {number: name for name, number in table.ids.items()}
    runs = [_Run(group.windows(window, section=s), table, names[s.state]) for s in sections]
    for parts in complete_keys(runs):
        yield concat(parts)


class _Run:
    """A :class:`~statetool.formats.keyed.complete.Run` of windows; ``batch`` is what has been read and not yet taken."""

    def __init__(self, windows: Iterator[EntryBatch], table: KeyedTable, state: str) -> None:
        self._windows = windows
        self._table = table
        self._state = state
        self.ended = False
        self.batch = next(windows)
        self._split()

    def _split(self) -> None:
        entries, keys = self._table.split_all(self.batch, self._table.metas[self._state])
        self._key, self._key_end = keys.key, keys.key_end
        bad = descent(entries.data, self._key, self._key_end)
        if bad:
            raise entries.locate(
                FormatError("the keys of a state are not in order").at(offset=int(self._key[bad]), state=self._state)
            )

    @property
    def empty(self) -> bool:
        return not len(self.batch)

    @property
    def last(self) -> bytes:
        return bytes(self.batch.data[self._key[-1] : self._key_end[-1]])

    def below(self, bound: bytes | None) -> list[EntryBatch]:
        n = len(self.batch)
        if bound is not None:
            wanted: npt.NDArray[np.uint8] = np.frombuffer(bound, dtype=np.uint8)
            n = int(count_below(self.batch.data, self._key, self._key_end, wanted))
        if n == 0:
            return []
        taken = self.batch.span(0, n)
        self.batch = self.batch.take(np.arange(n, len(self.batch)))
        self._key, self._key_end = self._key[n:], self._key_end[n:]
        return [taken]

    def grow(self) -> None:
        following = next(self._windows, None)
        if following is None:
            self.ended = True
            return
        self.batch = concat([self.batch.span(0, len(self.batch)), following])
        self._split()
