"""Rules of SQL conditions: they are expressions of one row, with the same result whenever and wherever they are evaluated.

A condition is evaluated batch by batch, several times: entries are counted, written and proved one after another. So a subquery would see
only the rows of a batch, and ``now()`` another moment each time. The rules are checked on DuckDB's own parse tree, by a list of what is
allowed: other releases of DuckDB may have new kinds of expressions, but none that pass unseen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from statetool.errors import MissingDependencyError, OptionError
from statetool.tables.duckdb_settings import use_utc

#: Names of the table of rows and of their numbers. Columns cannot be called like this, as conditions cannot name them.
TABLE: Final = "__statetool_keys"
ROW: Final = "__statetool_row"
#: Kinds of expressions whose value follows from their parts. Each release has some of them.
_PLAIN: Final = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA", "OPERATOR", "TYPE",
}  # fmt: skip
_OTHER: Final = {
    "SUBQUERY": "has a subquery",
    "STAR": "names all columns by *",
    "PARAMETER": "has a parameter",
    "POSITIONAL_REFERENCE": "names a column by its position",
}
#: Functions and keywords that depend on the session or on batches, although DuckDB calls some of them consistent.
_OF_SESSION: Final = {
    "current_catalog", "current_database", "current_date", "current_localtime", "current_localtimestamp", "current_role", "current_schema",
    "current_schemas", "current_setting", "current_time", "current_timestamp", "current_user", "getenv", "getvariable", "in_search_path",
    "localtime", "localtimestamp", "session_user", "stats", "user", "vector_type", "version",
}  # fmt: skip
#: Functions of lambdas. Elsewhere, ``a -> b`` is an operator of JSON, though parsed as a lambda.
_OF_LAMBDAS: Final = {
    "apply", "array_apply", "array_filter", "array_reduce", "array_transform", "filter", "list_apply", "list_filter", "list_reduce",
    "list_transform", "reduce",
}  # fmt: skip
#: Schemas and catalogs of functions. Any other qualification is a column: ``name.upper()`` calls ``upper(name)``.
_BUILT_IN: Final = {"main", "memory", "pg_catalog", "system"}
_FUNCTIONS: Final = """SELECT lower(function_name), function_type, macro_definition, coalesce(stability, ''), len(parameters)
FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro')"""
_local = threading.local()
_ONE_ROW: Final = "it is evaluated for each key alone"
_CONSTANT_HINT: Final = "use constants, such as TIMESTAMP '2026-01-31 12:00:00'"


def statement(where: str) -> str:
    """Return the query of the numbers of the rows that fulfil a condition."""
    # The condition ends with its line, so that it cannot be followed by a comment that hides the parenthesis.
    return f"SELECT {ROW} FROM {TABLE} WHERE (\n{where}\n) ORDER BY {ROW}"


def check_condition(where: str) -> None:
    """Refuse a condition that is not an expression of one row with a lasting result.

    Raises
    ------
    OptionError
        It has a subquery, an aggregate, a window function or a star, calls a function such as ``random()`` or ``now()``, or is not one
        expression.
    MissingDependencyError
        DuckDB is not installed.
    """
    names_in(where)


@lru_cache(maxsize=64)
def names_in(where: str) -> frozenset[str]:
    """Return the columns that a condition names, as it writes them. Errors are those of :func:`check_condition`."""
    tree = _parse(statement(where))
    (shell,) = _parse(statement("TRUE"))["statements"]
    shell["node"].pop("where_clause")
    statements = tree.get("statements", ())
    expression = statements[0]["node"].pop("where_clause", None) if len(statements) == 1 else None
    # A condition may close the parenthesis around it, and open another one: it then is something else, or two conditions.
    closes = tree["error"] is False and _parse(f"SELECT TRUE WHERE\n{where}\n")["error"]
    if closes or (tree["error"] is False and (expression is None or _plain(statements[0]) != _plain(shell))):
        raise OptionError(f"the condition {where!r} is not one expression", hint="pass the expression only")
    if expression is None:
        raise OptionError(f"the condition {where!r} cannot be parsed: {tree['error_message']}")
    return frozenset(_check(expression, where, frozenset()))


def _parse(sql: str) -> Any:
    ((tree,),) = connection().execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    return json.loads(tree)


def _plain(part: Any) -> Any:
    """Return a part of a tree without positions in the text."""
    if isinstance(part, dict):
        return {name: _plain(value) for name, value in part.items() if not name.startswith("query_location")}
    return [_plain(value) for value in part] if isinstance(part, list) else part


