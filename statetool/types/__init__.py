"""Logical types: what a Flink serializer's values *are*, before Arrow or Spark."""

from statetool.types.logical import (
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DateType,
    DecimalType,
    Field,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)

__all__ = [
    "BigDecimalType",
    "BigIntegerType",
    "BitmapType",
    "DateType",
    "DecimalType",
    "Field",
    "ListType",
    "LogicalType",
    "MapType",
    "Scalar",
    "StructType",
    "TimestampType",
    "TtlType",
]
