"""Binary rows, arrays and maps of the table runtime: the layout of each SQL type in a slot.

::

    row    null part ((arity + 71) / 64) * 8 bytes: byte 0 row kind, bit 8 + i field i is null | 8 bytes per field | variable parts
    array  i32 n | null bits ((n + 31) / 32) * 4 bytes | n elements of 1, 2, 4 or 8 bytes, padded to 8 | variable parts
    map    i32 size of the keys | array of keys | array of values

A slot contains a number, or the location of its value (for the rules see :class:`statetool.kernels.values.program.Slot`). Follows
``BinaryRowData``, ``BinaryArrayData``, ``BinaryMapData`` and their writers. Must agree with :mod:`statetool.kernels.values.slots`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import COMPACT_DIGITS, COMPACT_FRACTION, Slot, SlotKind, slot_size
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.binary_region import Region, RegionWriter
from statetool.serializers.typeutils.basic import from_decimal, to_decimal
from statetool.serializers.typeutils.composite import inside, sequence
from statetool.serializers.typeutils.row import ROW_KINDS
from statetool.types import (
    VARIANT,
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
)

_DECIMAL_BYTES: Final = 16
_NANOS: Final = 1_000_000


class SlotFormat(ABC):
    """Layout of one SQL type's values in the slots of rows and arrays."""

    def __init__(self, op: Slot, logical: LogicalType) -> None:
        self.op = op
        self.logical = logical
        #: Bytes of an array element.
        self.size = slot_size(op.kind)

    @abstractmethod
    def read(self, r: Region, at: int) -> Any:
        """Read the non-null value in the slot at ``at``."""

    @abstractmethod
    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        """Write a non-null value."""

    def write_long_null(self, w: RegionWriter, at: int) -> None:
        """Write null like generated projections: wide decimals and precise timestamps reserve their variable part."""


