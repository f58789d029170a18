"""Change of the keys of an operator. Entries get new keys in tasks, and travel with their old key to the tasks that write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from statetool.columns.encode import measure_key
from statetool.columns.pieces import Chain, Encoded, Integers, Markers, Piece, Ranges, pack
from statetool.entries.keys import find_parts
from statetool.entries.selection import TIMESTAMP_BYTES
from statetool.errors import EncodeError, StatetoolError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.hashing.formulas import HashFormula
from statetool.java.hashing.key_hash import key_groups
from statetool.java.hashing.keys import KeyHasher
from statetool.java.hashing.possible_keys import nulls_among
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.saving.rekeying.meeting import OLD_KEY_BYTES, MeetingGatherer, Policy
from statetool.saving.rekeying.rows import RowMerge
from statetool.saving.streams.filters import hash_bytes, key_bounds
from statetool.saving.streams.keyed import key_to_text, parse_keyed_header
from statetool.saving.streams.measured_entries import MeasuredEntries
from statetool.saving.streams.runs import INDEX_BYTES
from statetool.serializers.core.base import Serializer
from statetool.types.declared import TypeContext

if TYPE_CHECKING:
    from statetool.saving.streams.conversion import DuplicateError

_NULL: Final = "Flink has no null keys: choose an expression that gives each key a value, or erase such keys first (statetool erase)"


class KeyMaker(Protocol):
    """Computation of new keys; picklable."""

    def make(self, key: Serializer, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> pa.Array:
        """Return the new key of each old key ``data[start:end]``, which is in key group ``group``."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyChange:
    """A :class:`statetool.saving.streams.conversion.KeyConversion`.

    Attributes
    ----------
    before, after
        Headers without states, which have the old and the new key.
    maker
        Computes new keys.
    formula
        Hash function of new keys whose serializer does not provide it.
    policies
        What happens to entries of two old keys that meet, by the new name of the state. If there are none, old keys must not meet at all.
    merges
        SQL expressions of the columns ``a`` and ``b`` that merge two values, or the rules of their columns, by state.
    newest
        SQL expressions of the column ``value`` whose greatest result marks the newest value, by state.
    """

    before: bytes
    before_types: TypeContext
    after: bytes
    types: TypeContext
    maker: KeyMaker
    formula: HashFormula | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    merges: Mapping[str, str | RowMerge] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)

    @property
    def old_key(self) -> Serializer:
        """The serializer of the old keys."""
        return parse_keyed_header(self.before, self.before_types).key

    @property
    def key(self) -> Serializer:
        """The serializer of the new keys."""
        return parse_keyed_header(self.after, self.types).key

    def policy(self, meta: StateMetaInfo) -> Policy:
        """Return what happens to entries of a state that meet."""
        return self.policies.get(meta.name, "error")

    def shuffled_states(self, header: KeyedHeader) -> frozenset[int]:
        """Return the state ids of entries, and of the markers of old keys: one of the key, and one per state."""
        return frozenset(range(2 * len(header.states) + 1))

    def gatherer(
        self, header: KeyedHeader, prefix: int, memory_bytes: int, duplicate: DuplicateError
    ) -> MeetingGatherer:
        """Return the assembler of entries that merges or refuses keys that meet."""
        return MeetingGatherer(self, header, prefix, memory_bytes=memory_bytes, duplicate=duplicate)

    def entries(self, header: KeyedHeader, batch: EntryBatch, max_parallelism: int) -> EntryBatch:
        """Return entries with their new keys and key groups, and markers of their old keys.

        The key of each entry is followed by a hash of the old key, and its value by the old key itself.

        Raises
        ------
        EncodeError
            The new type cannot hold a key, or a new key is null. The error names the old key.
        """
        old = replace(header, key=self.old_key)
        start, end = key_bounds(old, batch)
        ids, first = distinct(batch.data, start, end, batch.group)
        places = start[first], end[first], batch.group[first]
        encoded = self._new_keys(batch.data, *places)
        edges = encoded.offsets
        hashes = KeyHasher(header.key, self.formula).hashes(encoded.data, edges[:-1], edges[1:])
        groups = key_groups(hashes, max_parallelism)
        keys = _Keys(batch, start, end, ids, encoded, groups, hash_bytes(batch.data, *places[:2]).view(np.int64))
        parts = []
        for state in np.unique(batch.state).tolist():
            parts += self._of_state(old, header, keys, state, np.flatnonzero(batch.state == state))
        if not self.policies:
            at = first
            parts.append(keys.marker(len(header.states), at, keys.new(at)))
        return MeasuredEntries.batch(parts)

    def _of_state(
        self, old: KeyedHeader, header: KeyedHeader, keys: _Keys, state: int, at: Int64s
    ) -> list[MeasuredEntries]:
        """Return the entries of a state, and markers of the old keys in it if they must not meet there."""
        meta, own, n = header.states[state], keys.batch.take(at), len(at)
        new = keys.new(at)
        if meta.kind == "timers":
            stamp = Ranges(own.data, own.key, np.full(n, TIMESTAMP_BYTES, dtype=np.int64))
            namespace = Ranges(own.data, keys.end[at], own.key_end - keys.end[at])
            level: Piece = Chain((new, namespace), n)
            whole: Piece = Chain((stamp, level), n)
        else:
            split = find_parts(own, old.key, meta)
            assert meta.namespace is not None
            namespace = Ranges(own.data, split.namespace, split.namespace_end - split.namespace)
            is_ambiguous = header.key.length < 0 and meta.namespace.length < 0
            pieces = (
                (new, Markers(new.sizes), namespace, Markers(namespace.sizes)) if is_ambiguous else (new, namespace)
            )
            level = Chain(pieces, n)
            whole = Chain((level, Ranges(own.data, split.user_key, own.key_end - split.user_key)), n)
        value = Ranges(own.data, own.value, own.value_end - own.value)
        made = [keys.entries(state, at, whole, value)]
        if self.policies and self.policy(meta) == "error":
            encoded = pack(level)
            levels = encoded.offsets
            _, once = distinct(encoded.data, levels[:-1], levels[1:], keys.ids[at])
            piece = Ranges(encoded.data, levels[:-1][once], np.diff(levels)[once])
            made.append(keys.marker(len(header.states) + 1 + state, at[once], piece))
        return made

    def _new_keys(self, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> Encoded:
        try:
            return self._encoded(data, start, end, group)
        except StatetoolError as error:
            low, high = 0, len(start)
            while high - low > 1:
                middle = (low + high) // 2
                try:
                    self._encoded(data, start[low:middle], end[low:middle], group[low:middle])
                except StatetoolError:
                    high = middle
                else:
                    low = middle
            if isinstance(error, EncodeError) and len(start):
                text = key_to_text(self.old_key, bytes(data[start[low] : end[low]]))
                error.message = f"{error.message}, for the old key {text}"
            raise

    def _encoded(self, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> Encoded:
        key = self.key
        array = self.maker.make(self.old_key, data, start, end, group)
        if array.null_count and not key.nullable:
            raise EncodeError("the new key is null", hint=_NULL)
        encoded = pack(measure_key(key, array))
        if len(nulls_among(key, encoded.data, encoded.offsets[:-1], encoded.offsets[1:])):
            raise EncodeError("the new key is null", hint=_NULL)
        return encoded


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of a batch: place of each old key, number of each distinct one, and new keys, key groups and hashes by these numbers."""

    batch: EntryBatch
    start: Int64s
    end: Int64s
    ids: Int64s
    encoded: Encoded
    groups: Int64s
    hashes: Int64s

    def new(self, at: Int64s) -> Ranges:
        """Return the new keys of entries."""
        ids, offsets = self.ids[at], self.encoded.offsets
        return Ranges(self.encoded.data, offsets[:-1][ids], np.diff(offsets)[ids])

    def entries(self, state: int, at: Int64s, key: Piece, value: Piece | None) -> MeasuredEntries:
        """Return entries with the old keys of the entries ``at``."""
        n, sizes = len(at), self.end[at] - self.start[at]
        keys = Chain((key, Integers(self.hashes[self.ids[at]], INDEX_BYTES)), n)
        old = (Integers(sizes, OLD_KEY_BYTES), Ranges(self.batch.data, self.start[at], sizes))
        return MeasuredEntries(
            state, self.groups[self.ids[at]], keys, Chain((*old, *([] if value is None else [value])), n)
        )

    def marker(self, state: int, at: Int64s, key: Piece) -> MeasuredEntries:
        """Return entries without a value."""
        return self.entries(state, at, key, None)
