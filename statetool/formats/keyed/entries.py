"""Entries of keyed state in memory: what every format of keyed streams is turned into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from statetool.errors import StatetoolError

E = TypeVar("E", bound=StatetoolError)
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of ``data`` from ``start`` on come from ``offset`` of the file (or from a compressed region there).

    ``key_group`` is ``None`` for operator state.
    """

    start: int
    offset: int
    key_group: int | None
    compressed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBatch:
    """Entries over one buffer; all arrays are int64[n].

    ``key .. key_end`` is the composite key behind its key-group prefix, ``value .. value_end`` the value.
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

    def __len__(self) -> int:
        return len(self.state)

    def of_state(self, state_id: int) -> EntryBatch:
        """Return the entries of one state."""
        return self.take(np.flatnonzero(self.state == state_id))

    def take(self, index: npt.NDArray[np.int64]) -> EntryBatch:
        """Return some of the entries."""
        return EntryBatch(
            data=self.data,
            state=self.state[index],
            group=self.group[index],
            key=self.key[index],
            key_end=self.key_end[index],
            value=self.value[index],
            value_end=self.value_end[index],
            regions=self.regions,
            file=self.file,
        )

    def locate(self, error: E) -> E:
        """Turn the position in ``data`` that an error carries into a place in the file."""
        return locate(error, self.regions, self.file)


def locate(error: E, regions: Iterable[Region], file: str) -> E:
    """Turn the position that an error carries as its offset into file, offset and key group."""
    position = error.where.offset
    found = None
    if position is not None:
        for region in regions:
            if region.start <= position:
                found = region
    if found is None or position is None:
        return error.at(file=file)
    if found.compressed:
        error.where = replace(
            error.where, offset=position - found.start, region=f"from byte {found.offset} on, uncompressed"
        )
    else:
        error.where = replace(error.where, offset=found.offset + position - found.start)
    return error.at(file=file, key_group=found.key_group)
