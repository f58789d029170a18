"""Logical types: the meaning of a Flink serializer's values, independent of Arrow and Spark."""

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
