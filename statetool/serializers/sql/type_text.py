"""Types of Flink SQL as text: ``ROW<k BIGINT, total DECIMAL(38, 4) NOT NULL, at TIMESTAMP_LTZ(9)>``.

The grammar is that of Flink's ``LogicalTypeParser``, without ``WITH TIME ZONE`` types and legacy types, which state cannot store, and
with the text form of :class:`statetool.serializers.sql.logical_types.SqlType` for types that the parser does not cover: ``TIMESTAMP(3) *ROWTIME*``,
``STRUCTURED<'com.acme.Money', amount BIGINT>``, ``DISTINCT<`catalog`.`database`.`name`, BIGINT>`` and ``RAW('class', 'serializer')``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from statetool.errors import OptionError
from statetool.serializers.sql.logical_types import MAX_LENGTH, SqlType, UserType

#: One token: a name (with or without backquotes) or a number, a quoted text, or a sign.
TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`|\w+|'(?:[^']|'')*')|(\S))")
_PLAIN: Final = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT",
    "FLOAT": "FLOAT", "DATE": "DATE", "NULL": "NULL", "VARIANT": "VARIANT", "BITMAP": "BITMAP",
}  # fmt: skip
_SIZED: Final = {"CHAR": "CHAR", "VARCHAR": "VARCHAR", "BINARY": "BINARY", "VARBINARY": "VARBINARY"}
_LONGEST: Final = {"STRING": "VARCHAR", "BYTES": "VARBINARY"}
_DECIMAL: Final = ("DECIMAL", "NUMERIC", "DEC")
_YEAR_MONTH: Final = ("YEAR", "MONTH")
_DAY_TIME: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
_PARTS: Final = ("ARRAY", "MAP", "MULTISET", "ROW", "STRUCTURED", "DISTINCT", "RAW")
_WORDS: Final = frozenset(
    (*_PLAIN, *_SIZED, *_LONGEST, *_DECIMAL, *_PARTS, "DOUBLE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "INTERVAL")
)
#: Tokens that may follow a type inside a row, which means that the word before was the type and not a name.
_BEHIND_TYPE: Final = frozenset((",", ">", ")", "(", "<", "NOT", "WITH", "WITHOUT", "PRECISION", "*"))


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a type."""
    return [m.group(1) or m.group(2) for m in TOKEN.finditer(text.strip())]


def parse_table_type(text: str) -> SqlType:
    """Parse a type of Flink SQL.

    Raises
    ------
    OptionError
        Not a valid type; the message names the expected tokens.
    """
    tokens = tokens_of(text)
    sql = TableTypes(tokens, text).type()
    if tokens:
        raise OptionError(f"type {text!r}: expected the end, found {tokens[0]}")
    return sql


