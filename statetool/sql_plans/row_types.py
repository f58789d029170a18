"""Field names and types of row types, as written in plans."""

from __future__ import annotations

from typing import Any

from statetool.errors import OptionError
from statetool.serializers.sql.type_text import parse_table_type


def row_names(row_type: Any) -> list[str]:
    """Return the field names of a row type in either form used by plans: SQL text or an object.

    Raises
    ------
    TypeError
        Neither of the two.
    """
    if isinstance(row_type, dict):
        return [f["name"] for f in row_type["fields"]]
    if not isinstance(row_type, str) or not row_type.startswith("ROW<"):
        raise TypeError(f"expected a row type, found {row_type!r}")
    names, depth, at = [], 0, 4
    expects_name = True
    while at < len(row_type):
        letter = row_type[at]
        if letter == "`":
            name, at = _read_quoted(row_type, at)
            if depth == 0 and expects_name:
                names.append(name)
            expects_name = False
            continue
        if letter == "'":
            at = _end_of_text(row_type, at)
            continue
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            expects_name = True
        at += 1
    return names


def row_roots(row_type: Any) -> list[str | None]:
    """Return the type root of each field (``BIGINT``, ``VARCHAR``), ``None`` where it is not known; errors as for :func:`row_names`."""
    if isinstance(row_type, dict):
        return [_root(f.get("fieldType")) for f in row_type["fields"]]
    try:
        return [field.root for _, field in parse_table_type(row_type).parts]
    except OptionError:
        return [None] * len(row_names(row_type))


def _root(field_type: Any) -> str | None:
    try:
        return parse_table_type(field_type).root if isinstance(field_type, str) else None
    except OptionError:
        return None


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    """Return the backquoted name at ``at`` (a backquote in it is doubled), and the position after it."""
    name = ""
    at += 1
    while at < len(text):
        if text[at] == "`":
            if text[at + 1 : at + 2] != "`":
                return name, at + 1
            at += 1
        name += text[at]
        at += 1
    raise TypeError("unterminated name")


def _end_of_text(text: str, at: int) -> int:
    """Return the position after a quoted comment or class name."""
    at += 1
    while at < len(text):
        if text[at] == "'":
            if text[at + 1 : at + 2] != "'":
                return at + 1
            at += 1
        at += 1
    raise TypeError("unterminated text")
