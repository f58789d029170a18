"""Protocols of conversions of carried state: of its values (:mod:`statetool.migration`), and of its keys (:mod:`statetool.saving.rekeying`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from statetool.columns.pieces import Bytes, Encoded
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.serializers.core.base import Serializer
from statetool.types.declared import TypeContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from statetool.errors import StatetoolError
    from statetool.saving.streams.gather import Gatherer

    DuplicateError: TypeAlias = Callable[[int, int, bytes], StatetoolError]


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


class KeyConversion(Protocol):
    """Change of the keys of an operator; picklable."""

    @property
    def key(self) -> Serializer:
        """Return the serializer of the new keys."""
        ...

    def shuffled_states(self, header: KeyedHeader) -> frozenset[int]:
        """Return the state ids of the entries that :meth:`entries` makes for streams with this header."""
        ...

    def entries(self, header: KeyedHeader, batch: EntryBatch, max_parallelism: int) -> EntryBatch:
        """Return entries with their new keys and key groups, in the form that the assembler of :meth:`gatherer` takes.

        Parameters
        ----------
        header
            The new header.
        batch
            Entries with old keys in their old key groups, and new state ids.
        """
        ...

    def gatherer(self, header: KeyedHeader, prefix: int, memory_bytes: int, duplicate: DuplicateError) -> Gatherer:
        """Return the assembler of these entries, which merges or refuses keys that meet; arguments as for the assembler."""
        ...
