"""Programs: descriptions of values from which kernels decode, skip or encode them. Needs no NumPy.

A serializer describes its bytes as a tree of these operations (``Serializer.program()``). Columns are decoded by walking the tree once for
many values (:mod:`statetool.columns.decode`): each operation takes the byte positions of all values, and gives a column and the positions
after the values. :mod:`statetool.kernels.values.skip_program` converts the same tree to numbers for a kernel that only finds ends.

The set of operations is closed (:data:`Op`): a ``match`` over them ends in ``assert_never``.

All numbers are big-endian unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from typing_extensions import assert_never

FixedKind = Literal["bool", "i8", "i16", "i32", "i64", "f32", "f64", "char"]
TemporalKind = Literal["millis", "millis_nanos", "seconds_nanos", "date", "time", "date_time"]
ClockUnit = Literal["millis", "micros"]
EpochUnit = Literal["ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A primitive: ``bool`` 1 byte (0/1), ``i8 .. f64``, ``char`` a UTF-16 code unit decoded as a string."""

    kind: FixedKind


@dataclass(frozen=True, slots=True)
class Constant:
    """``size`` repetitions of ``byte``, decoded as null (Void, VoidNamespace, NullValue, GlobalWindow, Tuple0)."""

    size: int
    byte: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """Flink's string: varint n (+1 if ``nullable``; 0 is null), then n UTF-16 code units as varints."""

    nullable: bool = True


@dataclass(frozen=True, slots=True)
class BigInt:
    """``BigIntSerializer``: i32 code (0 null, 1..3 the constants 0, 1, 10, else byte count + 4), bytes."""


@dataclass(frozen=True, slots=True)
class BigDec:
    """``BigDecSerializer``: unscaled as :class:`BigInt`, then i32 scale unless null."""


@dataclass(frozen=True, slots=True)
class Temporal:
    """A temporal value of fixed size.

    ``millis`` i64 (null: i64 min), ``millis_nanos`` i64 millis and i32 nano of second (null: i64 min, 0),
    ``seconds_nanos`` i64, i32 (null: i64 min, i32 min), ``date`` i32 year, month, day,
    ``time`` hour, minute, second, i32 nano, ``date_time`` both.
    """

    kind: TemporalKind


@dataclass(frozen=True, slots=True)
class Counted:
    """i32 byte count, bytes (``BytePrimitiveArraySerializer``), or UTF-8 where ``text``."""

    text: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """Parts one after another (Tuple, case class, TimeWindow, ...).

    ``places``: the index of each part among the struct's fields, if that differs from its own index.
    """

    names: tuple[str, ...]
    parts: tuple[Op, ...]
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Flagged:
    """One flag byte, then the value unless null.

    ``null_flag`` is the flag's value that means null (``Nullable``, map values: 1; ``Option``, arrays: 0).
    ``padding`` bytes follow a null flag.
    """

    value: Op
    null_flag: int
    padding: int = 0


@dataclass(frozen=True, slots=True)
class NonNullFlag:
    """A flag byte that always says "not null": the value writes its own null, which is not Java's."""

    value: Op
    flag: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """i32 n, n elements (List, Set, arrays; element flags are a :class:`Flagged` element)."""

    element: Op


@dataclass(frozen=True, slots=True)
class Pairs:
    """i32 n, n times key and value (Map; the value's null flag is a :class:`Flagged` value)."""

    key: Op
    value: Op


@dataclass(frozen=True, slots=True)
class Masked:
    """``RowSerializer``: a bit mask (the first 2 bits are the row kind if ``row_kind``), then the non-null parts.

    Decodes to a struct; with ``row_kind`` its last field is ``_kind``: ``+I``, ``-U``, ``+U`` or ``-D``.
    """

    names: tuple[str, ...]
    parts: tuple[Op, ...]
    row_kind: bool


