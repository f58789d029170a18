"""Results of commands: data on stdout as a table or as JSON, words on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any


class Output:
    """Prints what commands find, as ``text`` or ``json``."""

    def __init__(self, form: str) -> None:
        self.form = form

    def rows(self, rows: Sequence[Any], *, columns: Sequence[str] | None = None) -> None:
        """Print records (dataclasses or mappings); in text, only ``columns``."""
        records = [asdict(r) if is_dataclass(r) and not isinstance(r, type) else dict(r) for r in rows]
        if self.form == "json":
            print(json.dumps(records, default=_plain, ensure_ascii=False))
            return
        shown = list(columns or (records[0] if records else ()))
        if not records:
            self.say("nothing found")
            return
        cells = [[_text(r.get(c)) for c in shown] for r in records]
        widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(shown)]
        for row in [shown, *cells]:
            print("  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip())

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one record."""
        if self.form == "json":
            print(json.dumps(record, default=_plain, ensure_ascii=False))
            return
        width = max(map(len, record))
        for name, value in record.items():
            print(f"{name.ljust(width)}  {_text(value)}")

    def text(self, text: str) -> None:
        """Print text that is the data itself (a schema)."""
        print(text)

    @staticmethod
    def say(words: str) -> None:
        """Tell something to the person, on stderr."""
        print(words, file=sys.stderr)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
