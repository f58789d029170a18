"""Pairs of entries with equal keys, found while both sides are read.

Snapshots of one job mostly have their entries in the same order, so that partners are read soon after each other. Only entries whose
partner was not read yet stay in memory: equal entries are dropped, and differing ones become rows. So each side is read once.
If too many entries wait for their partners, what remains is compared by the hashes of all entries instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from statetool.comparison.side import HashedBatch, Remainder, SnapshotSide, compact, pair_equal_hashes
from statetool.formats.keyed.distinct import Hashes
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.arrays import Positions

#: Maximum bytes of entries of both sides that wait for their partners, with their positions and hashes.
WAITING_BYTES: Final = 64 << 20
#: Entries that are read from a side at once.
PIECE_ENTRIES: Final = 1 << 17
#: Copies of entries that wait are joined when there are more.
_MOST_PIECES: Final = 16


@dataclass(frozen=True, slots=True)
class PlacedEntries:
    """Entries of one source, with their ``numbers`` on their side. Entries of the two sides with equal keys have one place."""

    source: int
    batch: EntryBatch
    numbers: Positions
    places: Positions

    def within(self, low: int, high: int) -> PlacedEntries:
        """Return the entries at places ``low .. high``."""
        index = np.flatnonzero((self.places >= low) & (self.places < high))
        return PlacedEntries(self.source, self.batch.take(index), self.numbers[index], self.places[index])


Portion = tuple[list[PlacedEntries], list[PlacedEntries]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Entries that wait for their partners.

    Attributes
    ----------
    data_bytes
        Bytes of ``hashed.batch.data`` in proportion to the entries: several pieces share them.
    passed
        Whether a later entry has found its partner. The bytes are then a copy, which is not shared.
    """

    hashed: HashedBatch
    numbers: Positions
    data_bytes: int
    passed: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size_bytes(self) -> int:
        columns = (*self.hashed.batch.rows(), self.hashed.keys, self.hashed.values, self.numbers)
        return self.data_bytes + sum(column.nbytes for column in columns)

    def take(self, index: Positions, *, passed: bool) -> _Piece:
        if len(index) == len(self) and passed == self.passed:
            return self
        hashed = self.hashed
        batch = hashed.batch.take(index)
        data_bytes = self.data_bytes * len(index) // len(self)
        if passed:
            batch = compact(batch)
            data_bytes = len(batch.data)
        taken = HashedBatch(hashed.source, batch, hashed.keys[index], hashed.values[index])
        return _Piece(taken, self.numbers[index], data_bytes, passed)


def _joined(pieces: Sequence[_Piece]) -> _Piece:
    """Join pieces of one source whose bytes are copies."""
    batch = concat([piece.hashed.batch for piece in pieces])
    keys, values = (np.concatenate([getattr(p.hashed, name) for p in pieces]) for name in ("keys", "values"))
    hashed = HashedBatch(pieces[0].hashed.source, batch, keys, values)
    return _Piece(hashed, np.concatenate([piece.numbers for piece in pieces]), len(batch.data), passed=True)


