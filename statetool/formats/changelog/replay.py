"""Replay of changelog deltas on the entries of the materialized state.

Entries and deltas are in one batch: the deltas of state ``i`` of ``n`` have the state id ``n + i``, in chronological order. All entries and
deltas of a key must be in the batch. Entries without deltas are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import E, EntryBatch, RebuiltBatch, stack
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.delta_codes import APPEND, CLEAR, MERGE, PUT, REMOVE
from statetool.kernels.entries.distinct import hash_ranges
from statetool.kernels.entries.layout import join_elements

Pieces = list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedBatch(EntryBatch):
    """Entries of several batches over one buffer; ``parts`` are the batches, each with the start of its bytes."""

    parts: tuple[tuple[int, EntryBatch], ...]

    def locate(self, error: E) -> E:
        """Convert the position in ``data`` that an error carries to the location that its batch knows."""
        position = error.where.offset
        if position is None:
            return error
        start, part = [(s, p) for s, p in self.parts if s <= position][-1]
        error.where = replace(error.where, offset=position - start)
        return part.locate(error)


def join_batches(batches: Sequence[EntryBatch]) -> EntryBatch:
    """Return the entries of batches, at least one, as one batch, in order."""
    if len(batches) == 1:
        return batches[0]
    starts, columns = stack(batches)
    columns["data"].flags.writeable = False
    return JoinedBatch(**columns, regions=(), file=batches[0].file, parts=tuple(zip(starts, batches, strict=True)))


def replay(batch: EntryBatch, states: Sequence[StateMetaInfo], *, file: str) -> EntryBatch:
    """Return the entries after applying the deltas of a batch.

    Parameters
    ----------
    states
        The ``n`` states, by id.
    file
        Name of the changelog in messages.

    Raises
    ------
    FormatError
        Two materialized entries with the same key.
    UnsupportedError
        Values of several namespaces were merged, which only a user function can do.
    """
    n = len(states)
    keep = batch.state < n
    if keep.all():
        return batch
    state, value = batch.state.copy(), batch.value.copy()
    results = []
    for number in np.unique(batch.state[~keep]).tolist():
        deltas = np.flatnonzero(batch.state == number)
        entries = np.flatnonzero(batch.state == number - n)
        if np.isin(batch.data[batch.value[deltas]], (PUT, REMOVE)).all():
            keep[entries], keep[deltas] = _newest(batch, entries, deltas, states[number - n])
            # The value of a put follows the byte of its operation.
            state[deltas] -= n
            value[deltas] += 1
            continue
        overlay = _Overlay(states[number - n], number - n)
        keep[overlay.load(batch, entries, deltas)] = False
        overlay.apply(batch, deltas)
        results.append(overlay.batch(file))
    return join_batches([replace(batch, state=state, value=value).take(np.flatnonzero(keep)), *results])


def _newest(
    batch: EntryBatch, entries: Int64s, deltas: Int64s, meta: StateMetaInfo
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return masks of the entries without deltas, and of the deltas that are the last of their key and put a value."""
    order = np.concatenate([entries, deltas])
    start, end = batch.key[order], batch.key_end[order]
    ids, first = distinct(batch.data, start, end, np.zeros_like(start))
    below, above = ids[: len(entries)], ids[len(entries) :]
    twice = np.flatnonzero(np.bincount(below, minlength=len(first))[below] > 1)
    if len(twice):
        raise batch.locate(
            FormatError("one key has two entries of a state below the change log").at(
                offset=int(batch.key[entries[twice[0]]])
            )
        ).at(state=meta.name)
    last = np.full(len(first), -1, dtype=np.int64)
    np.maximum.at(last, above, np.arange(len(deltas)))
    puts = batch.data[batch.value[deltas]] == PUT
    return last[below] < 0, puts & (last[above] == np.arange(len(deltas)))


