"""Entries of a few keys in a large canonical key group, and the indexes that make the next look-up short.

Nothing in a savepoint says whether the entries of a state ascend: RocksDB writes them in order, the heap backend does not. So the first look-up in
a key group reads all of it: only this proves that a key is missing. It keeps where every 128th entry begins. If the keys of a state ascend,
later look-ups read the entries between two of these. Timers are stored by time, so that all of them are read each time.

Indexes stay in the memory of the process, and only those of local files, where a few small reads take no time. A file that has changed has
another index.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from statetool.entries.selection import TIMESTAMP_BYTES
from statetool.formats.backends.canonical import LargeKeyGroup, Section, StreamLayout, key_search
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.io.threads import after_fork
from statetool.kernels.entries.key_search import match_keys

#: Bytes of all indexes. Those of 100 million keys with four states have about 40 MB.
_MOST_BYTES: Final = 64 << 20
_LENGTH_BYTES: Final = 4
_SECTION_BYTES: Final = 200

_Place = tuple[object, ...]


@dataclass(slots=True)
class _Indexes:
    """The sections of key groups, the least recently used first."""

    kept: OrderedDict[_Place, list[Section]] = field(default_factory=OrderedDict)
    size_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Forget everything; in a new process."""
        self.kept, self.size_bytes, self.lock = OrderedDict(), 0, threading.Lock()

    def get(self, place: _Place) -> list[Section] | None:
        """Return the sections of a key group, ``None`` if it has not been read."""
        with self.lock:
            found = self.kept.get(place)
            if found is not None:
                self.kept.move_to_end(place)
            return found

    def put(self, place: _Place, sections: list[Section]) -> None:
        """Keep the sections of a key group, and forget others if there are too many."""
        with self.lock:
            self._remove(self.kept.pop(place, []))
            self.kept[place] = sections
            self.size_bytes += _size_of(sections)
            while self.size_bytes > _MOST_BYTES:
                self._remove(self.kept.popitem(last=False)[1])

    def _remove(self, sections: list[Section]) -> None:
        self.size_bytes -= _size_of(sections) if sections else 0


def _size_of(sections: Sequence[Section]) -> int:
    return sum(section.starts.nbytes + _SECTION_BYTES for section in sections)


INDEXES: Final = _Indexes()
after_fork(INDEXES.reset)


def entries_of_keys(
    group: LargeKeyGroup, header: KeyedHeader, states: Sequence[str] | None, keys: Sequence[bytes]
) -> Iterator[EntryBatch]:
    """Yield the entries of some keys, and maybe of others. Those of timers are found by the key after their time.

    Parameters
    ----------
    states
        Names of states; ``None`` for all.

    Raises
    ------
    FormatError
        Damaged bytes, or the file has changed since it was opened.
    """
    shifts = _shifts(header, states)
    place = _place(group)
    sections = None if place is None else INDEXES.get(place)
    if sections is None:
        sections, batches = group.find(key_search(keys, shifts))
        if place is not None and len({section.state for section in sections}) == len(sections):
            INDEXES.put(place, sections)
        yield from batches
        return
    spans = []
    for section in sections:
        shift = shifts[section.state]
        if shift == 0 and section.ordered:
            spans += _spans(group, section, keys)
        elif shift >= 0:
            only = [shift if state == section.state else -1 for state in range(len(shifts))]
            yield from group.find_in(section, key_search(keys, only))
    if spans:
        yield group.entries(spans)[0]


def keep_keys(
    batches: Iterable[EntryBatch], header: KeyedHeader, states: Sequence[str] | None, keys: Sequence[bytes]
) -> Iterator[EntryBatch]:
    """Yield the entries of some keys in batches; arguments as for :func:`entries_of_keys`."""
    search = key_search(keys, _shifts(header, states))
    for batch in batches:
        matches = np.zeros(len(batch), dtype=np.uint8)
        match_keys(batch.data, batch.state, batch.key, batch.key_end, search, matches)
        if matches.any():
            yield batch.take(np.flatnonzero(matches))


def _shifts(header: KeyedHeader, states: Sequence[str] | None) -> list[int]:
    """Return the number of bytes before the key in the entries of each state, -1 for states that are not selected."""
    return [
        -1 if states is not None and meta.name not in states else TIMESTAMP_BYTES if meta.kind == "timers" else 0
        for meta in header.states
    ]


def _place(group: LargeKeyGroup) -> _Place | None:
    """Return what identifies a key group and its bytes, ``None`` if it is not a part of a local file."""
    stamp = group.plain.stamp
    if stamp is None or group.region.compressed:
        return None
    layout: StreamLayout = group.layout
    return (group.plain.stream.file, stamp, group.region.offset, group.size_bytes, layout.prefix, layout.states)


def _spans(group: LargeKeyGroup, section: Section, keys: Sequence[bytes]) -> list[tuple[Section, int, int]]:
    """Return ranges of entries with all that begin with one of some keys, without overlaps."""
    spans: list[tuple[Section, int, int]] = []
    stop = 0
    for key in sorted(keys):
        # From the last start before the key to the first one after all that begin with it.
        first = max(0, _count(group, section, key, with_equal=False) - 1) * section.stride
        end = min(_count(group, section, key, with_equal=True) * section.stride, section.entries)
        if max(first, stop) < end:
            spans.append((section, max(first, stop), end))
            stop = end
    return spans


def _count(group: LargeKeyGroup, section: Section, key: bytes, *, with_equal: bool) -> int:
    """Return the number of starts whose entries sort before a key, or before all that do not begin with it."""
    low, high = 0, len(section.starts)
    while low < high:
        middle = (low + high) // 2
        begin = _key_at(group, int(section.starts[middle]), len(key))
        if begin < key or (with_equal and begin == key):
            low = middle + 1
        else:
            high = middle
    return low


def _key_at(group: LargeKeyGroup, start: int, most: int) -> bytes:
    """Return the first bytes of the key of an entry, without the number of its key group."""
    skipped = _LENGTH_BYTES + group.layout.prefix
    raw = group.plain.read_at(group.offset + start, min(skipped + most, group.size_bytes - start))
    return bytes(raw[skipped : _LENGTH_BYTES + int.from_bytes(raw[:_LENGTH_BYTES], "big")])
