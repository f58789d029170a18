"""Table of the Arrow type of each logical type, and detection of columns that need a companion."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

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
COMPANION: Final = "_nanos"
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


def needs_companion(logical: LogicalType, options: ReadOptions) -> bool:
    """Return True if a column is a timestamp with a companion column of nanoseconds below the microsecond."""
    if isinstance(logical, TtlType) and options.ttl != "raw":
        return needs_companion(logical.value, options)
    return isinstance(logical, TimestampType) and keeps_nanos(logical, options)


def member_fields(name: str, logical: LogicalType, options: ReadOptions) -> list[pa.Field]:
    """Return the field of a part of a struct, followed by that of its nanoseconds if it has them."""
    whole = arrow_type(logical, options)
    if needs_companion(logical, options):
        return [pa.field(name, whole.field(0).type), pa.field(name + COMPANION, pa.int32())]
    return [pa.field(name, whole)]


def member_arrays(array: pa.Array, logical: LogicalType, options: ReadOptions) -> list[pa.Array]:
    """Return a part of structs, followed by its nanoseconds if it has them, as :func:`member_fields` names them."""
    return array.flatten() if needs_companion(logical, options) else [array]


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
