"""Beam coders with several parts: the nested encoding of their values.

======================================  ==============================================================================
Nullable                                u8 0 null or 1, value
Kv                                      key, value
Iterable, Collection, List, Set, Deque  i32 n, elements; or i32 -1, blocks of varint n and n elements, ended by 0
Map, SortedMap                          i32 n, keys and values
LengthPrefix                            varint size, value without another size
WindowedValue                           Instant, collection of windows, pane, value
IntervalWindow                          Instant of the end, Duration
PaneInfo                                u8: bit 0 first, bit 1 last, bits 2 and 3 timing, above: number (0, 1 or 2) of varints that follow
TimerData                               strings id, family, namespace; Instants time, output time; string domain
tagged KV, Union                        varint tag, value of the coder of that tag
Row                                     varint n, byte array of a bit set of nulls (little-endian), the non-null ones of n fields
======================================  ==============================================================================

Follows ``org.apache.beam.sdk``, 2.31 to 2.68.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.sizes import MAX_EMPTY_ELEMENTS
from statetool.serializers.libraries.beam.leaves import (
    BYTES,
    INSTANT,
    MILLIS,
    PLAIN,
    TEXT,
    VAR_INT,
    VAR_LONG,
    Coder,
    read_bytes,
    read_instant,
    read_size,
    read_varint,
    write_bytes,
)
from statetool.serializers.typeutils.composite import inside
from statetool.types import Field, ListType, MapType, Scalar, StructType

_TIMINGS: Final = ("EARLY", "ON_TIME", "LATE", "UNKNOWN")


def opaque(name: str) -> Coder:
    """Return a coder whose values are exact bytes, because only its name is known."""
    return Coder(name=name, logical=Scalar("binary"), decode=lambda c: c.take(c.left), least=0, framed=True)


def struct(name: str, parts: Sequence[tuple[str, Coder]]) -> Coder:
    """Return the coder of consecutive parts; exact bytes if the end of any part but the last is not known."""
    if any(part.framed for _, part in parts[:-1]):
        return opaque(name)

    def decode(c: Cursor) -> tuple[Any, ...]:
        values = []
        for step, part in parts:
            with inside(step):
                values.append(part.decode(c))
        return tuple(values)

    def encode(out: Output, value: Any) -> None:
        if not isinstance(value, (tuple, list)) or len(value) != len(parts):
            raise EncodeError(f"{value!r} is not a value of {name}")
        for (step, part), item in zip(parts, value, strict=True):
            with inside(step):
                part.encode(out, item)

    return Coder(
        name=name,
        logical=StructType(tuple(Field(step, part.logical) for step, part in parts)),
        decode=decode,
        encode=encode,
        least=sum(part.least for _, part in parts),
        framed=parts[-1][1].framed,
    )


def nullable(part: Coder) -> Coder:
    """Return ``NullableCoder`` of a coder."""

    def encode(out: Output, value: Any) -> None:
        out.bool(value is not None)
        if value is not None:
            part.encode(out, value)

    return Coder(
        name=f"Nullable<{part.name}>",
        logical=part.logical,
        decode=lambda c: part.decode(c) if c.bool() else None,
        encode=encode,
        framed=part.framed,
    )


def iterable(kind: str, part: Coder) -> Coder:
    """Return the coder of a collection."""
    name = f"{kind}<{part.name}>"
    if part.framed:
        return opaque(name)

    def read_elements(c: Cursor, n: int, start: int) -> list[Any]:
        if n < 0 or n * part.least > c.left or (part.least == 0 and n > MAX_EMPTY_ELEMENTS):
            raise c.fail(f"{n} elements in {c.left} bytes", pos=start)
        with inside("element"):
            return [part.decode(c) for _ in range(n)]

    def decode(c: Cursor) -> list[Any]:
        start = c.pos
        n = c.i4()
        if n != -1:
            return read_elements(c, n, start)
        elements: list[Any] = []
        while (block := read_varint(c, 64)) != 0:
            elements += read_elements(c, block, start)
            if part.least == 0 and len(elements) > MAX_EMPTY_ELEMENTS:
                raise c.fail(f"more than {MAX_EMPTY_ELEMENTS} elements of no bytes", pos=start)
        return elements

    def encode(out: Output, value: Any) -> None:
        if not isinstance(value, (tuple, list)):
            raise EncodeError(f"{value!r} is not a list")
        out.i4(len(value))
        with inside("element"):
            for item in value:
                part.encode(out, item)

    return Coder(name=name, logical=ListType(part.logical), decode=decode, encode=encode, least=4)


def map_of(kind: str, key: Coder, value: Coder) -> Coder:
    """Return the coder of a map."""
    pair = struct(f"{kind}<{key.name}, {value.name}>", (("key", key), ("value", value)))
    if pair.framed:
        return opaque(pair.name)

    def decode(c: Cursor) -> list[Any]:
        start = c.pos
        n = c.i4()
        if n < 0 or n * pair.least > c.left or (pair.least == 0 and n > MAX_EMPTY_ELEMENTS):
            raise c.fail(f"{n} entries in {c.left} bytes", pos=start)
        return [pair.decode(c) for _ in range(n)]

    def encode(out: Output, entries: Any) -> None:
        if not isinstance(entries, (tuple, list)):
            raise EncodeError(f"{entries!r} is not a map")
        out.i4(len(entries))
        for entry in entries:
            pair.encode(out, entry)

    return Coder(name=pair.name, logical=MapType(key.logical, value.logical), decode=decode, encode=encode, least=4)


def length_prefixed(part: Coder) -> Coder:
    """Return ``LengthPrefixCoder`` of a coder, which writes its value in the outermost form."""
    name = f"LengthPrefix<{part.name}>"
    if part in (TEXT, BYTES):
        # In the outermost form these coders write no size: the prefix replaces it.
        return Coder(name=name, logical=part.logical, decode=part.decode, encode=part.encode)
    if part.name not in PLAIN:
        return Coder(name=name, logical=Scalar("binary"), decode=read_bytes, encode=write_bytes)

    def decode(c: Cursor) -> Any:
        inner = c.slice(read_size(c), name)
        value = part.decode(inner)
        inner.expect_end(f"a value of {part.name}")
        return value

    return Coder(name=name, logical=part.logical, decode=decode)


def tagged(name: str, coders: Sequence[tuple[int, Coder]]) -> Coder:
    """Return the coder of a tag followed by a value of that tag's coder, with one column per tag."""
    numbers = [tag for tag, _ in coders]

    def decode(c: Cursor) -> tuple[Any, ...]:
        start = c.pos
        tag = read_varint(c, 32)
        if tag not in numbers:
            raise c.fail(f"tag {tag} is none of {', '.join(map(str, numbers))}", pos=start)
        with inside(f"value{tag}"):
            return (tag, *(part.decode(c) if number == tag else None for number, part in coders))

    fields = [Field("tag", Scalar("int32")), *(Field(f"value{n}", part.logical) for n, part in coders)]
    framed = any(part.framed for _, part in coders)
    return Coder(name=name, logical=StructType(tuple(fields)), decode=decode, framed=framed)