def _check(part: Any, where: str, bound: frozenset[str]) -> Iterator[str]:
    """Yield the names of columns in a part of a condition. ``bound`` are the parameters of lambdas around it."""
    if isinstance(part, list):
        for item in part:
            yield from _check(item, where, bound)
    if not isinstance(part, dict):
        return
    kind = part.get("class")
    if kind == "WINDOW":
        raise _refusal(where, f"has the window function {part['function_name']}")
    if kind is not None and kind not in _PLAIN:
        raise _refusal(where, _OTHER.get(kind, f"has an expression of the kind {kind}"))
    if kind == "COLUMN_REF":
        name = part["column_names"][0]
        if name.lower() not in bound:
            yield name
        return
    if kind == "FUNCTION":
        yield from _check_function(part, where, bound)
        return
    for value in part.values():
        yield from _check(value, where, bound)


def _parameters(part: Any) -> Iterator[str]:
    """Yield the names of the parameters of a lambda."""
    if isinstance(part, dict) and part.get("class") == "COLUMN_REF":
        yield part["column_names"][0].lower()
    for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _parameters(value)


def _check_function(part: Any, where: str, bound: frozenset[str]) -> Iterator[str]:
    name = part["function_name"].lower()
    aggregates, changing, macros = _functions()
    if name in aggregates:
        raise _refusal(where, f"has the aggregate {name}")
    owner = next((q for q in (part["catalog"], part["schema"]) if q and q.lower() not in _BUILT_IN), None)
    if owner is not None and owner.lower() not in bound:
        yield owner
    # Releases before 2.0 call arguments children.
    arguments = [a.get("expression", a) for a in part.get("arguments", part.get("children"))]
    if name in changing or (name == "age" and len(arguments) + (owner is not None) == 1):  # since today
        raise changing_result(where, name)
    for definition in macros.get(name, ()):
        (inner,) = _parse(f"SELECT {definition}")["statements"][0]["node"]["select_list"]
        for column in _check(inner, where, frozenset()):
            if is_changing(column):
                raise changing_result(where, column)
    for argument in arguments:
        if argument["class"] == "LAMBDA" and (name in _OF_LAMBDAS or argument.get("syntax_type") == "LAMBDA_KEYWORD"):
            yield from _check(argument["expr"], where, bound | frozenset(_parameters(argument["lhs"])))
        else:
            yield from _check(argument, where, bound)
    yield from _check([part["filter"], part["order_bys"]], where, bound)


@lru_cache(maxsize=1)
def _functions() -> tuple[frozenset[str], frozenset[str], dict[str, list[str]]]:
    """Return the names of aggregates and of functions whose result changes, and the definitions of macros by name."""
    rows = connection().execute(_FUNCTIONS).fetchall()
    scalar = {name for name, kind, *_ in rows if kind != "aggregate"}
    changing = {
        name for name, _, _, stability, parameters in rows
        if stability == "VOLATILE" or (stability == "CONSISTENT_WITHIN_QUERY" and not parameters)
    }  # fmt: skip
    macros: dict[str, list[str]] = {}
    for name, kind, definition, *_ in rows:
        if kind == "macro":
            macros.setdefault(name, []).append(definition)
    aggregates = {name for name, kind, *_ in rows if kind == "aggregate"} - scalar
    return frozenset(aggregates), frozenset(changing | _OF_SESSION), macros


def connection() -> Any:
    """Return this thread's connection without files and network, whose time zone is UTC.

    Raises
    ------
    MissingDependencyError
        DuckDB is not installed.
    """
    if not hasattr(_local, "connection"):
        _local.connection = _connect()
    return _local.connection


def _connect() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            "a SQL condition needs DuckDB", hint="run: pip install 'statetool[sql]'"
        ) from error
    made = duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "1"})
    use_utc(made)
    made.execute("SET lock_configuration = true")
    return made


def changing_result(where: str, name: str) -> OptionError:
    """Return the error of a condition with a name whose value depends on the moment, the machine or the session."""
    return OptionError(
        f"the condition {where!r} calls {name.lower()}, whose result changes with each evaluation or session",
        hint=_CONSTANT_HINT,
    )


def is_changing(name: str) -> bool:
    """Return True if a name that is not that of a column is a keyword such as ``current_date``."""
    return name.lower() in _OF_SESSION


def _refusal(where: str, what: str) -> OptionError:
    return OptionError(
        f"the condition {where!r} {what}, but {_ONE_ROW}",
        hint="name columns of this key only; compute other values before, for example with statetool sql, and pass them as constants",
    )
