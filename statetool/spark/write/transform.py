"""Tables of keyed state with columns computed by SQL expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql import types as t

from statetool.columns.companions import SUFFIXES, state_of_companion
from statetool.columns.types import COMPANION, PRESENT, SCALE
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.saving.verbs.key_choice import no_key_fulfills
from statetool.saving.verbs.transform import has_ttl, states_without_namespace
from statetool.snapshot.operator import OperatorInventory
from statetool.spark.schema import arrow_schema
from statetool.spark.write.row_expressions import check_row_expression, in_utc
from statetool.types.table_columns import state_columns

_ACCESS: Final = "__statetool_last_access_"
_DIGITS: Final = {t.ByteType: 3, t.ShortType: 5, t.IntegerType: 10, t.LongType: 19}


def change_by_expressions(
    operator: OperatorInventory,
    read: Callable[[list[str]], Any],
    change: Mapping[str, str],
    where: str | None,
    *,
    allow_missing: bool,
) -> tuple[pa.Schema, pa.Schema, Any]:
    """Compute states of an operator by SQL expressions.

    Parameters
    ----------
    read
        Returns the table ``keyed_state`` of some states as a DataFrame, with ``ttl="raw"`` and ``key_group=True``.
    change
        SQL expressions by state or companion column.
    where
        A condition: values of other keys stay.
    allow_missing
        Accept a condition that no key fulfills.

    Returns
    -------
    tuple of pyarrow.Schema, pyarrow.Schema, DataFrame
        The schemas before and after the change, and the table of keys and changed columns.

    Raises
    ------
    UnknownNameError
        The operator has no such state without a namespace.
    MissingKeyError
        No key fulfills the condition.
    OptionError
        There are no expressions, or as for :func:`apply_expressions`.
    """
    metas = states_without_namespace(operator)
    column_of = state_columns(metas)
    paths = {name: path for name in change if (path := _path(name, metas)) is not None}
    for name in change:
        if name not in metas and name not in paths and state_of_companion(name, metas) is None:
            raise UnknownNameError(f"operator {operator.label!r} has no state {name!r}", hint=suggest(name, metas))
    if not change:
        raise OptionError("nothing to change", hint='pass expressions: {"balance": "CAST(balance AS DECIMAL(20, 4))"}')
    # An expression refers to columns by name in its text, and a star may refer to all.
    text = " ".join((*change.values(), where or "")).lower()
    needed = [
        n
        for n in metas
        if n in change
        or any(state == n for state, _ in paths.values())
        or column_of[n].lower() in text
        or "*" in text
        or any(f"{n}{suffix}" in change for suffix in SUFFIXES)
    ]
    frame = read(needed)
    timed = [n for n in needed if metas[n].kind not in ("list", "map") and has_ttl(metas[n])]
    columns = {column_of.get(n, n): sql for n, sql in change.items() if n not in paths}
    nested: dict[str, dict[tuple[str, ...], str]] = {}
    for name, (state, fields) in paths.items():
        nested.setdefault(column_of[state], {})[fields] = change[name]
    if both := nested.keys() & columns.keys():
        raise OptionError(f"{min(both)!r} is set as a whole and in part", hint="set it as a whole, or only its fields")
    own = {column_of[n] for n in needed}
    companions = {f"{n}{suffix}" for n in ("key", *own) for suffix in SUFFIXES} - own
    timed_columns = [column_of[n] for n in timed]
    for column, parts in nested.items():
        columns[column] = _with_fields(frame.schema[column].dataType, column, parts, timed=column in timed_columns)
    given = [*change.values(), *([] if where is None else [where])]
    data = apply_expressions(frame, columns, where, timed_columns, companions & set(frame.columns), given)
    if where is not None and not allow_missing and not _is_fulfilled(frame, where, timed_columns):
        raise no_key_fulfills([operator.label.display])
    return arrow_schema(frame), arrow_schema(data), data


def _is_fulfilled(frame: Any, where: str, timed: Sequence[str]) -> bool:
    """Return True if a row fulfills a condition. Spark stops at the first one."""
    with in_utc(frame.sparkSession):
        return not _visible(frame, timed).where(f.expr(f"(\n{where}\n)")).limit(1).select(f.lit(1)).isEmpty()


def _path(name: str, metas: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the state and the fields of a path such as ``account.balance``, ``None`` if it is not one."""
    states = [s for s in metas if name.startswith(f"{s}.")]
    if name in metas or not states:
        return None
    state = max(states, key=len)
    return state, tuple(name[len(state) + 1 :].split("."))