def _decode_interval(c: Cursor) -> tuple[int, int]:
    end = read_instant(c)
    return end - read_varint(c, 64), end


INTERVAL_WINDOW: Final = Coder(
    name="IntervalWindow", logical=StructType.of(start=MILLIS, end=MILLIS), decode=_decode_interval, least=9
)


def _decode_pane(c: Cursor) -> tuple[Any, ...]:
    start = c.pos
    flags = c.u1()
    form, timing = flags >> 4, _TIMINGS[flags >> 2 & 3]
    if form > 2:
        raise c.fail(f"the form {form} of a pane is not known", pos=start)
    index = read_varint(c, 64) if form else 0
    on_time = read_varint(c, 64) if form == 2 else -1 if form and timing == "EARLY" else index
    return bool(flags & 1), bool(flags & 2), timing, index, on_time


PANE: Final = Coder(
    name="PaneInfo",
    logical=StructType.of(
        first=Scalar("bool"),
        last=Scalar("bool"),
        timing=Scalar("string"),
        index=Scalar("int64"),
        on_time_index=Scalar("int64"),
    ),
    decode=_decode_pane,
)


def windowed_value(value: Coder, windows: Coder) -> Coder:
    """Return ``FullWindowedValueCoder``."""
    parts = (("timestamp", INSTANT), ("windows", windows), ("pane", PANE), ("value", value))
    return struct(f"WindowedValue<{value.name}>", parts)


