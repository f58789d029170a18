"""Avro state in Flink's encoding (``DataOutputEncoder``), which is not Avro binary.

Snapshot version 3: string runtime class, string schema; version 2: the same as utf; version 1: utf schema. Values follow the snapshot's
schema (for the layout see :mod:`statetool.serializers.avro.values`). Follows ``AvroSerializer`` and ``AvroSerializerSnapshot``, Flink 1.8
to 2.3.
"""

from __future__ import annotations

import json
from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op
from statetool.serializers.avro import values as av
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.typeutils.basic import read_string, write_string
from statetool.serializers.typeutils.renewal import renewed_serializer
from statetool.types import LogicalType


class AvroSerializer(Serializer):
    """Avro values by the writer's schema.

    Raises
    ------
    ValueError, KeyError, TypeError
        ``schema_json`` is not an Avro schema.
    """

    def __init__(self, name: str, version: int, runtime_class: str | None, schema_json: str) -> None:
        super().__init__(name, version)
        self.runtime_class = runtime_class
        self.schema_json = schema_json
        self.root = parse_schema(json.loads(schema_json))

    @property
    def type_name(self) -> str:
        return f"Avro {self.runtime_class or ''}".strip()

    @property
    def logical(self) -> LogicalType:
        return self.root.logical

    def decode(self, c: Cursor) -> Any:
        return self.root.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.root.encode(out, value)

    def program(self) -> Op:
        return self.root.op

    def write_payload(self, out: Output) -> None:
        if self.snapshot_version >= 3:
            write_string(out, self.runtime_class)
            write_string(out, self.schema_json)
        else:
            if self.snapshot_version == 2:
                out.utf(self.runtime_class or "")
            out.utf(self.schema_json)


def parse_schema(schema: Any, *, logical_types: bool = True) -> av.AvroType:
    """Return the type of a schema (parsed JSON).

    Parameters
    ----------
    logical_types
        Whether values of logical types are decoded as such. Otherwise, they are those of the base types.

    Raises
    ------
    ValueError, KeyError, TypeError
        Not an Avro schema.
    """
    root = _Parser(logical_types=logical_types).parse(schema, "", 0)
    if root.parts > av.MAX_PARTS:
        raise ValueError(f"more than {av.MAX_PARTS} parts")
    return root


class _Parser:
    """Parser of one schema; named types are known by their full names from their definition on."""

    def __init__(self, *, logical_types: bool) -> None:
        self._logical_types = logical_types
        self.named: dict[str, av.AvroType] = {}
        self.unfinished: set[str] = set()

    def parse(self, schema: Any, namespace: str, depth: int) -> av.AvroType:
        if depth > av.MAX_DEPTH:
            raise ValueError(f"types nested deeper than {av.MAX_DEPTH}")
        if isinstance(schema, str):
            return av.PRIMITIVES[schema] if schema in av.PRIMITIVES else self.reference(schema, namespace)
        if isinstance(schema, list):
            return av.UnionType([self.parse(branch, namespace, depth + 1) for branch in schema])
        if not isinstance(schema, dict):
            raise TypeError(f"{schema!r} is not a type")
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.parse(kind, namespace, depth + 1)
        match kind:
            case "array":
                return av.ArrayType(self.parse(schema["items"], namespace, depth + 1))
            case "map":
                return av.MapOf(self.parse(schema["values"], namespace, depth + 1))
            case "record" | "error" | "enum" | "fixed":
                return self.define(schema, kind, namespace, depth)
        return self.primitive(schema, kind) or self.parse(kind, namespace, depth + 1)

    def primitive(self, schema: dict[str, Any], kind: str) -> av.AvroType | None:
        """Return the logical type of a primitive, ``None`` if it has no known one."""
        logical = schema.get("logicalType") if self._logical_types else None
        if kind == "bytes" and logical == "decimal":
            return av.decimal_value(schema, None)
        return av.logical_leaf(kind, logical)

    def reference(self, name: str, namespace: str) -> av.AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        key = full if full in self.named else name
        named_type = self.named[key]
        if key in self.unfinished:
            assert isinstance(named_type, av.RecordType)
            return av.Recursion(named_type)
        return named_type

    def define(self, schema: dict[str, Any], kind: str, namespace: str, depth: int) -> av.AvroType:
        """Return a named type; a recursive record refers to itself as exact bytes."""
        name = schema["name"]
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not a name")
        namespace = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace) or ""
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if kind == "enum":
            symbols = schema["symbols"]
            if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
                raise TypeError("a symbol that is not a string")
            self.named[full] = av.EnumType(full, tuple(symbols))
        elif kind == "fixed":
            size = schema["size"]
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise TypeError(f"{size!r} is not the size of a fixed type")
            is_decimal = self._logical_types and schema.get("logicalType") == "decimal"
            self.named[full] = (av.decimal_value(schema, size) if is_decimal else None) or av.FixedType(full, size)
        else:
            record = av.RecordType(full)
            self.named[full] = record
            self.unfinished.add(full)
            names = [f["name"] for f in schema["fields"]]
            if not all(isinstance(n, str) for n in names):
                raise TypeError("a field whose name is not a string")
            types = [self.parse(f["type"], namespace, depth + 1) for f in schema["fields"]]
            record.complete(names, types, [f.get("order") == "ignore" for f in schema["fields"]])
            self.unfinished.discard(full)
        return self.named[full]


def _read_avro(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    runtime_class: str | None = None
    if version == 3:
        runtime_class, schema = read_string(c), read_string(c)
    elif version == 2:
        runtime_class, schema = c.utf(), c.utf()
    else:
        schema = c.utf()
    try:
        former = AvroSerializer(name, version, runtime_class, schema or "")
    except RecursionError as e:
        raise c.fail("the Avro schema is nested too deeply", pos=start) from e
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise c.fail(f"the Avro schema cannot be parsed: {e}", pos=start) from e
    return _with_schema_of_class(reader, former)


def _with_schema_of_class(reader: SnapshotReader, former: AvroSerializer) -> Serializer:
    """Return the serializer of a job that starts with a generated class, whose schema is that of the class."""
    name = former.runtime_class
    found = reader.types.type_information(name) if reader.types.renewed and name else None
    # For other classes the code of the job gives the schema.
    if not name or found is None or found.kind != "avro":
        return former
    return renewed_serializer(reader, name, former) or former


SNAPSHOTS: Final = {
    "AvroSerializerSnapshot": SnapshotClass(_read_avro, (1, 2, 3)),
    "AvroSerializer$AvroSchemaSerializerConfigSnapshot": SnapshotClass(_read_avro, (1, 2, 3)),
}
