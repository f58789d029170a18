"""Serializers of the table runtime for a declared type, with the snapshot that a Flink release would write.

Follows ``InternalSerializers`` and the snapshots of the serializers that it creates, Flink 1.13 to 2.3.
"""

from __future__ import annotations

from typing import Final

from statetool.errors import OptionError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, NESTED_MAGIC
from statetool.serializers.sql.java_classes import NEWEST, RUNTIME, SINGLETONS, StreamForm
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import BinaryDataSerializer
from statetool.serializers.sql.streams import SINGLETONS as SINGLETON_OF_ROOT
from statetool.serializers.sql.streams import check_release, serializer_object, type_object
from statetool.serializers.table import snapshot_reader

_VERSION: Final = 3
_OLDEST: Final = StreamForm((1, 13))
#: All later releases can read the getters of this release.
_BEFORE_GETTERS_CHANGED: Final = StreamForm((2, 0))
_TIMESTAMP_VERSION: Final = 1


def sql_serializer(sql: SqlType, form: StreamForm = NEWEST) -> Serializer:
    """Return the serializer that Flink creates for a type.

    Parameters
    ----------
    form
        The release that must be able to read its snapshot.

    Raises
    ------
    UnsupportedError
        The release does not have such a type, or state cannot store it.
    """
    return snapshot_reader().snapshot(Cursor(sql_snapshot(sql, form)))


def sql_snapshot(sql: SqlType, form: StreamForm) -> bytes:
    """Return the versioned snapshot of that serializer."""
    out = Output()
    _write(out, sql, form)
    return bytes(out)


def fit_to_release(serializer: Serializer, release: tuple[int, int] | None) -> Serializer:
    """Return a declared serializer with its snapshots in the form of a release.

    Only serializers made by :func:`sql_serializer` are rewritten, at any depth inside others.

    Parameters
    ----------
    release
        For example ``(2, 3)``; ``None`` for a form that all releases with such a type can read.

    Raises
    ------
    OptionError
        No release is given, and no snapshot of this type can be read by all of them.
    UnsupportedError
        The release does not have such a type.
    """
    if isinstance(serializer, BinaryDataSerializer) and serializer.sql:
        sql = serializer.declared_type()
        snapshot = Output()
        serializer.write_snapshot(snapshot)
        if sql_snapshot(sql, NEWEST) != bytes(snapshot):
            return serializer
        return snapshot_reader().snapshot(
            Cursor(_snapshot_for_all(sql) if release is None else sql_snapshot(sql, StreamForm(release)))
        )
    if not serializer.replaceable:
        return serializer
    for step, part in serializer.children():
        fitted_part = fit_to_release(part, release)
        if fitted_part is not part:
            serializer = serializer.with_child(step, fitted_part)
    return serializer


def _snapshot_for_all(sql: SqlType) -> bytes:
    try:
        old, new = sql_snapshot(sql, _OLDEST), sql_snapshot(sql, _BEFORE_GETTERS_CHANGED)
    except UnsupportedError:
        return sql_snapshot(sql, NEWEST)
    if old != new:
        raise OptionError(
            f"Flink releases write the type {sql} in different ways, and do not read each other's",
            hint='say which one shall read it: write(..., flink_version="2.3")',
        )
    return old


def _write(out: Output, sql: SqlType, form: StreamForm) -> None:
    check_release(sql, form)
    match sql.root:
        case root if root in SINGLETON_OF_ROOT:
            name = SINGLETONS[SINGLETON_OF_ROOT[root]].name
            _head(out, f"{name}${name.rpartition('.')[2]}Snapshot")
        case "DECIMAL":
            _head(out, RUNTIME + "DecimalDataSerializer$DecimalSerializerSnapshot")
            out.i4(sql.precision)
            out.i4(sql.scale)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            name = RUNTIME + "TimestampDataSerializer$TimestampDataSerializerSnapshot"
            _head(out, name, _TIMESTAMP_VERSION)
            out.i4(sql.precision)
        case "ARRAY":
            _head(out, RUNTIME + "ArrayDataSerializer$ArrayDataSerializerSnapshot")
            _write_streams(out, [sql.parts[0][1]], form)
        case "MAP" | "MULTISET":
            _head(out, RUNTIME + "MapDataSerializer$MapDataSerializerSnapshot")
            _write_streams(out, [t for _, t in sql.parts], form)
        case "ROW" | "STRUCTURED":
            _head(out, RUNTIME + "RowDataSerializer$RowDataSerializerSnapshot")
            out.i4(len(sql.parts))
            for _, part in sql.parts:
                write_java_stream(out, type_object(part, form))
            out.i4(NESTED_MAGIC)
            out.i4(1)
            out.i4(len(sql.parts))
            for _, part in sql.parts:
                _write(out, part, form)
        case "DISTINCT":
            _write(out, sql.parts[0][1], form)
        case "RAW":
            _head(out, RUNTIME + "RawValueDataSerializer$RawValueDataSerializerSnapshot")
            for number in (COMPOSITE_MAGIC, 0, NESTED_MAGIC, 1, 1):
                out.i4(number)
            _head(out, f"{sql.serializer}${sql.serializer.rpartition('.')[2]}Snapshot")
        case _:
            raise UnsupportedError(f"state of type {sql}, which Flink has no serializer for")


def _head(out: Output, name: str, version: int = _VERSION) -> None:
    out.utf(name)
    out.i4(version)


def _write_streams(out: Output, types: list[SqlType], form: StreamForm) -> None:
    """Append the types, then their serializers, each as a separate stream."""
    for sql in types:
        write_java_stream(out, type_object(sql, form))
    for sql in types:
        write_java_stream(out, serializer_object(sql, form))
