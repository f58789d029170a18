"""Logical types, and the plain Python value of each.

=================  ===========================================================================
type               plain value (what a serializer's ``decode`` returns and ``encode`` takes)
=================  ===========================================================================
Scalar             ``bool``, ``int``, ``float``, ``str`` (lone surrogates possible), ``bytes``
BitmapType         ``bytes``: the portable form of a RoaringBitmap
BigDecimalType     ``decimal.Decimal`` with exactly the scale on the wire
BigIntegerType     ``int``
DecimalType        ``decimal.Decimal`` of exactly ``scale``
DateType           ``int`` days since 1970-01-01, proleptic
TimestampType      ``int`` since 1970-01-01T00:00 in ``unit`` (any size: never wraps)
ListType           ``list``
MapType            ``list`` of ``(key, value)`` in wire order, duplicates kept
StructType         ``tuple`` with one value per field
VariantType        ``(value, metadata)``: the binaries of a variant
TtlType            ``(last_access_ms, value)``
PresentType        ``(value,)``
=================  ===========================================================================

``None`` is null everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class LogicalType:
    """Base of the logical types."""


@dataclass(frozen=True, slots=True)
class Scalar(LogicalType):
    """A type with one obvious Arrow and Spark type.

    ``null`` only ever contains null (``Void``); ``time`` is a time of day in nanoseconds (Spark bigint); ``day_interval``
    is a duration in milliseconds.
    """

    name: Literal[
        "bool", "int8", "int16", "int32", "int64", "float32", "float64", "string", "binary", "null", "time", "day_interval"
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BitmapType(LogicalType):
    """A set of 32-bit ints (``Bitmap`` of the table runtime), shown as a list of them."""


@dataclass(frozen=True, slots=True)
class BigDecimalType(LogicalType):
    """``java.math.BigDecimal``: any precision, and a separate scale per value."""


@dataclass(frozen=True, slots=True)
class BigIntegerType(LogicalType):
    """``java.math.BigInteger``."""


@dataclass(frozen=True, slots=True)
class DecimalType(LogicalType):
    """A decimal with precision and scale fixed by the type (SQL)."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class DateType(LogicalType):
    """A calendar date."""


@dataclass(frozen=True, slots=True)
class TimestampType(LogicalType):
    """A point in time (``zoned``: an instant, shown in UTC; otherwise a local date and time).

    ``digits`` are the fractional digits of the second that the type declares: SQL's ``TIMESTAMP(6)`` stores nanoseconds nevertheless.
    """

    unit: Literal["ms", "us", "ns"]
    zoned: bool
    digits: int = field(default=9, compare=False)


@dataclass(frozen=True, slots=True)
class ListType(LogicalType):
    """A list, array or set."""

    element: LogicalType


@dataclass(frozen=True, slots=True)
class MapType(LogicalType):
    """A map; order and possible duplicates are those on the wire."""

    key: LogicalType
    value: LogicalType


@dataclass(frozen=True, slots=True)
class Field:
    """A named part of a struct."""

    name: str
    type: LogicalType


@dataclass(frozen=True, slots=True)
class StructType(LogicalType):
    """Named parts in order."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, **parts: LogicalType) -> StructType:
        """Build from keyword arguments, in their order."""
        return cls(tuple(Field(name, t) for name, t in parts.items()))


@dataclass(frozen=True, slots=True)
class VariantType(StructType):
    """A semi-structured value (``VARIANT``): two binaries in the encoding that Flink shares with Spark and Parquet."""


VARIANT: Final = VariantType((Field("value", Scalar("binary")), Field("metadata", Scalar("binary"))))


@dataclass(frozen=True, slots=True)
class TtlType(LogicalType):
    """A value with the time of its last access (plain value: ``(last_access_ms, value)``).

    The read's options decide how it is shown (:class:`statetool.types.options.ReadOptions`).
    """

    value: LogicalType


@dataclass(frozen=True, slots=True)
class PresentType(LogicalType):
    """A value that can be null, of a state that a key may not have: the column of such a state (no serializer has this type)."""

    value: LogicalType
