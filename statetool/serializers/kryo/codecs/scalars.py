"""Bodies of JDK classes with one value: numbers, text, dates. In Kryo 2.24, those of ``java.time`` consist of their fields.

A :class:`Body` has a logical type, a reader and a writer. The functions get the graph, for the Kryo generation and nested objects.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.java_streams.reader import JavaObject
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.values import ValueReader, ValueWriter
from statetool.serializers.typeutils.basic import from_decimal, to_decimal
from statetool.types import BigDecimalType, BigIntegerType, ListType, LogicalType, Scalar, StructType, TimestampType
from statetool.types.java import BOXES

Read = Callable[[ValueReader], Any]
Write = Callable[[ValueWriter, Any], None]
STRING: Final = Scalar("string")
INT32: Final = Scalar("int32")
INT64: Final = Scalar("int64")


@dataclass(frozen=True, slots=True)
class Body:
    """Reader and writer of a class's value after its reference."""

    logical: LogicalType
    read: Read
    write: Write


# numbers


def fixed_body(kind: str, logical: LogicalType) -> Body:
    return Body(
        logical,
        lambda g: wire.read_fixed(g.c, g.gen, kind),
        lambda g, v: wire.write_fixed(g.out, g.gen, kind, v),
    )


def _read_boolean(g: ValueReader) -> bool:
    return g.c.bool()


def _read_char(g: ValueReader) -> str:
    return int(wire.read_fixed(g.c, g.gen, "H")).to_bytes(2, "little").decode("utf-16-le", "surrogatepass")


def _write_char(g: ValueWriter, value: Any) -> None:
    units = str(value).encode("utf-16-be", "surrogatepass")
    if len(units) != 2:
        raise EncodeError(f"{value!r} is not one char")
    wire.write_fixed(g.out, g.gen, "H", int.from_bytes(units, "big"))


