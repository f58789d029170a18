"""Random SQL conditions on keys and states, each with the same condition in plain Python.

The Python side follows SQL's logic of three values. It knows no time zone: an instant is a number since 1970 in UTC.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)

#: The values of one key: ``key``, and a value per state that the key has.
Values: TypeAlias = Mapping[str, Any]
Evaluate: TypeAlias = Callable[[Values], Any]
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROS_OF_DAY: Final = 86_400_000_000
#: Microseconds of the years 2 to 9998, which Python and DuckDB can print.
_PRINTABLE: Final = range(-62_104_060_800_000_000, 253_370_764_800_000_000)


@dataclass(frozen=True)
class Condition:
    """A condition as SQL and in Python. ``evaluate`` returns True, False or None."""

    sql: str
    evaluate: Evaluate

    def fulfilled(self, values: Values) -> bool:
        """Return True if a key with these values fulfils the condition."""
        return self.evaluate(values) is True


@dataclass(frozen=True)
class Expression:
    """A column or a part of it, and some of its values."""

    sql: str
    type: LogicalType
    evaluate: Evaluate
    samples: tuple[Any, ...]


def without_ttl(type: LogicalType) -> LogicalType:
    """Return the type as it is shown: values without their last access."""
    match type:
        case TtlType(value):
            return without_ttl(value)
        case ListType(element):
            return ListType(without_ttl(element))
        case MapType(key, value):
            return MapType(without_ttl(key), without_ttl(value))
    return type


def strip_ttl(value: Any, type: LogicalType) -> Any:
    """Return a plain value as it is shown."""
    if value is None:
        return None
    match type:
        case TtlType(inner):
            return strip_ttl(value[1], inner)
        case ListType(element):
            return [strip_ttl(v, element) for v in value]
        case MapType(key, inner):
            return [(strip_ttl(k, key), strip_ttl(v, inner)) for k, v in value]
    return value


def quote(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _is_text(value: str) -> bool:
    return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)


def literal(value: Any, type: LogicalType) -> str | None:
    """Return a constant of a type, ``None`` if SQL has none for the value."""
    match type:
        case Scalar("bool"):
            return "true" if value else "false"
        case Scalar("int8" | "int16" | "int32" | "int64" | "time"):
            return str(value)
        case Scalar("float32" | "float64"):
            return f"'{value!r}'::DOUBLE"
        case Scalar("string"):
            return _text(value) if _is_text(value) else None
        case Scalar("binary"):
            return "'" + "".join(f"\\x{b:02X}" for b in value) + "'::BLOB"
        case BigDecimalType() | BigIntegerType() | DecimalType():
            digits = format(Decimal(value), "f")
            whole, scale = _precision(type)
            fits = abs(Decimal(value)) < Decimal(10) ** (whole - scale)
            return f"'{digits}'::DECIMAL({whole}, {scale})" if fits else None
        case DateType():
            return f"DATE '{_EPOCH.date() + dt.timedelta(value)}'" if value * _MICROS_OF_DAY in _PRINTABLE else None
        case TimestampType():
            micros = _micros(value, type)
            return _stamp(micros, type) if micros in _PRINTABLE else None
    return None


def _precision(type: LogicalType) -> tuple[int, int]:
    match type:
        case DecimalType(precision, scale):
            return precision, scale
        case BigDecimalType():
            return 38, 18
    return 38, 0


def _micros(value: int, type: TimestampType) -> int:
    return {"ms": value * 1000, "us": value, "ns": value // 1000}[type.unit]


def _moment(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)


def _stamp(micros: int, type: TimestampType) -> str:
    text = _moment(micros).isoformat(sep=" ", timespec="microseconds")
    return f"TIMESTAMPTZ '{text}+00'" if type.zoned else f"TIMESTAMP '{text}'"


def _comparable(value: Any, type: LogicalType) -> Any:
    """Return a number or text that compares as in SQL."""
    match type:
        case Scalar("string"):
            return value.encode("utf-8", "surrogatepass")
        case Scalar("float32" | "float64"):
            return (1, 0.0) if math.isnan(value) else (0, value)
        case TimestampType():
            return _micros(value, type)
    return value


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _nullable(evaluate: Evaluate, test: Callable[[Any], Any]) -> Evaluate:
    """Return null for null."""

    def apply(values: Values) -> Any:
        value = evaluate(values)
        return None if value is None else test(value)

    return apply


class ConditionDraw:
    """Draws conditions on the columns of an operator.

    Parameters
    ----------
    columns
        Types by name, with ``key``.
    values
        The values of all keys, from which constants are drawn.
    """

    def __init__(self, r: random.Random, columns: Mapping[str, LogicalType], values: Sequence[Values]) -> None:
        self.r = r
        self.columns = [
            Expression(self._name(name), without_ttl(type), _column(name, type), _samples(r, name, type, values))
            for name, type in columns.items()
        ]

    def _name(self, name: str) -> str:
        if name.isidentifier() and self.r.random() < 0.5 and name == "key":
            return self.r.choice(("key", "KEY", "Key"))
        return quote(name)

    def draw(self) -> Condition:
        """Draw a condition."""
        made = self._condition(self.r.randrange(3))
        noise = self.r.random()
        sql = made.sql
        if noise < 0.1:
            sql += " -- the end"
        elif noise < 0.2:
            sql = f"/* ; */\n({sql}\n)"
        return Condition(sql, made.evaluate)

    def _condition(self, depth: int) -> Condition:
        if depth == 0:
            return self._atom(self.r.choice(self.columns))
        a, b = self._condition(depth - 1), self._condition(depth - 1)
        match self.r.randrange(7):
            case 0:
                return Condition(f"({a.sql}) AND ({b.sql})", lambda v: _and(a.evaluate(v), b.evaluate(v)))
            case 1:
                return Condition(f"({a.sql}) or ({b.sql})", lambda v: _or(a.evaluate(v), b.evaluate(v)))
            case 2:
                return Condition(f"NOT ({a.sql})", lambda v: _not(a.evaluate(v)))
            case 3:
                return Condition(f"({a.sql}) IS NOT TRUE", lambda v: a.evaluate(v) is not True)
            case 4:
                return Condition(
                    f"CASE WHEN {a.sql} THEN {b.sql} ELSE false END",
                    lambda v: b.evaluate(v) if a.evaluate(v) is True else False,
                )
            case 5:
                return Condition(
                    f"coalesce({a.sql}, {b.sql})",
                    lambda v: b.evaluate(v) if (x := a.evaluate(v)) is None else x,
                )
        return Condition(f"({a.sql}) IS DISTINCT FROM ({b.sql})", lambda v: a.evaluate(v) is not b.evaluate(v))

    def _atom(self, e: Expression) -> Condition:
        r, x = self.r, e.evaluate
        if r.random() < 0.08:
            return Condition(f"{e.sql} IS NULL", lambda v: x(v) is None)
        if r.random() < 0.08:
            return Condition(f"{e.sql} IS NOT NULL", lambda v: x(v) is not None)
        match e.type:
            case StructType(fields) if fields:
                named = r.choice(fields)
                index = fields.index(named)
                part = Expression(
                    f"{e.sql}.{quote(named.name)}" if r.random() < 0.5 else f"{e.sql}[{_text(named.name)}]",
                    without_ttl(named.type),
                    _nullable(x, lambda value: strip_ttl(value[index], named.type)),
                    tuple(strip_ttl(s[index], named.type) for s in e.samples if s[index] is not None),
                )
                return self._atom(part)
            case ListType(element):
                return self._of_list(e, element)
            case MapType():
                n = r.randrange(4)
                op = r.choice(list(_COMPARISONS))
                return Condition(f"cardinality({e.sql}) {op} {n}", _nullable(x, lambda v: _COMPARISONS[op](len(v), n)))
        return self._of_scalar(e)

    def _of_list(self, e: Expression, element: LogicalType) -> Condition:
        r, x = self.r, e.evaluate
        flat = [v for sample in e.samples for v in sample if v is not None]
        if flat and r.random() < 0.4 and not isinstance(element, StructType | ListType | MapType):
            first = Expression(f"{e.sql}[1]", element, _nullable(x, lambda v: v[0] if v else None), tuple(flat[:20]))
            return self._of_scalar(first)
        wanted = r.choice(flat) if flat else None
        text = None if wanted is None else literal(wanted, element)
        if text is not None and r.random() < 0.5:
            same = _comparable(wanted, element)
            return Condition(
                f"list_contains({e.sql}, {text})",
                _nullable(x, lambda v: any(i is not None and _comparable(i, element) == same for i in v)),
            )
        n, op = r.randrange(5), r.choice(list(_COMPARISONS))
        return Condition(f"len({e.sql}) {op} {n}", _nullable(x, lambda v: _COMPARISONS[op](len(v), n)))

    def _of_scalar(self, e: Expression) -> Condition:
        r, x, type = self.r, e.evaluate, e.type
        if type == Scalar("bool") and r.random() < 0.5:
            return Condition(e.sql, x)
        constants = [(v, text) for v in e.samples if v is not None and (text := literal(v, type)) is not None]
        if not constants:
            return Condition(f"{e.sql} IS NULL", lambda v: x(v) is None)
        value, text = r.choice(constants)
        bound = _comparable(value, type)
        compared = _nullable(x, lambda v: _comparable(v, type))
        special = self._special(e, value)
        if special is not None and r.random() < 0.5:
            return special
        match r.randrange(4):
            case 0:
                chosen = r.sample(constants, min(len(constants), r.randint(1, 4)))
                among = {_comparable(v, type) for v, _ in chosen}
                return Condition(
                    f"{e.sql} IN ({', '.join(t for _, t in chosen)})", _nullable(compared, lambda v: v in among)
                )
            case 1:
                other, upper = r.choice(constants)
                high = _comparable(other, type)
                return Condition(
                    f"{e.sql} BETWEEN {text} AND {upper}", _nullable(compared, lambda v: bound <= v <= high)
                )
            case 2:
                return Condition(f"{e.sql} IS NOT DISTINCT FROM {text}", lambda v: compared(v) == bound)
        op = r.choice(list(_COMPARISONS))
        return Condition(f"{e.sql} {op} {text}", _nullable(compared, lambda v: _COMPARISONS[op](v, bound)))

    def _special(self, e: Expression, value: Any) -> Condition | None:
        """Draw a condition that only this type has."""
        r, x = self.r, e.evaluate
        match e.type:
            case Scalar("int8" | "int16" | "int32" | "int64"):
                n = r.choice((2, 3, 7))
                if r.random() < 0.5:
                    return Condition(f"{e.sql} % {n} = 1", _nullable(x, lambda v: v >= 0 and v % n == 1))
                digit = str(abs(value))[-1]
                return Condition(f"{e.sql}::VARCHAR LIKE '%{digit}%'", _nullable(x, lambda v: digit in str(v)))
            case Scalar("string") if _is_text(value):
                if r.random() < 0.3:
                    n = len(value)
                    return Condition(f"length({e.sql}) >= {n}", _nullable(x, lambda v: len(v) >= n))
                start = value[: r.randint(0, 3)]
                return Condition(f"starts_with({e.sql}, {_text(start)})", _nullable(x, lambda v: v.startswith(start)))
            case Scalar("binary"):
                n = len(value)
                return Condition(f"octet_length({e.sql}) = {n}", _nullable(x, lambda v: len(v) == n))
            case Scalar("float32" | "float64"):
                return Condition(f"isnan({e.sql})", _nullable(x, math.isnan))
            case DateType():
                days = f"{_EPOCH.date() + dt.timedelta(value)}"
                return Condition(f"{e.sql} >= '{days}'", _nullable(x, lambda v: v >= value))
            case TimestampType() as type:
                return self._of_time(e, type, _micros(value, type))
        return None

    def _of_time(self, e: Expression, type: TimestampType, micros: int) -> Condition:
        """Draw a condition whose result would depend on the time zone, were it not UTC."""
        stamped = _nullable(e.evaluate, lambda v: _micros(v, type))
        text = _moment(micros).isoformat(sep=" ", timespec="microseconds")
        day = micros // _MICROS_OF_DAY
        date = _EPOCH.date() + dt.timedelta(day)
        hour = micros // 3_600_000_000 % 24
        match self.r.randrange(5):
            case 0:
                return Condition(f"{e.sql} >= '{text}'", _nullable(stamped, lambda v: v >= micros))
            case 1:
                return Condition(f"{e.sql} = TIMESTAMP '{text}'", _nullable(stamped, lambda v: v == micros))
            case 2:
                return Condition(
                    f"hour({e.sql}) = {hour}", _nullable(stamped, lambda v: v // 3_600_000_000 % 24 == hour)
                )
            case 3:
                return Condition(
                    f"{e.sql}::DATE = DATE '{date}'", _nullable(stamped, lambda v: v // _MICROS_OF_DAY == day)
                )
        return Condition(
            f"date_trunc('day', {e.sql}) = '{date}'", _nullable(stamped, lambda v: v // _MICROS_OF_DAY == day)
        )


def _column(name: str, type: LogicalType) -> Evaluate:
    return lambda values: strip_ttl(values.get(name), type)


def _samples(r: random.Random, name: str, type: LogicalType, values: Sequence[Values]) -> tuple[Any, ...]:
    found = [strip_ttl(v[name], type) for v in values if v.get(name) is not None]
    found = [v for v in found if v is not None]
    return tuple(r.sample(found, min(len(found), 20)))


def _and(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: Any, b: Any) -> Any:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _not(a: Any) -> Any:
    return None if a is None else not a


#: Conditions that are no expression of one row, or whose result changes. ``{column}`` is a column, ``{text}`` one of its values as text.
REFUSED: Final = (
    "{column} = (SELECT max({column}) FROM keys)",
    "{column} IN (SELECT {column} FROM keys LIMIT 1)",
    "EXISTS (SELECT 1)",
    "(FROM keys SELECT count(*)) > 3",
    "{column} = ANY (SELECT {column} FROM keys)",
    "keys::varchar LIKE '%1%'",
    "keys.{column} IS NOT NULL",
    "keys IS NOT NULL",
    "hash(keys) % 2 = 0",
    "__statetool_row = 0",
    "rowid = 0",
    "row_number() OVER () = 1",
    "lag({column}) OVER () IS NULL",
    "max({column}) = {column}",
    "count(*) > 0",
    "random() < 0.5",
    "now() > TIMESTAMPTZ '2020-01-01 00:00:00+00'",
    "current_timestamp > TIMESTAMPTZ '2020-01-01 00:00:00+00'",
    "current_date > DATE '2020-01-01'",
    "today() > DATE '2020-01-01'",
    "age(TIMESTAMP '2020-01-01') > INTERVAL 1 DAY",
    "current_setting('TimeZone') = 'UTC'",
    "true LIMIT 1",
    "true ORDER BY 1",
    "1=1) UNION SELECT 0 WHERE (1=1",
    "true; DROP TABLE keys",
    "true); SELECT (true",
    "COLUMNS(*) IS NOT NULL",
    "unnest([true, false])",
    "generate_subscripts([1, 2], 1) = 1",
    "gen_random_uuid() IS NOT NULL",
    "txid_current() > 0",
    "getvariable('a') IS NULL",
    "{column} = $1",
    "nosuchcolumn = 1",
    "",
    "true /*",
)