def timestamped(value: Coder) -> Coder:
    """Return ``TimestampedValueCoder``."""
    return struct(f"TimestampedValue<{value.name}>", (("value", value), ("timestamp", INSTANT)))


TIMER: Final = struct(
    "TimerData",
    (
        ("id", TEXT),
        ("family", TEXT),
        ("namespace", TEXT),
        ("timestamp", INSTANT),
        ("output_timestamp", INSTANT),
        ("domain", TEXT),
    ),
)
#: Beam coders without components of the job, by the last part of their class name without ``Coder``.
LEAVES: Final = {
    **PLAIN,
    "IntervalWindow": INTERVAL_WINDOW,
    "PaneInfo": PANE,
    "TimerDataCoderV2": TIMER,
}
_HEADERS: Final = iterable("Iterable", struct("KV", (("key", TEXT), ("value", BYTES))))


def kafka_record(value: Coder) -> Coder:
    """Return ``KafkaRecordCoder``."""
    parts = (("topic", TEXT), ("partition", VAR_INT), ("offset", VAR_LONG), ("timestamp", VAR_LONG))
    return struct(
        f"KafkaRecord<{value.name}>", (*parts, ("timestamp_type", VAR_INT), ("headers", _HEADERS), ("kv", value))
    )


def producer_record(value: Coder) -> Coder:
    """Return ``ProducerRecordCoder``: a partition of -1 and the maximum timestamp mean "not set"."""
    parts = (("topic", TEXT), ("partition", VAR_INT), ("timestamp", VAR_LONG), ("headers", _HEADERS), ("kv", value))
    return struct(f"ProducerRecord<{value.name}>", parts)


def row(fields: Sequence[tuple[str, Coder]], nullable_fields: Set[str]) -> Coder:
    """Return the coder of rows with a schema; fields added to the schema later are null in older rows."""
    name = f"Row<{', '.join(f'{step} {part.name}' for step, part in fields)}>"
    if any(part.framed for _, part in fields):
        return opaque(name)

    def decode(c: Cursor) -> tuple[Any, ...]:
        start = c.pos
        n = read_varint(c, 32)
        nulls = int.from_bytes(read_bytes(c), "little")
        if not 0 <= n <= len(fields) or nulls >> n:
            raise c.fail(f"a row of {n} fields, its schema has {len(fields)}", pos=start)
        values: list[Any] = []
        for i, (step, part) in enumerate(fields):
            with inside(step):
                values.append(None if i >= n or nulls >> i & 1 else part.decode(c))
        return tuple(values)

    def encode(out: Output, value: Any) -> None:
        if not isinstance(value, (tuple, list)) or len(value) != len(fields):
            raise EncodeError(f"{value!r} is not a value of {name}")
        out.varint(len(fields))
        nulls = sum(1 << i for i, item in enumerate(value) if item is None)
        write_bytes(out, nulls.to_bytes((nulls.bit_length() + 7) // 8, "little"))
        for (step, part), item in zip(fields, value, strict=True):
            with inside(step):
                if item is not None:
                    part.encode(out, item)
                elif step not in nullable_fields:
                    raise EncodeError("null in a field that the schema does not allow to be null")

    logical = StructType(tuple(Field(n, part.logical) for n, part in fields))
    return Coder(name=name, logical=logical, decode=decode, encode=encode, least=2)
