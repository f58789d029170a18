"""Given keys, and their JSON. :mod:`statetool.tables.keys.parser` parses them by the type of an operator's keys.

======================================  ================================================================
JSON                                    key
======================================  ================================================================
``true``, ``1``, ``1.0``                a boolean, a whole number, a number with a fraction (FLOAT, DOUBLE)
``"a"``                                 text; also a date or time in ISO 8601
``[...]``                               a list, or the fields of a tuple, row or POJO
``{"tuple": [...]}``                    the fields of a tuple, row or POJO
``{"bytes": "00ff"}``                   bytes
``{"decimal": "1.50"}``                 a decimal
``{"date": ...}``                       a date: ISO 8601, or days since 1970-01-01
``{"timestamp": ...}``                  a timestamp: ISO 8601, or a number in the unit of the type
``{"time": ...}``                       a time of day: ISO 8601, or nanoseconds
``{"interval": ...}``                   milliseconds
``{"int": "0x..."}``                    a whole number beyond 64 bits
``{"float": "hex of its 8 bytes"}``     NaN and infinities
``{"str": "hex of UTF-8"}``             text with lone surrogates
``{"text": "007"}``                     a text without a type, as a bare word: parsed by the type of the keys
``{"user": "a", "region": 1}``          the fields of a tuple, row or POJO by name
``{"fields": {"date": "a"}}``           the same if a field has a name that this table uses
======================================  ================================================================
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeAlias

from statetool.errors import OptionError, several
from statetool.types.json_text import parse_json

#: Texts that may be a list of keys, or a JSON text with a slip, and are therefore no bare word.
_NO_WORD: Final = re.compile(r"[\s,\[\]{}\"']")
_KEYS_HINT: Final = "as JSON: '[1, 2]' of numbers, '[\"a\", \"b\"]' of strings; a single key may be a bare word"
#: Names of the forms of keys as JSON objects.
_FORMS: Final = frozenset(
    ("tuple", "bytes", "decimal", "float", "int", "str", "text", "date", "timestamp", "time", "interval", "fields")
)
#: How a line of a file of keys begins if it is JSON. Other lines are texts.
_JSON_LINE: Final = ('"', "[", "{")


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as text without a type, such as a line of a file of keys: ``456`` may be a number or a string."""

    text: str

    def __repr__(self) -> str:
        return repr(self.text)


@dataclass(frozen=True, slots=True)
class KeyTime:
    """A date or time as ISO 8601, or as the number that is stored."""

    kind: Literal["date", "timestamp", "time", "interval"]
    value: str | int

    def __repr__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True, slots=True)
class KeyFields:
    """The fields of a tuple, row or POJO by name, in any order."""

    fields: tuple[tuple[str, Key], ...]

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name}: {value!r}" for name, value in self.fields) + "}"


#: A key as users give it. Strings may also be dates and times in ISO 8601.
Key: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | datetime.date | datetime.time | datetime.timedelta"
    " | KeyText | KeyTime | KeyFields | Mapping[str, Key] | tuple[Key, ...] | list[Key] | None"
)


def exact_key(value: Any) -> Key:
    """Return a key as a value of exactly one of the types of :data:`Key`, converted from numpy numbers and subclasses such as Spark rows.

    Raises
    ------
    OptionError
        The key has an unsupported type.
    """
    match value:
        case None | bool() | KeyText() | KeyTime() | KeyFields():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case bytes() | bytearray():
            return bytes(value)
        case Decimal():
            return value
        case datetime.datetime():
            return KeyTime("timestamp", value.isoformat())
        case datetime.date():
            return KeyTime("date", value.isoformat())
        case datetime.time():
            return KeyTime("time", value.isoformat())
        case datetime.timedelta():
            millis, below = divmod(value, datetime.timedelta(milliseconds=1))
            if not below:
                return KeyTime("interval", millis)
        case tuple():
            return tuple(exact_key(v) for v in value)
        case list():
            return [exact_key(v) for v in value]
        case dict() if value and all(isinstance(name, str) for name in value):
            return KeyFields(tuple((name, exact_key(v)) for name, v in value.items()))
    # Its item() is a number for units below the microsecond.
    if type(value).__name__ == "datetime64":
        text = str(value)
        return KeyTime("timestamp" if "T" in text else "date", text)
    if getattr(value, "shape", None) == () and type(value).__name__ != "timedelta64":
        return exact_key(value.item())
    raise OptionError(
        f"{value!r} is not a plain value of a key",
        hint="keys are numbers, strings, bytes, Decimal, dates and times of datetime, and tuples of them",
    )


def show_key(key: Key) -> str:
    """Return a key as text for messages."""
    try:
        return repr(key)
    except ValueError:  # Python refuses to print numbers of thousands of digits
        return "of thousands of digits"


def parse_keys(name: str, text: str) -> tuple[Key, ...]:
    """Return the keys of an option: a JSON list of keys, or a single key as JSON or as a bare word.

    Raises
    ------
    OptionError
        The text is none of these.
    """
    if text and not _NO_WORD.search(text):
        return (KeyText(text),)
    try:
        tree = parse_json(name, text, _parse_float)
    except OptionError as error:
        raise OptionError(error.message, hint=error.hint or _KEYS_HINT) from error
    return tuple(_key_from_json(key) for key in tree) if isinstance(tree, list) else (_key_from_json(tree),)


