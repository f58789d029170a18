"""Results of commands: data on stdout as a table or as JSON, messages on stderr.

All output of commands goes through :func:`print_line`, which escapes terminal control characters: names, keys and paths come from
snapshots, which are not trusted.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Final, TextIO

import click

from statetool.cli.progress import hide_progress
from statetool.errors import printable

#: Arguments of :func:`click.style` for the parts of the output that stand out.
_STYLES: Final[Mapping[str, dict[str, Any]]] = {
    "heading": {"bold": True},
    "error": {"fg": "red", "bold": True},
    "unknown": {"fg": "yellow", "bold": True},
    "warning": {"fg": "yellow"},
    "difference": {"fg": "cyan"},
    "advice": {"fg": "cyan"},
    "note": {"dim": True},
    "fine": {"fg": "green", "bold": True},
}
#: Environment variable with the width of text in pipes and files. It is not ``COLUMNS``, which a Python process that reads lines from a
#: terminal passes to its children: scripts would lose columns.
COLUMNS: Final = "STATETOOL_COLUMNS"
#: Version of the JSON output: in each object that is printed as a whole, and in its JSON Schema. New fields do not change it.
JSON_VERSION: Final = 1
#: Characters that :func:`json.dumps` does not escape, but that a terminal may not support.
_NOT_ASCII: Final = re.compile(r"[^\x20-\x7e]")


def use_escapes() -> None:
    """Escape characters that the encoding of stdout does not support, as Python does on stderr, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_line(line: str, file: TextIO | None = None, *, style: str = "", styled: int | None = None) -> None:
    """Print exactly one line, by default on stdout. Line ends inside the text are escaped.

    The first ``styled`` characters, by default the whole line, have a style if the output is a terminal with colours.
    """
    hide_progress()
    file = file or sys.stdout
    if style and has_colours(file):
        end = len(line) if styled is None else styled
        print(f"{click.style(printable(line[:end]), **_STYLES[style])}{printable(line[end:])}", file=file)
        return
    print(printable(line), file=file)


def has_colours(file: TextIO) -> bool:
    """Return True for a terminal that shows colours, unless the user wants none (https://no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def echo_err(*lines: str) -> None:
    """Print messages on stderr. At a terminal, long ones continue on the next line between words, not inside of one."""
    for line in lines:
        for part in wrap_words(line, sys.stderr):
            print_line(part, sys.stderr)


def echo_marked(mark: str, message: object) -> None:
    """Print a message on stderr after its kind, ``error`` or ``warning``, as :func:`echo_err` does."""
    first, *more = wrap_words(f"{mark}: {message}", sys.stderr)
    print_line(first, sys.stderr, style=mark, styled=len(mark) + 1)
    for part in more:
        print_line(part, sys.stderr)


def wrap_words(text: str, file: TextIO) -> list[str]:
    """Return text in lines that fit a terminal. Words, such as paths, are never broken; further lines start as far right as the first one."""
    from statetool.cli.terminal_table import text_width  # not needed for --help

    text = printable(text)
    width = shutil.get_terminal_size().columns
    if not file.isatty() or text_width(text) <= width:
        return [text]
    start = text[: len(text) - len(text.lstrip(" "))]
    return textwrap.wrap(text, width, subsequent_indent=start, break_long_words=False, break_on_hyphens=False)


def print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error in Python's form. Lines within a message are indented, so that none looks like a message of statetool."""
    for part in traceback.format_exception(kind, error, trace):
        first, *more = part.rstrip("\n").split("\n")
        for line in (first, *(f"    {line.lstrip(' ')}" for line in more)):
            print_line(line, sys.stderr)


class Output:
    """Prints results of commands as ``text`` or ``json``.

    On a terminal, and elsewhere if ``STATETOOL_COLUMNS`` is set, text rows are at most that wide, and numbers are for people
    (:mod:`statetool.cli.terminal_table`). Otherwise, and if ``wide``, rows are complete, and numbers are plain.

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

    def rows(
        self,
        rows: Sequence[Any],
        *,
        columns: Sequence[str] | None = None,
        whole: Collection[str] = (),
        has_units: bool = True,
    ) -> None:
        """Print records (dataclasses or mappings).

        Parameters
        ----------
        columns
            Those of text output, by default all.
        whole
            Columns that are never cut, because they are typed into other commands. If a terminal is too narrow for them, they are printed
            below each row. Messages always are such columns.
        has_units
            False for numbers of users, whose units are not known.
        """
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
        # Commands that print no table, such as --help, do not need the module.
        from statetool.cli.terminal_table import complete_table, fit_table

        width = self._terminal_width()
        if width is None:
            self.text(*complete_table(names, records))
            return
        table = fit_table(names, records, width, whole=whole, has_units=has_units)
        self.heading(table.lines[0])
        self.text(*table.lines[1:])
        if table.hidden:
            hidden = ", ".join(table.hidden)
            narrow = "the terminal is too narrow" if sys.stdout.isatty() else f"{COLUMNS} is {width}"
            echo_err(f"columns hidden because {narrow}: {hidden} (show them with --wide)")

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
        """Print one record, as JSON with the version of its form."""
        if self.is_json:
            self.text(_json({"json_version": JSON_VERSION, **record}))
            return
        from statetool.cli.shown_values import shown_text
        from statetool.cli.terminal_table import text_with_unit

        width, is_plain = max(map(len, record)), self._terminal_width() is None
        texts = ((n, shown_text(v) if is_plain else text_with_unit(n, v)) for n, v in record.items())
        self.text(*(f"{name.ljust(width)}  {text}" for name, text in texts))

    def text(self, *lines: str) -> None:
        """Print lines of text, such as a schema, a heading or an empty line."""
        self.has_printed = True
        for line in lines:
            print_line(line)

    def heading(self, line: str) -> None:
        """Print the heading of a table or of a part of the output."""
        self.has_printed = True
        print_line(line, style="heading")

    def _terminal_width(self) -> int | None:
        """Return the maximum width of rows, ``None`` if unlimited."""
        return None if self._wide else output_width()


def output_width() -> int | None:
    """Return the width that text on stdout should have: that of the terminal, or else :data:`COLUMNS`. ``None`` if unlimited."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    chosen = os.environ.get(COLUMNS, "")
    return int(chosen) or None if chosen.isascii() and chosen.isdigit() else None


def _json(value: Any) -> str:
    """Return JSON. NaN and infinities, which JSON does not support as numbers, become text as in Spark."""
    # Only escapes of surrogates are valid JSON, and use_escapes() makes others too.
    return json_text(value, ascii_only=codecs.lookup(sys.stdout.encoding or "utf-8").name != "utf-8")


def json_text(value: Any, *, ascii_only: bool) -> str:
    """Return JSON without control characters; NaN and infinities are text. ``ascii_only`` escapes all other characters beyond ASCII."""
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


def utc_time(epoch_ms: int | None) -> str | None:
    """Return a time in ISO 8601, or its milliseconds if it is outside of the calendar."""
    if epoch_ms is None:
        return None
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms} ms"
