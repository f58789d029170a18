"""Entries on their way to their subtasks: packed as canonical key groups, and stored on local disk in between.

Rows of tables, entries of an older snapshot and elements of operator state all use this form; the "key group" of operator state is the
subtask. A packed run is a sequence of segments, each a canonical key group, so that the walk that reads savepoints also reads runs.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import OK
from statetool.kernels.entries.deal import LOOKED_UP, deal_groups, pack_groups, reorder_groups
from statetool.kernels.entries.order import DIGITS, count_order, find_lowest, key_heads, sort_segments
from statetool.kernels.entries.walk import FULL, WALK_MESSAGES, KeyGroups, Rows, walk

if TYPE_CHECKING:
    from typing_extensions import Self

#: Bit of a state id that marks presence entries, which only record that a row with the key exists. The other bits may be any number.
PRESENCE: Final = 1 << 15
#: Bytes of the index after the key of a single list element.
INDEX_BYTES: Final = 8
#: Maximum state id of a run: the next number marks the end of a key group.
_MOST_STATES: Final = (1 << 16) - 1
_SMALLEST_ENTRY: Final = 9
#: Counting needs a counter per pair of key group and state. With many more pairs than entries, entries are compared instead.
_MOST_PLACES: Final = 1 << 16
#: Upper bound of offsets in a file of runs.
_FILE: Final = 1 << 48
Uint64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PackedRun:
    """Segments one after another: int64[k] ``numbers`` of their key groups, int64[k + 1] ``starts`` in ``data``; the last is the end."""

    data: Bytes
    numbers: Int64s
    starts: Int64s

    def part(self, first: int, stop: int) -> PackedRun:
        """Return segments ``first .. stop``."""
        at, end = int(self.starts[first]), int(self.starts[stop])
        return PackedRun(self.data[at:end], self.numbers[first:stop], self.starts[first : stop + 1] - at)

    def parts(self, owner: Int64s, limit: int) -> Iterator[PackedRun]:
        """Split into parts of at most ``limit`` bytes that do not span ``owner`` (int64[k]) changes; a larger segment is a part."""
        for first, stop in portions(self.starts, limit, owner):
            yield self.part(first, stop)

    def entries(self, prefix: int) -> EntryBatch:
        """Return the entries.

        Raises
        ------
        FormatError
            The bytes differ from the packed ones.
        """
        cursor = np.array([0, -1, 0], dtype=np.int64)
        groups = KeyGroups(self.starts[:-1], self.starts[1:], self.numbers)
        walked = []
        while True:
            remaining = len(self.data) - max(int(cursor[1]), 0)
            outs = [np.empty(min(remaining // _SMALLEST_ENTRY + 1, 1 << 20), dtype=np.int64) for _ in range(6)]
            code, n, at = walk(self.data, len(self.data), groups, prefix, _MOST_STATES, cursor, Rows(*outs))
            walked.append([o[:n] for o in outs])
            if code == OK:
                break
            if code != FULL:
                raise FormatError(f"spilled entries were damaged: {WALK_MESSAGES[int(code)]}").at(offset=int(at))
        columns = walked[0] if len(walked) == 1 else [np.concatenate(c) for c in zip(*walked, strict=True)]
        return entry_batch(self.data, *columns)


def entry_batch(
    data: Bytes, state: Int64s, group: Int64s, key: Int64s, key_end: Int64s, value: Int64s, value_end: Int64s
) -> EntryBatch:
    """Return entries that are not stored in a file."""
    return EntryBatch(
        data=data, state=state, group=group, key=key, key_end=key_end, value=value, value_end=value_end,
        regions=(), file="",
    )  # fmt: skip


def pack_run(batch: EntryBatch, order: Int64s, prefix: int) -> PackedRun:
    """Pack entries.

    Parameters
    ----------
    order
        int64[n]: the entries to pack, by key group, with those of one state together.
    prefix
        Bytes of the key-group prefix of each key.
    """
    out, numbers, starts = _room(batch, prefix, len(order), slice(None) if len(order) == len(batch) else order)
    scratch = np.empty(LOOKED_UP, dtype=np.int64)
    written, count = pack_groups(batch.data, order, *_columns(batch), prefix, scratch, out, numbers, starts)
    starts[count] = written
    return PackedRun(out[:written], numbers[:count].copy(), starts[: count + 1].copy())


def reorder_run(batch: EntryBatch, order: Int64s, prefix: int) -> PackedRun:
    """Pack entries of canonical key groups in another order.

    Parameters
    ----------
    batch
        Entries of runs (:meth:`PackedRun.entries`), or of other key groups in the canonical layout, over their bytes. Its key groups and
        states may differ from those in the bytes, but not the prefix of the keys.
    order
        int64[k]: the entries to pack, by key group and state.
    """
    place = (batch.group << 16 | batch.state)[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    edges = np.append(first, len(order))
    out, numbers, starts = np.empty_like(batch.data), np.empty_like(first), np.empty_like(edges)
    head = 4 + prefix  # the key's size and its prefix
    start, size = (batch.key - head)[order], (batch.value_end - batch.key + head)[order]
    places = edges, place[first] >> 16, place[first] & _MOST_STATES
    written, count = reorder_groups(batch.data, start, size, *places, out, numbers, starts)
    starts[count] = written
    return PackedRun(out[:written], numbers[:count].copy(), starts[: count + 1].copy())


def deal_run(batch: EntryBatch, prefix: int) -> PackedRun:
    """Pack all entries of a batch; those of one key group and state keep their order.

    Parameters
    ----------
    prefix
        Bytes of the key-group prefix of each key.
    """
    base, groups, states = _places(batch.group, batch.state)
    if _too_many(groups * states, len(batch)):
        return pack_run(batch, order_of_groups(batch.group, batch.state), prefix)
    out, numbers, starts = _room(batch, prefix, groups)
    scratch = np.zeros((2, groups, states), dtype=np.int64)
    written, count = deal_groups(
        batch.data, *_columns(batch), prefix, base, scratch[0], scratch[1], out, numbers, starts
    )  # fmt: skip
    starts[count] = written
    return PackedRun(out[:written], numbers[:count].copy(), starts[: count + 1].copy())


def lowest_of(batch: EntryBatch, numbers: Int64s, lists: Collection[int]) -> Uint64s:
    """Return the lowest entry of each of the key groups ``numbers``, which a batch has: uint64[3, k] as in :class:`Segments`.

    Parameters
    ----------
    lists
        States whose entries are list elements, with their index after the key.
    """
    if not len(numbers):
        return np.empty((3, 0), dtype=np.uint64)
    base = int(numbers[0])
    lowest = np.full((3, int(numbers[-1]) - base + 1), (1 << 64) - 1, dtype=np.uint64)
    state = batch.state & (PRESENCE - 1)
    find_lowest(batch.data, batch.group, state, batch.key, ends_of_keys(batch, lists), base, lowest)
    return lowest[:, numbers - base]


def ends_of_keys(batch: EntryBatch, lists: Collection[int]) -> Int64s:
    """Return the end of each entry's key, without the indexes of list elements."""
    return batch.key_end - INDEX_BYTES * np.isin(batch.state, list(lists)) if lists else batch.key_end


