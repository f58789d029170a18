"""Entries of keyed state in memory: the common form into which every format of keyed streams is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from statetool.errors import StatetoolError

E = TypeVar("E", bound=StatetoolError)
Int64s = npt.NDArray[np.int64]
#: Minimum run length, averaged over all entries, for which entries of one state are copied run by run.
_LEAST_RUN: Final = 64


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
    _by_state: _StateRuns | None = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.state)

    def states(self) -> list[int]:
        """Return the ids of the states that have entries, ascending."""
        return list(self._runs().bounds)

    def index_of(self, state_id: int) -> Int64s | slice:
        """Return where the entries of one state are: a slice if they follow one another, otherwise their indexes."""
        chosen = self._runs().select(state_id)
        if not isinstance(chosen, list):
            return chosen
        return chosen[0] if len(chosen) == 1 else np.concatenate([np.arange(run.start, run.stop) for run in chosen])

    def of_state(self, state_id: int) -> EntryBatch:
        """Return the entries of one state."""
        chosen = self._runs().select(state_id)
        if not isinstance(chosen, list):
            return self.take(chosen)
        return self._each(
            lambda column: column[chosen[0]] if len(chosen) == 1 else np.concatenate([column[run] for run in chosen])
        )

    def _runs(self) -> _StateRuns:
        found = self._by_state
        if found is None:
            found = _StateRuns.of(self.state)
            object.__setattr__(self, "_by_state", found)
        return found

    def take(self, index: npt.NDArray[np.int64]) -> EntryBatch:
        """Return the entries at these indexes."""
        return self._each(lambda column: column[index])

    def _each(self, selected: Callable[[Int64s], Int64s]) -> EntryBatch:
        return replace(
            self,
            state=selected(self.state),
            group=selected(self.group),
            key=selected(self.key),
            key_end=selected(self.key_end),
            value=selected(self.value),
            value_end=selected(self.value_end),
        )

    def span(self, first: int, stop: int) -> EntryBatch:
        """Return entries ``first .. stop`` over a copy of their bytes."""
        low = int(self.key[first:stop].min())
        high = int(max(self.key_end[first:stop].max(), self.value_end[first:stop].max()))
        regions = []
        for i, region in enumerate(self.regions):
            following = self.regions[i + 1].start if i + 1 < len(self.regions) else high
            if region.start < high and following > low:
                start = max(region.start, low)
                regions.append(region.moved(start - low, start - region.start))
        return EntryBatch(
            data=self.data[low:high].copy(),
            state=self.state[first:stop],
            group=self.group[first:stop],
            key=self.key[first:stop] - low,
            key_end=self.key_end[first:stop] - low,
            value=self.value[first:stop] - low,
            value_end=self.value_end[first:stop] - low,
            regions=tuple(regions),
            file=self.file,
        )

    def locate(self, error: E) -> E:
        """Convert the position in ``data`` that an error carries to a location in the file."""
        return locate(error, self.regions, self.file)


@dataclass(frozen=True, slots=True)
class _StateRuns:
    """Where the entries of each state are in a batch, found once for all states.

    Attributes
    ----------
    bounds
        Start and end of each state in ``runs`` or ``order``, by ascending ids.
    runs
        Runs of consecutive entries, sorted by state, if they are long; otherwise ``None``.
    order
        The indexes of the entries, sorted by state, if the runs are short; otherwise ``None``.
    """

    bounds: dict[int, tuple[int, int]]
    runs: list[slice] | None
    order: Int64s | None

    @classmethod
    def of(cls, state: Int64s) -> _StateRuns:
        """Find the entries of each state."""
        edges = np.flatnonzero(state[1:] != state[:-1]) + 1
        starts = np.concatenate((np.zeros(min(1, len(state)), dtype=np.int64), edges))
        if len(starts) * _LEAST_RUN > len(state):
            order = _sort(state)
            return cls(_bounds(state[order]), None, order)
        order = _sort(state[starts])
        runs = map(slice, starts[order].tolist(), np.append(edges, len(state))[order].tolist())
        return cls(_bounds(state[starts[order]]), list(runs), None)

    def select(self, state_id: int) -> Int64s | list[slice]:
        """Return the indexes of a state's entries, or slices of them if they are in long runs."""
        low, high = self.bounds.get(state_id, (0, 0))
        if self.runs is not None:
            return self.runs[low:high] or np.empty(0, dtype=np.int64)
        assert self.order is not None
        return self.order[low:high]


def _sort(state: Int64s) -> Int64s:
    """Return the indexes that sort states, equal ones in their order. Ids of 16 bits are sorted in linear time."""
    small = bool(len(state)) and int(state.min()) >= 0 and int(state.max()) < 1 << 16
    return np.argsort(state.astype(np.uint16) if small else state, kind="stable")


def _bounds(ascending: Int64s) -> dict[int, tuple[int, int]]:
    """Return where each distinct value begins and ends."""
    states, starts = np.unique(ascending, return_index=True)
    return dict(zip(states.tolist(), pairwise([*starts.tolist(), len(ascending)]), strict=True))


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
    if len(batches) == 1:
        return batches[0]
    starts, columns = stack(batches)
    return EntryBatch(
        **columns,
        regions=tuple(r.moved(start + r.start, 0) for b, start in zip(batches, starts, strict=True) for r in b.regions),
        file=batches[0].file,
    )


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
