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
keys        JSON list of keys, or a single key as JSON or as a bare word (:mod:`statetool.tables.keys.text`)
==========  ========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetool.errors import OptionError, suggest
from statetool.tables.keys.text import key_to_json, parse_keys
from statetool.types.json_text import parse_json
from statetool.types.options import TextKind


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
                return json.dumps([key_to_json(key) for key in value])
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
                return parse_keys(self.name, text)
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


def _parse_list(name: str, text: str) -> list[Any]:
    values = parse_json(name, text)
    if not isinstance(values, list):
        raise OptionError(f"{name}={text!r} is not a JSON list")
    return values