def _columns(batch: EntryBatch) -> tuple[Int64s, ...]:
    return batch.group, batch.state, batch.key, batch.key_end, batch.value, batch.value_end


def _room(batch: EntryBatch, prefix: int, groups: int, index: Any = slice(None)) -> tuple[Bytes, Int64s, Int64s]:
    """Return empty arrays for the packed entries at ``index``, for the numbers of their key groups, and for their starts."""
    start, key_end, value, end = (c[index] for c in (batch.key, batch.key_end, batch.value, batch.value_end))
    size = int(key_end.sum() - start.sum() + end.sum() - value.sum())
    # Two lengths, a state id, the end of a key group.
    out = np.empty(size + (12 + prefix) * len(start), dtype=np.uint8)
    return out, np.empty(groups, dtype=np.int64), np.empty(groups + 1, dtype=np.int64)


def _places(group: Int64s, state: Int64s) -> tuple[int, int, int]:
    """Return the smallest key group, the number of key groups from it on, and the number of states from 0 on."""
    if not len(group):
        return 0, 0, 0
    base = int(group.min())
    return base, int(group.max()) - base + 1, int(state.max()) + 1


def _too_many(places: int, entries: int) -> bool:
    """Return True if there are too many pairs of key group and state to count."""
    return places > _MOST_PLACES + 8 * entries


