"""Flink types of columns without a declaration."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from statetool.columns.types import is_variant
from statetool.errors import OptionError
from statetool.java.declaring import flink_types as flink
from statetool.java.declaring.states import StateType
from statetool.serializers.core.base import Serializer

_SIMPLE = {
    pa.bool_(): flink.BOOLEAN,
    pa.int8(): flink.BYTE,
    pa.int16(): flink.SHORT,
    pa.int32(): flink.INT,
    pa.int64(): flink.LONG,
    pa.float32(): flink.FLOAT,
    pa.float64(): flink.DOUBLE,
    pa.string(): flink.STRING,
    pa.large_string(): flink.STRING,
    pa.binary(): flink.BYTES,
    pa.large_binary(): flink.BYTES,
    pa.date32(): flink.LOCAL_DATE,
}


def infer_type(kind: pa.DataType) -> Serializer:
    """Return the Flink type for values of an Arrow type: a list for arrays, a row for structs.

    Raises
    ------
    OptionError
        No Flink type is obvious.
    """
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_timestamp(kind):
        return flink.LOCAL_DATE_TIME if kind.tz is None else flink.INSTANT
    if pa.types.is_decimal(kind):
        return flink.BIG_DECIMAL
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return flink.list_of(infer_type(kind.value_type))
    if pa.types.is_map(kind):
        return flink.map_of(infer_type(kind.key_type), infer_type(kind.item_type))
    if is_variant(kind):
        return flink.sql("VARIANT")
    if pa.types.is_struct(kind):
        return flink.row(*(infer_type(f.type) for f in kind))
    if pa.types.is_null(kind):
        raise OptionError(
            "a column that has only nulls (VOID) has no Flink type",
            hint="cast the column, as in CAST(v AS ARRAY<STRING>)",
        )
    raise OptionError(f"no Flink type matches {kind}", hint="declare it, e.g. statetool.value(flink.STRING)")


def infer_state(kind: pa.DataType) -> StateType:
    """Return list state for arrays, map state for maps, value state for all other types."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return StateType(kind="list", element=infer_type(kind.value_type))
    if pa.types.is_map(kind):
        return StateType(kind="map", user_key=infer_type(kind.key_type), element=infer_type(kind.item_type))
    return StateType(kind="value", element=infer_type(kind))


def complete_state(declared: StateType, kind: pa.DataType) -> StateType:
    """Fill in the types that a declaration leaves to its column.

    Raises
    ------
    OptionError
        The types cannot be inferred from the column.
    """
    if declared.element is not None:
        return declared
    if declared.ttl and declared.last_access_ms is None:
        raise OptionError(
            "a state with a time to live needs its types declared", hint='as in statetool.value("BIGINT", ttl=True)'
        )
    if declared.kind == "map":
        if not pa.types.is_map(kind):
            raise OptionError(f"map state from a column of type {kind}")
        return replace(declared, user_key=infer_type(kind.key_type), element=infer_type(kind.item_type))
    if declared.kind == "list":
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise OptionError(f"list state from a column of type {kind}")
        return replace(declared, element=infer_type(kind.value_type))
    return replace(declared, element=infer_type(kind))


def infer_namespace(kind: pa.DataType) -> Serializer:
    """Return the type of a namespace: a time window for a struct of ``start`` and ``end``, otherwise that of the column."""
    if pa.types.is_struct(kind) and [f.name for f in kind] == ["start", "end"]:
        return flink.TIME_WINDOW
    if pa.types.is_null(kind):
        return flink.VOID_NAMESPACE
    return infer_type(kind)
