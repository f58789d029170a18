"""Protocol of type conversions of carried state, which :mod:`statetool.migration` implements."""

from __future__ import annotations

from typing import Protocol

from statetool.columns.pieces import Bytes, Encoded
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.types.declared import TypeContext


class StateConversion(Protocol):
    """Conversion of the values of a carried state to another type; picklable."""

    @property
    def meta(self) -> StateMetaInfo:
        """Return the new description of the state, under its old name."""
        ...

    @property
    def types(self) -> TypeContext:
        """Return the declarations of the new types, with their snapshots."""
        ...

    @property
    def needs_whole_keys(self) -> bool:
        """Return True if all entries of a key are converted together."""
        ...

    @property
    def keeps_entries(self) -> bool:
        """Return True if each entry becomes one entry with the same key."""
        ...

    @property
    def identity(self) -> bytes:
        """Return bytes that are equal for conversions with equal results, in all processes."""
        ...

    def entries(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Convert entries of this state only, from a source with this header; key, namespace and key group stay."""
        ...

    def elements(self, data: Bytes, starts: Int64s, ends: Int64s) -> Encoded:
        """Convert elements of operator state (the one element of broadcast state)."""
        ...