def _with_fields(kind: t.DataType, column: str, parts: Mapping[tuple[str, ...], str], *, timed: bool) -> str:
    """Return a SQL expression for a struct column in which some fields have new values of the same types.

    Raises
    ------
    UnknownNameError, OptionError
        A field does not exist, or the path leads to another type than a struct.
    """
    if timed and isinstance(kind, t.StructType):
        kind = kind["value"].dataType
    return _rebuild(kind, _quote(column), dict(parts), column)


def _rebuild(kind: t.DataType, value: str, parts: Mapping[tuple[str, ...], str], path: str) -> str:
    if () in parts:
        if len(parts) > 1:
            raise OptionError(f"{path!r} is set as a whole and in part", hint="set it as a whole, or only its fields")
        return f"CAST((\n{parts[()]}\n) AS {kind.simpleString()})"
    if not isinstance(kind, t.StructType):
        raise OptionError(
            f"{path!r} of type {kind.simpleString()} has no fields",
            hint="change elements of lists and maps with statetool set",
        )
    for field, *_ in parts:
        if field not in kind.names:
            raise UnknownNameError(f"{path!r} has no field {field!r}", hint=suggest(field, kind.names))
    members = []
    for field in kind.fields:
        inner = {
            rest: sql for (first, *others), sql in parts.items() if first == field.name for rest in [tuple(others)]
        }
        part = f"{value}.{_quote(field.name)}"
        name = field.name.replace("\\", "\\\\").replace("'", "\\'")
        members.append(f"'{name}', {_rebuild(field.dataType, part, inner, f'{path}.{field.name}') if inner else part}")
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(members)}) END"


def apply_expressions(
    frame: Any,
    change: Mapping[str, str],
    where: str | None,
    timed: Sequence[str],
    companions: Collection[str],
    given: Sequence[str],
) -> Any:
    """Return keys and changed columns. Expressions are evaluated in UTC.

    Parameters
    ----------
    where
        A condition: other rows keep their values.
    timed
        Columns of values with their last access, which stays unchanged; expressions see only the values.
    companions
        Companions of scales and of null values among the columns.
    given
        The expressions and the condition as the user wrote them.

    Raises
    ------
    UnsupportedError
        The session is one of Spark Connect.
    OptionError
        Spark cannot parse an expression, it is not one of single rows with a lasting result, a column would get a type that cannot hold the values that stay unchanged, or the nanoseconds
        next to a timestamp are not specified.
    """
    try:
        with in_utc(frame.sparkSession):
            result = _select_changed(frame, change, where, timed, companions, given)
            fields = result.schema.fields
    except AnalysisException as error:
        given = ", ".join(f"{name}={sql}" for name, sql in change.items()) + (f" where {where}" if where else "")
        raise OptionError(f"Spark cannot evaluate {given}: {str(error).strip().splitlines()[0]}") from error
    for field in fields:
        if not isinstance(field.dataType, t.NullType) and "void" in field.dataType.simpleString():
            raise OptionError(
                f"the type of {field.name!r} is incomplete: {field.dataType.simpleString()}",
                hint="cast the expression, as in CAST(array() AS ARRAY<INT>)",
            )
    return result


