"""Logical types: what a Flink serializer's values *are*, before Arrow or Spark."""

from statetool.types.logical import (
    VARIANT,
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DateType,
    DecimalType,
    Field,
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

__all__ = [
    "VARIANT",
    "BigDecimalType",
    "BigIntegerType",
    "BitmapType",
    "DateType",
    "DecimalType",
    "Field",
    "ListType",
    "LogicalType",
    "MapType",
    "PresentType",
    "Scalar",
    "StructType",
    "TimestampType",
    "TtlType",
    "VariantType",
]
