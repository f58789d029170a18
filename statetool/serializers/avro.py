"""Avro state: Flink's own encoding (``DataOutputEncoder``), not Avro binary.

Snapshot version 3: string runtime class, string schema; version 2: the same as utf; version 1: utf schema.
Big-endian int and long, i32 lengths, i32 union and enum indexes; arrays and maps as varint-counted blocks ended by 0.
Values are walked with the schema of the snapshot; see the layout table of section 7 of the serializer reference.
"""

from __future__ import annotations

import json
from typing import Any, Final

from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.basic import read_string, write_string
from statetool.serializers.snapshot import Reader
from statetool.types import Field, ListType, LogicalType, MapType, Scalar, StructType

_PRIMITIVES: Final = {
    "null": Scalar("null"),
    "boolean": Scalar("bool"),
    "int": Scalar("int32"),
    "long": Scalar("int64"),
    "float": Scalar("float32"),
    "double": Scalar("float64"),
    "bytes": Scalar("binary"),
    "string": Scalar("string"),
}


class AvroSerializer(Serializer):
    """Avro values by the writer's schema."""

    def __init__(self, name: str, version: int, runtime_class: str | None, schema_json: str) -> None:
        super().__init__(name, version)
        self.runtime_class = runtime_class
        self.schema_json = schema_json
        self.named: dict[str, Any] = {}
        self.schema = json.loads(schema_json)
        _collect(self.schema, "", self.named)

    @property
    def type_name(self) -> str:
        return f"Avro {self.runtime_class or ''}".strip()

    @property
    def logical(self) -> LogicalType:
        return self._logical(self.schema, ())

    def _resolve(self, schema: Any) -> Any:
        if isinstance(schema, str) and schema not in _PRIMITIVES:
            return self.named[schema]
        return schema

    def _logical(self, schema: Any, seen: tuple[str, ...]) -> LogicalType:
        schema = self._resolve(schema)
        if isinstance(schema, list):
            return self._union(schema, seen)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, (dict, list)):
            return self._logical(kind, seen)
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        match kind:
            case "record" | "error":
                name = schema["name"]
                if name in seen:
                    raise UnsupportedError(f"Avro record {name} contains itself, which no Spark type can show")
                seen = (*seen, name)
                return StructType(tuple(Field(f["name"], self._logical(f["type"], seen)) for f in schema["fields"]))
            case "enum":
                return Scalar("string")
            case "fixed":
                return Scalar("binary")
            case "array":
                return ListType(self._logical(schema["items"], seen))
            case "map":
                return MapType(Scalar("string"), self._logical(schema["values"], seen))
        raise UnsupportedError(f"Avro type {kind!r} is not known")

    def _union(self, branches: list[Any], seen: tuple[str, ...]) -> LogicalType:
        others = [b for b in branches if b != "null"]
        if not others:
            return Scalar("null")
        if len(others) == 1:
            return self._logical(others[0], seen)
        return StructType(tuple(Field(f"member{i}", self._logical(b, seen)) for i, b in enumerate(others)))

    def decode(self, c: Cursor) -> Any:
        return self._decode(c, self.schema, 0)

    def _decode(self, c: Cursor, schema: Any, depth: int) -> Any:
        if depth > 64:
            raise c.fail("Avro value nested deeper than 64")
        schema = self._resolve(schema)
        if isinstance(schema, list):
            return self._decode_union(c, schema, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, (dict, list)):
            return self._decode(c, kind, depth)
        match kind:
            case "null":
                return None
            case "boolean":
                return c.bool()
            case "int":
                return c.i4()
            case "long":
                return c.i8()
            case "float":
                return c.f4()
            case "double":
                return c.f8()
            case "bytes":
                return c.bytes4()
            case "string":
                start = c.pos + 4
                raw = c.bytes4("string")
                try:
                    return raw.decode("utf-8")
                except UnicodeDecodeError as e:
                    raise c.fail(f"not UTF-8: {e.reason}", pos=start + e.start) from e
            case "fixed":
                return c.take(schema["size"], "fixed")
            case "enum":
                index = c.i4()
                if not 0 <= index < len(schema["symbols"]):
                    raise c.fail(f"{index} is not one of the symbols of {schema['name']}", pos=c.pos - 4)
                return schema["symbols"][index]
            case "array":
                return [self._decode(c, schema["items"], depth + 1) for _ in self._blocks(c)]
            case "map":
                return [
                    (self._decode(c, "string", depth + 1), self._decode(c, schema["values"], depth + 1))
                    for _ in self._blocks(c)
                ]
            case "record" | "error":
                return tuple(self._decode(c, f["type"], depth + 1) for f in schema["fields"])
        raise UnsupportedError(f"Avro type {kind!r} is not known")

    def _blocks(self, c: Cursor) -> Any:
        while (n := c.varint()) > 0:
            if n > c.left:
                raise c.fail(f"a block of {n} items in {c.left} bytes")
            yield from range(n)

    def _decode_union(self, c: Cursor, branches: list[Any], depth: int) -> Any:
        index = c.i4()
        if not 0 <= index < len(branches):
            raise c.fail(f"branch {index} of a union of {len(branches)}", pos=c.pos - 4)
        value = self._decode(c, branches[index], depth + 1)
        others = [i for i, b in enumerate(branches) if b != "null"]
        if branches[index] == "null" or len(others) == 1:
            return value
        return tuple(value if i == index else None for i in others)

    def encode(self, out: Output, value: Any) -> None:
        self._encode(out, self.schema, value)

    def _encode(self, out: Output, schema: Any, value: Any) -> None:
        schema = self._resolve(schema)
        if isinstance(schema, list):
            self._encode_union(out, schema, value)
            return
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, (dict, list)):
            self._encode(out, kind, value)
            return
        if value is None and kind != "null":
            raise EncodeError(f"null in an Avro {kind}")
        match kind:
            case "null":
                if value is not None:
                    raise EncodeError(f"{value!r} in an Avro null")
            case "boolean":
                out.bool(value)
            case "int":
                out.i4(value)
            case "long":
                out.i8(value)
            case "float":
                out.f4(value)
            case "double":
                out.f8(value)
            case "bytes":
                out.bytes4(value)
            case "string":
                out.bytes4(value.encode("utf-8"))
            case "fixed":
                out += value
            case "enum":
                if value not in schema["symbols"]:
                    raise EncodeError(f"{value!r} is not a symbol of {schema['name']}")
                out.i4(schema["symbols"].index(value))
            case "array" | "map":
                if value:
                    out.varint(len(value))
                for item in value:
                    if kind == "array":
                        self._encode(out, schema["items"], item)
                    else:
                        self._encode(out, "string", item[0])
                        self._encode(out, schema["values"], item[1])
                out.varint(0)
            case _:
                for f, v in zip(schema["fields"], value, strict=True):
                    self._encode(out, f["type"], v)

    def _encode_union(self, out: Output, branches: list[Any], value: Any) -> None:
        others = [i for i, b in enumerate(branches) if b != "null"]
        if value is None:
            if "null" not in branches:
                raise EncodeError("null in an Avro union without null")
            out.i4(branches.index("null"))
            return
        if len(others) == 1:
            index = others[0]
        else:
            found = [i for i, v in zip(others, value, strict=True) if v is not None]
            if len(found) != 1:
                raise EncodeError(f"exactly one member of an Avro union must be there, found {len(found)}")
            index, value = found[0], value[others.index(found[0])]
        out.i4(index)
        self._encode(out, branches[index], value)

    def write_payload(self, out: Output) -> None:
        if self.snapshot_version >= 3:
            write_string(out, self.runtime_class)
            write_string(out, self.schema_json)
        else:
            if self.snapshot_version == 2:
                out.utf(self.runtime_class or "")
            out.utf(self.schema_json)


