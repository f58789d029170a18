"""Entries of keyed state in memory: the common form into which every format of keyed streams is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from statetool.errors import StatetoolError
from statetool.io.glibc import return_freed_memory
from statetool.kernels.core.arrays import Int64s, frozen
from statetool.kernels.entries.walk import Rows, deal_rows

E = TypeVar("E", bound=StatetoolError)
#: Copied bytes after which their memory is returned to the system.
_RETURNED_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """Origin of a range of ``data``: the bytes from ``start`` on come from ``offset`` of the file, or from a compressed region there.

    ``key_group`` is ``None`` for operator state. In a compressed region, ``skipped`` uncompressed bytes precede those at ``start``.
    """

    start: int
    offset: int
    key_group: int | None
    compressed: bool
    skipped: int = 0

    def moved(self, start: int, skipped: int) -> Region:
        """Return the region without its first ``skipped`` bytes; the rest starts at ``start`` of another buffer."""
        if self.compressed:
            return replace(self, start=start, skipped=self.skipped + skipped)
        return replace(self, start=start, offset=self.offset + skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBatch:
    """Entries over one buffer; all arrays are int64[n].

    ``key .. key_end`` is the composite key without its key-group prefix, ``value .. value_end`` the value.
    """

    data: npt.NDArray[np.uint8]
    state: Int64s
    group: Int64s
    key: Int64s
    key_end: Int64s
    value: Int64s
    value_end: Int64s
    regions: tuple[Region, ...]
    file: str
    _dealt: _DealtRows | None = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.state)

    def states(self) -> list[int]:
        """Return the ids of the states that have entries, ascending."""
        return list(self.bounds())

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return where the entries of each state begin and end in :meth:`by_state`, by ascending ids."""
        return self._deal().bounds

    def by_state(self) -> EntryBatch:
        """Return the entries sorted by state; those of one state keep their order."""
        dealt = self._deal()
        return self if dealt.rows is None else self._with(dealt.rows)

    def of_state(self, state_id: int) -> EntryBatch:
        """Return the entries of one state."""
        dealt = self._deal()
        low, high = dealt.bounds.get(state_id, (0, 0))
        return self._with([column[low:high] for column in dealt.rows or self.rows()])

    def of_states(self, state_ids: Sequence[int]) -> EntryBatch:
        """Return the entries of several states, one state after another."""
        dealt = self._deal()
        spans = [dealt.bounds[state] for state in state_ids if state in dealt.bounds]
        if all(previous[1] == following[0] for previous, following in pairwise(spans)):
            low, high = (spans[0][0], spans[-1][1]) if spans else (0, 0)
            return self._with([column[low:high] for column in dealt.rows or self.rows()])
        columns = dealt.rows or self.rows()
        return self._with([np.concatenate([column[low:high] for low, high in spans]) for column in columns])

    def _deal(self) -> _DealtRows:
        found = self._dealt
        if found is None:
            found = _DealtRows.of(self.rows())
            object.__setattr__(self, "_dealt", found)
        return found

    def take(self, index: Int64s | slice) -> EntryBatch:
        """Return the entries at these indexes."""
        return self._with([column[index] for column in self.rows()])

    def rows(self) -> Rows:
        """Return the columns."""
        return Rows(self.state, self.group, self.key, self.key_end, self.value, self.value_end)

    def _with(self, columns: Sequence[Int64s]) -> EntryBatch:
        """Return a batch over the same bytes with other entries."""
        state, group, key, key_end, value, value_end = columns
        return replace(self, state=state, group=group, key=key, key_end=key_end, value=value, value_end=value_end)

    def view(self, first: int, stop: int) -> EntryBatch:
        """Return entries ``first .. stop`` over their bytes only, which are not copied."""
        low = int(self.key[first:stop].min())
        high = int(max(self.key_end[first:stop].max(), self.value_end[first:stop].max()))
        regions = []
        for i, region in enumerate(self.regions):
            following = self.regions[i + 1].start if i + 1 < len(self.regions) else high
            if region.start < high and following > low:
                start = max(region.start, low)
                regions.append(region.moved(start - low, start - region.start))
        return EntryBatch(
            data=self.data[low:high],
            state=self.state[first:stop],
            group=self.group[first:stop],
            key=self.key[first:stop] - low,
            key_end=self.key_end[first:stop] - low,
            value=self.value[first:stop] - low,
            value_end=self.value_end[first:stop] - low,
            regions=tuple(regions),
            file=self.file,
        )

    def pack(self, spans: Sequence[tuple[int, int]]) -> EntryBatch:
        """Move the entries of ascending spans together inside the columns, and return them. This batch cannot be used any more."""
        rows, at = self.rows(), 0
        for first, stop in spans:
            if first > at:
                for column in rows:
                    column[at : at + stop - first] = column[first:stop]
            at += stop - first
        return self._with([column[:at] for column in rows])

    def span(self, first: int, stop: int) -> EntryBatch:
        """Return entries ``first .. stop`` over a copy of their bytes."""
        view = self.view(first, stop)
        return replace(view, data=view.data.copy())

    def locate(self, error: E) -> E:
        """Convert the position in ``data`` that an error carries to a location in the file."""
        return locate(error, self.regions, self.file)


