"""Avro types: one object per part of a schema, which decodes and encodes its values in Flink's encoding.

======================  ==========================================================================================
null / boolean          nothing / bool
int, long               i32, i64 big-endian
float, double           f32, f64 big-endian
bytes, string           i32 size, bytes (UTF-8)
fixed                   its bytes
enum, union             i32 index; for a union, then the value of that branch
array, map              blocks of a varint count and that many items (string key and value), ended by a count of 0
record                  its fields
======================  ==========================================================================================

Logical types are those of the Avro specification. As specified, a logical type that does not fit its base type is ignored. A recursive
record has no column type: the nested value is its exact bytes. Follows ``DataOutputEncoder``. Cursor methods are called by name, so
that :mod:`statetool.serializers.avro.binary` can replace them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import MAX_EMPTY_ELEMENTS, least_size
from statetool.serializers.sql.binary_format import twos_complement, unscaled_of
from statetool.serializers.typeutils.basic import to_decimal
from statetool.serializers.typeutils.composite import inside, sequence
from statetool.types import (
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

MAX_DEPTH: Final = 64
#: Maximum parts of a schema, counted wherever they are used: names can repeat large parts of a schema.
MAX_PARTS: Final = 100_000
_MILLIS: Final = 1_000_000
_MICROS: Final = 1_000
_MAX_PRECISION: Final = 38


class AvroType(ABC):
    """One part of a schema.

    ``op`` is its program; ``parts`` counts this part and all parts below it.
    """

    logical: LogicalType
    op: ir.Op
    parts: int = 1

    @abstractmethod
    def decode(self, c: Cursor) -> Any:
        """Read one value."""

    @abstractmethod
    def encode(self, out: Output, value: Any) -> None:
        """Append one value."""


class Leaf(AvroType):
    """A type without parts."""

    def __init__(
        self,
        name: str,
        logical: LogicalType,
        op: ir.Op,
        decode: Callable[[Cursor], Any],
        encode: Callable[[Output, Any], None],
        classes: type | tuple[type, ...],
    ) -> None:
        self.name = name
        self.logical = logical
        self.op = op
        self._decode = decode
        self._encode = encode
        self._classes = classes

    def decode(self, c: Cursor) -> Any:
        return self._decode(c)

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, self._classes) or (isinstance(value, bool) and self._classes is not bool):
            raise EncodeError(f"{value!r} in an Avro {self.name}")
        self._encode(out, value)


def _read_text(c: Cursor) -> str:
    start = c.pos + 4
    raw = c.bytes4("string")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise c.fail(f"not UTF-8: {e.reason}", pos=start + e.start) from e


def _write_text(out: Output, value: str) -> None:
    try:
        out.bytes4(value.encode("utf-8"))
    except UnicodeEncodeError as e:
        raise EncodeError(f"a string that UTF-8 cannot hold: {e.reason}") from e


def _write_null(out: Output, value: None) -> None:
    """Append nothing."""


def _leaf(kind: str) -> Leaf:
    match kind:
        case "null":
            return Leaf(kind, Scalar("null"), ir.Constant(0), lambda c: None, _write_null, type(None))
        case "boolean":
            return Leaf(kind, Scalar("bool"), ir.Fixed("bool"), Cursor.bool, Output.bool, bool)
        case "int":
            return Leaf(kind, Scalar("int32"), ir.Fixed("i32"), methodcaller("i4"), Output.i4, int)
        case "long":
            return Leaf(kind, Scalar("int64"), ir.Fixed("i64"), methodcaller("i8"), Output.i8, int)
        case "float":
            return Leaf(kind, Scalar("float32"), ir.Fixed("f32"), methodcaller("f4"), Output.f4, (float, int))
        case "double":
            return Leaf(kind, Scalar("float64"), ir.Fixed("f64"), methodcaller("f8"), Output.f8, (float, int))
        case "bytes":
            return Leaf(kind, Scalar("binary"), ir.Counted(), methodcaller("bytes4"), Output.bytes4, (bytes, bytearray))
        case _:
            return Leaf(kind, Scalar("string"), ir.Counted(text=True), _read_text, _write_text, str)


PRIMITIVES: Final[Mapping[str, Leaf]] = {
    kind: _leaf(kind) for kind in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
}


def _date() -> Leaf:
    return Leaf("date", DateType(), ir.Fixed("i32"), methodcaller("i4"), Output.i4, int)


def _time_millis() -> Leaf:
    return Leaf(
        "time-millis", Scalar("time"), ir.Clock("millis"), lambda c: c.i4() * _MILLIS,
        lambda out, v: out.i4(_whole(v, _MILLIS)), int,
    )  # fmt: skip


def _time_micros() -> Leaf:
    return Leaf(
        "time-micros", Scalar("time"), ir.Clock("micros"), lambda c: c.i8() * _MICROS,
        lambda out, v: out.i8(_whole(v, _MICROS)), int,
    )  # fmt: skip


def _timestamp(name: str) -> Leaf:
    zoned_name = name.removeprefix("local-")
    unit: Any = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}[zoned_name]
    logical = TimestampType(unit, zoned=zoned_name == name)
    return Leaf(name, logical, ir.Epoch(unit), methodcaller("i8"), Output.i8, int)


def _whole(value: int, unit: int) -> int:
    number, remainder = divmod(value, unit)
    if remainder:
        raise EncodeError(f"{value} ns of day have more digits than the Avro type can hold")
    return number


_LOGICAL: Final[Mapping[tuple[str, str], Callable[[], Leaf]]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time_millis,
    ("long", "time-micros"): _time_micros,
    **{
        ("long", f"{local}timestamp-{unit}"): (lambda name: lambda: _timestamp(name))(f"{local}timestamp-{unit}")
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
}


def logical_leaf(base: str, name: object) -> Leaf | None:
    """Return the type for a primitive's logical type, ``None`` if the logical type has no meaning for it."""
    make = _LOGICAL.get((base, name)) if isinstance(name, str) else None
    return None if make is None else make()


