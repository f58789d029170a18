"""Types of PyFlink state, named like PyFlink's ``Types``, as declared in the Python job.

A type alone declares a state with one value (value, reducing and aggregating state); use ``ListState(STRING)`` and
``MapState(STRING, LONG)`` for the others. ``TIME_WINDOW`` is not a PyFlink type, but the value that its merging windows store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import OptionError

BASIC: Final = (
    "STRING", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR", "BIG_INT", "BIG_DEC", "INSTANT",
    "SQL_DATE", "SQL_TIME", "SQL_TIMESTAMP", "PICKLED_BYTE_ARRAY", "TIME_WINDOW",
)  # fmt: skip
_ARITY: Final = {
    "LIST": 1,
    "PRIMITIVE_ARRAY": 1,
    "BASIC_ARRAY": 1,
    "OBJECT_ARRAY": 1,
    "MAP": 2,
    "TUPLE": None,
    "ROW": None,
}
_STATE: Final = re.compile(r"\s*(ValueState|ListState|MapState)\s*(\(.*)", re.DOTALL)
_NAME: Final = re.compile(r"\s*(?:(\w+|`[^`]+`)\s*:\s*)?([A-Z_]+)\s*")


@dataclass(frozen=True, slots=True)
class PythonType:
    """A type by its name in PyFlink, with its arguments; ``names`` are the field names of a row, in backticks if needed.

    Examples
    --------
    >>> parse_python_type("ROW(id: LONG, tags: LIST(STRING))").names
    ('id', 'tags')
    """

    name: str
    args: tuple[PythonType, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in BASIC and self.name not in _ARITY:
            raise OptionError(f"{self.name!r} is not one of PyFlink's types: {', '.join((*BASIC, *_ARITY))}")
        arity = 0 if self.name in BASIC else _ARITY[self.name]
        if arity is not None and len(self.args) != arity:
            raise OptionError(f"{self.name} takes {arity} types, not {len(self.args)}")
        if self.names and len(self.names) != len(self.args):
            raise OptionError(f"{len(self.names)} names for the {len(self.args)} fields of a ROW")

    def __str__(self) -> str:
        if not self.args and self.name in BASIC:
            return self.name
        heads = [f"{n if n.isidentifier() else f'`{n}`'}: " for n in self.names] or [""] * len(self.args)
        return f"{self.name}({', '.join(h + str(a) for h, a in zip(heads, self.args, strict=True))})"


@dataclass(frozen=True, slots=True)
class PythonState:
    """Content of a state of a Python job: one value (``value``), values (``list``), or keys and values (``map``).

    Examples
    --------
    >>> str(parse_python_state("MapState(STRING, LONG)"))
    'MapState(STRING, LONG)'
    """

    kind: Literal["value", "list", "map"]
    types: tuple[PythonType, ...]

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.types))
        return arguments if self.kind == "value" else f"{self.kind.capitalize()}State({arguments})"


def ValueState(value: PythonType) -> PythonState:
    """Declare a value, reducing or aggregating state (by its accumulator's type); the type alone is equivalent."""
    return PythonState("value", (value,))


def ListState(element: PythonType) -> PythonState:
    """Declare a list state by the type passed to its ``ListStateDescriptor``."""
    return PythonState("list", (element,))


def MapState(key: PythonType, value: PythonType) -> PythonState:
    """Declare a map or broadcast state by the types passed to its ``MapStateDescriptor``."""
    return PythonState("map", (key, value))


class Types:
    """PyFlink's ``Types``, with the same names."""

    @staticmethod
    def STRING() -> PythonType:
        return PythonType("STRING")

    @staticmethod
    def BOOLEAN() -> PythonType:
        return PythonType("BOOLEAN")

    @staticmethod
    def BYTE() -> PythonType:
        return PythonType("BYTE")

    @staticmethod
    def SHORT() -> PythonType:
        return PythonType("SHORT")

    @staticmethod
    def INT() -> PythonType:
        return PythonType("INT")

    @staticmethod
    def LONG() -> PythonType:
        return PythonType("LONG")

    @staticmethod
    def FLOAT() -> PythonType:
        return PythonType("FLOAT")

    @staticmethod
    def DOUBLE() -> PythonType:
        return PythonType("DOUBLE")

    @staticmethod
    def CHAR() -> PythonType:
        return PythonType("CHAR")

    @staticmethod
    def BIG_INT() -> PythonType:
        return PythonType("BIG_INT")

    @staticmethod
    def BIG_DEC() -> PythonType:
        return PythonType("BIG_DEC")

    @staticmethod
    def INSTANT() -> PythonType:
        return PythonType("INSTANT")

    @staticmethod
    def SQL_DATE() -> PythonType:
        return PythonType("SQL_DATE")

    @staticmethod
    def SQL_TIME() -> PythonType:
        return PythonType("SQL_TIME")

    @staticmethod
    def SQL_TIMESTAMP() -> PythonType:
        return PythonType("SQL_TIMESTAMP")

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> PythonType:
        return PythonType("PICKLED_BYTE_ARRAY")

    @staticmethod
    def TIME_WINDOW() -> PythonType:
        return PythonType("TIME_WINDOW")

    @staticmethod
    def LIST(element: PythonType) -> PythonType:
        return PythonType("LIST", (element,))

    @staticmethod
    def PRIMITIVE_ARRAY(element: PythonType) -> PythonType:
        return PythonType("PRIMITIVE_ARRAY", (element,))

    @staticmethod
    def BASIC_ARRAY(element: PythonType) -> PythonType:
        return PythonType("BASIC_ARRAY", (element,))

    @staticmethod
    def OBJECT_ARRAY(element: PythonType) -> PythonType:
        return PythonType("OBJECT_ARRAY", (element,))

    @staticmethod
    def MAP(key: PythonType, value: PythonType) -> PythonType:
        return PythonType("MAP", (key, value))

    @staticmethod
    def TUPLE(fields: Sequence[PythonType]) -> PythonType:
        return PythonType("TUPLE", tuple(fields))

    @staticmethod
    def ROW(fields: Sequence[PythonType]) -> PythonType:
        return PythonType("ROW", tuple(fields))

    @staticmethod
    def ROW_NAMED(names: Sequence[str], fields: Sequence[PythonType]) -> PythonType:
        return PythonType("ROW", tuple(fields), tuple(names))


def parse_python_type(text: str) -> PythonType:
    """Parse ``LONG``, ``MAP(STRING, LONG)``, ``ROW(id: LONG, tags: LIST(STRING))``.

    Raises
    ------
    OptionError
        Not a valid type.
    """
    _, parsed, rest = _parse(text, text)
    if rest:
        raise OptionError(f"{text!r} is not a type of PyFlink: {rest!r} is left over")
    return parsed


def parse_python_state(text: str) -> PythonState:
    """Parse ``LONG``, ``ListState(STRING)``, ``MapState(STRING, LONG)``.

    Raises
    ------
    OptionError
        Not a valid state or type.
    """
    head = _STATE.fullmatch(text)
    if head is None:
        return ValueState(parse_python_type(text))
    kind: Literal["value", "list", "map"] = (
        "value" if head[1] == "ValueState" else "list" if head[1] == "ListState" else "map"
    )
    types = parse_python_type(f"TUPLE{head[2]}").args
    if len(types) != (2 if kind == "map" else 1):
        raise OptionError(f"{text!r}: a {head[1]} has {'a key and a value' if kind == 'map' else 'one type'}")
    return PythonState(kind, types)


def _parse(text: str, whole: str) -> tuple[str | None, PythonType, str]:
    head = _NAME.match(text)
    if head is None:
        raise OptionError(f"{whole!r} is not a type of PyFlink")
    rest = text[head.end() :]
    args: list[PythonType] = []
    names: list[str] = []
    if rest.startswith("("):
        while rest[:1] in ("(", ","):
            field, arg, rest = _parse(rest[1:], whole)
            args.append(arg)
            if field is not None:
                names.append(field.strip("`"))
        if not rest.startswith(")"):
            raise OptionError(f"{whole!r} is not a type of PyFlink: ')' is missing")
        rest = rest[1:].lstrip()
    return head[1], PythonType(head[2], tuple(args), tuple(names)), rest