def cuts(batch: EntryBatch, order: Int64s, owner: Int64s | None, limit: int) -> Iterator[Int64s]:
    """Split an order of entries into pieces of about ``limit`` bytes, and where their ``owner`` (int64[n], if any) changes."""
    sizes = batch.key_end[order] - batch.key[order] + batch.value_end[order] - batch.value[order] + 8
    total = np.concatenate([[0], np.cumsum(sizes)])
    for first, stop in portions(total, limit, None if owner is None else owner[order]):
        yield order[first:stop]


def portions(edges: Int64s, limit: int, owner: Int64s | None = None) -> Iterator[tuple[int, int]]:
    """Yield ``first, stop`` of items with at most ``limit`` bytes in total, or of one larger item.

    Parameters
    ----------
    edges
        int64[n + 1]: start of each item, and the end of the last.
    owner
        int64[n]: items with different owners are kept apart.
    """
    changes = [] if owner is None else (np.flatnonzero(np.diff(owner)) + 1).tolist()
    first = 0
    for stop in [*changes, len(edges) - 1]:
        while first < stop:
            fitting = int(np.searchsorted(edges, edges[first] + limit, side="right")) - 1
            after = min(max(first + 1, fitting), stop)
            yield first, after
            first = after


def order_of_groups(group: Int64s, state: Int64s) -> Int64s:
    """Return the order of entries by key group and state id; those of one state keep their order."""
    if not len(group):
        return np.empty(0, dtype=np.int64)
    base, groups, states = _places(group, state)
    places = groups * states
    major = (group - base) * states + state
    if _too_many(places, len(group)):
        return np.argsort(major, kind="stable").astype(np.int64)
    order = np.empty(len(group), dtype=np.int64)
    count_order(major, np.zeros(places + 1, dtype=np.int64), order)
    return order


def order_of_keys(batch: EntryBatch) -> tuple[Int64s, int | None]:
    """Return the order of entries by key group, state and the unsigned bytes of the key, as in RocksDB, and a duplicate.

    The duplicate is an entry with the same key as another one, ``None`` if there is none. Entries with :data:`PRESENCE` count as entries of
    their state.
    """
    state = batch.state & (PRESENCE - 1)
    order = order_of_groups(batch.group, state)
    head = np.empty((2, len(order)), dtype=np.uint64)
    key_heads(batch.data, batch.key, batch.key_end, head)
    major = batch.group << 16 | state
    scratch = np.empty_like(order), np.empty((2, len(order)), dtype=np.uint64), np.empty(DIGITS + 1, dtype=np.int64)
    twin = int(sort_segments(batch.data, major, head, batch.key, batch.key_end, order, *scratch))
    return order, int(order[twin]) if twin >= 0 else None


