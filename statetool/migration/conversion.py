"""Conversion of one state's entries or elements for a composition: created on the driver, compiled and run in tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import is_valid
from statetool.columns.coerce import list_parts, map_parts
from statetool.columns.encode import measure
from statetool.columns.pieces import Bytes, Chain, Elements, Encoded, Flagged, Int64s, Joined, Piece, Ranges, pack
from statetool.columns.values import StateLayout, broadcast_entries, decode_framed, map_values, split_joined
from statetool.entries.keys import split_keys
from statetool.errors import StatetoolError, article
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.naming import named_state
from statetool.formats.keyed.projections import with_projections
from statetool.formats.state_meta import KEY_VALUE, KEY_VALUE_V2, StateMetaInfo, read_m6
from statetool.io.cursor import Cursor
from statetool.migration.choices import Choices
from statetool.migration.compiling import EXACT, Compiler, check_distinct, is_set
from statetool.migration.leaves import Convert, same
from statetool.migration.occurring import Objects
from statetool.migration.sides import TypeAtPath
from statetool.saving.streams.keyed import key_to_text
from statetool.saving.streams.measured_entries import MeasuredEntries
from statetool.serializers.equal_types import snapshot_bytes
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.table import snapshot_reader
from statetool.sql_plans.aggregates import RowNames
from statetool.sql_plans.derived import DerivedColumn, derived_columns
from statetool.types import ListType, MapType, Scalar, TtlType
from statetool.types.declared import TypeContext

#: Kinds of state with the kinds that they can become. A single value has the bytes of a list with one element; a value that is a list becomes
#: elements, and one that is a map becomes entries.
BECOMES: Final = {
    "reducing": ("value", "aggregating"),
    "aggregating": ("value",),
    "value": ("list", "map", "reducing"),
    "map": ("value",),
    "union": ("list",),
    "list": ("union", "value"),
}
_DEALT: Final = {
    "list": "each subtask gets a part of the elements when the job restores",
    "union": "each subtask gets all elements when the job restores",
}
_BY_ENTRY: Final = {
    "map": "the value becomes a map state: each entry of the map is stored for itself",
    "value": "the map state becomes a value: all entries of a key are stored as one map",
}
_BY_ELEMENT: Final = {
    "list": "the value becomes a list state: its elements are those of the state",
    "value": "the list state becomes a value: the elements of a key are stored as one list",
}
#: The state with the accumulators of a group.
_ACCUMULATOR: Final = "accState"
_APIS: Final = {
    KEY_VALUE: "state that RocksDB and the heap backend restore",
    KEY_VALUE_V2: "asynchronous state of ForSt",
}


def can_become(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if a state can be converted to the kind of another.

    States with namespaces belong to operators of Flink, such as windows: a result is not an element of a list of records.
    """
    if before.backend_type != after.backend_type and not are_of_both_apis(before, after):
        return False
    if before.kind == after.kind:
        return True
    own = before.namespace is None or before.namespace.logical == Scalar("null")
    if not own or after.kind not in BECOMES.get(before.kind, ()):
        return False
    value = before if after.kind == "map" else after if before.kind == "map" else None
    if value is not None:
        return isinstance(StateLayout(value).logical, MapType)
    return (before.kind, after.kind) != ("list", "value") or _has_lists(before, after)


