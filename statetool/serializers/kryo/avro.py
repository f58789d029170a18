"""Layouts of flink-avro's Kryo serializers: a schema as text, and the size of a value in Avro's binary encoding.

====================================  ================================================
``AvroSchemaSerializer``              string schema
``AvroGenericDataArraySerializer``    string schema, varint size, Avro binary (Kryo 5)
``AvroGenericRecordSerializer``       the same
====================================  ================================================

Follows ``AvroKryoSerializerUtils``. The values are objects of the classes that Avro generates for the names of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.serializers.avro_binary import AvroBinaryCursor
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.scalars import STRING, Body, need_string, put_string
from statetool.serializers.kryo.values import Args, ValueReader, ValueWriter

UTILS: Final = "org.apache.flink.formats.avro.utils.AvroKryoSerializerUtils"
#: The superclass of all schemas.
ANY_SCHEMA: Final = "org.apache.avro.Schema"
SCHEMA: Final = Body(STRING, need_string, put_string)
_MAX_DEPTH: Final = 64
#: Values without bytes, such as nulls, can multiply with every level of a schema.
_MAX_VALUES: Final = 1_000_000


def read_datum(g: ValueReader, name: str, args: Args) -> Any:
    """Read an array as its elements, or a record as its fields by name.

    Raises
    ------
    FormatError
        The text is not an Avro schema, or the value does not fit it.
    """
    start = g.c.pos
    text, size = need_string(g), g.c.varint()
    c = AvroBinaryCursor.over(g.c.slice(size, "an Avro value"))
    try:
        schema = json.loads(text)
        value = _Reader(c).read(schema, "", 0)
    except StatetoolError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise g.c.fail(f"not a valid Avro schema ({error})", pos=start) from error
    c.expect_end("the Avro value")
    if value is None:
        raise g.c.fail(f"a null {name}", pos=start)
    return value.value


def write_datum(g: ValueWriter, obj: Obj, args: Args) -> None:
    """Refuse to write: an object has no schema."""
    raise EncodeError(f"a {obj.cls} of flink-avro is only read")


class _Reader:
    """Reader of one value; named types are known by their full names from their definition on."""

    def __init__(self, c: AvroBinaryCursor) -> None:
        self._c = c
        self._named: dict[str, tuple[Any, str]] = {}
        self._count = 0

    def read(self, schema: Any, namespace: str, depth: int) -> Obj | None:
        """Read a value of a schema (parsed JSON)."""
        if depth > _MAX_DEPTH:
            raise self._c.fail(f"Avro values nested deeper than {_MAX_DEPTH}")
        self._count += 1
        if self._count > _MAX_VALUES:
            raise self._c.fail(f"more than {_MAX_VALUES:,} Avro values in one object")
        c = self._c
        if isinstance(schema, list):
            start = c.pos
            branch = c.i4()
            if not 0 <= branch < len(schema):
                raise c.fail(f"branch {branch} of a union with {len(schema)}", pos=start)
            return self.read(schema[branch], namespace, depth + 1)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.read(kind, namespace, depth + 1)
        match kind:
            case "null":
                return None
            case "boolean":
                return Obj("java.lang.Boolean", c.bool())
            case "int":
                return Obj("java.lang.Integer", c.i4())
            case "long":
                return Obj("java.lang.Long", c.i8())
            case "float":
                return Obj("java.lang.Float", c.f4())
            case "double":
                return Obj("java.lang.Double", c.f8())
            case "string":
                return Obj("java.lang.String", self._text())
            case "bytes":
                return Obj("[B", c.bytes4())
            case "array":
                items = [self.read(schema["items"], namespace, depth + 1) for _ in self._blocks()]
                return Obj("java.util.ArrayList", items)
            case "map":
                pairs = [
                    (Obj("java.lang.String", self._text()), self.read(schema["values"], namespace, depth + 1))
                    for _ in self._blocks()
                ]
                return Obj("java.util.HashMap", pairs)
            case "record" | "error" | "enum" | "fixed":
                return self._named_type(schema, kind, namespace, depth)
        full = kind if "." in kind or not namespace else f"{namespace}.{kind}"
        defined, inner = self._named[full if full in self._named else kind]
        return self._value(defined, defined["type"], full, inner, depth)

    def _named_type(self, schema: dict[str, Any], kind: str, namespace: str, depth: int) -> Obj:
        name = schema["name"]
        namespace = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace) or ""
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        self._named[full] = schema, namespace
        return self._value(schema, kind, full, namespace, depth)

    def _value(self, schema: dict[str, Any], kind: str, full: str, namespace: str, depth: int) -> Obj:
        # SpecificData.getClassName: the namespace of a nested class ends with $.
        cls = full.replace("$.", "$")
        if kind == "fixed":
            size = schema["size"]
            if not isinstance(size, int) or size < 0:
                raise ValueError(f"{size!r} is not the size of a fixed type")
            return Obj(cls, {"bytes": Obj("[B", self._c.take(size, "a fixed"))})
        if kind == "enum":
            start, symbols = self._c.pos, schema["symbols"]
            index = self._c.i4()
            if not 0 <= index < len(symbols):
                raise self._c.fail(f"constant {index} of an enum with {len(symbols)}", pos=start)
            return Obj(cls, symbols[index])
        fields = schema["fields"]
        return Obj(cls, {f["name"]: self.read(f["type"], namespace, depth + 1) for f in fields})

    def _text(self) -> str:
        start = self._c.pos
        try:
            return self._c.bytes4("a string").decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._c.fail("a string that is not UTF-8", pos=start) from error

    def _blocks(self) -> Iterator[None]:
        """Yield once per item of an array or map."""
        while count := self._c.varint():
            if count > self._c.left:
                raise self._c.fail(f"{count} items do not fit the {self._c.left} bytes left")
            for _ in range(count):
                yield
