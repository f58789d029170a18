"""Schemas of tables as text: Spark DDL and Avro, from Arrow, without a JVM."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from statetool.columns.types import is_variant

_DDL = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.null(): "VOID",
    pa.date32(): "DATE",
    pa.duration("us"): "INTERVAL DAY TO SECOND",
}
_AVRO = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.null(): "null",
}


def ddl_lines(schema: pa.Schema) -> list[str]:
    """Return ``name TYPE`` for each column. Joined with commas they form a schema for Spark's ``StructType.fromDDL``."""
    return [f"{_quote(f.name)} {_ddl(f.type)}{',' if i < len(schema) else ''}" for i, f in enumerate(schema, 1)]


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def _ddl(kind: pa.DataType) -> str:
    if kind in _DDL:
        return _DDL[kind]
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{_ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_ddl(kind.key_type)}, {_ddl(kind.item_type)}>"
    if is_variant(kind):
        return "VARIANT"
    return "STRUCT<" + ", ".join(f"{_quote(f.name)}: {_ddl(f.type)}" for f in kind) + ">"


def avro_schema(schema: pa.Schema, *, name: str) -> dict[str, Any]:
    """Return an Avro record.

    A map whose keys are not strings is an array of records ``key``, ``value``. A variant is a record of its two binaries, an
    interval a long of microseconds.
    """
    return _record(list(schema), _avro_name(name))


def _avro_name(name: str) -> str:
    clean = re.sub(r"\W", "_", name, flags=re.ASCII)
    return clean if re.match(r"[A-Za-z_]", clean) else f"_{clean}"


def _record(fields: list[pa.Field], name: str) -> dict[str, Any]:
    entries = []
    for f in fields:
        kind = _nullable(_avro(f.type, f"{name}_{_avro_name(f.name)}"))
        entry: dict[str, Any] = {"name": _avro_name(f.name), "type": kind, "default": None}
        if entry["name"] != f.name:
            entry["doc"] = f.name
        entries.append(entry)
    return {"type": "record", "name": name, "fields": entries}


def _avro(kind: pa.DataType, name: str) -> Any:
    if kind in _AVRO:
        return _AVRO[kind]
    if pa.types.is_duration(kind):
        return {"type": "long", "doc": "microseconds"}
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(_avro(kind.value_type, name + "_element"))}
    if pa.types.is_map(kind):
        if pa.types.is_string(kind.key_type):
            return {"type": "map", "values": _nullable(_avro(kind.item_type, name + "_value"))}
        fields = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
        return {"type": "array", "items": _record(fields, name + "_entry")}
    return _record(list(kind), name)


def _nullable(kind: Any) -> Any:
    return kind if kind == "null" else ["null", kind]