def _select_changed(
    frame: Any,
    change: Mapping[str, str],
    where: str | None,
    timed: Sequence[str],
    companions: Collection[str],
    given: Sequence[str],
) -> Any:
    visible = _visible(frame, timed)
    inside = _with_nanos(frame, timed)
    shown = visible.select(*(f.col(_quote(n)) for n in visible.columns if not n.startswith(_ACCESS)))
    for sql in given:
        check_row_expression(shown, sql)
    stamps = (t.TimestampType, t.TimestampNTZType)
    outside = {n for n in frame.columns if isinstance(frame.schema[n].dataType, stamps)}
    nanos = {f"{n}{COMPANION}": n for n in outside | inside if f"{n}{COMPANION}" in visible.columns}
    kept = {f"{n}{s}": n for n in frame.columns for s in (SCALE, PRESENT) if f"{n}{s}" in companions}
    for name in change:
        if name not in visible.columns:
            what = "nanoseconds" if name.endswith(COMPANION) else "columns"
            raise OptionError(f"no state has {what} {name!r}", hint="set a state, or a column next to one")
    for companion, name in nanos.items():
        if name in change and companion not in change:
            raise OptionError(
                f"{name!r} changes, but its nanoseconds in {companion!r} do not",
                hint=f"set {companion} too: {companion!r} keeps them, '0' drops them",
            )
    columns_of = nanos | kept
    change = {columns_of[n]: _quote(columns_of[n]) for n in change if n in columns_of} | dict(change)
    # Scales stay, except for numbers that need more digits. An existing state stays, even with a null that it can hold.
    for companion, name in kept.items():
        if name in change and companion not in change:
            told = f"(\n{change[name]}\n) IS NOT NULL OR {_quote(companion)}"
            change[companion] = told if companion.endswith(PRESENT) else _quote(companion)
    expressions: dict[str, Any] = {name: _conditional(name, sql, where) for name, sql in change.items()}
    for name in (n for n in timed if n in change):
        with_access = _quote(_ACCESS + name)
        value = f.expr(expressions[name])
        members = [f.col(f"{with_access}.last_access").alias("last_access"), value.alias("value")]
        if name in inside:
            members.append(f.expr(expressions.pop(f"{name}{COMPANION}")).cast("int").alias(f"value{COMPANION}"))
        expressions[name] = f.when(value.isNotNull() | f.col(with_access).isNotNull(), f.struct(*members))
    keys = [n for n in ("key", f"key{COMPANION}", f"key{SCALE}", "key_group") if n in frame.columns]
    key_columns = [f.col(_quote(n)) for n in keys]
    columns = [(f.expr(c) if isinstance(c, str) else c).alias(n) for n, c in expressions.items()]
    result = visible.select(*key_columns, *columns)
    if where is not None:
        for name in expressions:
            old, new = frame.schema[name].dataType, result.schema[name].dataType
            if not _holds(new, old):
                raise OptionError(
                    f"{name!r} would become {new.simpleString()} for all keys, which cannot hold every {old.simpleString()}",
                    hint="cast the expression to a type that does, or change all keys without where=",
                )
    return result


def _with_nanos(frame: Any, timed: Sequence[str]) -> set[str]:
    """Return the columns of values with their last access that have nanoseconds."""
    return {n for n in timed if f"value{COMPANION}" in frame.schema[n].dataType.names}


def _visible(frame: Any, timed: Sequence[str]) -> Any:
    """Return the table in which columns of values with their last access are the values, as expressions see them."""
    visible, inside = frame, _with_nanos(frame, timed)
    for name in timed:
        column = _quote(name)
        visible = visible.withColumn(_ACCESS + name, f.col(column)).withColumn(name, f.col(f"{column}.value"))
        if name in inside:
            visible = visible.withColumn(f"{name}{COMPANION}", f.col(f"{_quote(_ACCESS + name)}.value{COMPANION}"))
    return visible


def _holds(new: t.DataType, old: t.DataType) -> bool:
    """Return True if Spark's common type of both holds every value of the old type exactly."""
    match old, new:
        case t.ArrayType(), t.ArrayType():
            return _holds(new.elementType, old.elementType)
        case t.MapType(), t.MapType():
            return _holds(new.keyType, old.keyType) and _holds(new.valueType, old.valueType)
        case t.StructType(), t.StructType():
            return all(_holds(b.dataType, a.dataType) for a, b in zip(old.fields, new.fields, strict=True))
        case t.DecimalType(), t.DecimalType():
            return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
        case t.IntegralType(), t.DecimalType():
            return bool(new.precision - new.scale >= _DIGITS[type(old)])
        case ((t.DecimalType() | t.LongType()), (t.FloatType() | t.DoubleType())):
            return False
        case ((t.IntegerType() | t.DoubleType()), t.FloatType()):
            return False
    return True


def _conditional(name: str, sql: str, where: str | None) -> str:
    return sql if where is None else f"CASE WHEN (\n{where}\n) THEN (\n{sql}\n) ELSE {_quote(name)} END"


def _quote(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