class _Waiting:
    """The entries of one side that wait for their partners, in their order."""

    def __init__(self, side: SnapshotSide) -> None:
        self.side = side
        self.pieces: list[_Piece] = []
        #: Number of entries that were read, and of those after the last one that found its partner.
        self.read = self.ahead = 0
        self.ended = False
        self._unread = (piece for batch in side.batches() for piece in self._cut(batch))

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return sum(piece.size_bytes for piece in self.pieces)

    def pull(self) -> int:
        """Read some entries, and return their number."""
        piece = next(self._unread, None)
        if piece is None:
            self.ended = True
            return 0
        self.side.count(piece.hashed.source, piece.hashed.batch)
        self.pieces.append(piece)
        self.read += len(piece)
        self.ahead += len(piece)
        return len(piece)

    def _cut(self, hashed: HashedBatch) -> Iterator[_Piece]:
        n, size = len(hashed.batch), len(hashed.batch.data)
        for first in range(0, n, PIECE_ENTRIES):
            part = slice(first, min(first + PIECE_ENTRIES, n))
            count = part.stop - first
            cut = HashedBatch(hashed.source, hashed.batch.take(part), hashed.keys[part], hashed.values[part])
            yield _Piece(cut, np.arange(self.read, self.read + count), size * count // n)

    def columns(self) -> tuple[Hashes, Hashes, Positions]:
        """Return hashes of keys, hashes of values, and numbers."""
        hashes, numbers = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        return (
            np.concatenate([hashes, *(p.hashed.keys for p in self.pieces)]),
            np.concatenate([hashes, *(p.hashed.values for p in self.pieces)]),
            np.concatenate([numbers, *(p.numbers for p in self.pieces)]),
        )

    def place(self, index: Positions, places: Positions) -> Iterator[PlacedEntries]:
        """Yield copies of the entries at an index."""
        order = np.argsort(index, kind="stable")
        index, places = index[order], places[order]
        at = 0
        for piece, own in self._split(index):
            copied = compact(piece.hashed.batch.take(own))
            yield PlacedEntries(piece.hashed.source, copied, piece.numbers[own], places[at : at + len(own)])
            at += len(own)

    def keep(self, index: Positions, matched: Positions) -> None:
        """Keep only the entries at an ascending index. Those at ``matched`` have found their partners."""
        total = len(self)
        passed = max(total - self.ahead, int(matched.max(initial=-1)) + 1)
        kept = []
        for first, last, are_passed in ((0, passed, True), (passed, total, False)):
            low, high = np.searchsorted(index, (first, last))
            kept += [piece.take(own, passed=are_passed) for piece, own in self._split(index[low:high])]
        behind = [piece for piece in kept if piece.passed]
        ahead = [piece for piece in kept if not piece.passed]
        if len(behind) > _MOST_PIECES:
            behind = [_joined(list(pieces)) for _, pieces in groupby(behind, lambda p: p.hashed.source)]
        self.pieces, self.ahead = behind + ahead, sum(map(len, ahead))

    def remainder(self) -> Remainder:
        """Stop reading, and return the entries that are not compared yet. They do not count."""
        self._unread.close()
        for piece in self.pieces:
            self.side.count(piece.hashed.source, piece.hashed.batch, -1)
        _, _, numbers = self.columns()
        self.pieces = []
        return Remainder(self.read, numbers)

    def _split(self, index: Positions) -> Iterator[tuple[_Piece, Positions]]:
        """Yield pieces and the indexes in them, for an ascending index."""
        at = 0
        for piece in self.pieces:
            first, stop = np.searchsorted(index, (at, at + len(piece)))
            if stop > first:
                yield piece, index[first:stop] - at
            at += len(piece)


class Partners:
    """The entries of two sides that differ from their partners or have none. ``remainders``: what could not be compared, of each side."""

    def __init__(self, before: SnapshotSide, after: SnapshotSide) -> None:
        self.before, self.after = _Waiting(before), _Waiting(after)
        self.remainders: tuple[Remainder, Remainder] | None = None
        self._found: Portion = [], []

    def differences(self, portion_bytes: int) -> Iterator[Portion]:
        """Yield the entries of both sides in portions of about ``portion_bytes``. The entries at one place are in one portion."""
        while not (self.before.ended and self.after.ended):
            self._pull()
            self._pair()
            if self._found_bytes >= portion_bytes:
                yield from self._portions(portion_bytes)
            if self.before.size_bytes + self.after.size_bytes > WAITING_BYTES:
                self.remainders = self.before.remainder(), self.after.remainder()
                break
        yield from self._portions(portion_bytes)

    def _pull(self) -> None:
        """Read some entries, first those of the side that is behind.

        All that waits is paired again after each call, so at least half as much is read: the time of a comparison stays linear.
        """
        before, after = self.before, self.after
        least = (len(before) + len(after)) // 2
        pulled = 0
        while not (before.ended and after.ended):
            is_behind = before.ahead <= after.ahead
            pulled += (before if after.ended or (is_behind and not before.ended) else after).pull()
            if pulled >= least and all(side.ended or side.ahead for side in (before, after)):
                break

    def _pair(self) -> None:
        before, after = self.before, self.after
        (key_a, value_a, number_a), (key_b, value_b, number_b) = before.columns(), after.columns()
        pairs, alone_b = pair_equal_hashes(key_a, key_b)
        matched, alone_a = np.flatnonzero(pairs >= 0), np.flatnonzero(pairs < 0)
        differing = matched[value_a[matched] != value_b[pairs[matched]]]
        self._found[0].extend(before.place(differing, number_a[differing]))
        self._found[1].extend(after.place(pairs[differing], number_a[differing]))
        none = np.empty(0, dtype=np.int64)
        if after.ended:  # what waits on the other side has no partner
            self._found[0].extend(before.place(alone_a, number_a[alone_a]))
        if before.ended:
            self._found[1].extend(after.place(alone_b, before.read + number_b[alone_b]))
        before.keep(none if after.ended else alone_a, matched)
        after.keep(none if before.ended else alone_b, pairs[matched])

    @property
    def _found_bytes(self) -> int:
        return sum(len(placed.batch.data) for side in self._found for placed in side)

    def _portions(self, portion_bytes: int) -> Iterator[Portion]:
        """Yield what was found, and forget it."""
        found, size = self._found, self._found_bytes
        self._found = [], []
        places = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(p.places for side in found for p in side)]))
        step = -(-len(places) // max(1, -(-size // portion_bytes)))
        for first in range(0, len(places), max(1, step)):
            low, high = int(places[first]), int(places[min(first + step, len(places)) - 1]) + 1
            yield (
                [part for placed in found[0] if len((part := placed.within(low, high)).numbers)],
                [part for placed in found[1] if len((part := placed.within(low, high)).numbers)],
            )


def entries_in_order(
    headers: Sequence[KeyedHeader], found: Sequence[PlacedEntries]
) -> Iterator[tuple[KeyedHeader, EntryBatch, Positions]]:
    """Yield the entries of each source in the order of their side: its header, the entries, and their places."""
    for number, header in enumerate(headers):
        own = [placed for placed in found if placed.source == number]
        if own:
            order = np.argsort(np.concatenate([placed.numbers for placed in own]))
            places = np.concatenate([placed.places for placed in own])
            yield header, compact(concat([placed.batch for placed in own]).take(order)), places[order]