@dataclass(frozen=True, slots=True)
class Pojo:
    """``PojoSerializer`` of a class without known subclasses: u8 flags 1 null, 2 exact; parts are nullable.

    Each part is preceded by one byte, 1 = null. Kernels do not handle other flags (subclasses).
    """

    names: tuple[str, ...]
    parts: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class EnumIndex:
    """i32 index into ``names`` (``EnumSerializer``), decoded as the name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EitherOf:
    """bool isLeft, then the left or the right value; decoded as a struct of two nullable fields."""

    left: Op
    right: Op


@dataclass(frozen=True, slots=True)
class SignFlippedLong:
    """i64 with its sign bit flipped (timers, SortedLong)."""


@dataclass(frozen=True, slots=True)
class Ttl:
    """``TtlSerializer``: i64 last access in epoch millis, then the value; decoded according to the read's ``ttl`` option."""

    value: Op


#: Maximum digits of a decimal that is stored as an i64, and of the fraction of a timestamp that is stored as millis.
COMPACT_DIGITS: Final = 18
COMPACT_FRACTION: Final = 3

SlotKind = Literal[
    "bool", "i8", "i16", "i32", "i64", "f32", "f64", "time", "decimal", "timestamp", "text", "bytes", "row", "array", "map",
    "raw", "variant", "null",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """A field of a binary row, or an element of a binary array, of the table runtime (``BinaryFormat``).

    Numbers are little-endian; offsets count from the first byte of the row or array. In a row a slot has 8 bytes, in an array
    :func:`slot_size`. ``time`` i32 millis of day; ``decimal`` i64 unscaled up to ``precision`` 18, else offset and size of a
    big-endian number; ``timestamp`` i64 millis up to ``precision`` 3, else the offset of the millis and the nano of milli; ``text`` and
    ``bytes`` up to 7 bytes inline (the last byte is 80 hex plus the length), else offset and size, which all other kinds use.
    ``parts``: the fields of a row, the element of an array, key and value of a map; ``inner``: the layout of the bytes of a ``raw`` value.
    """

    kind: SlotKind
    precision: int = 0
    names: tuple[str, ...] = ()
    parts: tuple[Slot, ...] = ()
    inner: Op | None = None


@dataclass(frozen=True, slots=True)
class BinaryData:
    """i32 size and a binary row, array or map (``RowDataSerializer``, ``ArrayDataSerializer``, ``MapDataSerializer``).

    ``row_kind``: the row kind is the last field, ``_kind``; if false, any kind but ``+I`` is an error.
    """

    slot: Slot
    row_kind: bool = False


@dataclass(frozen=True, slots=True)
class Framed:
    """i32 size and a value of exactly that size (``RawValueDataSerializer``)."""

    value: Op


@dataclass(frozen=True, slots=True)
class SqlDecimal:
    """``DecimalDataSerializer``: i64 unscaled up to precision 18, otherwise i32 size and two's complement."""

    precision: int


@dataclass(frozen=True, slots=True)
class SqlTimestamp:
    """``TimestampDataSerializer``: i64 millis, above precision 3 also i32 nano of milli."""

    precision: int


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day: i32 ``millis`` or i64 ``micros``, decoded to nanoseconds (``TIME``, Avro)."""

    kind: ClockUnit


@dataclass(frozen=True, slots=True)
class Epoch:
    """i64 since 1970 in a unit (Avro's timestamps)."""

    unit: EpochUnit


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Always ``size`` bytes (Avro's ``fixed``)."""

    size: int


@dataclass(frozen=True, slots=True)
class BytesDecimal:
    """Two's complement of ``size`` bytes, or with an i32 size prefix if ``size`` is ``None`` (Avro's ``decimal``)."""

    size: int | None


@dataclass(frozen=True, slots=True)
class Blocks:
    """Avro's arrays and maps: blocks of varint n and n items, the last of n 0; with ``key``, an item is key and value."""

    key: Op | None
    value: Op


@dataclass(frozen=True, slots=True)
class Union:
    """Avro's union: i32 index, value of that branch; branch ``null`` is null.

    A single other branch is decoded as itself, several as a struct with one nullable field per branch.
    """

    branches: tuple[Op, ...]
    null: int | None


@dataclass(frozen=True, slots=True)
class StreamElement:
    """``StreamElementSerializer``: u8 tag, then a record or one of the markers; ``names`` by tag.

    Decodes to a struct of value, timestamp, name and the fields of markers.
    """

    value: Op
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskedList:
    """``LinkedListSerializer``: i32 n, a bit mask of nulls, then the non-null elements."""

    element: Op


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything up to the end of the frame, as bytes: a type whose end cannot be found from its bytes."""


@dataclass(frozen=True, slots=True)
class PerRecord:
    """A type that kernels cannot decode: ``decode(cursor)`` is called for each value."""

    decode: Callable[[Any], Any]


GraphKind = Literal[
    "bool", "i8", "i16", "char", "int", "long", "f32", "f64", "text", "bytes", "big_int", "big_dec", "millis", "timestamp",
    "instant", "date", "time", "date_time", "uuid", "enum", "record", "list", "map", "array",
]  # fmt: skip
GraphMode = Literal["body", "nullable", "value"]


@dataclass(frozen=True, slots=True)
class GraphClass:
    """A possible class of a part of a graph: its id, its name as Kryo writes it, and whether a comparator comes first."""

    id: int | None
    name: bytes
    sorted: bool = False


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Kryo's layout of a declared type, and the layout that it is rewritten to.

    ``reference``: whether objects carry a marker. ``size``: number of fields, or of constants. ``parts``: the fields of a record in wire
    order, the element of a list or array, key and value of a map. Each is a ``body`` alone, a nullable object of a known class, or a
    ``value`` with its class. ``shown``: the layout that it is rewritten to.
    """

    kind: GraphKind
    shown: Op
    reference: bool = True
    size: int = 0
    classes: tuple[GraphClass, ...] = ()
    parts: tuple[tuple[GraphMode, GraphPart], ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """A value written by Kryo; ``decode(cursor)`` is called for values that do not match ``root``.

    ``little``: Kryo 5, else 2.24.
    """

    root: GraphPart
    little: bool
    decode: Callable[[Any], Any]


#: Operations with values of a fixed size.
Sized = Fixed | Constant | Temporal | EnumIndex | SignFlippedLong | SqlTimestamp | Clock | Epoch | FixedBytes
#: Operations without parts, or with parts after a size in bytes, so that their end is known without the parts.
Leaf = (
    Sized
    | Text
    | BigInt
    | BigDec
    | Counted
    | BinaryData
    | Framed
    | SqlDecimal
    | BytesDecimal
    | Rest
    | PerRecord
    | Graph
)
#: Operations that end with their last part.
Composite = (
    Struct
    | Flagged
    | NonNullFlag
    | Repeated
    | Pairs
    | Masked
    | Pojo
    | EitherOf
    | Ttl
    | Blocks
    | Union
    | StreamElement
    | MaskedList
)
#: All operations.
Op = Leaf | Composite


#: Element size of a binary array in bytes, by the kind of its slot.
_SLOT_SIZES: Final[dict[SlotKind, int]] = {
    "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "time": 4, "decimal": 8, "timestamp": 8, "text": 8,
    "bytes": 8, "row": 8, "array": 8, "map": 8, "raw": 8, "variant": 8, "null": 8,
}  # fmt: skip


def slot_size(kind: SlotKind) -> int:
    """Return the element size of a binary array in bytes."""
    return _SLOT_SIZES[kind]


def kernel_only(op: Op) -> bool:
    """Return True if kernels can find the ends of all parts of a program."""
    if isinstance(op, PerRecord | Graph):
        return False
    return all(kernel_only(child) for child in children(op))


def or_per_record(op: Op, decode: Callable[[Any], Any]) -> Op:
    """Return the program of a list or map, or :class:`PerRecord` if kernels cannot find its parts."""
    return op if kernel_only(op) else PerRecord(decode)


def children(op: Op) -> tuple[Op, ...]:
    """Return the parts of an operation in wire order; none if the end is found from a size in bytes."""
    if isinstance(op, Leaf):
        return ()
    match op:
        case Struct(parts=parts) | Masked(parts=parts) | Pojo(parts=parts):
            return parts
        case Flagged(value=value) | NonNullFlag(value=value) | Ttl(value) | StreamElement(value):
            return (value,)
        case Repeated(element) | MaskedList(element):
            return (element,)
        case Pairs(key, value):
            return (key, value)
        case EitherOf(left, right):
            return (left, right)
        case Blocks(key, value):
            return (value,) if key is None else (key, value)
        case Union(branches):
            return branches
    assert_never(op)
