"""SQL types in Spark's notation: ``BIGINT``, ``ARRAY<STRING>``, ``MAP<STRING, DOUBLE>``, ``STRUCT<a: INT, b: DATE>``.

``ROW<a INT, b DATE>`` is a row of Flink SQL, with types of Flink SQL inside (:mod:`statetool.serializers.sql.type_text`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from statetool.errors import OptionError
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.type_text import TableTypes, tokens_of

T = TypeVar("T")
_ALIASES: Final = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_NAMES: Final = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP",
    "TIMESTAMP_NTZ", "DECIMAL", "VOID",
)  # fmt: skip
_PARTS: Final = {"ARRAY": 1, "MAP": 2}


def parse_sql_type(text: str, make: Callable[[str, tuple[T, ...]], T], row: Callable[[SqlType], T]) -> T:
    """Parse a type by calling ``make`` with the name (also ``STRUCT``) and parts of each type, innermost first, and ``row`` with each row.

    Raises
    ------
    OptionError
        The text is not a type. The error names the expected token.
    """
    parser = _Parser(text, make, row)
    result = parser.type()
    parser.end()
    return result


class _Parser(Generic[T]):
    def __init__(self, text: str, make: Callable[[str, tuple[T, ...]], T], row: Callable[[SqlType], T]) -> None:
        self.text = text
        self.make = make
        self.row = row
        self.tokens = tokens_of(text)

    def fail(self, expected: str) -> OptionError:
        token = self.tokens[0] if self.tokens else "the end"
        return OptionError(
            f"type {self.text!r}: expected {expected}, found {token}",
            hint=f"types are {', '.join(_NAMES)}, ARRAY<..>, MAP<.., ..>, STRUCT<name: ..>, and ROW<name type, ..> for rows of"
            " Flink SQL; other Flink types are in statetool.flink",
        )

    def take(self, token: str) -> None:
        if not self.tokens or self.tokens[0] != token:
            raise self.fail(repr(token))
        del self.tokens[0]

    def taken(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            del self.tokens[0]
            return True
        return False

    def end(self) -> None:
        if self.tokens:
            raise self.fail("the end")

    def type(self) -> T:
        if not self.tokens:
            raise self.fail("a type")
        if self.tokens[0].upper() == "ROW":
            return self.row(TableTypes(self.tokens, self.text).type())
        name = _ALIASES.get(self.tokens[0].upper(), self.tokens[0].upper())
        if name not in (*_NAMES, *_PARTS, "STRUCT"):
            raise self.fail("a type")
        del self.tokens[0]
        parts: list[T] = []
        if name == "STRUCT":
            self.take("<")
            while True:
                if not self.tokens:
                    raise self.fail("a field")
                del self.tokens[0]
                self.take(":")
                parts.append(self.type())
                if not self.taken(","):
                    break
            self.take(">")
        elif name in _PARTS:
            self.take("<")
            for i in range(_PARTS[name]):
                if i:
                    self.take(",")
                parts.append(self.type())
            self.take(">")
        elif name == "DECIMAL" and self.taken("("):
            while not self.taken(")"):
                if not self.tokens or not (self.tokens[0].isdigit() or self.tokens[0] == ","):
                    raise self.fail("precision and scale")
                del self.tokens[0]
        return self.make(name, tuple(parts))
