"""Conditions that engines push to a table, as the keys and columns that they refer to.

A condition is only used to read less. It is evaluated again, as a whole, on all rows that are read.
"""

from __future__ import annotations

import ctypes
import io
import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from statetool.tables.keys.values import KEY, intersect

_AND: Final = ("and", "and_kleene")
_OR: Final = ("or", "or_kleene")


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments. ``values`` are those that ``is_in`` compares with."""

    function: str
    arguments: tuple[Condition, ...]
    values: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant."""

    value: Any


Condition = Call | Column | Constant


def columns_of(condition: Condition) -> set[str]:
    """Return the columns that a condition refers to."""
    match condition:
        case Call(_, arguments):
            return set().union(*map(columns_of, arguments))
        case Column(name):
            return {name}
    return set()


def allowed_values(condition: Condition) -> list[Any] | None:
    """Return all values of the column ``key`` for which a condition may be true, ``None`` if they are not limited to a known set.

    Examples
    --------
    >>> is_five = Call("equal", (Column("key"), Constant(5)))
    >>> allowed_values(Call("or_kleene", (is_five, Call("is_in", (Column("key"),), [7]))))
    [5, 7]
    """
    match condition:
        case Constant(None | False):
            return []
        case Call("equal", (Column(name), Constant(value)) | (Constant(value), Column(name))) if name == KEY:
            return [] if value is None else [value]
        case Call("is_in", (Column(name),), list(values)) if name == KEY:
            return None if None in values else values
        case Call(function, (left, right)) if function in _AND:
            return intersect([allowed_values(left), allowed_values(right)])
        case Call(function, (left, right)) if function in _OR:
            return _union(left, right)
        case Call("if_else", (_, left, right)):
            return _union(left, right)
    return None


def _union(left: Condition, right: Condition) -> list[Any] | None:
    one, other = allowed_values(left), allowed_values(right)
    return None if one is None or other is None else list(dict.fromkeys([*one, *other]))


# ---- Arrow ------------------------------------------------------------------------------------


def arrow_condition(expression: Any) -> Condition | None:
    """Return the condition of a ``pyarrow.compute.Expression``, ``None`` if it has an unknown form.

    Arrow's expressions have no public structure, but a serialized form, which pickling uses: a record batch of the constants, with the
    functions and columns in the metadata of its schema, in prefix order.
    """
    _, (serialized, *_) = expression.__reduce__()
    batch = pa.ipc.open_file(serialized).get_batch(0)
    try:
        return _parse(_schema_metadata(batch.schema)[::-1], batch)
    except (_UnknownForm, ValueError, IndexError):
        return None


class _UnknownForm(Exception):
    """A part of an expression that this module does not know."""


class _CSchema(ctypes.Structure):
    """The first fields of Arrow's C schema. Unlike a mapping, its metadata may have a key several times."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _schema_metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    place = _CSchema.from_address(pointer_of(capsule, b"arrow_schema") or 0).metadata
    if not place:
        return []

    def number() -> int:
        nonlocal place
        value = ctypes.c_int32.from_address(place or 0).value
        place = (place or 0) + 4
        return value

    def text() -> str:
        nonlocal place
        size = number()
        value = ctypes.string_at(place or 0, size)
        place = (place or 0) + size
        return value.decode()

    return [(text(), text()) for _ in range(number())]


def _parse(tokens: list[tuple[str, str]], batch: pa.RecordBatch) -> Condition:
    """Take the next part of an expression from the end of the tokens, which are in reverse order."""
    kind, value = tokens.pop()
    if kind == "field_ref":
        return Column(value)
    if kind == "literal":
        return Constant(batch.column(int(value))[0].as_py())
    if kind != "call":
        raise _UnknownForm
    arguments: list[Condition] = []
    values = None
    while tokens[-1][0] != "end":
        if tokens[-1][0] == "options":
            values = _value_set(batch.column(int(tokens.pop()[1]))[0].as_py())
        else:
            arguments.append(_parse(tokens, batch))
    tokens.pop()
    return Call(value, tuple(arguments), values)


def _value_set(options: Any) -> list[Any] | None:
    values = options.get("value_set") if isinstance(options, dict) else None
    return values if isinstance(values, list) else None


# ---- Polars -----------------------------------------------------------------------------------

_POLARS_CALLS: Final = {
    "Eq": "equal",
    "And": "and_kleene",
    "LogicalAnd": "and_kleene",
    "Or": "or_kleene",
    "LogicalOr": "or_kleene",
}
#: The Python types of constants by the names of their Polars types.
_POLARS_KINDS: Final[dict[str, type]] = {
    "Boolean": bool, "String": str, "StringOwned": str, "Int8": int, "Int16": int, "Int32": int, "Int64": int,
}  # fmt: skip


def polars_condition(expression: Any) -> Condition:
    """Return the condition of a Polars expression. Parts of an unknown form are calls of ``?``, which limit nothing."""
    return _from_polars(json.loads(expression.meta.serialize(format="json")))


def _from_polars(node: Any) -> Condition:
    match node:
        case {"Column": str(name)}:
            return Column(name)
        case {"Literal": literal}:
            return _polars_constant(literal)
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}} if op in _POLARS_CALLS:
            return Call(_POLARS_CALLS[op], (_from_polars(left), _from_polars(right)))
        case {
            "Function": {
                "input": [column, {"Literal": {"Scalar": {"List": list(series)}}}],
                "function": {"Boolean": {"IsIn": _}},
            }
        }:
            return Call("is_in", (_from_polars(column),), _polars_series(series))
    return Call("?", ())


def _polars_constant(literal: Any) -> Condition:
    match literal:
        case {"Dyn": {"Int": int(value)}}:
            return Constant(value)
        case {"Scalar": dict(scalar)} if len(scalar) == 1:
            ((kind, value),) = scalar.items()
            if type(value) is _POLARS_KINDS.get(kind):
                return Constant(value)
    return Call("?", ())


def _polars_series(serialized: list[int]) -> list[Any] | None:
    """Return the values of a series, which Polars serializes as an Arrow stream."""
    try:
        values: list[Any] = pa.ipc.open_stream(io.BytesIO(bytes(serialized))).read_all().column(0).to_pylist()
    except (pa.ArrowException, ValueError, IndexError):
        return None
    return values
