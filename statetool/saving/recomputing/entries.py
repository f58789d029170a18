"""Computation of an operator's keyed state from all of its old state, a key group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.encode import measure, measure_key
from statetool.columns.pieces import Chain, Encoded, Flagged, Markers, Piece, Ranges, pack
from statetool.columns.values import StateLayout, decode_framed, map_values
from statetool.entries.form import EntryRequest, KeyGroupReader, error_context
from statetool.entries.keys import find_parts
from statetool.errors import UnsupportedError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.hashing.key_hash import key_groups
from statetool.java.hashing.keys import KeyHasher
from statetool.kernels.core.arrays import Int64s
from statetool.saving.rekeying.rows import EXACT_ROWS
from statetool.saving.streams.keyed import parse_keyed_header
from statetool.saving.streams.measured_entries import MeasuredEntries
from statetool.serializers.core.base import Serializer
from statetool.types import TtlType
from statetool.types.declared import TypeContext

_STAMP, _VALUE = "last_access", "value"


@dataclass(frozen=True, slots=True)
class StateRows:
    """The entries of one state in a key group.

    Attributes
    ----------
    keys
        The key of each entry.
    user_keys
        The key in the map, ``None`` for other kinds of state.
    values
        The value without its last access.
    stamps
        int64[n]: the last access, ``None`` without a time to live.
    """

    keys: pa.Array
    user_keys: pa.Array | None
    values: pa.Array
    stamps: Int64s | None


@dataclass(frozen=True, slots=True)
class NewRows:
    """The entries of a state of the new operator, as in :class:`StateRows`."""

    state: str
    rows: StateRows


class StateRule(Protocol):
    """Computation of new states from old ones; picklable."""

    def compute(self, old: Mapping[str, StateRows], header: KeyedHeader) -> Iterator[NewRows]:
        """Yield the new states of the keys of one key group. States without entries are not in ``old``.

        Raises
        ------
        EncodeError
            Old rows do not give a new state.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """Computation of all keyed state of an operator.

    Attributes
    ----------
    after
        Header with the new key and states.
    types
        The declarations of the new types.
    """

    after: bytes
    types: TypeContext
    rule: StateRule

    @property
    def header(self) -> KeyedHeader:
        """The new key and states."""
        return parse_keyed_header(self.after, replace(self.types, renewed=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedEntries:
    """Entries computed from those of the base; picklable.

    Attributes
    ----------
    sources
        All entries of some key groups.
    header
        Bytes of the header of the new streams.
    """

    sources: tuple[KeyGroupReader, ...]
    rule: StateRule
    header: bytes
    types: TypeContext
    max_parallelism: int

    @property
    def size_bytes(self) -> int:
        """Approximate stored bytes."""
        return sum(sum(source.group_sizes().values()) for source in self.sources)

    def batches(self) -> Iterator[EntryBatch]:
        """Compute the entries of one key group after another, in the memory that the entries of one need.

        Raises
        ------
        FormatError
            Damaged bytes.
        EncodeError
            Old rows do not give a new state.
        UnsupportedError
            The operator has timers.
        """
        header = parse_keyed_header(self.header, replace(self.types, renewed=False))
        for group in sorted({g for source in self.sources for g in source.group_sizes()}):
            with error_context(self.sources[0]):
                old = dict(self._read(group))
                for new in self.rule.compute(old, header) if old else ():
                    if len(new.rows.keys):
                        yield encode_rows(header, new, self.max_parallelism)

    def _read(self, group: int) -> Iterator[tuple[str, StateRows]]:
        batches: dict[str, list[EntryBatch]] = {}
        headers: dict[str, tuple[KeyedHeader, StateMetaInfo]] = {}
        for source in self.sources:
            own = source.within([group])
            if own is None:
                continue
            header = own.header()
            for batch in own.batches(EntryRequest()):
                for state in batch.states():
                    meta = header.states[state]
                    if meta.kind == "timers":
                        raise UnsupportedError("the operator has timers, which belong to its old state").at(
                            state=meta.name
                        )
                    headers[meta.name] = header, meta
                    batches.setdefault(meta.name, []).append(batch.of_state(state))
        for name, own_batches in batches.items():
            header, meta = headers[name]
            yield name, decode_rows(header, meta, concat(own_batches))


def computed_entries(
    sources: Sequence[KeyGroupReader], rule: StateRule, header: bytes, types: TypeContext, max_parallelism: int
) -> list[ComputedEntries]:
    """Divide the computation into parts by the sources that share key groups."""
    shared: dict[tuple[int, ...], list[int]] = {}
    by_group: dict[int, list[int]] = {}
    for number, source in enumerate(sources):
        for group in source.group_sizes():
            by_group.setdefault(group, []).append(number)
    for group, numbers in by_group.items():
        shared.setdefault(tuple(numbers), []).append(group)
    return [
        ComputedEntries(
            sources=tuple(own for n in numbers if (own := sources[n].within(groups)) is not None),
            rule=rule,
            header=header,
            types=types,
            max_parallelism=max_parallelism,
        )
        for numbers, groups in shared.items()
    ]


def decode_rows(header: KeyedHeader, meta: StateMetaInfo, batch: EntryBatch) -> StateRows:
    """Decode the entries of one state."""
    layout, parts = StateLayout(meta), find_parts(batch, header.key, meta)
    keys = decode_framed(header.key, batch.data, parts.key, parts.key_end, EXACT_ROWS)
    place = batch.data, batch.value, batch.value_end, EXACT_ROWS
    user_keys = None
    if layout.kind == "map":
        assert layout.user_key is not None
        user_keys = decode_framed(layout.user_key, batch.data, parts.user_key, batch.key_end, EXACT_ROWS)
        values = map_values(layout.element, *place)
    else:
        values = decode_framed(layout.element, *place)
    stamps = None
    if isinstance(layout.element.logical, TtlType):
        stamps = pc.struct_field(values, _STAMP).cast(pa.int64()).to_numpy(zero_copy_only=False)
        values = pc.struct_field(values, _VALUE)
    return StateRows(keys, user_keys, values, stamps)


def encode_rows(header: KeyedHeader, new: NewRows, max_parallelism: int) -> EntryBatch:
    """Encode the entries of one state, in the key groups of their keys."""
    state = next(i for i, meta in enumerate(header.states) if meta.name == new.state)
    meta, rows, n = header.states[state], new.rows, len(new.rows.keys)
    layout = StateLayout(meta)
    keys = pack(measure_key(header.key, rows.keys))
    edges = keys.offsets
    groups = key_groups(KeyHasher(header.key).hashes(keys.data, edges[:-1], edges[1:]), max_parallelism)
    key = Ranges(keys.data, edges[:-1], np.diff(edges))
    assert meta.namespace is not None
    names = pack(measure(meta.namespace, pa.nulls(n)))
    namespace = Ranges(names.data, names.offsets[:-1], np.diff(names.offsets))
    is_ambiguous = header.key.length < 0 and meta.namespace.length < 0
    markers: tuple[Piece, ...] = (key, Markers(key.sizes), namespace, Markers(namespace.sizes))
    whole: Piece = Chain(markers if is_ambiguous else (key, namespace), n)
    values = rows.values
    if rows.stamps is not None:
        stamps = pa.array(rows.stamps).cast(pa.timestamp("ms", "UTC"))
        values = pa.StructArray.from_arrays([stamps, values], names=[_STAMP, _VALUE])
    written: Piece = measure(layout.element, values)
    if rows.user_keys is not None:
        assert layout.user_key is not None
        whole = Chain((whole, measure_key(layout.user_key, rows.user_keys)), n)
        written = Flagged(np.ones(n, dtype=np.bool_), written, (0, 1), 0)
    return MeasuredEntries.batch([MeasuredEntries(state, groups, whole, written)])


def number_rows(serializer: Serializer, array: pa.Array, group: Int64s | None = None) -> tuple[Int64s, Int64s]:
    """Number the distinct values of an array by their bytes, and by their group: as :func:`~statetool.formats.keyed.distinct.distinct`."""
    encoded: Encoded = pack(measure(serializer, array))
    edges = encoded.offsets
    return distinct(
        encoded.data, edges[:-1], edges[1:], np.zeros(len(array), dtype=np.int64) if group is None else group
    )
