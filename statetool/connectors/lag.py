"""Lag of sources, given the end offsets of their splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from statetool.connectors.rows import SplitRow, split_rows
from statetool.connectors.sources import Source
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.types.operators import OperatorRecord

_NO_OFFSET: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class LagRow(OperatorRecord):
    """Lag of one split.

    Attributes
    ----------
    position, end
        Next offset and end offset; ``None`` if state has a marker, or no end was given.
    lag
        Amount left to read; ``None`` if position or end is unknown.
    spread
        Difference to the smallest lag of the source's splits.
    time_ms, time_spread_ms
        Time of the last record read if the split stores one, and its difference to the latest time of the source's splits.
        (Alignment uses watermarks, which are not stored.)
    note
        Why there is no lag, or why it is implausible.
    """

    split_id: str
    source: str | None
    partition: int | None
    subtask: int
    position: int | None
    end: int | None
    lag: int | None
    spread: int | None
    time_ms: int | None
    time_spread_ms: int | None
    note: str


def lag_rows(source: Source, ends: Mapping[str, int | str]) -> list[LagRow]:
    """Return the lag of the splits that readers hold.

    Parameters
    ----------
    ends
        End offset by split: its id, or ``topic:partition``.

    Raises
    ------
    OptionError
        An end is not a number.
    UnknownNameError
        Ends are given, but for none of these splits.
    """
    held = [r for r in split_rows(source) if r.split_id is not None]
    names = {n: r.split_id for r in held for n in (r.split_id, f"{r.source}:{r.partition}") if n is not None}
    if not names.keys() & ends.keys() and held:
        raise UnknownNameError("no end offset matches a split of a reader", hint=suggest(next(iter(ends), ""), names))
    by_id = {names[name]: _number(name, end) for name, end in ends.items() if name in names}
    rows = [_lag_row(r, by_id.get(r.split_id)) for r in held if r.split_id is not None]
    least = min((r.lag for r in rows if r.lag is not None), default=0)
    latest = max((r.time_ms for r in rows if r.time_ms is not None), default=0)
    return [
        replace(
            r,
            spread=None if r.lag is None else r.lag - least,
            time_spread_ms=None if r.time_ms is None else latest - r.time_ms,
        )
        for r in rows
    ]


def _lag_row(row: SplitRow, end: int | None) -> LagRow:
    # Sequence numbers of Kinesis are too large for offsets, and do not count records.
    digits = row.position if row.position is not None and row.position.isdigit() else ""
    position = int(digits) if digits and int(digits) < _NO_OFFSET else None
    lag = None if end is None or position is None else end - position
    note = (
        "no end was given"
        if end is None
        else ""
        if position is not None
        else row.marker or "its position is not an offset"
    )
    if lag is not None and lag < 0:
        note = "the position is past the end: the log was truncated, or it is another log"
    return LagRow(
        operator=row.operator,
        split_id=row.split_id or "",
        source=row.source,
        partition=row.partition,
        subtask=row.subtask,
        position=position,
        end=end,
        lag=lag,
        spread=None,
        time_ms=row.time_ms,
        time_spread_ms=None,
        note=note,
    )


def _number(name: str, end: int | str) -> int:
    try:
        number = int(end)
    except ValueError:
        raise OptionError(f"the end {end!r} of {name!r} is not a number") from None
    if abs(number) >= _NO_OFFSET:
        raise OptionError(
            f"the end {end!r} of {name!r} is not a valid offset", hint="pass a number that fits into 64 bits"
        )
    return number