class Spill:
    """Runs in files on local disk, removed after the block. Threads may add runs concurrently, each to another file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: list[Any] = []
        self._ends: list[int] = []
        #: Files that no thread is currently writing.
        self._idle: list[int] = []
        self._added: list[tuple[Int64s, Int64s, Uint64s]] = []
        self._places: list[int] = []
        #: Numbers of files that others have written, by path.
        self._others: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def add(self, run: PackedRun, place: int, base: int = 0, lowest: Uint64s | None = None) -> None:
        """Append a run.

        Parameters
        ----------
        place
            Position in the order of runs, which may be added in any order.
        base
            Added to the numbers of its key groups.
        lowest
            The lowest entry of each segment, as in :class:`Segments`, if known.
        """
        with self._lock:
            number = self._idle.pop() if self._idle else self._opened()
        self._files[number].write(run.data.data)
        with self._lock:
            at, self._ends[number] = self._ends[number], self._ends[number] + len(run.data)
            self._append(run.numbers + base, run.starts + at, place, lowest)
            self._idle.append(number)

    def add_stored(self, path: str, numbers: Int64s, starts: Int64s, place: int, base: int = 0) -> None:
        """Append a run that is stored in a file: numbers of its key groups, and ``starts`` in the file, the last of which is the end.

        Parameters
        ----------
        place, base
            As in :meth:`add`.
        """
        with self._lock:
            number = self._others.get(path)
            if number is None:
                number = self._others[path] = self._owned(open(path, "rb", buffering=0))  # noqa: SIM115 - as in _opened
            self._append(numbers + base, starts + number * _FILE, place, None)

    def _append(self, numbers: Int64s, starts: Int64s, place: int, lowest: Uint64s | None) -> None:
        unknown = np.zeros((3, len(numbers)), dtype=np.uint64)
        self._added.append((numbers, starts, unknown if lowest is None else lowest))
        self._places.append(place)

    def _opened(self) -> int:
        return self._owned(tempfile.TemporaryFile(prefix="statetool-"))

    def _owned(self, file: Any) -> int:
        """Add an open file, and return its number."""
        number = len(self._files)
        self._files.append(file)
        self._ends.append(number * _FILE)
        return number

    def segments(self) -> Segments:
        """Return all segments, after all runs were added."""
        for file in self._files:
            file.flush()
        empty = np.zeros(0, dtype=np.int64)
        numbers = np.concatenate([empty, *(n for n, _, _ in self._added)])
        counts = [len(n) for n, _, _ in self._added]
        places = np.repeat(np.array(self._places, dtype=np.int64), counts)
        added = np.repeat(np.arange(len(counts)), counts)  # runs with the same place may be in several files
        offsets = np.concatenate([empty, *(s[:-1] for _, s, _ in self._added)])
        sizes = np.concatenate([empty, *(np.diff(s) for _, s, _ in self._added)])
        lowest = np.concatenate([np.empty((3, 0), dtype=np.uint64), *(low for _, _, low in self._added)], axis=1)
        order = np.lexsort((offsets, added, places, numbers))
        files = tuple(f.fileno() for f in self._files)
        return Segments(files, numbers[order], places[order], offsets[order], sizes[order], lowest[:, order])


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments in open files.

    Most arrays are int64[k]: key groups (ascending), places of their runs, offsets (in file ``i`` of ``files``, plus ``i`` times
    :data:`_FILE`) and sizes. ``lowest`` is uint64[3, k]: no entry of a segment has a lower state, or the same state and a key that begins
    with lower bytes than these 16 as two big-endian numbers. If nothing is known, all are 0.
    """

    files: tuple[int, ...]
    numbers: Int64s
    places: Int64s
    offsets: Int64s
    sizes: Int64s
    lowest: Uint64s

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size_bytes(self) -> int:
        """Total bytes of the segments."""
        return int(self.sizes.sum())

    def take(self, index: Any) -> Segments:
        """Return the segments at an index."""
        numbers, places, offsets, sizes = (a[index] for a in (self.numbers, self.places, self.offsets, self.sizes))
        return Segments(self.files, numbers, places, offsets, sizes, self.lowest[:, index])

    def beside(self, other: Segments) -> Segments:
        """Return these segments and those of other files."""
        numbers = np.concatenate([self.numbers, other.numbers])
        both = Segments(
            (*self.files, *other.files),
            numbers,
            np.concatenate([self.places, other.places]),
            np.concatenate([self.offsets, other.offsets + len(self.files) * _FILE]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.lowest, other.lowest], axis=1),
        )
        return both.take(np.argsort(numbers, kind="stable"))

    def within(self, numbers: range, base: int = 0) -> Segments:
        """Return the segments of a range of key groups, whose numbers have ``base`` added in the file."""
        low, high = np.searchsorted(self.numbers, (numbers.start + base, numbers.stop + base))
        chosen = self.take(slice(low, high))
        return replace(chosen, numbers=chosen.numbers - base)

    def cut(self, size_bytes: int) -> Iterator[Segments]:
        """Yield the segments in portions of about ``size_bytes``."""
        for first, stop in portions(np.concatenate([[0], np.cumsum(self.sizes)]), size_bytes):
            yield self.take(slice(first, stop))

    def load(self) -> PackedRun:
        """Read the segments into memory, in the order of the files."""
        data = np.empty(self.size_bytes, dtype=np.uint8)
        # Adjacent segments of a file are read at once.
        order = np.argsort(self.offsets, kind="stable")
        offsets, ends = self.offsets[order], (self.offsets + self.sizes)[order]
        edges = np.flatnonzero(offsets[1:] != ends[:-1]) + 1
        run = PackedRun(data, self.numbers[order], np.concatenate([[0], np.cumsum(self.sizes[order])]))
        for first, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(order)], strict=True):
            into = data[run.starts[first] : run.starts[stop]]
            number, at = divmod(int(offsets[first]), _FILE)
            read = os.preadv(self.files[number], [into.data], at)
            if read != len(into):
                raise FormatError(f"spilled entries were damaged: {read} bytes instead of {len(into)}")
        return run