def _checked_writer(bits: int, write: Callable[[Any, int], None]) -> Write:
    def checked(g: ValueWriter, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise EncodeError(f"{value!r} is not an integer of {bits} bits")
        write(g.out, value)

    return checked


INT: Final = Body(INT32, lambda g: wire.read_signed(g.c), _checked_writer(32, wire.write_signed))
LONG: Final = Body(INT64, lambda g: wire.read_signed_long(g.c), _checked_writer(64, wire.write_signed_long))
BYTE: Final = Body(Scalar("int8"), lambda g: g.c.i1(), lambda g, v: g.out.i1(v))
BOOLEAN: Final = Body(Scalar("bool"), _read_boolean, lambda g, v: g.out.bool(v))


def _read_big_integer(g: ValueReader) -> int:
    n = wire.read_varint(g.c)
    if n < 2:
        raise g.c.fail("a BigInteger without bytes", pos=g.c.pos - 1)
    return int.from_bytes(g.c.take(n - 1, "BigInteger"), "big", signed=True)


def _write_big_integer(g: ValueWriter, value: Any) -> None:
    raw = int(value).to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
    g.out.varint(len(raw) + 1)
    g.out += raw


def _read_big_decimal(g: ValueReader) -> Decimal:
    return to_decimal(_read_big_integer(g), wire.read_signed(g.c))


def _write_big_decimal(g: ValueWriter, value: Any) -> None:
    unscaled, scale = from_decimal(value)
    _write_big_integer(g, unscaled)
    wire.write_signed(g.out, scale)


# text


def need_string(g: ValueReader) -> str:
    """Read a string that cannot be null."""
    start = g.c.pos
    text = wire.read_string(g.c)
    if text is None:
        raise g.c.fail("a null where a string must be", pos=start)
    return text


def put_string(g: ValueWriter, value: Any) -> None:
    """Append a string."""
    if not isinstance(value, str):
        raise EncodeError(f"{value!r} is not text")
    wire.write_string(g.out, value, g.gen)


TEXT: Final = Body(STRING, need_string, put_string)


def _write_characters(g: ValueWriter, value: Any) -> None:
    wire.write_string(g.out, value, g.gen, ascii_form=g.gen == 5)


def _read_uuid(g: ValueReader) -> str:
    if g.gen == 5:
        most, least = (int(wire.read_fixed(g.c, 5, "q")) for _ in range(2))
    else:
        most, least = (wire.read_signed_long(g.c) for _ in range(2))
    return str(uuid.UUID(int=(most & (1 << 64) - 1) << 64 | least & (1 << 64) - 1))


def _write_uuid(g: ValueWriter, value: Any) -> None:
    try:
        raw = uuid.UUID(value).bytes
    except (ValueError, AttributeError, TypeError) as e:
        raise EncodeError(f"{value!r} is not a UUID") from e
    for part in (raw[:8], raw[8:]):
        half = int.from_bytes(part, "big", signed=True)
        if g.gen == 5:
            wire.write_fixed(g.out, 5, "q", half)
        else:
            wire.write_signed_long(g.out, half)


def _read_bits(g: ValueReader) -> list[int]:
    words = g.c.varint()
    if words * 8 > g.c.left:
        raise g.c.fail(f"a BitSet of {words} words does not fit the {g.c.left} bytes left")
    order = "little" if g.gen == 5 else "big"
    bits = []
    for w in range(words):
        word = int.from_bytes(g.c.take(8), order)  # type: ignore[arg-type]
        bits += [64 * w + i for i in range(64) if word >> i & 1]
    return bits


def _write_bits(g: ValueWriter, value: Any) -> None:
    # chill writes as many words as the set has allocated: at least one.
    words = [0] * ((max(value) // 64 + 1) if value else int(g.gen == 2))
    for bit in value:
        words[bit // 64] |= 1 << bit % 64
    g.out.varint(len(words))
    for word in words:
        g.out += word.to_bytes(8, "little" if g.gen == 5 else "big")


def _read_pattern(g: ValueReader) -> tuple[str, int]:
    # chill's serializer, which Flink 1.x uses, omits the flags.
    return need_string(g), wire.read_positive(g.c) if g.gen == 5 else 0


def _write_pattern(g: ValueWriter, value: Any) -> None:
    pattern, flags = value
    put_string(g, pattern)
    if g.gen == 5:
        wire.write_positive(g.out, flags)
    elif flags:
        raise EncodeError("the flags of a Pattern cannot be written for Flink 1.x, which keeps the pattern alone")


def _read_address(g: ValueReader) -> tuple[str, int]:
    return need_string(g), wire.read_positive(g.c)


def _write_address(g: ValueWriter, value: Any) -> None:
    put_string(g, value[0])
    wire.write_positive(g.out, value[1])


def _read_locale(g: ValueReader) -> str:
    if g.gen == 5:
        parts = [need_string(g) for _ in range(3)]
    else:
        locale = g.java("java.util.Locale")
        if not isinstance(locale, JavaObject):
            raise g.c.fail("not a Locale in a Java stream")
        parts = [str(locale.fields.get(n, "")) for n in ("language", "country", "variant")]
        if locale.fields.get("script") or locale.fields.get("extensions"):
            raise g.c.fail("a Locale with a script or extensions, which its text would not tell")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return "_".join(parts)


_LOCALE_HEAD: Final = bytes.fromhex(
    "aced0005737200106a6176612e7574696c2e4c6f63616c657ef811609c30f9ec03000649000868617368636f64654c0007636f756e747279740012"
    "4c6a6176612f6c616e672f537472696e673b4c000a657874656e73696f6e7371007e00014c00086c616e677561676571007e00014c000673637269"
    "707471007e00014c000776617269616e7471007e00017870ffffffff"
)


def _write_locale(g: ValueWriter, value: Any) -> None:
    language, country, variant = (*str(value).split("_", 2), "", "")[:3]
    if g.gen == 5:
        for part in (language, country, variant):
            put_string(g, part)
        return
    g.java("java.util.Locale")
    g.out += _LOCALE_HEAD
    written: list[str] = []
    for part in (country, "", language, "", variant):
        if part in written:
            g.out += b"\x71"
            g.out.i4(0x7E0003 + written.index(part))
        else:
            g.out += b"\x74"
            g.out.utf(part)
            written.append(part)
    g.out += b"\x78"


def _read_class(g: ValueReader) -> str:
    name = g.class_name()
    if name is None:
        raise g.c.fail("a null Class")
    if g.gen == 2 or name in _PRIMITIVE_OF:
        return _PRIMITIVE_OF.get(name, name) if g.c.bool() else name
    return name


_PRIMITIVE_OF: Final = {**BOXES, "java.lang.Void": "void"}


def _write_class(g: ValueWriter, value: Any) -> None:
    primitive = value in _PRIMITIVE_OF.values()
    g.class_name("java.lang.Void" if value == "void" else value)
    if g.gen == 2 or primitive or value in _PRIMITIVE_OF:
        g.out.bool(primitive)


# dates of java.util and java.sql

MILLIS: Final = Body(
    TimestampType("ms", zoned=True),
    lambda g: wire.read_positive_long(g.c),
    lambda g, v: wire.write_positive_long(g.out, v),
)


def _read_timestamp(g: ValueReader) -> int:
    start = g.c.pos
    millis, nanos = wire.read_positive_long(g.c), wire.read_positive(g.c)
    if not 0 <= nanos < 1_000_000_000:
        raise g.c.fail(f"{nanos} nanoseconds of a Timestamp", pos=start)
    return millis // 1000 * 1_000_000_000 + nanos


def _write_timestamp(g: ValueWriter, value: Any) -> None:
    seconds, nanos = divmod(value, 1_000_000_000)
    millis = seconds * 1000 + (nanos // 1_000_000 if g.gen == 2 else 0)
    wire.write_positive_long(g.out, millis)
    wire.write_positive(g.out, nanos)


_CALENDAR: Final = StructType.of(
    zone=STRING,
    time=TimestampType("ms", zoned=True),
    lenient=Scalar("bool"),
    first_day=INT32,
    minimal_days=INT32,
    change=INT64,
)


def _read_calendar(g: ValueReader) -> tuple[Any, ...]:
    zone, millis, lenient = need_string(g), wire.read_positive_long(g.c), g.c.bool()
    return zone, millis, lenient, wire.read_positive(g.c), wire.read_positive(g.c), wire.read_signed_long(g.c)


def _write_calendar(g: ValueWriter, value: Any) -> None:
    zone, millis, lenient, first, minimal, change = value
    put_string(g, zone)
    wire.write_positive_long(g.out, millis)
    g.out.bool(lenient)
    wire.write_positive(g.out, first)
    wire.write_positive(g.out, minimal)
    wire.write_signed_long(g.out, change)


SCALARS: Final[dict[str, Body]] = {
    "java.lang.String": TEXT,
    "java.lang.Integer": INT,
    "java.lang.Long": LONG,
    "java.lang.Short": fixed_body("h", Scalar("int16")),
    "java.lang.Byte": BYTE,
    "java.lang.Boolean": BOOLEAN,
    "java.lang.Float": fixed_body("f", Scalar("float32")),
    "java.lang.Double": fixed_body("d", Scalar("float64")),
    "java.lang.Character": Body(STRING, _read_char, _write_char),
    "java.math.BigInteger": Body(BigIntegerType(), _read_big_integer, _write_big_integer),
    "java.math.BigDecimal": Body(BigDecimalType(), _read_big_decimal, _write_big_decimal),
    "java.lang.StringBuilder": Body(STRING, need_string, _write_characters),
    "java.lang.StringBuffer": Body(STRING, need_string, _write_characters),
    "java.util.UUID": Body(STRING, _read_uuid, _write_uuid),
    "java.util.BitSet": Body(ListType(INT32), _read_bits, _write_bits),
    "java.util.regex.Pattern": Body(StructType.of(pattern=STRING, flags=INT32), _read_pattern, _write_pattern),
    "java.net.InetSocketAddress": Body(StructType.of(host=STRING, port=INT32), _read_address, _write_address),
    "java.util.Locale": Body(STRING, _read_locale, _write_locale),
    "java.lang.Class": Body(STRING, _read_class, _write_class),
    "java.net.URI": TEXT,
    "java.net.URL": TEXT,
    "java.util.Currency": TEXT,
    "java.util.TimeZone": TEXT,
    "java.util.SimpleTimeZone": TEXT,
    "sun.util.calendar.ZoneInfo": TEXT,
    "java.util.Date": MILLIS,
    "java.sql.Date": MILLIS,
    "java.sql.Time": MILLIS,
    "java.sql.Timestamp": Body(TimestampType("ns", zoned=True), _read_timestamp, _write_timestamp),
    "java.util.GregorianCalendar": Body(_CALENDAR, _read_calendar, _write_calendar),
}
