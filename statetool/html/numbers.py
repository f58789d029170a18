"""Human-readable numbers; the exact number is the value of ``<data>``."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

from statetool.html.markup import Html, element

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_TIMES: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def count(number: int | float | None) -> Html:
    """Return a count as markup."""
    return Html("") if number is None else element("data", f"{number:,}", value=number)


def size(number: int | None) -> Html:
    """Return a number of bytes as markup, nothing if it is not known."""
    return Html("") if number is None else element("data", size_text(number), value=number, title=f"{number:,} bytes")


def size_text(number: int) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> size_text(1023), size_text(1536), size_text(-(5 << 30))
    ('1,023 B', '1.5 KiB', '-5.0 GiB')
    """
    if abs(number) < 1024:
        return f"{number:,} B"
    scaled, unit = float(number), ""
    for unit in _UNITS:
        scaled /= 1024
        if abs(scaled) < 1024:
            break
    return f"{scaled:,.1f} {unit}"


def duration_text(milliseconds: int | float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> duration_text(850), duration_text(312_000), duration_text(-699_150_295)
    ('850 ms', '5.2 min', '-8.1 d')
    """
    unit, name = next(((u, n) for u, n in (*_TIMES, (1000, "s")) if abs(milliseconds) >= u), (1, "ms"))
    return f"{milliseconds:,} ms" if unit == 1 else f"{milliseconds / unit:,.1f} {name}"


def change(number: int | None) -> Html:
    """Return the growth in bytes as markup."""
    if number is None:
        return Html("")
    return element("data", f"{'+' if number > 0 else ''}{size_text(number)}", value=number, title=f"{number:,} bytes")


def share(part: float | None) -> str:
    """Return a share as a percentage."""
    return "" if part is None else f"{part:.1%}"


def between(low: int | None, high: int | None, *, past: str, ahead: str) -> str:
    """Return a span of milliseconds from now as text; negative values are in the past.

    Examples
    --------
    >>> between(None, -86_400_000, past="overdue {}", ahead="in {}")
    'overdue 1 d or more'
    >>> between(0, 60_000, past="overdue {}", ahead="in {}"), between(60_000, None, past="overdue {}", ahead="in {}")
    ('in 0 to 1 min', 'in 1 min or more')
    """
    if high is not None and high <= 0:
        low, high, word = -high, None if low is None else -low, past
    else:
        word = ahead
    start = _time(low or 0)
    return word.format(f"{start} or more" if high is None else f"{start} to {_time(high)}")


def _time(milliseconds: int) -> str:
    for unit, name in _TIMES:
        if milliseconds >= unit:
            return f"{milliseconds // unit:,} {name}"
    return f"{milliseconds:,} ms" if milliseconds else "0"


def moment(epoch_ms: int) -> str:
    """Return a time in UTC, or its milliseconds if it is outside of the calendar."""
    try:
        return f"{datetime.fromtimestamp(epoch_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms:,} ms"
