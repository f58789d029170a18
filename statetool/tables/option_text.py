"""Conversion of options to text and back, for Spark's data sources, command lines and other processes.

==========  ========================================================================================
kind        text
==========  ========================================================================================
name        the name itself
word        one of the words
number      digits
flag        ``true`` or ``false``
names       JSON list, or names separated by commas
columns     JSON object of paths and lists of names, or ``ROW<...>``
keys        JSON list of plain keys; other types are objects with one member:
            ``{"tuple": [...]}``, ``{"bytes": "hex"}``, ``{"decimal": "1.50"}``, ``{"int": "0x..."}``
            beyond 64 bits, ``{"float": "hex of its 8 bytes"}`` of NaN and infinities,
            ``{"str": "hex of UTF-8"}`` with lone surrogates; one string key may be a bare word
==========  ========================================================================================
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from statetool.errors import OptionError, suggest
from statetool.types.options import TextKind

#: A key that cannot be mistaken for JSON or for a list.
_WORD: Final = re.compile(r"[^\s,\[\]{}\"']+")
_KEYS_HINT: Final = "as JSON: '[1, 2]' of numbers, '[\"a\", \"b\"]' of strings; one string may be a bare word"
#: A plain key (:mod:`statetool.types.logical`). Dates are days since 1970-01-01. Times and timestamps are numbers in their type's unit.
Key: TypeAlias = "bool | int | float | str | bytes | Decimal | tuple[Key, ...] | list[Key] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option with a text form. ``words`` are the valid values of an option of kind ``word``."""

    name: str
    kind: TextKind
    default: Any
    help: str
    words: tuple[str, ...] = ()

    def to_text(self, value: Any) -> str:
        """Return the text of a value."""
        match self.kind:
            case "flag":
                return "true" if value else "false"
            case "names":
                return json.dumps(list(value))
            case "columns":
                return json.dumps(dict(value))
            case "keys":
                return json.dumps([_key_to_json(key) for key in value])
            case "name" | "word" | "number":
                return str(value)

    def parse(self, text: str) -> Any:
        """Return the value of a text, without checking that the option accepts it.

        Raises
        ------
        OptionError
            The text is not valid for the option's kind.
        """
        match self.kind:
            case "flag":
                return parse_flag(self.name, text)
            case "names":
                return parse_names(self.name, text)
            case "columns":
                return parse_object(self.name, text)
            case "keys":
                return tuple(_key_from_json(key) for key in _parse_keys(self.name, text))
            case "number":
                try:
                    return int(text)
                except ValueError as e:
                    raise OptionError(f"{self.name}={text!r} is not a number") from e
            case "name" | "word":
                return text


def by_known_names(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return options by canonical name, because Spark passes names in any case and users leave out underscores.

    Raises
    ------
    OptionError
        An option does not exist (the error suggests similar names), or is given twice.
    """
    names = {_fold_name(name): name for name in known}
    texts: dict[str, str] = {}
    for written, text in options.items():
        name = names.get(_fold_name(written))
        if name is None:
            raise OptionError(f"no option {written!r}", hint=suggest(written, known))
        if name in texts:
            raise OptionError(f"the option {name} is given twice")
        texts[name] = text
    return texts


def _fold_name(name: str) -> str:
    return name.lower().replace("_", "")


def parse_flag(name: str, text: str) -> bool:
    """Return the boolean for ``true`` or ``false``."""
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name}={text!r} is neither true nor false")
    return text.lower() == "true"


def parse_names(name: str, text: str) -> tuple[str, ...]:
    """Return the names of a JSON list, or of a list separated by commas."""
    if not text.lstrip().startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    names = _parse_list(name, text)
    if not all(isinstance(n, str) for n in names):
        raise OptionError(f"{name}={text!r} is not a list of names")
    return tuple(names)


def parse_object(name: str, text: str) -> dict[str, Any]:
    """Return the members of a JSON object."""
    members = parse_json(name, text)
    if not isinstance(members, dict):
        raise OptionError(f"{name} is not a JSON object")
    return members


def parse_json(name: str, text: str) -> Any:
    """Return the value of a JSON text. Raise an error if an object has duplicate members."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _members(name, pairs))
    except (ValueError, RecursionError) as e:
        if isinstance(e, OptionError):
            raise
        raise OptionError(f"{name} is not JSON: {e}") from e


def _members(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise OptionError(f"{name} has a member twice")
    return members


def _parse_list(name: str, text: str) -> list[Any]:
    values = parse_json(name, text)
    if not isinstance(values, list):
        raise OptionError(f"{name}={text!r} is not a JSON list")
    return values


def _parse_keys(name: str, text: str) -> list[Any]:
    """Return the keys of a JSON list. A single word that is not JSON is a string key."""
    try:
        value = parse_json(name, text)
    except OptionError as error:
        if _WORD.fullmatch(text):
            return [text]
        raise OptionError(error.message, hint=_KEYS_HINT) from error
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise OptionError(f"{name}={text!r} is not a JSON list", hint=_KEYS_HINT)
    return value


def plain_key(value: Any) -> Key:
    """Return a key as a value of exactly a plain type, converted from numpy numbers and subclasses such as Spark rows.

    Raises
    ------
    OptionError
        The key has an unsupported type.
    """
    match value:
        case None | bool():
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
        case tuple():
            return tuple(plain_key(v) for v in value)
        case list():
            return [plain_key(v) for v in value]
    if getattr(value, "shape", None) == ():
        return plain_key(value.item())
    raise OptionError(
        f"{value!r} is not a plain value of a key",
        hint="keys are numbers, strings, bytes, Decimal and tuples of them; dates are days since 1970-01-01, timestamps numbers",
    )


def _key_to_json(key: Key) -> Any:
    match key:
        case tuple():
            return {"tuple": [_key_to_json(k) for k in key]}
        case list():
            return [_key_to_json(k) for k in key]
        case bytes():
            return {"bytes": key.hex()}
        case Decimal():
            return {"decimal": str(key)}
        case float() if not math.isfinite(key):
            return {"float": struct.pack(">d", key).hex()}
        case int() if not isinstance(key, bool) and not -(1 << 63) <= key < 1 << 63:
            return {"int": hex(key)}
        case str() if any("\ud800" <= c <= "\udfff" for c in key):
            return {"str": key.encode("utf-8", "surrogatepass").hex()}
    return key


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
    except (ValueError, InvalidOperation, struct.error) as e:
        raise OptionError(f"{tree!r} is not a key: {e}") from e
    raise OptionError(
        f"{tree!r} is not a key", hint='as JSON, a tuple is {"tuple": [...]}, bytes are {"bytes": "00ff"}'
    )