class NumberFormat(SlotFormat):
    """A boolean, an integer, a float, or a date (days)."""

    def __init__(self, kind: SlotKind, logical: LogicalType) -> None:
        super().__init__(Slot(kind), logical)
        name = {"bool": "i1", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f32": "f4", "f64": "f8"}[kind]
        self._read = getattr(Region, "flag" if kind == "bool" else name)
        self._write = getattr(RegionWriter, name)

    def read(self, r: Region, at: int) -> Any:
        return self._read(r, at)

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        if self.op.kind == "bool" and not isinstance(value, bool):
            raise EncodeError(f"{value!r} is not a boolean")
        self._write(w, at, value)


class TimeFormat(SlotFormat):
    """``TIME``: i32 millis of day; the plain value is in nanoseconds."""

    def __init__(self) -> None:
        super().__init__(Slot("time"), Scalar("time"))

    def read(self, r: Region, at: int) -> int:
        return r.i4(at) * _NANOS

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.i4(at, whole_millis(value))


class DecimalFormat(SlotFormat):
    """``DECIMAL``: i64 unscaled up to precision 18, otherwise 16 bytes for a big-endian number."""

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__(Slot("decimal", precision=precision), DecimalType(precision, scale))
        self.precision = precision
        self.scale = scale
        self._limit = 10**precision

    def read(self, r: Region, at: int) -> Decimal:
        if self.precision <= COMPACT_DIGITS:
            unscaled = r.i8(at)
        else:
            part = r.part(at, "decimal")
            if part.size == 0:
                raise r.fail("a decimal of no bytes", at)
            unscaled = int.from_bytes(part.bytes(0, part.size, "decimal"), "big", signed=True)
        if abs(unscaled) >= self._limit:
            raise r.fail(f"a decimal of more than {self.precision} digits", at)
        return to_decimal(unscaled, self.scale)

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        unscaled = unscaled_of(value, self.precision, self.scale)
        if self.precision <= COMPACT_DIGITS:
            w.i8(at, unscaled)
            return
        raw = twos_complement(unscaled)
        offset = w.append(raw, reserve=_DECIMAL_BYTES)
        w.slot(at, len(raw), offset)

    def write_long_null(self, w: RegionWriter, at: int) -> None:
        if self.precision > COMPACT_DIGITS:
            w.slot(at, 0, w.append(b"", reserve=_DECIMAL_BYTES))


class TimestampFormat(SlotFormat):
    """``TIMESTAMP`` and ``TIMESTAMP_LTZ``: i64 millis; above precision 3, millis in the variable part and nano of milli in the slot."""

    def __init__(self, precision: int, *, zoned: bool) -> None:
        compact = precision <= COMPACT_FRACTION
        logical = TimestampType("ms" if compact else "ns", zoned=zoned, digits=precision)
        super().__init__(Slot("timestamp", precision=precision), logical)
        self.compact = compact

    def read(self, r: Region, at: int) -> int:
        if self.compact:
            return r.i8(at)
        nano, offset = r.offset_and_high(at)
        if not 0 <= nano < _NANOS:
            raise r.fail(f"{nano} is not a nano of milli", at)
        return r.i8(offset) * _NANOS + nano

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        if self.compact:
            w.i8(at, value)
            return
        millis, nano = divmod(value, _NANOS)
        offset = w.append(bytes(8))
        w.i8(offset, millis)
        w.slot(at, nano, offset)

    def write_long_null(self, w: RegionWriter, at: int) -> None:
        if not self.compact:
            w.slot(at, 0, w.append(bytes(8)))


class TextFormat(SlotFormat):
    """``CHAR`` and ``VARCHAR``: UTF-8."""

    def __init__(self) -> None:
        super().__init__(Slot("text"), Scalar("string"))

    def read(self, r: Region, at: int) -> str:
        part = r.inline_or_part(at, "string")
        try:
            return part.bytes(0, part.size, "string").decode("utf-8")
        except UnicodeDecodeError as e:
            raise part.fail(f"not UTF-8: {e.reason}", e.start) from e

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.inline_or_part(at, value.encode("utf-8"))


class BytesFormat(SlotFormat):
    """``BINARY`` and ``VARBINARY``."""

    def __init__(self) -> None:
        super().__init__(Slot("bytes"), Scalar("binary"))

    def read(self, r: Region, at: int) -> bytes:
        part = r.inline_or_part(at, "bytes")
        return part.bytes(0, part.size, "bytes")

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.inline_or_part(at, _checked_bytes(value))


class RawFormat(SlotFormat):
    """``RAW``: bytes of the inner serializer, or exact bytes if it is unknown; ``BITMAP``: its portable form."""

    def __init__(self, inner: Serializer | None, logical: LogicalType) -> None:
        super().__init__(Slot("raw", inner=None if inner is None else inner.program()), logical)
        self.inner = inner

    def read(self, r: Region, at: int) -> Any:
        part = r.part(at, "raw value")
        if self.inner is None:
            return part.bytes(0, part.size, "raw value")
        c = Cursor(part.data, part.start, part.end, base=part.base)
        value = self.inner.decode(c)
        c.expect_end("a raw value")
        if value is None:
            raise part.fail("a null inside of a raw value, which cannot be told from no value", 0)
        return value

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        if self.inner is None:
            w.part(at, _checked_bytes(value))
            return
        out = Output()
        self.inner.encode(out, value)
        w.part(at, out)


class VariantFormat(SlotFormat):
    """``VARIANT``: i32 (big-endian) size of the metadata, metadata, value."""

    def __init__(self) -> None:
        super().__init__(Slot("variant"), VARIANT)

    def read(self, r: Region, at: int) -> tuple[bytes, bytes]:
        part = r.part(at, "variant")
        c = Cursor(part.data, part.start, part.end, base=part.base)
        metadata = c.bytes4("variant metadata")
        return c.take(c.left), metadata

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        content, metadata = sequence(value, "variant", 2)
        w.part(at, len(metadata).to_bytes(4, "big") + metadata + content)


class NullFormat(SlotFormat):
    """``NULL``: always null."""

    def __init__(self) -> None:
        super().__init__(Slot("null"), Scalar("null"))

    def read(self, r: Region, at: int) -> None:
        raise r.fail("a value in a field that can only be null", at)

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        raise EncodeError(f"{value!r} in a field that can only be null")


class RowFormat(SlotFormat):
    """A binary row; a nested row must have the kind ``+I``."""

    def __init__(self, names: Sequence[str], fields: Sequence[SlotFormat]) -> None:
        super().__init__(
            Slot("row", names=tuple(names), parts=tuple(f.op for f in fields)),
            StructType(tuple(Field(n, f.logical) for n, f in zip(names, fields, strict=True))),
        )
        self.names = tuple(names)
        self.fields = tuple(fields)
        self.null_size = (len(fields) + 71) // 64 * 8

    def read(self, r: Region, at: int) -> tuple[Any, ...]:
        part = r.part(at, "row")
        kind, values = self.decode(part)
        if kind:
            raise part.fail(f"a nested row of kind {ROW_KINDS[kind]}, which no column has a place for", 0)
        return values

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.part(at, self.encode(0, value))

    def decode(self, r: Region) -> tuple[int, tuple[Any, ...]]:
        """Return row kind and values of a row that fills the region."""
        r.need(0, self.null_size + 8 * len(self.fields), "row")
        kind = r.data[r.start]
        if kind >= len(ROW_KINDS):
            raise r.fail(f"{kind} is not a row kind", 0)
        values: list[Any] = []
        for i, (name, field) in enumerate(zip(self.names, self.fields, strict=True)):
            if r.bit(8 + i):
                values.append(None)
                continue
            with inside(name):
                values.append(field.read(r, self.null_size + 8 * i))
        return kind, tuple(values)

    def encode(self, kind: int, value: Any, *, projected: bool = False) -> bytes:
        """Return the bytes of a row.

        ``projected``: in the form of the generated projections that make the keys of SQL operators. They reserve space for the nulls of
        wide decimals and precise timestamps; ``RowDataSerializer`` does not.
        """
        values = sequence(value, "row", len(self.fields))
        w = RegionWriter(self.null_size + 8 * len(self.fields))
        w.data[0] = kind
        for i, (name, field, v) in enumerate(zip(self.names, self.fields, values, strict=True)):
            at = self.null_size + 8 * i
            if v is not None:
                with inside(name):
                    field.write(w, at, v)
                continue
            w.set_bit(8 + i)
            if projected:
                field.write_long_null(w, at)
        return bytes(w.data)

    @property
    def has_long_nulls(self) -> bool:
        """Whether projections write a field's null in another form than ``RowDataSerializer``."""
        return any(
            (isinstance(f, TimestampFormat) and not f.compact)
            or (isinstance(f, DecimalFormat) and f.precision > COMPACT_DIGITS)
            for f in self.fields
        )


class ArrayFormat(SlotFormat):
    """A binary array."""

    def __init__(self, element: SlotFormat) -> None:
        super().__init__(Slot("array", parts=(element.op,)), ListType(element.logical))
        self.element = element

    def read(self, r: Region, at: int) -> list[Any]:
        return self.decode(r.part(at, "array"))

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.part(at, self.encode(value))

    def decode(self, r: Region) -> list[Any]:
        """Return the elements of an array that fills the region."""
        n = r.i4(0)
        size = self.element.size
        if n < 0 or _header_size(n) + n * size > r.size:
            raise r.fail(f"{n} elements in an array of {r.size} bytes", 0)
        first = _header_size(n)
        with inside("element"):
            return [None if r.bit(32 + i) else self.element.read(r, first + i * size) for i in range(n)]

    def encode(self, value: Any) -> bytes:
        """Return the bytes of an array."""
        items = sequence(value, "array")
        first, size = _header_size(len(items)), self.element.size
        w = RegionWriter((first + len(items) * size + 7) // 8 * 8)
        w.i4(0, len(items))
        with inside("element"):
            for i, item in enumerate(items):
                if item is None:
                    w.set_bit(32 + i)
                else:
                    self.element.write(w, first + i * size, item)
        return bytes(w.data)


class MapFormat(SlotFormat):
    """A binary map (also a multiset: elements and their counts)."""

    def __init__(self, key: SlotFormat, value: SlotFormat) -> None:
        super().__init__(Slot("map", parts=(key.op, value.op)), MapType(key.logical, value.logical))
        self.keys = ArrayFormat(key)
        self.values = ArrayFormat(value)

    def read(self, r: Region, at: int) -> list[tuple[Any, Any]]:
        return self.decode(r.part(at, "map"))

    def write(self, w: RegionWriter, at: int, value: Any) -> None:
        w.part(at, self.encode(value))

    def decode(self, r: Region) -> list[tuple[Any, Any]]:
        """Return the entries of a map that fills the region."""
        size = r.i4(0)
        start = r.need(4, size, "map keys")
        with inside("key"):
            keys = self.keys.decode(Region(r.data, start, start + size, r.base))
        with inside("value"):
            values = self.values.decode(Region(r.data, start + size, r.end, r.base))
        if len(keys) != len(values):
            raise r.fail(f"a map of {len(keys)} keys and {len(values)} values", 0)
        return list(zip(keys, values, strict=True))

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a map."""
        pairs = [sequence(pair, "map entry", 2) for pair in sequence(value, "map")]
        keys = self.keys.encode([k for k, _ in pairs])
        return len(keys).to_bytes(4, "little") + keys + self.values.encode([v for _, v in pairs])


def bitmap_format() -> SlotFormat:
    """``BITMAP``: a RoaringBitmap in its portable form."""
    return RawFormat(None, BitmapType())


def date_format() -> SlotFormat:
    """``DATE``: i32 days."""
    return NumberFormat("i32", DateType())


def whole_millis(value: Any) -> int:
    """Return a time of day in nanoseconds as milliseconds.

    Raises
    ------
    EncodeError
        It has digits below the millisecond, which ``TIME`` does not store.
    """
    millis, remainder = divmod(value, _NANOS)
    if remainder:
        raise EncodeError(f"{value} ns of day have digits below the millisecond, which TIME cannot hold")
    return int(millis)


def unscaled_of(value: Any, precision: int, scale: int) -> int:
    """Return the unscaled number of a decimal at ``scale``.

    Raises
    ------
    EncodeError
        More fractional digits than that, or more than ``precision`` digits in total.
    """
    unscaled, own_scale = from_decimal(value)
    if own_scale < scale:
        unscaled *= 10 ** (scale - own_scale)
    elif own_scale > scale:
        unscaled, remainder = divmod(unscaled, 10 ** (own_scale - scale))
        if remainder:
            raise EncodeError(f"{value} has more than {scale} digits after the point")
    if abs(unscaled) >= 10**precision:
        raise EncodeError(f"{value} has more than {precision} digits")
    return unscaled


def twos_complement(value: int) -> bytes:
    """Return the shortest two's complement of a signed number, big-endian (``BigInteger.toByteArray``)."""
    return value.to_bytes(((value if value >= 0 else ~value).bit_length() + 8) // 8, "big", signed=True)


def _checked_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        raise EncodeError(f"{type(value).__name__} instead of bytes")
    return bytes(value)


def _header_size(n: int) -> int:
    return 4 + (n + 31) // 32 * 4
