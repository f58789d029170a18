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
from functools import lru_cache
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.avro import values as av
from statetool.serializers.avro.binary import AvroBinaryCursor
from statetool.serializers.avro.serializer import parse_schema
from statetool.serializers.kryo.codecs.scalars import STRING, Body, need_string, put_string
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.values import Args, ValueReader, ValueWriter

UTILS: Final = "org.apache.flink.formats.avro.utils.AvroKryoSerializerUtils"
#: The superclass of all schemas.
ANY_SCHEMA: Final = "org.apache.avro.Schema"
SCHEMA: Final = Body(STRING, need_string, put_string)
_BOXES: Final = {
    "boolean": "java.lang.Boolean",
    "int": "java.lang.Integer",
    "long": "java.lang.Long",
    "float": "java.lang.Float",
    "double": "java.lang.Double",
    "string": "java.lang.String",
    "bytes": "[B",
}
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
        schema = _schema_of(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise g.c.fail(f"not a valid Avro schema ({error})", pos=start) from error
    value = _Reader(c).read(schema, 0)
    c.expect_end("the Avro value")
    if value is None:
        raise g.c.fail(f"a null {name}", pos=start)
    return value.value


def write_datum(g: ValueWriter, obj: Obj, args: Args) -> None:
    """Refuse to write: an object has no schema."""
    raise EncodeError(f"a {obj.cls} of flink-avro is only read")


@lru_cache(maxsize=32)
def _schema_of(text: str) -> av.AvroType:
    return parse_schema(json.loads(text), logical_types=False)


class _Reader:
    """Reader of one value."""

    def __init__(self, c: AvroBinaryCursor) -> None:
        self._c = c
        self._count = 0

    def read(self, kind: av.AvroType, depth: int) -> Obj | None:
        """Read a value of a type."""
        c = self._c
        if depth > av.MAX_DEPTH:
            raise c.fail(f"Avro values nested deeper than {av.MAX_DEPTH}")
        self._count += 1
        if self._count > _MAX_VALUES:
            raise c.fail(f"more than {_MAX_VALUES:,} Avro values in one object")
        match kind:
            case av.Leaf(name="null"):
                return None
            case av.Leaf():
                return Obj(_BOXES[kind.name], kind.decode(c))
            case av.FixedType():
                return Obj(_class_name(kind.name), {"bytes": Obj("[B", kind.decode(c))})
            case av.EnumType():
                return Obj(_class_name(kind.name), kind.decode(c))
            case av.ArrayType():
                return Obj("java.util.ArrayList", [self.read(kind.items, depth + 1) for _ in kind.count_items(c)])
            case av.MapOf():
                pairs = [
                    (self.read(av.PRIMITIVES["string"], depth + 1), self.read(kind.values, depth + 1))
                    for _ in kind.count_items(c)
                ]
                return Obj("java.util.HashMap", pairs)
            case av.UnionType():
                return self.read(kind.branches[kind.decode_index(c)], depth + 1)
            case av.Recursion():
                return self.read(kind.record, depth)
            case av.RecordType():
                fields = zip(kind.names, kind.fields, strict=True)
                return Obj(_class_name(kind.name), {name: self.read(field, depth + 1) for name, field in fields})
        raise AssertionError(kind)


def _class_name(name: str) -> str:
    """Return the class of a named type, like ``SpecificData.getClassName``: the namespace of a nested class ends with ``$``."""
    return name.replace("$.", "$")