class FixedType(AvroType):
    """``fixed``: a fixed number of bytes."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.logical = Scalar("binary")
        self.op = ir.FixedBytes(size)

    def decode(self, c: Cursor) -> bytes:
        return c.take(self.size, "fixed")

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, (bytes, bytearray)) or len(value) != self.size:
            raise EncodeError(f"{value!r} is not the {self.size} bytes of Avro fixed {self.name}")
        out += value


class DecimalValue(AvroType):
    """``decimal`` on ``bytes`` (``size`` is ``None``) or ``fixed``: big-endian two's complement."""

    def __init__(self, size: int | None, precision: int, scale: int) -> None:
        self.size = size
        self.precision = precision
        self.scale = scale
        self.logical = DecimalType(precision, scale)
        self.op = ir.BytesDecimal(size)

    def decode(self, c: Cursor) -> Any:
        start = c.pos
        raw = c.bytes4("decimal") if self.size is None else c.take(self.size, "decimal")
        unscaled = int.from_bytes(raw, "big", signed=True)
        if not raw or abs(unscaled) >= 10**self.precision:
            raise c.fail(f"not a decimal of {self.precision} digits", pos=start)
        return to_decimal(unscaled, self.scale)

    def encode(self, out: Output, value: Any) -> None:
        try:
            unscaled = unscaled_of(value, self.precision, self.scale)
        except AttributeError as e:
            raise EncodeError(f"{value!r} in an Avro decimal") from e
        if self.size is None:
            out.bytes4(twos_complement(unscaled))
            return
        try:
            out += unscaled.to_bytes(self.size, "big", signed=True)
        except OverflowError as e:
            raise EncodeError(f"{value} does not fit the {self.size} bytes of an Avro decimal") from e