def _has_lists(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if one of two states is a list state, and the values of the other one are lists of its elements."""
    if {before.kind, after.kind} != {"list", "value"} or before.namespace is None or after.namespace is None:
        return False
    value, elements = (StateLayout(m) for m in ((before, after) if after.kind == "list" else (after, before)))
    # Elements that are lists themselves may be the values.
    is_list = isinstance(value.logical, ListType) and not is_set(TypeAtPath.of(value.element))
    return is_list and not isinstance(elements.element.logical, ListType | TtlType)


def are_of_both_apis(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if one of two keyed states is asynchronous state, and the other is not."""
    return {before.backend_type, after.backend_type} == {KEY_VALUE, KEY_VALUE_V2}


def _has_equal_parts(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if the values of two states, one of each API, have the same bytes."""

    def parts(meta: StateMetaInfo) -> list[tuple[bool, bytes]]:
        found = meta.parts or (unwrap(meta.value),)
        return [
            (isinstance(p, TtlSerializer), snapshot_bytes(p.value if isinstance(p, TtlSerializer) else p))
            for p in found
        ]

    return before.kind == after.kind and parts(before) == parts(after)


@lru_cache(maxsize=256)
def parse_meta(raw: bytes, types: TypeContext) -> StateMetaInfo:
    """Parse the bytes of :func:`~statetool.entries.joined_headers.meta_bytes`. Equal bytes give the same serializers."""
    reader = snapshot_reader(types)
    c = Cursor(raw)
    meta = read_m6(c, types, lambda c, *_: reader.proxied(c))
    c.expect_end("the description of a state")
    return with_projections(meta) if meta.namespace is not None else meta


@dataclass(frozen=True, slots=True)
class Compiled:
    """The conversions of a state: of its values, and of its map keys if it is a map. ``keeps_bytes``: only the description changes."""

    key: Convert
    value: Convert
    keeps_bytes: bool = False


def compile_state(old: StateMetaInfo, new: StateMetaInfo, compiler: Compiler) -> Compiled:
    """Compile the conversion of a state's map keys and values. The compiler records the steps."""
    if old.kind == "broadcast":
        old_key, new_key = (m.serializers["KEY_SERIALIZER"] for m in (old, new))
        return Compiled(compiler.key(old_key, new_key, "map_key"), compiler.value(old.value, new.value, "map_value"))
    if old.kind in ("union", "list") and old.namespace is None:
        if old.kind != new.kind:
            text = f"{article(old.kind)} state becomes {article(new.kind)} state: {_DEALT[new.kind]}"
            compiler.add_step("element", "retype", text)
        return Compiled(same, compiler.value(old.value, new.value, "element"))
    if are_of_both_apis(old, new):
        kinds = [_APIS[meta.backend_type] for meta in (old, new)]
        compiler.add_step("value", "rewrite", f"{kinds[0]} becomes {kinds[1]}")
        if _has_equal_parts(old, new):
            return Compiled(same, same, keeps_bytes=True)
    before, after = StateLayout(old), StateLayout(new)
    if before.declared is not None or after.declared is not None:
        compiler.impossible("value", "states of Python jobs")
        return Compiled(same, same)
    if before.framed_bytes or after.framed_bytes:
        opaque = old.value if before.framed_bytes else new.value
        compiler.impossible("value", opaque.missing_declaration_hint or f"the content of {opaque.type_name} is unknown")
        return Compiled(same, same)
    if before.kind == after.kind == "map":
        assert before.user_key is not None
        assert after.user_key is not None
        key = compiler.key(before.user_key, after.user_key, "map_key")
        return Compiled(key, compiler.value(before.element, after.element, "map_value"))
    if "map" in (old.kind, new.kind):
        compiler.add_step("value", "retype", _BY_ENTRY[new.kind])
        return Compiled(*compiler.entries(_map_parts(before), _map_parts(after)))
    if _has_lists(old, new):
        compiler.add_step("value", "retype", _BY_ELEMENT[new.kind])
        return Compiled(same, compiler.element(_element(before), _element(after)))
    if new.kind == "reducing" and old.kind == "value":
        text = "the value state becomes a reducing state: its function merges values that it did not make"
        compiler.add_step("value", "retype", text, loses=True)
    elif old.kind != new.kind:
        compiler.add_step(
            "value", "retype", f"{article(old.kind)} state becomes {article(new.kind)} state with the same values"
        )
    path = "element" if before.kind == "list" else "value"
    return Compiled(same, compiler.value(before.element, after.element, path))


def _map_parts(layout: StateLayout) -> tuple[TypeAtPath, TypeAtPath]:
    """Return the keys and the values of a map state, or of a value that is a map."""
    if layout.user_key is not None:
        return TypeAtPath.of(layout.user_key), TypeAtPath.of(layout.element)
    whole = TypeAtPath.of(layout.element)
    assert isinstance(whole.logical, MapType)
    return whole.part(0, whole.logical.key), whole.part(1, whole.logical.value)


def _element(layout: StateLayout) -> TypeAtPath:
    """Return the elements of a list state, or of a value that is a list."""
    whole = TypeAtPath.of(layout.element)
    if layout.kind == "list":
        return whole
    assert isinstance(whole.logical, ListType)
    return whole.part(0, whole.logical.element)


def _with_names(meta: StateMetaInfo, names: RowNames) -> StateMetaInfo:
    for path, columns in names:
        meta = named_state(meta, path, columns)
    return meta


@lru_cache(maxsize=256)
def _compile(conversion: TypeConversion) -> Compiled:
    return compile_state(conversion.old, conversion.meta, conversion.compiler())


def _entry_values(after: StateLayout, array: pa.Array, compiled: Compiled) -> Piece:
    """Return the values of the entries of a map state: a bool (is null), then the value."""
    present = array.filter(array.is_valid())
    return Flagged(is_valid(array), measure(after.element, compiled.value(present)), (0, 1), 0)


def _split_maps(
    header: KeyedHeader,
    batch: EntryBatch,
    old: StateMetaInfo,
    layouts: tuple[StateLayout, StateLayout],
    compiled: Compiled,
) -> EntryBatch:
    """Convert values that are maps to the entries of a map state."""
    before, after = layouts
    assert after.user_key is not None
    counts, keys, values = map_parts(decode_framed(before.element, batch.data, batch.value, batch.value_end, EXACT))
    start, sizes, group = (np.repeat(c, counts) for c in (batch.key, batch.key_end - batch.key, batch.group))
    converted = compiled.key(keys)
    check_distinct(counts, converted)
    parts = (Ranges(batch.data, start, sizes), measure(after.user_key, converted))
    entries = MeasuredEntries(
        int(batch.state[0]), group, Chain(parts, len(start)), _entry_values(after, values, compiled)
    )
    return MeasuredEntries.batch([entries])


def _split_lists(batch: EntryBatch, layouts: tuple[StateLayout, StateLayout], compiled: Compiled) -> EntryBatch:
    """Convert values that are lists to list states. A list state without elements has no entry."""
    before, after = layouts
    counts, elements = list_parts(decode_framed(before.element, batch.data, batch.value, batch.value_end, EXACT))
    has_any = counts > 0
    keys = Ranges(batch.data, batch.key[has_any], (batch.key_end - batch.key)[has_any])
    values = Joined(pack(measure(after.element, compiled.value(elements))), counts[has_any])
    return MeasuredEntries.batch([MeasuredEntries(int(batch.state[0]), batch.group[has_any], keys, values)])


def _join_maps(
    header: KeyedHeader,
    batch: EntryBatch,
    old: StateMetaInfo,
    layouts: tuple[StateLayout, StateLayout],
    compiled: Compiled,
) -> EntryBatch:
    """Convert the entries of a map state to values that are maps. The batch has all entries of its keys."""
    before, after = layouts
    assert before.user_key is not None
    split = split_keys(batch, header.key, old)
    ids, first = distinct(batch.data, batch.key, split.user_key, batch.group)
    order = np.argsort(ids, kind="stable")
    data = batch.data
    user_keys = decode_framed(before.user_key, data, split.user_key[order], batch.key_end[order], EXACT)
    values = map_values(before.element, data, batch.value[order], batch.value_end[order], EXACT)
    counts = np.bincount(ids, minlength=len(first))
    converted = compiled.key(user_keys)
    check_distinct(counts, converted)
    entries = pa.StructArray.from_arrays([converted, compiled.value(values)], names=["key", "value"])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    maps = pa.ListArray.from_arrays(pa.array(offsets), entries)
    prefix = Ranges(data, batch.key[first], split.user_key[first] - batch.key[first])
    joined = MeasuredEntries(int(batch.state[0]), batch.group[first], prefix, measure(after.element, maps))
    return MeasuredEntries.batch([joined])


@dataclass(frozen=True, kw_only=True, eq=False)
class TypeConversion:
    """A :class:`statetool.saving.composition.StateConversion` between serializers.

    Attributes
    ----------
    before, after
        The old and the new description of the state (:func:`~statetool.entries.joined_headers.meta_bytes`).
    names, new_names
        Names for the columns of SQL rows, by the path of each row. Columns are then matched by name and no column is added without a value.
    objects
        Classes of objects that only values tell, and that the new job writes in another way.
    more_objects
        Whether later values may have objects of other classes.
    """

    before: bytes
    before_types: TypeContext
    after: bytes
    types: TypeContext
    choices: Choices
    names: RowNames = ()
    new_names: RowNames = ()
    objects: Objects = ()
    more_objects: bool = False

    @property
    def meta(self) -> StateMetaInfo:
        """The new description."""
        return _with_names(parse_meta(self.after, self.types), self.new_names)

    @property
    def needs_whole_keys(self) -> bool:
        """Whether all entries of a key are converted together."""
        return self.old.kind == "map" and self.meta.kind == "value"

    @property
    def keeps_entries(self) -> bool:
        """Whether each entry becomes one entry with the same key: not if values become map states, or the opposite, or list states."""
        old, new = self.old, self.meta
        return (old.kind == "map") is (new.kind == "map") and not (new.kind == "list" and _has_lists(old, new))

    @property
    def old(self) -> StateMetaInfo:
        """The description in the base."""
        return _with_names(parse_meta(self.before, self.before_types), self.names)

    def compiler(self) -> Compiler:
        """Return a compiler for this conversion."""
        return Compiler(
            self.choices,
            fills_columns=not self.new_names,
            objects=self.objects,
            more_objects=self.more_objects,
            derived=self._derived(),
        )

    def _derived(self) -> dict[str, DerivedColumn] | None:
        """Return the columns of the accumulator that are computed from other ones, ``None`` for other states."""
        before, after = dict(self.names).get(_ACCUMULATOR), dict(self.new_names).get(_ACCUMULATOR)
        return None if before is None or after is None else derived_columns(before, after)

    @property
    def identity(self) -> bytes:
        """Bytes of the two descriptions, the choices, and the declared classes that values consist of."""
        choices, serializers = self.choices, (*self.old.serializers.values(), *self.meta.serializers.values())
        parts = (
            self.before,
            self.after,
            (self.before_types.kryo, self.types.kryo),
            [repr(serializer.declarations()) for serializer in serializers],
            [sorted(choices.sources.items()), sorted(choices.fills.items())],
            sorted((path, sorted(names.items())) for path, names in choices.constants.items()),
            choices.last_access_ms,
            *([self.names, self.new_names] if self.names else []),
            *((name, cls, *self._versions(name)) for name, cls in self.objects),
        )
        return repr(parts).encode()

    def _versions(self, name: str) -> tuple[Any, ...]:
        new = self.types.source
        return self.before_types.find(name), self.types.find(name), None if new is None else new.serializable(name)

    def entries(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Convert entries of this state. Errors name the key."""
        try:
            return self._entries(header, batch)
        except StatetoolError as error:
            i = self._first_failing(header, batch)
            key = key_to_text(header.key, bytes(batch.data[batch.key[i] : batch.key_end[i]]))
            error.message = f"{error.message}, in the value of key {key}"
            raise batch.locate(error).at(state=self.meta.name) from error.__cause__

    def _first_failing(self, header: KeyedHeader, batch: EntryBatch) -> int:
        low, high = 0, len(batch)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self._entries(header, batch.take(np.arange(low, middle)))
            except StatetoolError:
                high = middle
            else:
                low = middle
        return low

    def _entries(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        stored = next(m for m in header.states if m.name == self.old.name)
        old = _with_names(stored, self.names)
        compiled = _compile(self)
        if compiled.keeps_bytes:
            return batch
        before, after = StateLayout(old), StateLayout(self.meta)
        keys: Piece = Ranges(batch.data, batch.key, batch.key_end - batch.key)
        data, pos, end = batch.data, batch.value, batch.value_end
        if before.kind != after.kind and "map" in (before.kind, after.kind):
            join = _join_maps if before.kind == "map" else _split_maps
            return join(header, batch, old, (before, after), compiled)
        if before.kind == "map":
            assert before.user_key is not None
            assert after.user_key is not None
            split = split_keys(batch, header.key, old)
            user_keys = decode_framed(before.user_key, data, split.user_key, batch.key_end, EXACT)
            prefix = Ranges(data, batch.key, split.user_key - batch.key)
            keys = Chain((prefix, measure(after.user_key, compiled.key(user_keys))), len(batch))
            values: Piece = _entry_values(after, map_values(before.element, data, pos, end, EXACT), compiled)
        elif _has_lists(old, self.meta) and before.kind == "value":
            return _split_lists(batch, (before, after), compiled)
        elif _has_lists(old, self.meta):
            counts, starts, ends = split_joined(before.element, data, pos, end)
            elements = compiled.value(decode_framed(before.element, data, starts, ends, EXACT))
            offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
            values = measure(after.element, pa.ListArray.from_arrays(offsets, elements))
        elif before.kind == "list":
            counts, starts, ends = split_joined(before.element, data, pos, end)
            array = decode_framed(before.element, data, starts, ends, EXACT)
            values = Joined(pack(measure(after.element, compiled.value(array))), counts)
        else:
            array = decode_framed(before.element, data, pos, end, EXACT)
            values = measure(after.element, compiled.value(array))
        state = int(batch.state[0])
        return MeasuredEntries.batch([MeasuredEntries(state, batch.group, keys, values)])

    def elements(self, data: Bytes, starts: Int64s, ends: Int64s) -> Encoded:
        """Convert elements of operator state."""
        try:
            return self._elements(data, starts, ends)
        except StatetoolError as error:
            raise error.at(state=self.meta.name, offset=None) from error.__cause__

    def _elements(self, data: Bytes, starts: Int64s, ends: Int64s) -> Encoded:
        compiled = _compile(self)
        old, new = self.old, self.meta
        if old.kind != "broadcast":
            return pack(measure(new.value, compiled.value(decode_framed(old.value, data, starts, ends, EXACT))))
        key, value = old.serializers["KEY_SERIALIZER"], old.value
        counts, old_keys, old_values = broadcast_entries(key, value, data, starts, ends, EXACT)
        new_keys = compiled.key(old_keys)
        check_distinct(counts, new_keys)
        keys = measure(new.serializers["KEY_SERIALIZER"], new_keys)
        return pack(Elements(counts, Chain((keys, measure(new.value, compiled.value(old_values))), len(new_keys))))
