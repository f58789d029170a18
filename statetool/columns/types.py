"""Table of the Arrow type of each logical type, and the columns in which tables show it.

Decoded values hold their nanoseconds and scales inside. Tables show them as companion columns (:mod:`statetool.columns.companions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from statetool.columns.arrays import as_arrow, is_valid
from statetool.errors import OptionError, UnsupportedError
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    PresentType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
    VariantType,
)
from statetool.types.options import ReadOptions

_SCALARS: Final = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "null": pa.null(),
    "time": pa.int64(),
    "day_interval": pa.duration("us"),
}
UTC_MICROS: Final = pa.timestamp("us", tz="UTC")
LOCAL_MICROS: Final = pa.timestamp("us")
BIG_DECIMAL: Final = pa.decimal128(38, 18)
BIG_INTEGER: Final = pa.decimal128(38, 0)
#: A variant as Spark exchanges it: the field's metadata distinguishes it from other structs.
VARIANT_STRUCT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
#: A BigDecimal with its scale, until tables show the scales in a companion column (:mod:`statetool.columns.companions`).
SCALED_DECIMAL: Final = pa.struct([pa.field("decimal", BIG_DECIMAL), pa.field("scale", pa.int32())])
#: Suffixes of the names of companion columns.
COMPANION: Final = "_nanos"
SCALE: Final = "_scale"
PRESENT: Final = "_present"
#: Digits of a second that Spark keeps.
_MICROS: Final = 6


def arrow_type(logical: LogicalType, options: ReadOptions) -> pa.DataType:
    """Return the Arrow type of decoded values of a logical type.

    Raises
    ------
    UnsupportedError
        Arrow has no such type.
    OptionError
        A companion has the same name as a field of the same struct.
    """
    match logical:
        case Scalar(name):
            return _SCALARS[name]
        case BigDecimalType():
            return {"decimal": SCALED_DECIMAL, "plain": BIG_DECIMAL, "string": pa.string()}[options.decimals]
        case BigIntegerType():
            return pa.string() if options.decimals == "string" else BIG_INTEGER
        case BitmapType():
            return pa.list_(pa.field("element", pa.int32()))
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case DateType():
            return pa.date32()
        case TimestampType():
            micros = UTC_MICROS if logical.zoned else LOCAL_MICROS
            if keeps_nanos(logical, options):
                return pa.struct([pa.field("timestamp", micros), pa.field("nanos", pa.int32())])
            return micros
        case ListType(element):
            return pa.list_(pa.field("element", arrow_type(element, options)))
        case MapType(key, value):
            if pa.types.is_null(arrow_type(key, options)):
                raise UnsupportedError(
                    "a map whose keys can only be null, which Arrow and Spark maps cannot hold",
                    hint="read the state in its long form with op.state(name), or leave it out with states=[...]",
                )
            return pa.map_(arrow_type(key, options), arrow_type(value, options))
        case VariantType():
            return VARIANT_STRUCT
        case StructType(fields):
            return _struct([f for part in fields for f in member_fields(part.name, part.type, options)])
        case TtlType(value):
            if options.ttl == "raw":
                return pa.struct([pa.field("last_access", UTC_MICROS), *member_fields("value", value, options)])
            return arrow_type(value, options)
        case PresentType(value):
            return pa.struct([pa.field("value", arrow_type(value, options))])
    raise UnsupportedError(f"{type(logical).__name__} has no Arrow type")


def is_variant(kind: pa.DataType) -> bool:
    """Return True if a column holds variants: structs of ``value`` and ``metadata`` that are marked in their Arrow metadata."""
    if not pa.types.is_struct(kind) or {f.name for f in kind} != {"value", "metadata"}:
        return False
    return (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def _struct(fields: list[pa.Field]) -> pa.DataType:
    names = [f.name for f in fields]
    if twice := {n for n in names if names.count(n) > 1 and n.endswith(COMPANION)}:
        raise OptionError(
            f"a field {', '.join(sorted(twice))}, which is also the name of the column of another field's nanoseconds",
            hint="pass nanos='error' or nanos='truncate', or other names with columns=",
        )
    return pa.struct(fields)


def keeps_nanos(logical: TimestampType, options: ReadOptions) -> bool:
    """Return True if the digits below the microsecond are shown beside a timestamp. Depends on its type, never on its values."""
    wanted = options.nanos == "always" or (options.nanos == "companion" and logical.digits > _MICROS)
    return logical.unit == "ns" and wanted


def needs_nanos(logical: LogicalType, options: ReadOptions) -> bool:
    """Return True if a column is a timestamp with a companion column of nanoseconds below the microsecond."""
    if isinstance(logical, TtlType) and options.ttl != "raw":
        return needs_nanos(logical.value, options)
    return isinstance(logical, TimestampType) and keeps_nanos(logical, options)


def member_fields(name: str, logical: LogicalType, options: ReadOptions) -> list[pa.Field]:
    """Return the field of a part of a struct, followed by that of its nanoseconds if it has them."""
    whole = arrow_type(logical, options)
    if needs_nanos(logical, options):
        return [pa.field(name, whole.field(0).type), pa.field(name + COMPANION, pa.int32())]
    return [pa.field(name, whole)]


def member_arrays(array: pa.Array, logical: LogicalType, options: ReadOptions) -> list[pa.Array]:
    """Return a part of structs, followed by its nanoseconds if it has them, as :func:`member_fields` names them."""
    return array.flatten() if needs_nanos(logical, options) else [array]


def struct_columns(
    array: pa.StructArray, logical: StructType, options: ReadOptions
) -> list[tuple[str, LogicalType, pa.Array]]:
    """Return the fields of structs as columns: name, type, and values of :func:`arrow_type`."""
    parts = iter(array.flatten())
    columns = []
    for field in logical.fields:
        arrays = [next(parts) for _ in member_fields(field.name, field.type, options)]
        kind = arrow_type(field.type, options)
        column = arrays[0] if len(arrays) == 1 else pa.StructArray.from_arrays(arrays, fields=list(kind))
        columns.append((field.name, field.type, column))
    return columns


# ---- columns of tables ----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def has_scales(logical: LogicalType) -> bool:
    """Return True if values have a ``BigDecimal`` at any depth."""
    match logical:
        case BigDecimalType():
            return True
        case ListType(part) | TtlType(part) | PresentType(part):
            return has_scales(part)
        case MapType(key, value):
            return has_scales(key) or has_scales(value)
        case StructType(fields):
            return any(has_scales(field.type) for field in fields)
    return False


#: Splits decoded values into values with plain decimals, and the scales of the decimals.
_Splitter: TypeAlias = Callable[[Any], tuple[pa.Array, pa.Array]]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """How tables show decoded values of one type: as a column, followed by its companions.

    Attributes
    ----------
    parts
        The suffix of the name of each column, its type, and whether it may be null.
    take
        Takes the columns out of decoded values.
    """

    parts: tuple[tuple[str, pa.DataType, bool], ...]
    take: Callable[[Any], list[pa.Array]]

    def fields(self, name: str) -> list[pa.Field]:
        """Return the field of the column, and those of its companions."""
        return [pa.field(name + suffix, kind, nullable=nullable) for suffix, kind, nullable in self.parts]

    def arrays(self, array: pa.Array) -> list[pa.Array]:
        """Return the column and its companions, as :meth:`fields` names them."""
        return self.take(array)


def table_column(logical: LogicalType, options: ReadOptions) -> TableColumn:
    """Return how tables show decoded values of a type (:func:`statetool.columns.types.arrow_type`)."""
    # Equal timestamps may have other digits, which decide on a companion.
    return _table_column(logical, options, repr(logical))


@lru_cache(maxsize=1024)
def _table_column(logical: LogicalType, options: ReadOptions, exact: str) -> TableColumn:
    if isinstance(logical, PresentType):
        inner = table_column(logical.value, options)
        if options.presence != "companion":
            return TableColumn(inner.parts, lambda array: inner.take(array.flatten()[0]))
        parts = (*inner.parts, (PRESENT, pa.bool_(), False))
        return TableColumn(parts, lambda array: [*inner.take(array.flatten()[0]), as_arrow(is_valid(array))])
    kind = arrow_type(logical, options)
    if options.decimals == "decimal" and has_scales(logical):
        split = _splitter(logical, options)
        shown, scales = split(pa.nulls(0, kind))
        return TableColumn((("", shown.type, True), (SCALE, scales.type, True)), lambda array: list(split(array)))
    if needs_nanos(logical, options):
        parts = (("", kind.field(0).type, True), (COMPANION, pa.int32(), True))
        return TableColumn(parts, lambda array: list(array.flatten()))
    return TableColumn((("", kind, True),), lambda array: [array])


def _splitter(logical: LogicalType, options: ReadOptions) -> _Splitter:
    """Return a function that splits values of a type with decimals."""
    match logical:
        case BigDecimalType():
            return lambda array: tuple(array.flatten())
        case ListType(element):
            return partial(_split_lists, element=_splitter(element, options))
        case MapType(key, value):
            return partial(_split_maps, key=_if_scaled(key, options), value=_if_scaled(value, options))
        case StructType(fields):
            parts: list[_Splitter | None] = []
            for field in fields:
                parts += [_if_scaled(field.type, options), *([None] if needs_nanos(field.type, options) else [])]
            return partial(_split_structs, parts=parts)
        case TtlType(value) if options.ttl == "raw":
            return partial(_split_timed, parts=[None, _splitter(value, options)])
        case TtlType(value):
            return _splitter(value, options)
    raise NotImplementedError(type(logical).__name__)


def _if_scaled(logical: LogicalType, options: ReadOptions) -> _Splitter | None:
    return _splitter(logical, options) if has_scales(logical) else None


def _split_lists(array: pa.ListArray, element: _Splitter) -> tuple[pa.Array, pa.Array]:
    elements, scales = element(array.values)
    return _same_lists(array, elements), _same_lists(array, scales)


def _split_maps(array: pa.MapArray, key: _Splitter | None, value: _Splitter | None) -> tuple[pa.Array, pa.Array]:
    keys, values = array.keys, array.items
    scales: dict[str, pa.Array] = {}
    if key is not None:
        keys, scales["key"] = key(keys)
    if value is not None:
        values, scales["value"] = value(values)
    shown = _same_maps(array, keys, values)
    if "key" not in scales:
        return shown, _same_maps(array, keys, scales["value"])
    return shown, _same_lists(array, pa.StructArray.from_arrays(list(scales.values()), names=list(scales)))


def _split_structs(array: pa.StructArray, parts: Sequence[_Splitter | None]) -> tuple[pa.Array, pa.Array]:
    shown_fields, shown_parts, scale_fields, scales = [], [], [], []
    for field, part, split in zip(array.type, array.flatten(), parts, strict=True):
        shown = part
        if split is not None:
            shown, scale = split(part)
            scales.append(scale)
            scale_fields.append(pa.field(field.name, scale.type))
        shown_parts.append(shown)
        shown_fields.append(field.with_type(shown.type))
    null = as_arrow(~is_valid(array))
    return (
        pa.StructArray.from_arrays(shown_parts, fields=shown_fields, mask=null),
        pa.StructArray.from_arrays(scales, fields=scale_fields, mask=null),
    )


def _split_timed(array: pa.StructArray, parts: Sequence[_Splitter | None]) -> tuple[pa.Array, pa.Array]:
    """Split structs of the last access and a value; the scales are those of the value."""
    shown, scales = _split_structs(array, parts)
    return shown, scales.flatten()[0]


def _same_lists(array: pa.Array, elements: pa.Array) -> pa.Array:
    """Return lists as long as those of lists or maps."""
    kind = pa.list_(pa.field("element", elements.type))
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[elements]
    )


def _same_maps(array: pa.MapArray, keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return maps as long as those of other maps."""
    kind = pa.map_(keys.type, values.type)
    # PyArrow 16 aborts the process if the nulls of keys and pairs were never counted. Arrow counts them when it is asked.
    assert not keys.null_count
    pairs = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    assert not pairs.null_count
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[pairs]
    )
