"""Field names for rows of the table runtime and ``Row``, whose snapshots only number fields; field types for rows without stored types.

A path names a row inside a state's serializer by the steps that lead to it (``key``, ``value``, ``element``, ...). A prefix is enough if it
leads to only one row, so the path is empty if there is only one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from statetool.errors import OptionError
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import BinaryRowSerializer, RowDataSerializer
from statetool.serializers.sql.type_text import parse_table_type
from statetool.serializers.typeutils.row import KIND_FIELD, RowSerializer
from statetool.types.options import FieldNames

Path = tuple[str, ...]


def rows_of(serializer: Serializer, path: Path = ()) -> Iterator[tuple[Path, Serializer]]:
    """Yield the outermost rows without field names, each with the steps that lead to it."""
    if isinstance(serializer, RowDataSerializer | RowSerializer | BinaryRowSerializer):
        yield path, serializer
    elif serializer.replaceable:
        for step, part in serializer.children():
            yield from rows_of(part, (*path, step))


def name_fields(serializer: Serializer, path: Path, names: FieldNames, what: str) -> Serializer:
    """Return a serializer in which the fields of one row have names, and types by ``ROW<...>``; ``what`` names it in errors.

    Raises
    ------
    OptionError
        No such row, more than one, not one name per field, or types that differ from those of the snapshot.
    """
    rows = list(rows_of(serializer))
    matching_rows = [(at, row) for at, row in rows if at[: len(path)] == path]
    if len(matching_rows) != 1:
        known = ", ".join(repr(".".join((what, *at))) for at, _ in rows)
        raise OptionError(
            f"{'.'.join((what, *path))!r} has {len(matching_rows)} rows whose fields could be named",
            hint=f"use one of its rows: {known}" if known else "only rows without names can be given names",
        )
    at, row = matching_rows[0]
    return with_part(serializer, at, _with_names(row, names, ".".join((what, *path))))


def _with_names(row: Serializer, names: FieldNames, what: str) -> Serializer:
    if isinstance(names, str):
        row, names = _with_types(row, names, what)
    if isinstance(row, BinaryRowSerializer):
        raise OptionError(f"names alone for the fields of {what!r}: {row.reason}", hint=row.to_declare)
    assert isinstance(row, RowDataSerializer | RowSerializer)
    folded = [n.lower() for n in names]
    if len(names) != len(row.names):
        raise OptionError(f"{len(names)} names for the {len(row.names)} fields of {what!r}")
    if twice := sorted({n for n in folded if folded.count(n) > 1}):
        raise OptionError(f"names of {what!r} that differ at most in case: {', '.join(twice)}")
    if KIND_FIELD in folded:
        raise OptionError(f"{KIND_FIELD} is the kind of the row and no name for a field of {what!r}")
    return row.with_names(names)


def _with_types(row: Serializer, text: str, what: str) -> tuple[Serializer, tuple[str, ...]]:
    """Return a row with the types of ``ROW<...>``, and its field names."""
    sql = parse_table_type(text)
    if sql.root != "ROW":
        raise OptionError(f"{sql} for {what!r}, which is a row", hint="declare it as ROW<name TYPE, ...>")
    names = tuple(name for name, _ in sql.parts)
    if isinstance(row, BinaryRowSerializer):
        if len(names) != row.arity:
            raise OptionError(f"{sql} has {len(names)} fields, and {what!r} has {row.arity}")
        return row.with_types(sql), names
    if not isinstance(row, RowDataSerializer):
        raise OptionError(
            f"types for {what!r}, whose snapshot has other types",
            hint="give a list of names for its fields",
        )
    snapshot_types = [str(_nullable(t)) for t in row.sql]
    if [str(_nullable(t)) for _, t in sql.parts] != snapshot_types:
        raise OptionError(f"{sql} for {what!r}, whose snapshot says {', '.join(snapshot_types)}")
    return row, names


def _nullable(sql: SqlType) -> SqlType:
    """Return a type without NOT NULL, against which values are not checked."""
    return replace(sql, nullable=True, parts=tuple((name, _nullable(part)) for name, part in sql.parts))


def with_part(serializer: Serializer, path: Path, new: Serializer) -> Serializer:
    """Return the serializer with the nested one at a path replaced."""
    if not path:
        return new
    part = dict(serializer.children())[path[0]]
    return serializer.with_child(path[0], with_part(part, path[1:], new))
