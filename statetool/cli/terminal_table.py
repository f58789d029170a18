"""Tables for people at a terminal: numbers are right-aligned, sizes have units, and what one came for stays in a narrow window.

A table that is too wide loses, in this order and only as far as needed: columns without values, columns with one value in all rows, the
year of times, all but the first digits of ids and the folder that paths share, the ends of long texts, and columns from the right: those of :data:`_MISSED_LEAST`
first, those of :data:`_KEPT` last.
Numbers and times are never cut.
"""

from __future__ import annotations

import re
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from os.path import commonprefix
from typing import Any, Final

from statetool.cli.shown_values import shown_text
from statetool.errors import printable

_GAP: Final = "  "
_CUT: Final = "…"
#: Stands for the ellipsis where the encoding of the output has none, in one column too.
_ASCII_CUT: Final = "~"
_NOTHING: Final = "-"
#: Texts, those of kept columns, and headings of numbers are not cut below these widths while another column can be left out.
_LEAST_WIDTH: Final = 12
_LEAST_KEPT: Final = 24
_LEAST_HEADING: Final = 10
#: A column that is never cut stands beside others up to this part of the width.
_WIDEST_WHOLE: Final = 3
#: Columns that people came for, by name.
_KEPT: Final = frozenset({
    "operator", "name", "state", "table", "key", "path", "complete", "newest", "failed", "verdict", "outcome", "problems",
    "size_bytes", "state_bytes", "own_bytes", "bytes_added", "share", "entries", "count", "lag",
})  # fmt: skip
#: Columns that go before others, in this order, by name.
_MISSED_LEAST: Final = ("namespace_type", "scope", "key_type")
#: Columns that explain the row, and others that are never cut because they are typed into other commands, by name.
_SENTENCES: Final = frozenset({"message", "note", "found"})
_WHOLE: Final = frozenset({*_SENTENCES, "split_id"})
#: Columns of paths, by name. Without the folder that they share, they still name the same.
_PATHS: Final = frozenset({"path", "file"})
_SHORT_ID_DIGITS: Final = 8
_ID: Final = re.compile(r"[0-9a-f]{32}")
_TIME: Final = re.compile(r"(\d{4})-(\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Lines of a table, the heading first, and the columns that were left out, each with its only value if it has one."""

    lines: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """A column with its cells as text."""

    name: str
    cells: tuple[str, ...]
    is_number: bool = False
    is_rigid: bool = False
    #: Shorter cells with the same meaning.
    brief: tuple[str, ...] | None = None
    is_whole: bool = False

    @property
    def is_kept(self) -> bool:
        return self.is_whole or self.name in _KEPT

    @property
    def rank(self) -> int:
        """The place in the order in which columns go."""
        if self.name in _MISSED_LEAST:
            return _MISSED_LEAST.index(self.name)
        return len(_MISSED_LEAST) + self.is_kept

    @cached_property
    def width(self) -> int:
        return max(map(text_width, (self.name, *self.cells)))

    @cached_property
    def least(self) -> int:
        """The width below which the column is only cut if no other column can be left out."""
        if self.is_whole:
            return self.width
        if self.is_rigid:
            return max(min(text_width(self.name), _LEAST_HEADING), *map(text_width, self.cells))
        if not self.is_kept:
            return min(self.width, _LEAST_WIDTH)
        widths = range(min(self.width, _LEAST_KEPT), self.width)
        return next((w for w in widths if len(set(_cut_alike(self.cells, w))) == len(set(self.cells))), self.width)

    @property
    def comfortable(self) -> int:
        """The least width with the whole heading of a number."""
        return self.width if self.is_rigid else self.least

    @property
    def only_value(self) -> str | None:
        """The value that all cells have, ``None`` if they differ. The value of one row is only one if it is nothing."""
        values = set(self.cells)
        return self.cells[0] if len(values) == 1 and (len(self.cells) > 1 or values == {_NOTHING}) else None


def fit_table(
    names: Sequence[str],
    records: Sequence[Mapping[str, Any]],
    limit: int,
    *,
    whole: Collection[str] = (),
    has_units: bool = True,
) -> FittedTable:
    """Return a table whose lines are at most ``limit`` columns wide. Without units, numbers are those of the user, and stay as they are.

    Columns of ``whole``, and those of :data:`_WHOLE`, are never cut and never go. Those that need more than a share of the width are
    printed below each row instead.
    """
    if has_units:
        whole = {*whole, *_WHOLE}
    columns = [_column(printable(n), [r.get(n) for r in records], has_units) for n in names]
    if _total(columns) > limit and (
        low := [c for c in columns if c.name in whole and c.width > limit // _WIDEST_WHOLE]
    ):
        beside = [n for n in names if n not in {c.name for c in low}]
        table = fit_table(beside, records, limit, whole=whole, has_units=has_units)
        return replace(table, lines=tuple(_with_lines_below(table.lines, low, limit)))
    columns = [replace(c, is_whole=c.name in whole and {_NOTHING} != set(c.cells)) for c in columns]
    order = [c.name for c in columns]
    hidden: dict[str, str] = {}
    for is_empty in (True, False):
        for column in reversed(columns):
            value = column.only_value if len(columns) > 1 else None
            wide = sum(c.comfortable for c in columns) + _gaps(columns) > limit
            if wide and value is not None and not column.is_kept and (value == _NOTHING) is is_empty:
                hidden[column.name] = f"{column.name} ({'no values' if is_empty else f'always {value}'})"
                columns.remove(column)
    if _total(columns) > limit:
        columns = [c if c.brief is None or c.is_whole else replace(c, cells=c.brief, brief=None) for c in columns]
    for rank in range(len(_MISSED_LEAST) + 2):
        for column in reversed(columns[1:]):
            if column.rank == rank and _least(columns) > limit and not _are_two_names(columns, limit):
                hidden[column.name] = column.name
                columns.remove(column)
    widths = _fitting(columns, limit)
    lines = [_line([c.name for c in columns], columns, widths)]
    cut = [_cut_alike(c.cells, w) for c, w in zip(columns, widths, strict=True)]
    lines += [_line(row, columns, widths) for row in zip(*cut, strict=True)]
    return FittedTable(tuple(lines), tuple(hidden[n] for n in order if n in hidden))


def _with_lines_below(lines: Sequence[str], low: Sequence[_Column], limit: int) -> Iterator[str]:
    """Yield the lines of a table, and after each row the columns for which there is no room beside the others."""
    yield lines[0]
    for row, line in enumerate(lines[1:]):
        yield line
        for column in low:
            text = f"{_GAP}{column.name}: {column.cells[row]}"
            if column.cells[row] == _NOTHING:
                continue
            if column.name not in _SENTENCES:
                yield text  # complete in one line, so that it can be copied
            else:
                yield from textwrap.wrap(
                    text, limit, subsequent_indent=_GAP * 2, break_long_words=False, break_on_hyphens=False
                )


def complete_table(names: Sequence[str], records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table in which everything is complete and plain."""
    cells = [list(map(printable, names)), *([shown_text(r.get(n)) for n in names] for r in records)]
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    return [_GAP.join(map(_pad, row, widths)).rstrip() for row in cells]


def _column(name: str, values: Sequence[Any], has_units: bool) -> _Column:
    present = [v for v in values if v is not None]
    cells = tuple(map(shown_text, values))
    if present and all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
        if has_units:
            cells = tuple(text_with_unit(name, v) for v in values)
        return _Column(name, cells, is_number=True, is_rigid=True)
    if not has_units:
        return _Column(name, cells)
    cells = tuple(c or _NOTHING for c in cells)
    if name in _PATHS:
        return _Column(name, cells, brief=_without_shared_folder(cells))
    if present and all(isinstance(v, str) and _TIME.fullmatch(v) for v in present):
        whole = tuple(_TIME.sub(r"\1-\2 \3", c) for c in cells)
        year = str(datetime.now(tz=timezone.utc).year)
        is_this_year = all(c.startswith(year) or c == _NOTHING for c in cells)
        brief = tuple(c.removeprefix(f"{year}-") for c in whole) if is_this_year else None
        return _Column(name, whole, is_rigid=True, brief=brief)
    if present and all(
        isinstance(v, str) and _ID.fullmatch(c) for v, c in zip(values, cells, strict=True) if v is not None
    ):
        short = tuple(c[:_SHORT_ID_DIGITS] for c in cells)
        if len(set(short)) == len(set(cells)):
            return _Column(name, cells, brief=short)
    return _Column(name, cells)


def text_with_unit(name: str, value: Any) -> str:
    """Return a value in one line: bytes and milliseconds, by the name of the value, with units that people read."""
    from statetool.html.numbers import duration_text, size_text  # only needed at terminals

    if isinstance(value, int) and not isinstance(value, bool):
        if name.endswith("bytes"):
            return size_text(value)
        if name.endswith("_ms"):
            return duration_text(value)
    return shown_text(value)


def _total(columns: Sequence[_Column]) -> int:
    return sum(c.width for c in columns) + _gaps(columns)


def _gaps(columns: Sequence[_Column]) -> int:
    return len(_GAP) * (len(columns) - 1)


def _least(columns: Sequence[_Column]) -> int:
    """Return the width of a table whose texts are cut as far as they may be."""
    return sum(c.least for c in columns) + _gaps(columns)


def _are_two_names(columns: Sequence[_Column], limit: int) -> bool:
    """Return True for the last two columns if both are names that people came for, such as those of operator and state, and may be cut."""
    are_names = all(c.is_kept and not c.is_rigid for c in columns)
    return len(columns) == 2 and are_names and _LEAST_WIDTH * 2 + _gaps(columns) <= limit


def _fitting(columns: Sequence[_Column], limit: int) -> list[int]:
    """Return widths that fit: the widest columns are cut first, and numbers and times never."""
    widths = [c.width for c in columns]
    for least in ([c.least for c in columns], [c.least if c.is_rigid or c.is_whole else 1 for c in columns]):
        while sum(widths) + _gaps(columns) > limit:
            wide = [i for i, width in enumerate(widths) if width > least[i]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _cut_alike(cells: Sequence[str], width: int) -> list[str]:
    """Return cells of at most this width. If different ones would look the same without their ends, all lose their middle instead, or the
    folder in which all are.
    """
    ends = [cut_text(c, width) for c in cells]
    if len(set(ends)) == len(set(cells)):
        return ends
    middles = [_cut_middle(c, width) for c in cells]
    if len(set(middles)) == len(set(cells)):
        return middles
    rests = [cut_text(c, width) for c in _without_shared_folder(cells) or cells]
    return max(ends, middles, rests, key=lambda cut: len(set(cut)))


def _without_shared_folder(cells: Sequence[str]) -> tuple[str, ...] | None:
    """Return different paths without the folder in which all of them are, which an ellipsis stands for. ``None`` if there is no such folder."""
    paths = {c for c in cells if c != _NOTHING}
    end = commonprefix(list(paths)).rfind("/")  # noqa: RUF071  # URIs too, which commonpath() changes
    if len(paths) < 2 or end < 1:
        return None
    return tuple(c if c == _NOTHING else _cut_mark() + c[end:] for c in cells)


def cut_text(text: str, width: int) -> str:
    """Return text of at most this width; cut text ends with an ellipsis."""
    if text_width(text) <= width:
        return text
    return _beginning(text, width - 1) + _cut_mark()


def _cut_mark() -> str:
    try:
        _CUT.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return _ASCII_CUT
    return _CUT


def _cut_middle(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    end = _beginning(text[::-1], (width - 1) * 2 // 3)[::-1]
    return f"{_beginning(text, width - 1 - text_width(end))}{_cut_mark()}{end}"


def _beginning(text: str, room: int) -> str:
    """Return as much of a text as fits."""
    end = 0
    while end < len(text) and (room := room - text_width(text[end])) >= 0:
        end += 1
    return text[:end]


def _line(cells: Sequence[str], columns: Sequence[_Column], widths: Sequence[int]) -> str:
    padded = (_pad(cut_text(t, w), w, right=c.is_number) for t, c, w in zip(cells, columns, widths, strict=True))
    return _GAP.join(padded).rstrip()


def _pad(text: str, width: int, *, right: bool = False) -> str:
    """Return text with spaces after it, or before it if it is to stand ``right``, up to a width."""
    spaces = " " * (width - text_width(text))
    return spaces + text if right else text + spaces


def text_width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
