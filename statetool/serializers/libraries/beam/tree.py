"""Beam coders, built from their Java streams, which are parsed as data: no code is ever run.

An unknown coder is represented by one whose values are exact bytes, with the name of its class.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from statetool.errors import UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaEnum, JavaObject
from statetool.serializers.avro.binary import AvroBinaryCursor
from statetool.serializers.avro.serializer import parse_schema
from statetool.serializers.libraries.beam import coders as bc
from statetool.serializers.libraries.beam.leaves import Coder
from statetool.serializers.sql.logical_types import java_list

_MOST_PARTS: Final = 1000
_OF_FIELD: Final = {
    "BYTE": "Byte", "BYTES": "ByteArray", "INT16": "BigEndianShort", "INT32": "VarInt", "INT64": "VarLong", "DECIMAL": "BigDecimal",
    "FLOAT": "Float", "DOUBLE": "Double", "STRING": "StringUtf8", "DATETIME": "Instant", "BOOLEAN": "Boolean",
}  # fmt: skip


class TooManyPartsError(UnsupportedError):
    """A coder too large for any job, which only damage can produce."""


def short_name(class_name: str) -> str:
    """Return the name of a coder in messages: ``StringUtf8`` for ``org.apache.beam.sdk.coders.StringUtf8Coder``.

    Examples
    --------
    >>> short_name("org.apache.beam.sdk.transforms.windowing.GlobalWindow$Coder")
    'GlobalWindow'
    >>> short_name("com.acme.OrderCoder")
    'com.acme.OrderCoder'
    """
    if not class_name.startswith("org.apache.beam."):
        return class_name
    last = class_name.rpartition(".")[2].removesuffix("$Coder")
    return last.rpartition("$")[2].removesuffix("Coder")


def coder_of(tree: Any) -> Coder:
    """Return the coder that an object of a Java stream describes.

    Raises
    ------
    UnsupportedError
        It has more parts than the coder of any job.
    """
    return _Builder().coder(tree)


class _Builder:
    """Builder of coders from objects; parts are counted at each use, because many parts may refer to one object."""

    def __init__(self) -> None:
        self.parts = 0

    def coder(self, tree: Any) -> Coder:
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise TooManyPartsError(f"a coder of more than {_MOST_PARTS} parts")
        if not isinstance(tree, JavaObject):
            return bc.opaque(f"coder {tree!r}")
        name = short_name(tree.cls.name)
        if name in bc.LEAVES:
            return bc.LEAVES[name]
        try:
            return self.structured(name, tree) or bc.opaque(name)
        except TooManyPartsError:
            raise
        except UnsupportedError as error:
            return bc.opaque(f"{name} ({error.message})")

    def structured(self, name: str, tree: JavaObject) -> Coder | None:
        """Return a coder with parts, ``None`` for an unknown one."""

        def part(field: str) -> Coder:
            return self.coder(tree.fields.get(field))

        match name:
            case "Iterable" | "Collection" | "List" | "Set" | "Deque":
                return bc.iterable(name, part("elementCoder"))
            case "Kv":
                return _pair(part("keyCoder"), part("valueCoder"))
            case "Map" | "SortedMap":
                return bc.map_of(name, part("keyCoder"), part("valueCoder"))
            case "Nullable":
                return bc.nullable(part("valueCoder"))
            case "LengthPrefix":
                return bc.length_prefixed(part("valueCoder"))
            case "FullWindowedValue":
                return bc.windowed_value(part("valueCoder"), part("windowsCoder"))
            case "ValueOnlyWindowedValue" | "ParamWindowedValue":
                return part("valueCoder")
            case "TimestampedValue":
                return bc.timestamped(part("valueCoder"))
            case "KafkaRecord":
                return bc.kafka_record(part("kvCoder"))
            case "ProducerRecord":
                return bc.producer_record(part("kvCoder"))
            case "TaggedKv":
                return bc.tagged("KV<tag, value>", self.numbered(tree.fields.get("idsToCoders")))
            case "Union":
                parts = java_list(tree.fields.get("elementCoders"))
                return bc.tagged("Union", [(i, self.coder(c)) for i, c in enumerate(parts)])
            case "Avro" | "AvroGeneric":
                return _avro(tree)
            case "Delegate":
                return part("coder")
            case "Row" | "Schema":
                return self.row(tree.fields.get("schema"))
        return None

    def numbered(self, tree: Any) -> Sequence[tuple[int, Coder]]:
        """Return the coders of a serialized Guava map, with their numbers."""
        if not isinstance(tree, JavaObject) or not tree.cls.name.endswith("$SerializedForm"):
            raise UnsupportedError("its map of coders is of a class that is not known")
        keys, values = (java_list(tree.fields.get(n)) for n in ("keys", "values"))
        numbers = [k.fields.get("value") if isinstance(k, JavaObject) else None for k in keys]
        if len(keys) != len(values) or not all(isinstance(n, int) for n in numbers):
            raise UnsupportedError("its map of coders is not one of numbers")
        return [(int(n or 0), self.coder(v)) for n, v in zip(numbers, values, strict=True)]

    def row(self, schema: Any) -> Coder:
        if not isinstance(schema, JavaObject) or schema.fields.get("encodingPositionsOverridden"):
            raise UnsupportedError("the positions of its fields are not those of its schema")
        fields, nullable_fields = [], set()
        for field in java_list(schema.fields.get("fields")):
            name = field.fields.get("name") if isinstance(field, JavaObject) else None
            if not isinstance(name, str):
                raise UnsupportedError("a field without a name")
            # Nulls of fields are stored in the bit set of the row.
            kind = field.fields.get("type")
            fields.append((str(name), self.of_field(kind, top=True)))
            if kind.fields.get("nullable"):
                nullable_fields.add(str(name))
        names = [n for n, _ in fields]
        if not fields or len(set(names)) < len(names):
            raise UnsupportedError("its schema has no fields, or some twice")
        return bc.row(fields, nullable_fields)

    def of_field(self, kind: Any, *, top: bool = False) -> Coder:
        """Return the coder of a type of a schema."""
        self.parts += 1
        enum = kind.fields.get("typeName") if isinstance(kind, JavaObject) else None
        if not isinstance(enum, JavaEnum) or self.parts > _MOST_PARTS:
            raise UnsupportedError("a field without a type")
        match enum.name:
            case "ARRAY" | "ITERABLE":
                coder = bc.iterable("List", self.of_field(kind.fields.get("collectionElementType")))
            case "MAP":
                key, value = (self.of_field(kind.fields.get(n)) for n in ("mapKeyType", "mapValueType"))
                coder = bc.map_of("Map", key, value)
            case "ROW":
                coder = self.row(kind.fields.get("rowSchema"))
            case name if name in _OF_FIELD:
                coder = bc.LEAVES[_OF_FIELD[name]]
            case name:
                raise UnsupportedError(f"fields of type {name} are not known")
        return bc.nullable(coder) if kind.fields.get("nullable") and not top else coder


def _pair(key: Coder, value: Coder) -> Coder:
    return bc.struct(f"KV<{key.name}, {value.name}>", (("key", key), ("value", value)))


def _avro(tree: JavaObject) -> Coder:
    supplier = tree.fields.get("schemaSupplier", tree.fields.get("schemaStrSupplier"))
    text = supplier.fields.get("schema") if isinstance(supplier, JavaObject) else None
    if not isinstance(text, str):
        raise UnsupportedError("the stream of its coder has no schema as text")
    try:
        schema = json.loads(text)
        root = parse_schema(schema)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnsupportedError(f"its schema cannot be read: {error}") from error

    def decode(c: Cursor) -> Any:
        inner = AvroBinaryCursor.over(c)
        value = root.decode(inner)
        c.pos = inner.pos
        return value

    name = schema.get("name", "") if isinstance(schema, dict) else ""
    return Coder(name=f"Avro {name}".strip(), logical=root.logical, decode=decode, least=0)
