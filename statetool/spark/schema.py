"""Arrow schemas as Spark schemas."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa

from statetool.columns.types import is_variant
from statetool.errors import OptionError, UnsupportedError


def spark_schema(schema: pa.Schema) -> Any:
    """Return the Spark ``StructType`` of an Arrow schema."""
    from pyspark.sql import types as t

    return t.StructType([t.StructField(f.name, spark_type(f.type), f.nullable) for f in schema])


def spark_type(kind: pa.DataType) -> Any:
    """Return the Spark type of an Arrow type.

    Variants become Spark's variants if it has them (4.0 and later); PySpark 3.5 shows a struct of their two binaries.

    Raises
    ------
    UnsupportedError
        Spark has no such type.
    """
    from pyspark.sql import types as t

    simple = {
        pa.bool_(): t.BooleanType(),
        pa.int8(): t.ByteType(),
        pa.int16(): t.ShortType(),
        pa.int32(): t.IntegerType(),
        pa.int64(): t.LongType(),
        pa.float32(): t.FloatType(),
        pa.float64(): t.DoubleType(),
        pa.string(): t.StringType(),
        pa.binary(): t.BinaryType(),
        pa.null(): t.NullType(),
        pa.date32(): t.DateType(),
        pa.duration("us"): t.DayTimeIntervalType(),
    }
    if kind in simple:
        return simple[kind]
    if pa.types.is_timestamp(kind):
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return t.ArrayType(spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return t.MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if is_variant(kind) and hasattr(t, "VariantType"):
        return t.VariantType()
    if pa.types.is_struct(kind):
        return t.StructType([t.StructField(f.name, spark_type(f.type), f.nullable) for f in kind])
    raise UnsupportedError(f"Spark has no type for {kind}")


def arrow_schema(frame: Any) -> pa.Schema:
    """Return the Arrow schema of a DataFrame's rows; timestamps are in UTC whatever the session's zone is (PySpark 3.5 always uses UTC).

    Raises
    ------
    OptionError
        A column contains arrays or maps of VOID, as created by ``array()`` and ``map()``: Arrow has no such type without nulls.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    _refuse_void(frame.schema)
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(frame.schema, timezone="UTC")
    return to_arrow_schema(frame.schema)


def _refuse_void(schema: Any) -> None:
    for field in schema.fields:
        if _holds_void(field.dataType):
            kind = field.dataType.simpleString()
            raise OptionError(
                f"column {field.name!r} has the type {kind}, which no value fits",
                hint="cast it, as in CAST(array() AS ARRAY<STRING>) or CAST(map() AS MAP<STRING, BIGINT>)",
            )


def _holds_void(kind: Any) -> bool:
    """Return True if arrays or maps have elements, keys or values of VOID that cannot be null."""
    from pyspark.sql import types as t

    match kind:
        case t.ArrayType():
            parts = [(kind.elementType, kind.containsNull)]
        case t.MapType():
            parts = [(kind.keyType, False), (kind.valueType, kind.valueContainsNull)]
        case t.StructType():
            parts = [(f.dataType, f.nullable) for f in kind.fields]
        case _:
            return False
    return any((isinstance(part, t.NullType) and not nullable) or _holds_void(part) for part, nullable in parts)
