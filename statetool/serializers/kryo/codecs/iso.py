"""Conversion of ``java.time`` values to the text that Java prints, and back."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from statetool.errors import EncodeError
from statetool.serializers.typeutils.temporal import civil_from_days, days_from_civil

_BILLION: Final = 1_000_000_000
_DAY: Final = 86_400 * _BILLION
_DURATION: Final = re.compile(r"(-?)PT(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,9}))?S)?")
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?")
_TIME: Final = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(.*)")
_DATE_TIME: Final = re.compile(r"([+-]?\d{4,10})-(\d\d)-(\d\d)T(.*)")


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


def duration_text(seconds: int, nanos: int) -> str:
    """Return the result of ``Duration.toString``."""
    if not seconds and not nanos:
        return "PT0S"
    total = seconds * _BILLION + nanos
    whole = abs(total) // _BILLION * (1 if total >= 0 else -1)
    sign = 1 if whole >= 0 else -1
    hours, minutes, rest = abs(whole) // 3600 * sign, abs(whole) // 60 % 60 * sign, abs(whole) % 60 * sign
    text = "PT" + (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    nanos_of_second = abs(total) % _BILLION
    if rest or nanos_of_second:
        minus = "-" if total < 0 and (rest < 0 or rest == 0) else ""
        digits = f"{nanos_of_second:09d}".rstrip("0")
        text += f"{minus}{abs(rest)}{'.' + digits if digits else ''}S"
    return text


def parse_duration(text: str) -> tuple[int, int]:
    """Return seconds and nanoseconds (0 to 999,999,999)."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None or text in ("PT", "-PT"):
        raise EncodeError(f"{text!r} is not a duration such as PT1H2M3.5S")
    all_minus, hours, minutes, minus, seconds, fraction = match.groups()
    total = (int(hours or 0) * 3600 + int(minutes or 0) * 60) * _BILLION
    part = int(seconds or 0) * _BILLION + int((fraction or "").ljust(9, "0"))
    total += -part if minus else part
    return divmod(-total if all_minus else total, _BILLION)


def offset_text(seconds: int) -> str:
    """Return the id of a ``ZoneOffset``."""
    if not seconds:
        return "Z"
    a = abs(seconds)
    text = f"{'-' if seconds < 0 else '+'}{a // 3600:02d}:{a // 60 % 60:02d}"
    return text + (f":{a % 60:02d}" if a % 60 else "")


def parse_offset(text: str) -> int:
    """Return the seconds for the id of a ``ZoneOffset``."""
    if text == "Z":
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise EncodeError(f"{text!r} is not an offset such as +01:00")
    sign, hours, minutes, seconds = match.groups()
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * (-1 if sign == "-" else 1)


def time_text(nanos: int) -> str:
    """Return the result of ``LocalTime.toString``."""
    seconds, nano = divmod(nanos, _BILLION)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return text + (f":{seconds % 60:02d}{_fraction(nano)}" if seconds % 60 or nano else "")


def date_text(days: int) -> str:
    """Return the result of ``LocalDate.toString``."""
    year, month, day = civil_from_days(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def date_time_text(nanos: int) -> str:
    """Return the result of ``LocalDateTime.toString``."""
    days, nanos_of_day = divmod(nanos, _DAY)
    return f"{date_text(days)}T{time_text(nanos_of_day)}"


def parse_date(text: str) -> int:
    """Return days since 1970-01-01."""
    days, rest = _date_and_rest(f"{text}T")
    if rest:
        raise EncodeError(f"{text!r} is not a date")
    return days


def _date_and_rest(text: str) -> tuple[int, str]:
    match = _DATE_TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise EncodeError(f"{text!r} is not a date and time such as 2020-01-02T03:04:05")
    year, month, day = (int(p) for p in match.groups()[:3])
    days = days_from_civil(year, month, day)
    if civil_from_days(days) != (year, month, day):
        raise EncodeError(f"{text!r} is not a date")
    return days, match[4]


def parse_time(text: str) -> int:
    """Return nanoseconds of the day."""
    nanos, rest = _time_and_rest(text)
    if rest:
        raise EncodeError(f"{text!r} is not a time of day")
    return nanos


def _time_and_rest(text: str) -> tuple[int, str]:
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise EncodeError(f"{text!r} is not a time of day such as 03:04:05")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise EncodeError(f"{text!r} is not a time of day")
    return ((hour * 60 + minute) * 60 + second) * _BILLION + int((match[4] or "").ljust(9, "0")), match[5]


def parse_date_time(text: str) -> tuple[int, str]:
    """Return nanoseconds since 1970-01-01T00:00, and the rest of the text."""
    days, rest = _date_and_rest(text)
    nanos, rest = _time_and_rest(rest)
    return days * _DAY + nanos, rest


def zoned_text(local: int, offset: str | None, zone: str) -> str:
    """Return the result of ``ZonedDateTime.toString``; without an offset if neither the bytes nor the zone's rules determine it."""
    if offset is None:
        offset = zone if zone[:1] in ("+", "-", "Z") else _offset_at(local, zone)
    text = date_time_text(local) + (offset or "")
    return text if zone == offset else f"{text}[{zone}]"


def _offset_at(local: int, zone: str) -> str | None:
    try:
        rules = ZoneInfo(zone)
        at = datetime(1970, 1, 1, tzinfo=rules) + timedelta(microseconds=local // 1000)
        delta = at.utcoffset()
    except (ZoneInfoNotFoundError, OverflowError, ValueError, OSError):
        return None
    return None if delta is None else offset_text(int(delta.total_seconds()))


def parse_zoned(text: str) -> tuple[int, str | None, str]:
    """Return local nanoseconds, offset (``None`` if the text has none) and zone."""
    local, rest = parse_date_time(text)
    offset, _, zone = rest.partition("[")
    if offset:
        parse_offset(offset)
    zone = zone.removesuffix("]") or offset
    if not zone:
        raise EncodeError(f"{text!r} has neither an offset nor a zone")
    return local, offset or None, zone


def parse_offset_time(text: str) -> tuple[int, str]:
    """Return nanoseconds of the day and the offset."""
    nanos, offset = _time_and_rest(text)
    parse_offset(offset)
    return nanos, offset
