"""Conversion of one state's entries or elements for a composition: created on the driver, compiled and run in tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from statetool.columns.arrays import is_valid
from statetool.columns.encode import measure
from statetool.columns.pieces import Bytes, Chain, Elements, Encoded, Flagged, Int64s, Joined, Piece, Ranges, pack
from statetool.columns.values import StateLayout, broadcast_entries, decode_framed, map_values, split_joined
from statetool.entries.keys import split_keys
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.projections import with_projections
from statetool.formats.state_meta import StateMetaInfo, read_m6
from statetool.io.cursor import Cursor
from statetool.migration.choices import Choices
from statetool.migration.compiling import EXACT, Compiler, check_distinct
from statetool.migration.leaves import Convert, same
from statetool.saving.streams.keyed import key_to_text
from statetool.saving.streams.measured_entries import MeasuredEntries
from statetool.serializers.table import snapshot_reader
from statetool.types import Scalar
from statetool.types.declared import TypeContext

#: Kinds of state with the kinds that they can become. A single value has the bytes of a list with one element.
BECOMES: Final = {
    "reducing": ("value",),
    "aggregating": ("value",),
    "value": ("list",),
    "union": ("list",),
    "list": ("union",),
}
_DEALT: Final = {
    "list": "each subtask gets a part of the elements when the job restores",
    "union": "each subtask gets all elements when the job restores",
}


def article(kind: str) -> str:
    """Return a kind of state with its article.

    Examples
    --------
    >>> article("list"), article("aggregating")
    ('a list', 'an aggregating')
    """
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind}"


def can_become(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if a state can be converted to the kind of another.

    States with namespaces belong to operators of Flink, such as windows: a result is not an element of a list of records.
    """
    if before.backend_type != after.backend_type:
        return False
    own = before.namespace is None or before.namespace.logical == Scalar("null")
    return before.kind == after.kind or (own and after.kind in BECOMES.get(before.kind, ()))


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
    """The conversions of a state: of its values, and of its map keys if it is a map."""

    key: Convert
    value: Convert


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
    before, after = StateLayout(old), StateLayout(new)
    if before.declared is not None or after.declared is not None:
        compiler.impossible("value", "states of Python jobs")
        return Compiled(same, same)
    if before.framed_bytes or after.framed_bytes:
        opaque = old.value if before.framed_bytes else new.value
        compiler.impossible("value", opaque.missing_declaration_hint or f"the content of {opaque.type_name} is unknown")
        return Compiled(same, same)
    if before.kind == "map":
        assert before.user_key is not None
        assert after.user_key is not None
        key = compiler.key(before.user_key, after.user_key, "map_key")
        return Compiled(key, compiler.value(before.element, after.element, "map_value"))
    if old.kind != new.kind:
        compiler.add_step(
            "value", "retype", f"{article(old.kind)} state becomes {article(new.kind)} state with the same values"
        )
    path = "element" if before.kind == "list" else "value"
    return Compiled(same, compiler.value(before.element, after.element, path))


@lru_cache(maxsize=256)
def _compile(old: bytes, old_types: TypeContext, conversion: TypeConversion) -> Compiled:
    return compile_state(parse_meta(old, old_types), conversion.meta, Compiler(conversion.choices))


@dataclass(frozen=True, kw_only=True, eq=False)
class TypeConversion:
    """A :class:`statetool.saving.composition.StateConversion` between serializers.

    Attributes
    ----------
    before, after
        The old and the new description of the state (:func:`~statetool.entries.joined_headers.meta_bytes`).
    """

    before: bytes
    before_types: TypeContext
    after: bytes
    types: TypeContext
    choices: Choices

    @property
    def meta(self) -> StateMetaInfo:
        """The new description."""
        return parse_meta(self.after, self.types)

    @property
    def old(self) -> StateMetaInfo:
        """The description in the base."""
        return parse_meta(self.before, self.before_types)

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
        )
        return repr(parts).encode()

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
        old = next(m for m in header.states if m.name == self.old.name)
        compiled = _compile(self.before, self.before_types, self)
        before, after = StateLayout(old), StateLayout(self.meta)
        keys: Piece = Ranges(batch.data, batch.key, batch.key_end - batch.key)
        data, pos, end = batch.data, batch.value, batch.value_end
        if before.kind == "map":
            assert before.user_key is not None
            assert after.user_key is not None
            split = split_keys(batch, header.key, old)
            user_keys = decode_framed(before.user_key, data, split.user_key, batch.key_end, EXACT)
            prefix = Ranges(data, batch.key, split.user_key - batch.key)
            keys = Chain((prefix, measure(after.user_key, compiled.key(user_keys))), len(batch))
            array = map_values(before.element, data, pos, end, EXACT)
            present = array.filter(array.is_valid())
            values: Piece = Flagged(is_valid(array), measure(after.element, compiled.value(present)), (0, 1), 0)
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
        compiled = _compile(self.before, self.before_types, self)
        old, new = self.old, self.meta
        if old.kind != "broadcast":
            return pack(measure(new.value, compiled.value(decode_framed(old.value, data, starts, ends, EXACT))))
        key, value = old.serializers["KEY_SERIALIZER"], old.value
        counts, old_keys, old_values = broadcast_entries(key, value, data, starts, ends, EXACT)
        new_keys = compiled.key(old_keys)
        check_distinct(counts, new_keys)
        keys = measure(new.serializers["KEY_SERIALIZER"], new_keys)
        return pack(Elements(counts, Chain((keys, measure(new.value, compiled.value(old_values))), len(new_keys))))
