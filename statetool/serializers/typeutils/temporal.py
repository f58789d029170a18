"""Dates and times of ``org.apache.flink.api.common.typeutils.base``.

``Date``, ``SqlDate``, ``SqlTime``: i64 epoch millis. ``SqlTimestamp``: i64 ``getTime()`` and i32 nano of second.
``Instant``: i64 epoch second, i32 nano. ``LocalDate``: i32 year, month, day. ``LocalTime``: hour, minute, second,
i32 nano. ``LocalDateTime``: both. Null is the smallest value of each part (``SqlTimestamp``: i64 min and i32 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Temporal
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.types import DateType, Scalar, TimestampType
from statetool.types.java_hash import hash_long, to_int32

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_I64_MIN: Final = -(1 << 63)
_I32_MIN: Final = -(1 << 31)
_DAY_NS: Final = 86_400_000_000_000
_BILLION: Final = 1_000_000_000
Days = TypeVar("Days", int, "npt.NDArray[np.int64]")


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01 of a proleptic Gregorian date of any year."""
    y = year - (month <= 2)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


def civil_from_days(days: Days) -> tuple[Days, Days, Days]:
    """Return ``(year, month, day)`` of a number of days or of an int64 array of them; the inverse of :func:`days_from_civil`."""
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 - 12 * (mp // 10)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _read_date(c: Cursor) -> int | None:
    start = c.pos
    year = c.i4()
    if year == _I32_MIN:
        if c.i2() != -(1 << 15):
            raise c.fail("half a null LocalDate", pos=start)
        return None
    month, day = c.u1(), c.u1()
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] - (month == 2 and not leap):
        raise c.fail(f"{year}-{month}-{day} is not a date", pos=start)
    return days_from_civil(year, month, day)


def _write_date(out: Output, days: int | None) -> None:
    if days is None:
        out.i4(_I32_MIN)
        out.i2(-(1 << 15))
        return
    year, month, day = civil_from_days(days)
    out.i4(year)
    out.u1(month)
    out.u1(day)


def _read_time(c: Cursor) -> int | None:
    start = c.pos
    hour = c.i1()
    if hour == -128:
        if c.i2() != -(1 << 15) or c.i4() != _I32_MIN:
            raise c.fail("half a null LocalTime", pos=start)
        return None
    minute, second, nano = c.i1(), c.i1(), c.i4()
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= nano < _BILLION):
        raise c.fail(f"{hour}:{minute}:{second} and {nano} ns is not a time of day", pos=start)
    return ((hour * 60 + minute) * 60 + second) * _BILLION + nano


def _write_time(out: Output, nanos: int | None) -> None:
    if nanos is None:
        out.i1(-128)
        out.i2(-(1 << 15))
        out.i4(_I32_MIN)
        return
    if not 0 <= nanos < _DAY_NS:
        raise EncodeError(f"{nanos} ns is not a time of day")
    seconds, nano = divmod(nanos, _BILLION)
    out.u1(seconds // 3600)
    out.u1(seconds // 60 % 60)
    out.u1(seconds % 60)
    out.i4(nano)


def _read_date_time(c: Cursor) -> int | None:
    start = c.pos
    date, time = _read_date(c), _read_time(c)
    if date is None and time is None:
        return None
    if date is None or time is None:
        raise c.fail("a LocalDateTime with only one half null", pos=start)
    return date * _DAY_NS + time


def _write_date_time(out: Output, nanos: int | None) -> None:
    _write_date(out, None if nanos is None else nanos // _DAY_NS)
    _write_time(out, None if nanos is None else nanos % _DAY_NS)


def _read_millis(c: Cursor) -> int | None:
    value = c.i8()
    return None if value == _I64_MIN else value


def _write_millis(out: Output, value: int | None) -> None:
    out.i8(_I64_MIN if value is None else value)


def _read_sql_timestamp(c: Cursor) -> int | None:
    start = c.pos
    millis, nano = c.i8(), c.i4()
    if millis == _I64_MIN:
        if nano != 0:
            raise c.fail("half a null Timestamp", pos=start)
        return None
    if not 0 <= nano < _BILLION or nano // 1_000_000 != millis % 1000:
        raise c.fail(f"{nano} ns does not belong to a Timestamp of {millis} ms", pos=start)
    return millis // 1000 * _BILLION + nano


def _write_sql_timestamp(out: Output, nanos: int | None) -> None:
    out.i8(_I64_MIN if nanos is None else nanos // 1_000_000)
    out.i4(0 if nanos is None else nanos % _BILLION)


def _read_instant(c: Cursor) -> int | None:
    start = c.pos
    second, nano = c.i8(), c.i4()
    if second == _I64_MIN and nano == _I32_MIN:
        return None
    if not 0 <= nano < _BILLION:
        raise c.fail(f"{nano} is not a nano of second", pos=start)
    return second * _BILLION + nano


def _write_instant(out: Output, nanos: int | None) -> None:
    out.i8(_I64_MIN if nanos is None else nanos // _BILLION)
    out.i4(_I32_MIN if nanos is None else nanos % _BILLION)


def _hash_date(days: int) -> int:
    year, month, day = civil_from_days(days)
    return to_int32((year & 0xFFFFF800) ^ ((year << 11) + (month << 6) + day))


def _hash_date_time(nanos: int) -> int:
    return _hash_date(nanos // _DAY_NS) ^ hash_long(nanos % _DAY_NS)


def _hash_instant(nanos: int) -> int:
    return to_int32(hash_long(nanos // _BILLION) + 51 * (nanos % _BILLION))


TYPES: Final = (
    SimpleType(
        name="Date", logical=TimestampType("ms", zoned=True), length=8, nullable=True, op=Temporal("millis"),
        decode=_read_millis, encode=_write_millis, hash_code=hash_long,
    ),
    SimpleType(
        name="SqlDate", logical=TimestampType("ms", zoned=True), length=8, nullable=True, op=Temporal("millis"),
        decode=_read_millis, encode=_write_millis, hash_code=hash_long,
    ),
    SimpleType(
        name="SqlTime", logical=TimestampType("ms", zoned=True), length=8, nullable=True, op=Temporal("millis"),
        decode=_read_millis, encode=_write_millis, hash_code=hash_long,
    ),
    SimpleType(
        name="SqlTimestamp", logical=TimestampType("ns", zoned=True), length=12, nullable=True,
        op=Temporal("millis_nanos"), decode=_read_sql_timestamp, encode=_write_sql_timestamp,
        hash_code=lambda v: hash_long(v // 1_000_000),
    ),
    SimpleType(
        name="Instant", logical=TimestampType("ns", zoned=True), length=12, nullable=True,
        op=Temporal("seconds_nanos"), decode=_read_instant, encode=_write_instant, hash_code=_hash_instant,
    ),
    SimpleType(
        name="LocalDate", logical=DateType(), length=6, nullable=True, op=Temporal("date"),
        decode=_read_date, encode=_write_date, hash_code=_hash_date,
    ),
    SimpleType(
        name="LocalTime", logical=Scalar("time"), length=7, nullable=True, op=Temporal("time"),
        decode=_read_time, encode=_write_time, hash_code=hash_long,
    ),
    SimpleType(
        name="LocalDateTime", logical=TimestampType("ns", zoned=False), length=13, nullable=True,
        op=Temporal("date_time"), decode=_read_date_time, encode=_write_date_time, hash_code=_hash_date_time,
    ),
)  # fmt: skip

SNAPSHOTS: Final = simple_readers(TYPES)