@dataclass(frozen=True, slots=True)
class _DealtRows:
    """The entries of a batch, dealt to their states once for all states.

    Attributes
    ----------
    bounds
        Start and end of each state, by ascending ids.
    rows
        The entries, state by state; ``None`` if those of the batch already are.
    """

    bounds: dict[int, tuple[int, int]]
    rows: Rows | None

    @classmethod
    def of(cls, rows: Rows) -> _DealtRows:
        """Deal entries."""
        starts = np.zeros(int(rows.state.max(initial=-1)) + 2, dtype=np.int64)
        dealt = Rows(*(np.empty(len(rows.state), dtype=np.int64) for _ in rows))
        ascending = deal_rows(rows.state, rows, starts, np.empty_like(starts), dealt)
        states = np.flatnonzero(starts[1:] > starts[:-1])
        bounds = zip(starts[states].tolist(), starts[states + 1].tolist(), strict=True)
        return cls(dict(zip(states.tolist(), bounds, strict=True)), None if ascending else dealt)


def stack(batches: Sequence[EntryBatch]) -> tuple[list[int], dict[str, Any]]:
    """Return the start of each batch's bytes in one buffer, and the columns over it."""
    starts = np.cumsum([0, *(len(b.data) for b in batches)])[:-1].tolist()
    columns: dict[str, Any] = {"data": np.concatenate([b.data for b in batches])}
    for name in ("state", "group"):
        columns[name] = np.concatenate([getattr(b, name) for b in batches])
    for name in ("key", "key_end", "value", "value_end"):
        columns[name] = np.concatenate([getattr(b, name) + start for b, start in zip(batches, starts, strict=True)])
    return starts, columns


def concat(batches: Sequence[EntryBatch]) -> EntryBatch:
    """Concatenate batches of one file over one buffer."""
    return drain(list(batches))


def drain(batches: list[EntryBatch]) -> EntryBatch:
    """Concatenate batches as :func:`concat` does, and remove each from the list as soon as it was copied.

    So memory holds the entries of a large key once, and not twice, if nothing else refers to the batches.
    """
    if len(batches) == 1:
        return batches.pop()
    file = batches[0].file
    entries, size_bytes = sum(map(len, batches)), sum(len(b.data) for b in batches)
    data = np.empty(size_bytes, dtype=np.uint8)
    columns = Rows(*(np.empty(entries, dtype=np.int64) for _ in Rows._fields))
    regions: list[Region] = []
    at = first = freed = 0
    batches.reverse()
    while batches:
        batch = batches.pop()
        if at - freed > _RETURNED_BYTES:
            return_freed_memory()
            freed = at
        stop = first + len(batch)
        data[at : at + len(batch.data)] = batch.data
        for name, column, part in zip(Rows._fields, columns, batch.rows(), strict=True):
            np.add(part, 0 if name in ("state", "group") else at, out=column[first:stop])
        regions += (r.moved(at + r.start, 0) for r in batch.regions)
        at, first = at + len(batch.data), stop
    return EntryBatch(data=frozen(data), **columns._asdict(), regions=tuple(regions), file=file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltBatch(EntryBatch):
    """Entries whose bytes in ``data`` differ from those in the file: errors name the key of the entry."""

    def locate(self, error: E) -> E:
        """Convert the position in ``data`` that an error carries to key and key group."""
        position = error.where.offset
        if position is not None:
            inside = (self.key <= position) & (position <= self.key_end)
            inside |= (self.value <= position) & (position <= self.value_end)
            error.where = replace(error.where, offset=None)
            for i in np.flatnonzero(inside)[:1].tolist():
                key = bytes(self.data[self.key[i] : self.key_end[i]]).hex()
                error.where = replace(error.where, region=f"entry with the key {key}")
                error.at(key_group=int(self.group[i]))
        return error.at(file=self.file)


def locate(error: E, regions: Iterable[Region], file: str) -> E:
    """Convert the position that an error carries as its offset to file, offset and key group."""
    position = error.where.offset
    source = None
    if position is not None:
        for region in regions:
            if region.start <= position:
                source = region
    if source is None or position is None:
        return error.at(file=file)
    if source.compressed:
        error.where = replace(
            error.where,
            offset=source.skipped + position - source.start,
            region=f"from byte {source.offset} on, uncompressed",
        )
    else:
        error.where = replace(error.where, offset=source.offset + position - source.start)
    return error.at(file=file, key_group=source.key_group)
