"""Results of commands: data on stdout as a table or as JSON, messages on stderr.

All output of commands goes through :func:`print_line`, which escapes terminal control characters: names, keys and paths come from
snapshots, which are not trusted.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import shutil
import sys
import traceback
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Final, TextIO

from statetool.cli.progress import hide_progress
from statetool.errors import printable
from statetool.types.operators import OperatorLabel

_GAP: Final = "  "
_LEAST_WIDTH: Final = 12
_CUT: Final = "…"
#: Characters that :func:`json.dumps` does not escape, but that a terminal may not support.
_NOT_ASCII: Final = re.compile(r"[^\x20-\x7e]")


def use_escapes() -> None:
    """Escape characters that the encoding of stdout does not support, as Python does on stderr, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_line(line: str, file: TextIO | None = None) -> None:
    """Print exactly one line, by default on stdout. Line ends inside the text are escaped."""
    hide_progress()
    print(printable(line), file=file)


def echo_err(*lines: str) -> None:
    """Print messages on stderr."""
    for line in lines:
        print_line(line, sys.stderr)


def print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error in Python's form. Lines within a message are indented, so that none looks like a message of statetool."""
    for part in traceback.format_exception(kind, error, trace):
        first, *more = part.rstrip("\n").split("\n")
        for line in (first, *(f"    {line.lstrip(' ')}" for line in more)):
            print_line(line, sys.stderr)


class Output:
    """Prints results of commands as ``text`` or ``json``.

    On a terminal, text rows are at most as wide as the terminal, and cells that are cut end with an ellipsis. Elsewhere, and if ``wide``,
    they are complete.

    Attributes
    ----------
    form
        The value of ``--output``.
    has_printed
        Whether results were printed.
    """

    def __init__(self, form: str = "text", *, wide: bool = False) -> None:
        self.form = form
        self._wide = wide
        self.has_printed = False

    @property
    def is_json(self) -> bool:
        """Whether results are printed as JSON."""
        return self.form == "json"

    def rows(self, rows: Sequence[Any], *, columns: Sequence[str] | None = None) -> None:
        """Print records (dataclasses or mappings). Text output shows only ``columns``."""
        records = [asdict(r) if is_dataclass(r) and not isinstance(r, type) else dict(r) for r in rows]
        if self.is_json:
            self.text(_json(records))
            return
        names = list(columns or (records[0] if records else ()))
        if "operator" in names:  # whose text has the name
            names = [n for n in names if n != "operator_name"]
        if not records:
            echo_err("nothing found")
            return
        cells = [list(map(printable, names)), *([shown_text(r.get(c)) for c in names] for r in records)]
        widths = _fitting([max(map(_width, column)) for column in zip(*cells, strict=True)], self._terminal_width())
        self.text(*(_GAP.join(_cell(v, w) for v, w in zip(row, widths, strict=False)).rstrip() for row in cells))
        if hidden := names[len(widths) :]:
            echo_err(f"columns hidden because the terminal is too narrow: {', '.join(hidden)} (show them with --wide)")

    def stream(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print records as a JSON list, one per line, as they arrive."""
        ahead = ""
        self.text("[")
        for row in rows:
            if ahead:
                self.text(f"{ahead},")
            ahead = _json(row)
        self.text(*filter(None, (ahead, "]")))

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one record."""
        if self.is_json:
            self.text(_json(record))
            return
        width = max(map(len, record))
        self.text(*(f"{name.ljust(width)}  {shown_text(value)}" for name, value in record.items()))

    def text(self, *lines: str) -> None:
        """Print lines of text, such as a schema, a heading or an empty line."""
        self.has_printed = True
        for line in lines:
            print_line(line)

    def _terminal_width(self) -> int | None:
        """Return the maximum width of rows, ``None`` if unlimited."""
        return None if self._wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns


def _json(value: Any) -> str:
    """Return JSON. NaN and infinities, which JSON does not support as numbers, become text as in Spark."""
    # Only escapes of surrogates are valid JSON, and use_escapes() makes others too.
    ascii_only = codecs.lookup(sys.stdout.encoding or "utf-8").name != "utf-8"
    try:
        text = json.dumps(value, default=_plain, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(value, default=_plain), parse_constant=str)
        text = json.dumps(plain, ensure_ascii=ascii_only)
    # JSON escapes only control characters below the space. Other unprintable characters occur only inside strings.
    return text if text.isprintable() else _NOT_ASCII.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def shown_text(value: Any, nothing: str = "-") -> str:
    """Return a value in one line. Maps and structs have Spark's form, and control characters are escaped."""
    if value is None:
        return nothing
    if isinstance(value, OperatorLabel):
        return printable(value.display)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{printable(str(k))}: {shown_text(v, 'null')}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # Arrow's map
            return "{" + ", ".join(f"{shown_text(k)} -> {shown_text(v, 'null')}" for k, v in value) + "}"
        return "[" + ", ".join(shown_text(v, "null") for v in value) + "]"
    return printable(str(value))


def utc_time(epoch_ms: int | None) -> str | None:
    """Return a time in ISO 8601, or its milliseconds if it is outside of the calendar."""
    if epoch_ms is None:
        return None
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms} ms"


def _fitting(widths: list[int], limit: int | None) -> list[int]:
    """Return column widths that fit the limit.

    The widest columns are cut first. Columns on the right that still do not fit are omitted.
    """
    if limit is None:
        return widths
    widest = max(widths)
    while widest > _LEAST_WIDTH and sum(min(w, widest) + len(_GAP) for w in widths) - len(_GAP) > limit:
        widest -= 1
    fitting = []
    for width in widths:
        limit -= min(width, widest)
        if limit < 0:
            break
        fitting.append(min(width, widest))
        limit -= len(_GAP)
    return fitting or [max(limit, 1)]


def _cell(text: str, width: int) -> str:
    """Return text of exactly this width, either padded, or cut and ended with an ellipsis."""
    if _width(text) > width:
        end, room = 0, width - 1
        while (room := room - _width(text[end])) >= 0:
            end += 1
        text = text[:end] + _CUT
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