def decimal_value(schema: Mapping[str, Any], size: int | None) -> DecimalValue | None:
    """Return the type of a decimal, ``None`` if its precision or scale is invalid or no column can hold it."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    if not (1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision) or size == 0:
        return None
    return DecimalValue(size, precision, scale)


class EnumType(AvroType):
    """``enum``: decoded as its symbol."""

    def __init__(self, name: str, symbols: tuple[str, ...]) -> None:
        self.name = name
        self.symbols = symbols
        self.logical = Scalar("string")
        self.op = ir.EnumIndex(symbols)

    def decode(self, c: Cursor) -> str:
        start = c.pos
        index = c.i4()
        if not 0 <= index < len(self.symbols):
            raise c.fail(f"{index} is not one of the symbols of {self.name}", pos=start)
        return self.symbols[index]

    def encode(self, out: Output, value: Any) -> None:
        if value not in self.symbols:
            raise EncodeError(f"{value!r} is not a symbol of {self.name}")
        out.i4(self.symbols.index(value))


def _blocks(c: Cursor, at_least: int) -> Iterator[int]:
    """Count through the items of all blocks. Zero-byte items are limited by number, others take at least one byte in any encoding."""
    total = 0
    while (n := c.varint()) > 0:
        total += n
        if (at_least and n > c.left) or (at_least == 0 and total > MAX_EMPTY_ELEMENTS):
            raise c.fail(f"a block of {n} items in {c.left} bytes")
        yield from range(n)


class ArrayType(AvroType):
    """``array``."""

    def __init__(self, items: AvroType) -> None:
        self.items = items
        self.parts = 1 + items.parts
        self.logical = ListType(items.logical)
        self.op = ir.or_per_record(ir.Blocks(None, items.op), self.decode)
        self.at_least = least_size(items.op)

    def count_items(self, c: Cursor) -> Iterator[int]:
        """Count through the items, which the caller reads."""
        return _blocks(c, self.at_least)

    def decode(self, c: Cursor) -> list[Any]:
        with inside("element"):
            return [self.items.decode(c) for _ in self.count_items(c)]

    def encode(self, out: Output, value: Any) -> None:
        items = sequence(value, "Avro array")
        if items:
            out.varint(len(items))
        with inside("element"):
            for item in items:
                self.items.encode(out, item)
        out.varint(0)


class MapOf(AvroType):
    """``map``: keys are strings, in wire order, including duplicates."""

    def __init__(self, values: AvroType) -> None:
        self.values = values
        self.parts = 2 + values.parts
        self.logical = MapType(Scalar("string"), values.logical)
        self.op = ir.or_per_record(ir.Blocks(ir.Counted(text=True), values.op), self.decode)
        self.at_least = 4 + least_size(values.op)

    def count_items(self, c: Cursor) -> Iterator[int]:
        """Count through the pairs, which the caller reads."""
        return _blocks(c, self.at_least)

    def decode(self, c: Cursor) -> list[tuple[str, Any]]:
        pairs = []
        for _ in self.count_items(c):
            with inside("key"):
                key = _read_text(c)
            with inside("value"):
                pairs.append((key, self.values.decode(c)))
        return pairs

    def encode(self, out: Output, value: Any) -> None:
        pairs = [sequence(pair, "map entry", 2) for pair in sequence(value, "Avro map")]
        if pairs:
            out.varint(len(pairs))
        for key, item in pairs:
            with inside("key"):
                PRIMITIVES["string"].encode(out, key)
            with inside("value"):
                self.values.encode(out, item)
        out.varint(0)


class UnionType(AvroType):
    """``union``: a single type (plus null) is decoded as itself, several as a struct of ``member0`` ..; exactly one member is set."""

    def __init__(self, branches: Sequence[AvroType]) -> None:
        self.branches = tuple(branches)
        self.parts = 1 + sum(b.parts for b in branches)
        self.members = tuple(i for i, b in enumerate(branches) if b is not PRIMITIVES["null"])
        self.null = next((i for i, b in enumerate(branches) if b is PRIMITIVES["null"]), None)
        self.single = len(self.members) == 1
        if not self.members:
            self.logical = Scalar("null")
        elif self.single:
            self.logical = branches[self.members[0]].logical
        else:
            self.logical = StructType(
                tuple(Field(f"member{k}", branches[i].logical) for k, i in enumerate(self.members))
            )
        self.op = ir.or_per_record(ir.Union(tuple(b.op for b in branches), self.null), self.decode)

    def decode_index(self, c: Cursor) -> int:
        """Read the index of a value's branch."""
        start = c.pos
        index = c.i4()
        if not 0 <= index < len(self.branches):
            raise c.fail(f"branch {index} of a union of {len(self.branches)}", pos=start)
        return index

    def decode(self, c: Cursor) -> Any:
        index = self.decode_index(c)
        value = self.branches[index].decode(c)
        if index == self.null or self.single:
            return value
        return tuple(value if i == index else None for i in self.members)

    def encode(self, out: Output, value: Any) -> None:
        if value is None:
            if self.null is None:
                raise EncodeError("null in an Avro union without null")
            out.i4(self.null)
            return
        if not self.members:
            raise EncodeError(f"{value!r} in an Avro union of nothing but null")
        index = self.members[0]
        if not self.single:
            present = [
                i
                for i, v in zip(self.members, sequence(value, "union", len(self.members)), strict=True)
                if v is not None
            ]
            if len(present) != 1:
                raise EncodeError(f"exactly one member of an Avro union must be there, found {len(present)}")
            index = present[0]
            value = value[self.members.index(index)]
        out.i4(index)
        self.branches[index].encode(out, value)


class RecordType(AvroType):
    """``record``: a struct of its fields, which are set once they are known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: tuple[str, ...] = ()
        self.fields: tuple[AvroType, ...] = ()
        self.ignored: tuple[bool, ...] = ()

    def complete(self, names: Sequence[str], fields: Sequence[AvroType], ignored: Sequence[bool]) -> None:
        """Set the fields; ``ignored`` ones do not affect order and hash."""
        self.ignored = tuple(ignored)
        self.names = tuple(names)
        self.fields = tuple(fields)
        self.parts = 1 + sum(f.parts for f in fields)
        self.logical = StructType(tuple(Field(n, f.logical) for n, f in zip(names, fields, strict=True)))
        self.op = ir.Struct(self.names, tuple(f.op for f in fields))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        values: list[Any] = []
        try:
            for part in self.fields:
                values.append(part.decode(c))
        except StatetoolError as error:
            raise error.inside(self.names[len(values)]) from error.__cause__
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        for name, part, v in zip(
            self.names, self.fields, sequence(value, f"Avro record {self.name}", len(self.fields)), strict=True
        ):
            with inside(name):
                part.encode(out, v)


class Recursion(AvroType):
    """A recursive reference to a record: its exact bytes."""

    def __init__(self, record: RecordType) -> None:
        self.record = record
        self.logical = Scalar("binary")
        self.op = ir.PerRecord(self.decode)

    def decode(self, c: Cursor) -> bytes:
        start = c.pos
        try:
            self.record.decode(c)
        except RecursionError as e:
            raise c.fail(f"Avro record {self.record.name} is nested too deeply", pos=start) from e
        return bytes(c.data[start : c.pos])

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, (bytes, bytearray)):
            raise EncodeError(f"a nested Avro record {self.record.name} is given as its bytes")
        c = Cursor(value)
        self.decode(c)
        c.expect_end(f"a nested Avro record {self.record.name}")
        out += value
