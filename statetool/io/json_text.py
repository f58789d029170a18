"""JSON of others, parsed within bounds: servers and files may send anything. JSON files that users pass from one command to another."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from statetool.errors import FormatError, TargetExistsError
from statetool.io.files import InputFile

#: Nesting of arrays and objects. Answers of Flink have about ten levels.
_DEEPEST: Final = 100
#: Values of a document. Each takes up to 100 bytes of memory.
_MOST_VALUES: Final = 4 << 20
#: Digits of a number of 64 bits, with its sign.
_MOST_DIGITS: Final = 20
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")


def parse_json(data: bytes) -> Any:
    """Parse a document with integers of at most 64 bits, finite numbers, and at most 100 levels.

    Raises
    ------
    ValueError
        It is not such a document. The message starts with a noun.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json(b"1e999")
    Traceback (most recent call last):
    ...
    ValueError: the number 1e999, which is out of range
    """
    text = data.decode(json.detect_encoding(data), "surrogatepass")
    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    depth = 0
    for found in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if found[0] in "[{" else -1
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} levels of arrays and objects")
    return json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=_refuse)


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS or not -(1 << 63) <= (value := int(text)) < 1 << 63:
        raise _out_of_range(text)
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _out_of_range(text)
    return value


def _refuse(text: str) -> Any:
    raise _out_of_range(text)


def _out_of_range(text: str) -> ValueError:
    return ValueError(f"the number {text[:_MOST_DIGITS]}, which is out of range")


def write_json(path: str, value: Any) -> None:
    """Write JSON into a new local file.

    Raises
    ------
    TargetExistsError
        The file already exists.
    """
    try:
        with open(path, "x", encoding="utf-8") as f:
            f.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    except FileExistsError as e:
        raise TargetExistsError(f"{path} already exists", hint="pass the name of a new file") from e


def read_json(path: str) -> Any:
    """Read JSON from a local path or any URI that fsspec can open.

    Raises
    ------
    FormatError
        The file is not valid JSON.
    SnapshotNotFoundError
        The file does not exist.
    """
    with InputFile(path) as f:
        raw = bytes(f.read_at(0, f.size))
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path} is not valid JSON: {e}") from e