class TableTypes:
    """Recursive-descent parser that consumes ``tokens``; ``text`` is shown in messages."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self.tokens = tokens
        self.text = text

    def fail(self, expected: str) -> OptionError:
        token = self.tokens[0] if self.tokens else "the end"
        return OptionError(
            f"type {self.text!r}: expected {expected}, found {token}",
            hint="write types of Flink SQL, as in ROW<id BIGINT NOT NULL, total DECIMAL(38, 4), tags ARRAY<STRING>>",
        )

    def word(self, at: int = 0) -> str:
        return self.tokens[at].upper() if at < len(self.tokens) else ""

    def taken(self, *words: str) -> bool:
        """Consume words if they are next."""
        if any(self.word(i) != w for i, w in enumerate(words)):
            return False
        del self.tokens[: len(words)]
        return True

    def take(self, word: str) -> None:
        if not self.taken(word):
            raise self.fail(repr(word))

    def type(self) -> SqlType:
        """Parse a type with its nullability."""
        name = self.word()
        if name not in _WORDS:
            raise self.fail("a type")
        del self.tokens[0]
        sql = self._type(name)
        if self.taken("NOT", "NULL"):
            return replace(sql, nullable=False)
        self.taken("NULL")
        return sql

    def _type(self, name: str) -> SqlType:
        if name in _PLAIN:
            return SqlType(root=_PLAIN[name])
        if name in _LONGEST:
            return SqlType(root=_LONGEST[name], length=MAX_LENGTH)
        if name in _SIZED:
            return SqlType(root=name, length=self.number("a length", 1, 1, MAX_LENGTH))
        match name:
            case "DOUBLE":
                self.taken("PRECISION")
                return SqlType(root="DOUBLE")
            case "DECIMAL" | "NUMERIC" | "DEC":
                return self.decimal()
            case "TIME":
                precision = self.number("a precision", 0, 0, 9)
                self.taken("WITHOUT", "TIME", "ZONE")
                return SqlType(root="TIME", precision=precision)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self.timestamp(zoned=name == "TIMESTAMP_LTZ")
            case "INTERVAL":
                return self.interval()
            case "ARRAY" | "MULTISET":
                self.take("<")
                element = self.type()
                self.take(">")
                if name == "ARRAY":
                    return SqlType(root="ARRAY", parts=(("element", element),))
                counts = SqlType(root="INT", nullable=False)
                return SqlType(root="MULTISET", parts=(("key", element), ("value", counts)))
            case "MAP":
                self.take("<")
                key = self.type()
                self.take(",")
                value = self.type()
                self.take(">")
                return SqlType(root="MAP", parts=(("key", key), ("value", value)))
            case "ROW":
                close = ")" if self.taken("(") else ">"
                if close == ">":
                    self.take("<")
                parts, descriptions = self.fields(close)
                return SqlType(root="ROW", parts=parts, descriptions=descriptions)
        return self.of_user(name)

    def of_user(self, name: str) -> SqlType:
        """Parse the rest of ``STRUCTURED``, ``DISTINCT`` or ``RAW``."""
        if name == "RAW":
            self.take("(")
            cls = self.quoted("the name of a class in quotes")
            self.take(",")
            serializer = self.quoted("the name of a serializer class in quotes")
            self.take(")")
            return SqlType(root="RAW", class_name=cls, serializer=serializer)
        self.take("<")
        if name == "DISTINCT":
            catalog = self.name()
            self.take(".")
            database = self.name()
            self.take(".")
            user = UserType(identifier=(catalog, database, self.name()))
            self.take(",")
            source = self.type()
            self.take(">")
            return SqlType(root="DISTINCT", parts=(("source", source),), user=user)
        cls = self.quoted("the name of a class in quotes")
        if not self.taken(","):
            raise self.fail("attributes")
        parts, descriptions = self.fields(">")
        return SqlType(root="STRUCTURED", parts=parts, descriptions=descriptions, class_name=cls, user=UserType())

    def fields(self, close: str) -> tuple[tuple[tuple[str, SqlType], ...], tuple[str | None, ...]]:
        """Parse fields up to the closing sign: names, types and descriptions; fields with only a type are named ``f0`` and so on."""
        fields: list[tuple[str, SqlType]] = []
        descriptions: list[str | None] = []
        if self.taken(close):
            return (), ()
        while True:
            name = f"f{len(fields)}" if self.nameless() else self.name()
            fields.append((name, self.type()))
            descriptions.append(self.quoted("a description") if self.word().startswith("'") else None)
            if self.taken(close):
                break
            self.take(",")
        names = [n for n, _ in fields]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise OptionError(f"type {self.text!r}: duplicate fields: {', '.join(twice)}")
        return tuple(fields), tuple(descriptions) if any(n is not None for n in descriptions) else ()

    def nameless(self) -> bool:
        """Return True if a type comes next rather than the name of a field."""
        if self.word() not in _WORDS:
            return False
        if self.word() == "INTERVAL" and self.word(1) in (*_YEAR_MONTH, *_DAY_TIME):
            return True
        return self.word(1) in _BEHIND_TYPE

    def name(self) -> str:
        if not self.tokens or not (self.tokens[0].startswith("`") or re.fullmatch(r"\w+", self.tokens[0])):
            raise self.fail("a name")
        token = self.tokens.pop(0)
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def quoted(self, what: str) -> str:
        if not self.word().startswith("'") or len(self.tokens[0]) < 2:
            raise self.fail(what)
        return self.tokens.pop(0)[1:-1].replace("''", "'")

    def number(self, what: str, default: int, least: int, most: int) -> int:
        """Parse a number in parentheses, if there is one."""
        if not self.taken("("):
            return default
        number = self.plain_number(what, least, most)
        self.take(")")
        return number

    def plain_number(self, what: str, least: int, most: int) -> int:
        # The length is checked first: Python refuses to parse numbers with thousands of digits.
        if not re.fullmatch(r"[0-9]{1,10}", self.word()) or not least <= int(self.tokens[0]) <= most:
            raise self.fail(f"{what} of {least} to {most}")
        return int(self.tokens.pop(0))

    def decimal(self) -> SqlType:
        precision, scale = 10, 0
        if self.taken("("):
            precision = self.plain_number("a precision", 1, 38)
            scale = self.plain_number("a scale", 0, precision) if self.taken(",") else 0
            self.take(")")
        return SqlType(root="DECIMAL", precision=precision, scale=scale)

    def timestamp(self, *, zoned: bool) -> SqlType:
        precision = self.number("a precision", 6, 0, 9)
        zoned = self.taken("WITH", "LOCAL", "TIME", "ZONE") or zoned
        self.taken("WITHOUT", "TIME", "ZONE")
        if self.word() == "WITH":
            raise self.fail("TIMESTAMP without a zone or WITH LOCAL TIME ZONE, which are those that state holds")
        kind = next((k for k in ("ROWTIME", "PROCTIME") if self.taken("*", k, "*")), "REGULAR")
        return SqlType(root="TIMESTAMP_LTZ" if zoned else "TIMESTAMP", precision=precision, kind=kind)

    def interval(self) -> SqlType:
        first = self.word()
        if first in _YEAR_MONTH:
            del self.tokens[0]
            precision = self.number("a precision", 2, 1, 4) if first == "YEAR" else 2
            resolution = "YEAR_TO_MONTH" if first == "YEAR" and self.taken("TO", "MONTH") else first
            return SqlType(root="INTERVAL YEAR TO MONTH", precision=precision, resolution=resolution)
        if first not in _DAY_TIME:
            raise self.fail("YEAR, MONTH, DAY, HOUR, MINUTE or SECOND")
        del self.tokens[0]
        precision = self.number("a precision", 2, 1, 6) if first == "DAY" else 2
        last = next((w for w in _DAY_TIME[_DAY_TIME.index(first) + 1 :] if self.taken("TO", w)), "")
        scale = self.number("a precision", 6, 0, 9) if "SECOND" in (first, last) else 6
        resolution = f"{first}_TO_{last}" if last else first
        return SqlType(root="INTERVAL DAY TO SECOND", precision=precision, scale=scale, resolution=resolution)