def _collect(schema: Any, namespace: str, named: dict[str, Any]) -> None:
    """Index named types by their plain and full names, in which later parts of the schema refer to them."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, named)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "error", "enum", "fixed"):
            namespace = schema.get("namespace", namespace)
            full = schema["name"] if "." in schema["name"] or not namespace else f"{namespace}.{schema['name']}"
            named[full] = schema
            named.setdefault(schema["name"], schema)
        for part in (schema.get("type"), schema.get("items"), schema.get("values")):
            if isinstance(part, (dict, list)):
                _collect(part, namespace, named)
        for f in schema.get("fields", ()):
            _collect(f["type"], namespace, named)


def _check(schema: Any, named: dict[str, Any], seen: set[int]) -> None:
    """Go through a schema as decoding will, so that it fails when the snapshot is read and not at some value."""
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return
        schema = named[schema]
    if id(schema) in seen:
        return
    seen.add(id(schema))
    if isinstance(schema, list):
        for branch in schema:
            _check(branch, named, seen)
        return
    kind = schema["type"]
    if isinstance(kind, (dict, list)):
        _check(kind, named, seen)
        return
    match kind:
        case "record" | "error":
            if not isinstance(schema["name"], str):
                raise TypeError("a record without a name")
            for f in schema["fields"]:
                if not isinstance(f["name"], str):
                    raise TypeError(f"{f['name']!r} is not the name of a field")
                _check(f["type"], named, seen)
        case "array":
            _check(schema["items"], named, seen)
        case "map":
            _check(schema["values"], named, seen)
        case "fixed":
            if not isinstance(schema["size"], int):
                raise TypeError(f"{schema['size']!r} is not the size of a fixed type")
        case "enum":
            if not all(isinstance(symbol, str) for symbol in schema["symbols"]):
                raise TypeError("a symbol that is not a string")
        case _ if kind not in _PRIMITIVES:
            raise ValueError(f"{kind!r} is not an Avro type")


def _read_avro(c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    runtime_class: str | None = None
    if version == 3:
        runtime_class, schema = read_string(c), read_string(c)
    elif version == 2:
        runtime_class, schema = c.utf(), c.utf()
    elif version == 1:
        schema = c.utf()
    else:
        raise c.fail(f"version {version} of {name} is not 1, 2 or 3", pos=start - 4)
    try:
        serializer = AvroSerializer(name, version, runtime_class, schema or "")
        _check(serializer.schema, serializer.named, set())
        return serializer
    except RecursionError as e:
        raise c.fail("the Avro schema is nested too deeply", pos=start) from e
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise c.fail(f"the Avro schema cannot be parsed: {e}", pos=start) from e


SNAPSHOTS: Final = {
    "AvroSerializerSnapshot": Reader(_read_avro),
    "AvroSerializer$AvroSchemaSerializerConfigSnapshot": Reader(_read_avro),
}
