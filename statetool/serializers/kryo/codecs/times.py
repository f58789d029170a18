"""Bodies of ``java.time`` classes, of atomic numbers and of ``OptionalInt``, ``OptionalLong`` and ``OptionalDouble``.

Kryo 5 has a serializer for each except the atomic ones. Kryo 2.24 writes their fields, sorted by name, with a reference before each field
that is an object.

==================  ==================================================  ==========================================
class               Kryo 2.24                                           Kryo 5
==================  ==================================================  ==========================================
``LocalDate``       i16 day, i16 month, zig-zag year                    varint year, u8 month, u8 day
``LocalTime``       u8 hour, u8 minute, zig-zag nano, u8 second         hour, minute, second, varint nano; the last part
                                                                        that is not 0 inverted, zeros after it omitted
``LocalDateTime``   date, time (objects)                                date, time
``Instant``         zig-zag nanos, zig-zag seconds                      varlong seconds, varint nanos
``Duration``        zig-zag nanos, zig-zag seconds                      i64 seconds, varint nanos
``ZoneOffset``      zig-zag seconds                                     i8 quarters of an hour; 127: i32 seconds
==================  ==================================================  ==========================================
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs import iso
from statetool.serializers.kryo.codecs.scalars import (
    INT,
    INT32,
    INT64,
    LONG,
    STRING,
    Body,
    fixed_body,
    need_string,
    put_string,
)
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.values import ValueReader, ValueWriter
from statetool.serializers.typeutils.temporal import civil_from_days, days_from_civil
from statetool.types import DateType, Scalar, StructType, TimestampType

_BILLION: Final = 1_000_000_000
_DAY: Final = 86_400 * _BILLION


def _read_date(g: ValueReader) -> int:
    start = g.c.pos
    if g.gen == 5:
        year, month, day = wire.read_positive(g.c), g.c.u1(), g.c.u1()
    else:
        day, month = (int(wire.read_fixed(g.c, 2, "h")) for _ in range(2))
        year = wire.read_signed(g.c)
    days = days_from_civil(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None
    if days is None or civil_from_days(days) != (year, month, day):
        raise g.c.fail(f"{year}-{month}-{day} is not a date", pos=start)
    return days


def _write_date(g: ValueWriter, value: Any) -> None:
    year, month, day = civil_from_days(value)
    if g.gen == 5:
        wire.write_positive(g.out, year)
        g.out.u1(month)
        g.out.u1(day)
        return
    wire.write_fixed(g.out, 2, "h", day)
    wire.write_fixed(g.out, 2, "h", month)
    wire.write_signed(g.out, year)


def _read_time(g: ValueReader) -> int:
    start = g.c.pos
    if g.gen == 2:
        hour, minute, nano, second = g.c.u1(), g.c.u1(), wire.read_signed(g.c), g.c.u1()
    else:
        hour, minute, second, nano = _short_time(g)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= nano < _BILLION):
        raise g.c.fail(f"{hour}:{minute}:{second}.{nano} is not a time of day", pos=start)
    return ((hour * 60 + minute) * 60 + second) * _BILLION + nano


def _short_time(g: ValueReader) -> tuple[int, int, int, int]:
    parts = [0, 0, 0]
    for i in range(3):
        b = g.c.i1()
        if b < 0:
            parts[i] = ~b
            return parts[0], parts[1], parts[2], 0
        parts[i] = b
    return parts[0], parts[1], parts[2], wire.read_positive(g.c)


def _write_time(g: ValueWriter, value: Any) -> None:
    if not 0 <= value < _DAY:
        raise EncodeError(f"{value} ns is not a time of day")
    seconds, nano = divmod(value, _BILLION)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    if g.gen == 2:
        g.out += bytes((hour, minute))
        wire.write_signed(g.out, nano)
        g.out.append(second)
        return
    parts = [hour, minute, second]
    if nano:
        g.out += bytes(parts)
        wire.write_positive(g.out, nano)
        return
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    g.out += bytes((*parts[:-1], ~parts[-1] & 0xFF))


def _read_date_time(g: ValueReader) -> int:
    if g.gen == 5:
        return _read_date(g) * _DAY + _read_time(g)
    return int(g.final("java.time.LocalDate")) * _DAY + int(g.final("java.time.LocalTime"))


def _write_date_time(g: ValueWriter, value: Any) -> None:
    days, nanos = divmod(value, _DAY)
    if g.gen == 5:
        _write_date(g, days)
        _write_time(g, nanos)
        return
    g.object(Obj("java.time.LocalDate", days))
    g.object(Obj("java.time.LocalTime", nanos))


def _read_seconds(g: ValueReader) -> int:
    """Read the nanoseconds since 1970 of an ``Instant``."""
    if g.gen == 5:
        seconds, nanos = wire.read_positive_long(g.c), wire.read_positive(g.c)
    else:
        nanos, seconds = wire.read_signed(g.c), wire.read_signed_long(g.c)
    return seconds * _BILLION + nanos


def _write_seconds(g: ValueWriter, value: Any) -> None:
    seconds, nanos = divmod(value, _BILLION)
    if g.gen == 5:
        wire.write_positive_long(g.out, seconds)
        wire.write_positive(g.out, nanos)
        return
    wire.write_signed(g.out, nanos)
    wire.write_signed_long(g.out, seconds)


def _read_duration(g: ValueReader) -> str:
    if g.gen == 5:
        seconds, nanos = int(wire.read_fixed(g.c, 5, "q")), wire.read_positive(g.c)
    else:
        nanos, seconds = wire.read_signed(g.c), wire.read_signed_long(g.c)
    return iso.duration_text(seconds, nanos)


def _write_duration(g: ValueWriter, value: Any) -> None:
    seconds, nanos = iso.parse_duration(value)
    if g.gen == 5:
        wire.write_fixed(g.out, 5, "q", seconds)
        wire.write_positive(g.out, nanos)
        return
    wire.write_signed(g.out, nanos)
    wire.write_signed_long(g.out, seconds)


def _read_offset(g: ValueReader) -> str:
    if g.gen == 2:
        return iso.offset_text(wire.read_signed(g.c))
    quarters = g.c.i1()
    return iso.offset_text(int(wire.read_fixed(g.c, 5, "i")) if quarters == 127 else quarters * 900)


def _write_offset(g: ValueWriter, value: Any) -> None:
    seconds = iso.parse_offset(value)
    if g.gen == 2:
        wire.write_signed(g.out, seconds)
    elif seconds % 900:
        g.out.i1(127)
        wire.write_fixed(g.out, 5, "i", seconds)
    else:
        g.out.i1(seconds // 900)


def _read_zoned(g: ValueReader) -> str:
    if g.gen == 5:
        local, zone = _read_date_time(g), need_string(g)
        return iso.zoned_text(local, None, zone)
    local = int(g.final("java.time.LocalDateTime"))
    offset, zone_object = g.final("java.time.ZoneOffset"), g.value()
    if zone_object is None or not isinstance(zone_object.value, str):
        raise g.c.fail("a ZonedDateTime without a zone")
    return iso.zoned_text(local, offset, zone_object.value)


def _write_zoned(g: ValueWriter, value: Any) -> None:
    local, offset, zone = iso.parse_zoned(value)
    if g.gen == 5:
        _write_date_time(g, local)
        put_string(g, zone)
        return
    if offset is None:
        raise EncodeError(
            f"{value!r} has no offset, which Flink 1.x keeps", hint="write 2020-01-02T03:04:05+01:00[Europe/Paris]"
        )
    g.object(Obj("java.time.LocalDateTime", local))
    g.object(Obj("java.time.ZoneOffset", offset))
    is_offset = zone[:1] in "+-Z"
    g.value(Obj("java.time.ZoneOffset" if is_offset else "java.time.ZoneRegion", zone))


def _read_with_offset(g: ValueReader) -> str:
    if g.gen == 5:
        local = _read_date_time(g)
        return iso.date_time_text(local) + _read_offset(g)
    local = int(g.final("java.time.LocalDateTime"))
    return iso.date_time_text(local) + str(g.final("java.time.ZoneOffset"))


def _write_with_offset(g: ValueWriter, value: Any) -> None:
    local, offset, _ = iso.parse_zoned(value)
    if offset is None:
        raise EncodeError(f"{value!r} has no offset")
    if g.gen == 5:
        _write_date_time(g, local)
        _write_offset(g, offset)
        return
    g.object(Obj("java.time.LocalDateTime", local))
    g.object(Obj("java.time.ZoneOffset", offset))


def _read_offset_time(g: ValueReader) -> str:
    if g.gen == 5:
        time = _read_time(g)
        return iso.time_text(time) + _read_offset(g)
    offset = str(g.final("java.time.ZoneOffset"))
    return iso.time_text(int(g.final("java.time.LocalTime"))) + offset


def _write_offset_time(g: ValueWriter, value: Any) -> None:
    time, offset = iso.parse_offset_time(value)
    if g.gen == 5:
        _write_time(g, time)
        _write_offset(g, offset)
        return
    g.object(Obj("java.time.ZoneOffset", offset))
    g.object(Obj("java.time.LocalTime", time))


def _read_zone_region(g: ValueReader) -> str:
    if g.gen == 5:
        return need_string(g)
    return str(g.final("java.lang.String"))


def _write_zone_region(g: ValueWriter, value: Any) -> None:
    if g.gen == 5:
        put_string(g, value)
    else:
        g.object(Obj("java.lang.String", value))


_PERIOD: Final = StructType.of(years=INT32, months=INT32, days=INT32)


def _read_period(g: ValueReader) -> tuple[int, int, int]:
    if g.gen == 5:
        years, months, days = (wire.read_positive(g.c) for _ in range(3))
    else:
        days, months, years = (wire.read_signed(g.c) for _ in range(3))
    return years, months, days


def _write_period(g: ValueWriter, value: Any) -> None:
    years, months, days = value
    if g.gen == 5:
        for part in (years, months, days):
            wire.write_positive(g.out, part)
    else:
        for part in (days, months, years):
            wire.write_signed(g.out, part)


def _read_year(g: ValueReader) -> int:
    return wire.read_positive(g.c) if g.gen == 5 else wire.read_signed(g.c)


def _write_year(g: ValueWriter, value: Any) -> None:
    (wire.write_positive if g.gen == 5 else wire.write_signed)(g.out, value)


def _read_year_month(g: ValueReader) -> tuple[int, int]:
    if g.gen == 5:
        return wire.read_positive(g.c), g.c.u1()
    month = wire.read_signed(g.c)
    return wire.read_signed(g.c), month


def _write_year_month(g: ValueWriter, value: Any) -> None:
    year, month = value
    if g.gen == 5:
        wire.write_positive(g.out, year)
        g.out.u1(month)
    else:
        wire.write_signed(g.out, month)
        wire.write_signed(g.out, year)


def _read_month_day(g: ValueReader) -> tuple[int, int]:
    if g.gen == 5:
        return g.c.u1(), g.c.u1()
    day = wire.read_signed(g.c)
    return wire.read_signed(g.c), day


def _write_month_day(g: ValueWriter, value: Any) -> None:
    month, day = value
    if g.gen == 5:
        g.out += bytes((month, day))
    else:
        wire.write_signed(g.out, day)
        wire.write_signed(g.out, month)


def _optional(modern: Body, old: Body) -> Body:
    """``OptionalInt`` and similar classes: Kryo 2.24 also writes the number of an empty one."""

    def read(g: ValueReader) -> Any:
        present = g.c.bool()
        if g.gen == 5:
            return modern.read(g) if present else None
        value = old.read(g)
        return value if present else None

    def write(g: ValueWriter, value: Any) -> None:
        g.out.bool(value is not None)
        if g.gen == 5:
            if value is not None:
                modern.write(g, value)
        else:
            old.write(g, 0 if value is None else value)

    return Body(modern.logical, read, write)


def _read_int_boolean(g: ValueReader) -> bool:
    return wire.read_signed(g.c) != 0


_FIXED_INT: Final = fixed_body("i", INT32)
_FIXED_LONG: Final = fixed_body("q", INT64)
_DOUBLE: Final = fixed_body("d", Scalar("float64"))

TIMES: Final[dict[str, Body]] = {
    "java.time.LocalDate": Body(DateType(), _read_date, _write_date),
    "java.time.LocalTime": Body(Scalar("time"), _read_time, _write_time),
    "java.time.LocalDateTime": Body(TimestampType("ns", zoned=False), _read_date_time, _write_date_time),
    "java.time.Instant": Body(TimestampType("ns", zoned=True), _read_seconds, _write_seconds),
    "java.time.Duration": Body(STRING, _read_duration, _write_duration),
    "java.time.Period": Body(_PERIOD, _read_period, _write_period),
    "java.time.Year": Body(INT32, _read_year, _write_year),
    "java.time.YearMonth": Body(StructType.of(year=INT32, month=INT32), _read_year_month, _write_year_month),
    "java.time.MonthDay": Body(StructType.of(month=INT32, day=INT32), _read_month_day, _write_month_day),
    "java.time.ZoneOffset": Body(STRING, _read_offset, _write_offset),
    "java.time.ZoneRegion": Body(STRING, _read_zone_region, _write_zone_region),
    "java.time.ZonedDateTime": Body(STRING, _read_zoned, _write_zoned),
    "java.time.OffsetDateTime": Body(STRING, _read_with_offset, _write_with_offset),
    "java.time.OffsetTime": Body(STRING, _read_offset_time, _write_offset_time),
    "java.util.concurrent.atomic.AtomicInteger": INT,
    "java.util.concurrent.atomic.AtomicLong": LONG,
    "java.util.concurrent.atomic.AtomicBoolean": Body(
        Scalar("bool"), _read_int_boolean, lambda g, v: wire.write_signed(g.out, int(v))
    ),
    "java.util.OptionalInt": _optional(_FIXED_INT, INT),
    "java.util.OptionalLong": _optional(_FIXED_LONG, LONG),
    "java.util.OptionalDouble": _optional(_DOUBLE, _DOUBLE),
}