class _Overlay:
    """Entries of one state that deltas change: pieces of the value by composite key, where those of a list are joined by commas."""

    def __init__(self, meta: StateMetaInfo, number: int) -> None:
        self.meta = meta
        self.number = number
        self.values: dict[bytes, Pieces] = {}
        self.groups: dict[bytes, int] = {}
        self.cleared: dict[bytes, set[bytes]] = {}
        self.lengths: list[int] = []

    def load(self, batch: EntryBatch, entries: Int64s, deltas: Int64s) -> Int64s:
        """Load the entries that deltas change, and return their indexes."""
        mentioned: set[bytes] = set()
        raw = batch.data
        for i in deltas.tolist():
            key = bytes(raw[batch.key[i] : batch.key_end[i]])
            operation = raw[batch.value[i]]
            if operation == CLEAR:
                self.cleared[key] = set()
            else:
                mentioned.add(key)
            if operation == MERGE:
                mentioned.update(_sources(batch, i))
        self.lengths = sorted({len(p) for p in self.cleared})
        touched = [entries[_hash_in(batch, entries, mentioned, None)]]
        for length in self.lengths:
            prefixes = [p for p in self.cleared if len(p) == length]
            touched.append(entries[_hash_in(batch, entries, prefixes, length)])
        loaded = []
        for i in np.unique(np.concatenate(touched)).tolist():
            key = bytes(raw[batch.key[i] : batch.key_end[i]])
            prefix = self.prefix_of(key)
            if key not in mentioned and prefix is None:
                continue
            if key in self.values:
                raise batch.locate(
                    FormatError("one key has two entries of a state below the change log").at(offset=int(batch.key[i]))
                ).at(state=self.meta.name)
            self.put(key, int(batch.group[i]), [bytes(raw[batch.value[i] : batch.value_end[i]])])
            loaded.append(i)
        return np.array(loaded, dtype=np.int64)

    def prefix_of(self, key: bytes) -> bytes | None:
        """Return key and namespace of a map entry if a delta clears its map, otherwise ``None``."""
        for length in self.lengths:
            if key[:length] in self.cleared:
                return key[:length]
        return None

    def put(self, key: bytes, group: int, value: Pieces) -> None:
        self.values[key] = value
        self.groups[key] = group
        if (prefix := self.prefix_of(key)) is not None:
            self.cleared[prefix].add(key)

    def apply(self, batch: EntryBatch, deltas: Int64s) -> None:
        """Apply the deltas in order."""
        raw = batch.data
        for i in deltas.tolist():
            key = bytes(raw[batch.key[i] : batch.key_end[i]])
            operation = int(raw[batch.value[i]])
            value = bytes(raw[batch.value[i] + 1 : batch.value_end[i]])
            group = int(batch.group[i])
            if operation == PUT:
                self.put(key, group, [value])
            elif operation == APPEND:
                if key in self.values:
                    self.values[key].append(value)
                else:
                    self.put(key, group, [value])
            elif operation == CLEAR:
                for entry_key in self.cleared[key]:
                    self.values.pop(entry_key, None)
                self.cleared[key].clear()
            elif operation == MERGE:
                self.merge(key, group, _sources(batch, i))
            else:
                self.values.pop(key, None)

    def merge(self, target: bytes, group: int, sources: Iterable[bytes]) -> None:
        """Append the content of the sources to the content of the target."""
        values = [self.values.pop(s) for s in sources if s in self.values]
        if target in self.values:
            values.insert(0, self.values[target])
        if not values:
            return
        if self.meta.kind != "list" and len(values) > 1:
            raise UnsupportedError(
                f"the change log merges the values of {len(values)} namespaces of {self.meta.kind} state, which takes the "
                "job's function",
                hint="take a canonical savepoint of the job, which holds the merged value",
            ).at(state=self.meta.name, key_group=group)
        self.put(target, group, [piece for value in values for piece in value])

    def batch(self, file: str) -> EntryBatch:
        """Return the entries after the applied deltas."""
        keys = list(self.values)
        values = [join_elements(self.values[k]) for k in keys]
        sizes = np.array([len(x) for pair in zip(keys, values, strict=True) for x in pair], dtype=np.int64)
        ends = np.cumsum(sizes)
        data = np.frombuffer(b"".join(x for pair in zip(keys, values, strict=True) for x in pair), dtype=np.uint8)
        return RebuiltBatch(
            data=data,
            state=np.full(len(keys), self.number, dtype=np.int64),
            group=np.array([self.groups[k] for k in keys], dtype=np.int64),
            key=(ends - sizes)[0::2],
            key_end=ends[0::2],
            value=ends[0::2],
            value_end=ends[1::2],
            regions=(),
            file=file,
        )


def _sources(batch: EntryBatch, i: int) -> list[bytes]:
    c = Cursor(batch.data.data, int(batch.value[i]) + 1, int(batch.value_end[i]))
    sources = []
    while c.left:
        sources.append(c.bytes4())
    return sources


def _hash_in(batch: EntryBatch, entries: Int64s, wanted: Iterable[bytes], length: int | None) -> npt.NDArray[np.intp]:
    """Return the entries with the hash of a wanted key, in their first ``length`` bytes if given; a few have other keys."""
    wanted = list(wanted)
    if not wanted or not len(entries):
        return np.empty(0, dtype=np.intp)
    ends = np.cumsum([len(k) for k in wanted])
    starts = ends - np.array([len(k) for k in wanted])
    wanted_hashes, hashes = np.empty(len(wanted), dtype=np.int64), np.empty(len(entries), dtype=np.int64)
    hash_ranges(np.frombuffer(b"".join(wanted), dtype=np.uint8), starts, ends, np.zeros_like(starts), wanted_hashes)
    start, stop = batch.key[entries], batch.key_end[entries]
    if length is not None:
        stop = np.minimum(stop, start + length)
    hash_ranges(batch.data, start, stop, np.zeros_like(start), hashes)
    return np.flatnonzero(np.isin(hashes, wanted_hashes))
