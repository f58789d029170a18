"""``Row``: a bit mask (two bits row kind, then one bit per field: set = null), then the non-null fields.

Outer payload: version 4 has a bool "supports row kind"; in version 3 this is always true, up to version 2 never. Field names are not
stored. Follows ``RowSerializer``.

The hash code of a ``Row`` includes the contents of arrays, lists and maps (``RowUtils.deepHashCodeRow``, Flink 1.13 and later). It is
``31 * kind + D``, where D is the array rule applied to the fields. For a part: null 0; list or object array: start 1, ``31 h + part``; map:
1 plus the sum of ``key ^ value``; primitive array: 31 + ``Arrays.hashCode``; everything else: 31 + its ``hashCode()``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Masked, Op, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.typeutils.arrays import ARRAY_ELEMENTS, GenericArraySerializer
from statetool.serializers.typeutils.collections import ListSerializer, MapSerializer, SetSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer, check_last, composite, inside, sequence
from statetool.serializers.typeutils.masks import read_mask, write_mask
from statetool.serializers.typeutils.options import NullableSerializer
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.java_hash import hash_chain, to_int32

ROW_KINDS: Final = ("+I", "-U", "+U", "-D")
KIND_FIELD: Final = "_kind"


class RowSerializer(CompositeSerializer):
    """Struct of ``f0`` .., and ``_kind`` last if the row kind is stored."""

    arity = None

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Any, ...]) -> None:
        super().__init__(name, version, outer_version, outer, nested)
        self.row_kind = bool(outer) if outer_version >= 4 else outer_version == 3
        self.steps = tuple(f"f{i}" for i in range(len(nested)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return self.steps

    def with_names(self, names: Sequence[str]) -> RowSerializer:
        """Return the serializer with other names for its fields."""
        named = copy.copy(self)
        named.steps = tuple(names)
        return named

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bool | None:
        return c.bool() if outer_version >= 4 else None

    def write_outer(self, out: Output) -> None:
        if self.outer is not None:
            out.bool(self.outer)

    @property
    def logical(self) -> LogicalType:
        fields = [Field(n, s.logical) for n, s in self.children()]
        if self.row_kind:
            fields.append(Field(KIND_FIELD, Scalar("string")))
        return StructType(tuple(fields))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        mask = read_mask(c, len(self.nested) + 2 * self.row_kind)
        nulls = mask[2:] if self.row_kind else mask
        values: list[Any] = []
        try:
            for part, null in zip(self.nested, nulls, strict=True):
                if null:
                    values.append(None)
                else:
                    check_last(c, part, last=all(nulls[len(values) + 1 :]))
                    values.append(part.decode(c))
        except StatetoolError as error:
            raise error.inside(self.steps[len(values)]) from error.__cause__
        if self.row_kind:
            values.append(ROW_KINDS[mask[0] + 2 * mask[1]])
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        values = sequence(value, "row", len(self.nested) + self.row_kind)[: len(self.nested)]
        flags = [v is None for v in values]
        if self.row_kind:
            if value[-1] not in ROW_KINDS:
                raise EncodeError(f"{value[-1]!r} is not a row kind ({', '.join(ROW_KINDS)})")
            kind = ROW_KINDS.index(value[-1])
            flags = [bool(kind & 1), bool(kind & 2), *flags]
        write_mask(out, flags)
        for (step, part), v in zip(self.children(), values, strict=True):
            if v is not None:
                with inside(step):
                    part.encode(out, v)

    def hash_code(self, value: Any) -> int:
        """``Row.hashCode``; rows without a kind are inserts."""
        return _hash_row(ROW_KINDS.index(value[-1]) if self.row_kind else 0, self.nested, value)

    def key_forms(self, value: Any) -> tuple[tuple[bytes, int | None], ...]:
        """Accept a key without its kind as well, and a single-field key (like all of PyFlink's keys) as the field alone."""
        return super().key_forms(_whole_row(self, value))

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return Masked(self.steps, tuple(s.program() for s in self.nested), self.row_kind)


def _whole_row(part: Serializer, value: Any) -> Any:
    """Return a key with the omitted row kind and one-field tuple filled in, in rows and in tuples of rows."""
    if isinstance(part, RowSerializer):
        n, values = len(part.nested), value if isinstance(value, (tuple, list)) else None
        if values is not None and len(values) == n + part.row_kind and (not part.row_kind or values[-1] in ROW_KINDS):
            fields, kind = values[:n], values[n:]
        else:
            is_field_alone = n == 1 and (values is None or len(values) != 1)
            fields, kind = (value,) if is_field_alone else values or (), (ROW_KINDS[0],) * part.row_kind
        if len(fields) != n:
            raise EncodeError(f"{value!r} is not a row of {n} fields")
        return (*(_whole_row(p, v) for p, v in zip(part.nested, fields, strict=True)), *kind)
    if isinstance(value, (tuple, list)) and len(value) == len(part.children()):
        return tuple(_whole_row(p, v) for (_, p), v in zip(part.children(), value, strict=True))
    return value


def _hash_row(kind: int, parts: Iterable[Serializer], values: Iterable[Any]) -> int:
    """Return ``Row.hashCode`` of a row without field names.

    Raises
    ------
    UnsupportedError
        A field has no stable hash code.
    """
    return to_int32(31 * kind + hash_chain((_hash_of_part(s, v) for s, v in zip(parts, values, strict=False)), start=1))


def _hash_of_part(s: Serializer, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(s, NullableSerializer):
        return _hash_of_part(s.nested[0], value)
    if isinstance(s, MapSerializer):
        key, item = s.nested
        return to_int32(1 + sum(_hash_of_part(key, k) ^ _hash_of_part(item, v) for k, v in value))
    if isinstance(s, GenericArraySerializer) or (isinstance(s, ListSerializer) and not isinstance(s, SetSerializer)):
        return hash_chain((_hash_of_part(s.nested[0], v) for v in value), start=1)
    if isinstance(s, SimpleSerializer) and s.spec.name in ARRAY_ELEMENTS:
        return _hash_of_array(s.spec.name, value)
    return to_int32(31 + s.hash_code(value))


def _hash_of_array(name: str, value: Any) -> int:
    if isinstance(value, bytes):
        return to_int32(31 + hash_chain((b - 256 if b > 127 else b for b in value), start=1))
    hash_code = ARRAY_ELEMENTS[name].hash_code
    assert hash_code is not None
    if name == "StringArray":
        # An array of objects: each string counts as a part.
        return hash_chain((0 if v is None else to_int32(31 + hash_code(v)) for v in value), start=1)
    return to_int32(31 + hash_chain(map(hash_code, value), start=1))


SNAPSHOTS: Final = {
    "RowSerializer$RowSerializerSnapshot": composite(RowSerializer, outer_versions=(1, 2, 3, 4)),
    "RowSerializer$RowSerializerConfigSnapshot": composite(RowSerializer, outer_versions=(1, 2, 3, 4)),
}