def parse_one_key(name: str, text: str) -> Key:
    """Return the key of an option that takes one: JSON if it begins with a quote, a bracket or a brace, or else a text.

    A JSON list of one key is that key.

    Raises
    ------
    OptionError
        The text is not valid JSON, or has several keys.
    """
    if not text.startswith(_JSON_LINE):
        return KeyText(text)
    keys = parse_keys(name, text)
    if len(keys) != 1:
        raise OptionError(
            f"{name} has {several(len(keys), 'key')}, and one is needed", hint="run the command once per key"
        )
    return keys[0]


def parse_whole_key(name: str, text: str) -> Key:
    """Return a key: JSON if it begins with a quote, a bracket or a brace, or else a text. A JSON list is one key, of which it has the fields.

    Raises
    ------
    OptionError
        The text is not valid JSON.
    """
    return _key_from_json(parse_json(name, text, _parse_float)) if text.startswith(_JSON_LINE) else KeyText(text)


def parse_key_lines(text: str) -> Iterator[Key]:
    """Yield the keys of a file with one per line: JSON if the line begins with a quote, a bracket or a brace, or else a text.

    Raises
    ------
    OptionError
        A line is not valid JSON, or begins or ends with a space.
    """
    # A line separator of Unicode may be a part of a key.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line:
            continue
        try:
            if line != line.strip():
                raise OptionError(
                    "the line begins or ends with a space",
                    hint='remove the space, or write the key as JSON if it is a part of it: " a "',
                )
            yield (
                _key_from_json(parse_json("the line", line, _parse_float))
                if line.startswith(_JSON_LINE)
                else KeyText(line)
            )
        except OptionError as error:
            hint = error.hint or 'a key that begins with a quote, a bracket or a brace is written as JSON: "[a"'
            raise OptionError(f"line {number}: {error.message}", hint=hint) from error


def _parse_float(text: str) -> float:
    number = exact_float(text)
    if number is None:
        raise OptionError(
            f"{text} is not exactly a number of 8 bytes", hint=f'a decimal is written {{"decimal": "{text}"}}'
        )
    return number


def exact_float(text: str) -> float | None:
    """Return the number of a text that is one of its shortest texts or its exact value, ``None`` if digits would be lost."""
    number = float(text)
    if math.isinf(number) or not math.isfinite(number):
        return None
    given = Decimal(text)
    return number if given in (Decimal(repr(number)), Decimal(number)) else None


def key_to_json(key: Key) -> Any:
    """Return a key as a JSON value."""
    match key:
        case tuple():
            return {"tuple": [key_to_json(k) for k in key]}
        case list():
            return [key_to_json(k) for k in key]
        case KeyText(text):
            return {"text": text} if _is_unicode(text) else {"text": {"str": _utf8(text)}}
        case KeyTime(kind, value):
            return {kind: value}
        case KeyFields(fields):
            return {"fields": {name: key_to_json(value) for name, value in fields}}
        case bytes():
            return {"bytes": key.hex()}
        case Decimal():
            return {"decimal": str(key)}
        case float() if not math.isfinite(key):
            return {"float": struct.pack(">d", key).hex()}
        case int() if not isinstance(key, bool) and not -(1 << 63) <= key < 1 << 63:
            return {"int": hex(key)}
        case str() if not _is_unicode(key):
            return {"str": _utf8(key)}
    return key


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").hex()


def _key_from_json(tree: Any) -> Key:
    match tree:
        case None | bool() | int() | float() | str():
            return tree
        case list():
            return [_key_from_json(k) for k in tree]
    try:
        match tree:
            case {"tuple": list(parts), **others} if not others:
                return tuple(_key_from_json(k) for k in parts)
            case {"bytes": str(text), **others} if not others:
                return bytes.fromhex(text)
            case {"decimal": str(text), **others} if not others:
                return Decimal(text)
            case {"float": str(text), **others} if not others:
                return float(struct.unpack(">d", bytes.fromhex(text))[0])
            case {"int": str(text), **others} if not others:
                return int(text, 16)
            case {"str": str(text), **others} if not others:
                return bytes.fromhex(text).decode("utf-8", "surrogatepass")
            case {"text": str(text), **others} if not others:
                return KeyText(text)
            case {"text": {"str": str(text), **more}, **others} if not others and not more:
                return KeyText(bytes.fromhex(text).decode("utf-8", "surrogatepass"))
            case {"date": str() | int() as value, **others} if not others and not isinstance(value, bool):
                return KeyTime("date", value)
            case {"timestamp": str() | int() as value, **others} if not others and not isinstance(value, bool):
                return KeyTime("timestamp", value)
            case {"time": str() | int() as value, **others} if not others and not isinstance(value, bool):
                return KeyTime("time", value)
            case {"interval": int(value), **others} if not others and not isinstance(value, bool):
                return KeyTime("interval", value)
            case {"fields": dict(named), **others} if named and not others:
                return KeyFields(tuple((name, _key_from_json(value)) for name, value in named.items()))
            case dict() if tree and not _FORMS.issuperset(tree):
                return KeyFields(tuple((name, _key_from_json(value)) for name, value in tree.items()))
    except (ValueError, InvalidOperation, struct.error) as e:
        raise OptionError(f"{tree!r} is not a key: {e}") from e
    raise OptionError(
        f"{tree!r} is not a key", hint='as JSON, a tuple is {"tuple": [...]}, bytes are {"bytes": "00ff"}'
    )
