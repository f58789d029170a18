"""Flink types by name, for declaring state to write. Each function returns the serializer that Flink would create.

Exposed as ``statetool.flink``::

    flink.pojo("com.acme.Order", {"id": "BIGINT", "tags": flink.list_of("STRING")})
    flink.tuple_of("BIGINT", "STRING"), flink.enum("com.acme.Color", ["RED", "GREEN"]), flink.INSTANT
    flink.sql("ROW<shop STRING, total DECIMAL(38, 4)>"), flink.sql("TIMESTAMP_LTZ(9)")

SQL types are accepted wherever a type is expected (:mod:`statetool.java.declaring.sql_types`). Serializer snapshots are those that Flink 1.15 to
2.3 write. Those of rows, arrays and maps of Flink SQL match the release that the savepoint is written for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.declaring.sql_types import parse_sql_type
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, write_nested
from statetool.serializers.sql.declared import sql_serializer
from statetool.serializers.sql.type_text import parse_table_type
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.arrays import TYPES as _ARRAYS
from statetool.serializers.typeutils.basic import TYPES as _BASIC
from statetool.serializers.typeutils.basic import write_string
from statetool.serializers.typeutils.optional_map import OptionalEntry, write_optional_map
from statetool.serializers.typeutils.temporal import TYPES as _TEMPORAL

_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
_STREAMING: Final = "org.apache.flink.streaming."
_STATE: Final = "org.apache.flink.runtime.state."
_BASIC_NAMES: Final = frozenset(t.name for t in (*_BASIC, *_TEMPORAL)) - {"Null"}
_ARRAY_NAMES: Final = frozenset(t.name for t in _ARRAYS)


def parse_type(declared: str | Serializer) -> Serializer:
    """Return the serializer of a declared type.

    Raises
    ------
    OptionError
        ``declared`` is neither a SQL type nor a Flink type.
    """
    if isinstance(declared, Serializer):
        return declared
    if not isinstance(declared, str):
        raise OptionError(
            f"{declared!r} is not a type", hint='use a SQL type such as "BIGINT" or one of statetool.flink'
        )
    return parse_sql_type(declared, _sql_type, sql_serializer)


def sql(type: str) -> Serializer:
    """Return a type of the table runtime, in which SQL jobs store their state, from its Flink SQL name.

    A row is ``RowData``, ``ARRAY<..>`` is ``ArrayData`` and ``DECIMAL(10, 2)`` is ``DecimalData``. In other functions that accept a SQL
    type, only ``ROW<..>`` is a type of the table runtime.

    Raises
    ------
    OptionError
        The type is not a Flink SQL type.
    UnsupportedError
        State cannot hold the type.
    """
    return sql_serializer(parse_table_type(type))


def basic(name: str) -> Serializer:
    """Return a type of Flink's base package by the name of its serializer without the suffix ``Serializer`` (``Long``, ``StringValue``).

    Raises
    ------
    OptionError
        The type does not exist.
    """
    if name in _ARRAY_NAMES:
        return _read(_simple(f"{_BASE}array.{name}"))
    if name not in _BASIC_NAMES:
        raise OptionError(f"no basic type {name!r}", hint=f"choose one of {', '.join(sorted(_BASIC_NAMES))}")
    return _read(_simple(_BASE + name))


def _simple(prefix: str) -> bytes:
    out = Output()
    name = prefix.rpartition(".")[2]
    out.utf(f"{prefix}Serializer${name}SerializerSnapshot")
    out.i4(3)
    return bytes(out)


def _read(snapshot: bytes) -> Serializer:
    c = Cursor(snapshot)
    serializer = snapshot_reader().snapshot(c)
    c.expect_end("a snapshot")
    return serializer


def _composite(name: str, outer_version: int, outer: bytes, *parts: str | Serializer) -> Serializer:
    out = Output()
    out.utf(name)
    out.i4(3)
    out.i4(COMPOSITE_MAGIC)
    out.i4(outer_version)
    out += outer
    write_nested(out, tuple(parse_type(p) for p in parts))
    return _read(bytes(out))


def _utf(text: str) -> bytes:
    out = Output()
    out.utf(text)
    return bytes(out)


def _i4(number: int) -> bytes:
    out = Output()
    out.i4(number)
    return bytes(out)


BOOLEAN: Final = basic("Boolean")
BYTE: Final = basic("Byte")
SHORT: Final = basic("Short")
INT: Final = basic("Int")
LONG: Final = basic("Long")
FLOAT: Final = basic("Float")
DOUBLE: Final = basic("Double")
CHAR: Final = basic("Char")
STRING: Final = basic("String")
BIG_INTEGER: Final = basic("BigInt")
BIG_DECIMAL: Final = basic("BigDec")
VOID: Final = basic("Void")
BYTES: Final = basic("BytePrimitiveArray")
#: Key type of map state in PyFlink.
WRAPPED_BYTES: Final = _read(_simple(_STREAMING + "api.utils.ByteArrayWrapper"))
DATE: Final = basic("Date")
SQL_DATE: Final = basic("SqlDate")
SQL_TIME: Final = basic("SqlTime")
SQL_TIMESTAMP: Final = basic("SqlTimestamp")
INSTANT: Final = basic("Instant")
LOCAL_DATE: Final = basic("LocalDate")
LOCAL_TIME: Final = basic("LocalTime")
LOCAL_DATE_TIME: Final = basic("LocalDateTime")
VOID_NAMESPACE: Final = _read(_simple(_STATE + "VoidNamespace"))
TIME_WINDOW: Final = _read(
    _utf(_STREAMING + "api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot") + _i4(3)
)
GLOBAL_WINDOW: Final = _read(
    _utf(_STREAMING + "api.windowing.windows.GlobalWindow$Serializer$GlobalWindowSerializerSnapshot") + _i4(3)
)

_PRIMITIVE_ARRAYS: Final = {
    "boolean": "BooleanPrimitiveArray",
    "byte": "BytePrimitiveArray",
    "short": "ShortPrimitiveArray",
    "int": "IntPrimitiveArray",
    "long": "LongPrimitiveArray",
    "float": "FloatPrimitiveArray",
    "double": "DoublePrimitiveArray",
    "char": "CharPrimitiveArray",
}


def primitive_array(element: str) -> Serializer:
    """Return the type of a primitive array such as ``long[]``; ``element`` is the Java name of its elements' type.

    Raises
    ------
    OptionError
        The type is not primitive.
    """
    if element not in _PRIMITIVE_ARRAYS:
        raise OptionError(f"{element!r} is not a primitive type", hint=f"choose one of {', '.join(_PRIMITIVE_ARRAYS)}")
    return basic(_PRIMITIVE_ARRAYS[element])


def string_array() -> Serializer:
    """Return the type of ``String[]``."""
    return basic("StringArray")


def array_of(element: str | Serializer, component_class: str) -> Serializer:
    """Return the type of an array of objects (``GenericArraySerializer``); ``component_class`` as in ``java.lang.Long``."""
    return _composite(_BASE + "GenericArraySerializerSnapshot", 1, _utf(component_class), element)


def list_of(element: str | Serializer) -> Serializer:
    """Return the type of a ``java.util.List`` (``ListSerializer``)."""
    return _composite(_BASE + "ListSerializerSnapshot", 1, b"", element)


def set_of(element: str | Serializer) -> Serializer:
    """Return the type of a ``java.util.Set`` (``SetSerializer``, Flink 2.0 and later)."""
    return _composite(_BASE + "SetSerializerSnapshot", 1, b"", element)


def map_of(key: str | Serializer, value: str | Serializer) -> Serializer:
    """Return the type of a ``java.util.Map`` (``MapSerializer``)."""
    return _composite(_BASE + "MapSerializerSnapshot", 1, b"", key, value)


def tuple_of(*fields: str | Serializer) -> Serializer:
    """Return the type of a tuple, ``Tuple1`` to ``Tuple25``.

    Raises
    ------
    OptionError
        The number of fields is not between 1 and 25.
    """
    if not 1 <= len(fields) <= 25:
        raise OptionError(f"Flink has no tuple of {len(fields)} fields", hint="1 to 25; use flink.row for more")
    name = f"org.apache.flink.api.java.tuple.Tuple{len(fields)}"
    return _composite(_RUNTIME + "TupleSerializerSnapshot", 2, _utf(name), *fields)


def row(*fields: str | Serializer) -> Serializer:
    """Return the type of an ``org.apache.flink.types.Row``. Only positions are stored, not names. A missing row kind is ``+I``."""
    # Version 3 is written by 1.13 and read by all later releases. Version 4 adds a flag for rows without a kind.
    return _composite(_RUNTIME + "RowSerializer$RowSerializerSnapshot", 3, b"", *fields)


def either(left: str | Serializer, right: str | Serializer) -> Serializer:
    """Return the type of an ``org.apache.flink.types.Either``: a struct of ``left`` and ``right``, one of them null."""
    return _composite(_RUNTIME + "JavaEitherSerializerSnapshot", 1, b"", left, right)


def nullable(value: str | Serializer, *, pad: bool = False) -> Serializer:
    """Return a nullable type (``NullableSerializer``); ``pad`` as in Flink's ``wrap(serializer, padNullValueIfFixedLen)``."""
    inner = parse_type(value)
    padding = inner.length if pad and inner.length > 0 else 0
    return _composite(_RUNTIME + "NullableSerializer$NullableSerializerSnapshot", 2, _i4(padding), inner)


def ttl(value: str | Serializer, *, asynchronous: bool = False) -> Serializer:
    """Return the type of a value with its last access time, as Flink's TTL state stores it; asynchronous state has a class of its own."""
    package = _STATE + ("v2.ttl." if asynchronous else "ttl.")
    return _composite(package + "TtlStateFactory$TtlSerializerSnapshot", 2, b"", LONG, value)


def stream_element(value: str | Serializer) -> Serializer:
    """Return the type of elements of windows with an evictor: a value with its timestamp."""
    return _composite(
        _STREAMING + "runtime.streamrecord.StreamElementSerializer$StreamElementSerializerSnapshot", 2, b"", value
    )


def timer(key: str | Serializer, namespace: str | Serializer) -> Serializer:
    """Return the type of elements of timer queues."""
    return _composite(_STREAMING + "api.operators.TimerSerializerSnapshot", 2, b"", key, namespace)


def enum(enum_class: str, names: Sequence[str]) -> Serializer:
    """Return the type of a Java enum from its class name (``com.acme.Order$Color``) and its constants in the order of their ordinals.

    Raises
    ------
    OptionError
        There are no constants, or one occurs twice.
    """
    if isinstance(names, str) or not names or len(set(names)) != len(names):
        raise OptionError(f"the constants of {enum_class} must be a list of different names")
    out = Output()
    out.utf(_BASE + "EnumSerializer$EnumSerializerSnapshot")
    out.i4(3)
    out.utf(enum_class)
    out.i4(len(names))
    for name in names:
        out.utf(name)
    return _read(bytes(out))


def pojo(
    pojo_class: str,
    fields: Mapping[str, str | Serializer],
    *,
    registered: Mapping[str, Serializer] | None = None,
    subclasses: Mapping[str, Serializer] | None = None,
    declared_in: Mapping[str, str] | None = None,
) -> Serializer:
    """Return the type of a POJO or Java record from its class name and fields.

    Parameters
    ----------
    fields
        Types by field name, including inherited fields. They are written sorted by name, as Flink does.
    registered, subclasses
        Types of registered and of other subclasses by class name.
    declared_in
        Class that declares a field, if it is a superclass.

    Raises
    ------
    OptionError
        There are no fields.
    """
    if not fields:
        raise OptionError(f"POJO {pojo_class} has no fields", hint="a class without fields is not a POJO to Flink")
    out = Output()
    out.utf(_RUNTIME + "PojoSerializerSnapshot")
    out.i4(2)
    out.utf(pojo_class)
    owners = declared_in or {}
    write_optional_map(
        out,
        tuple(
            _entry(name, _utf(owners.get(name, pojo_class)) + _utf(name), parse_type(fields[name]))
            for name in sorted(fields)
        ),
    )
    for types in (registered, subclasses):
        write_optional_map(out, tuple(_entry(name, b"", t) for name, t in (types or {}).items()))
    return _read(bytes(out))


def _entry(name: str, key: bytes, value: Serializer) -> OptionalEntry:
    out = Output()
    value.write_snapshot(out)
    return OptionalEntry(name=name, key=key, value=bytes(out), value_at=0)


def avro(schema: Any, *, runtime_class: str = "org.apache.avro.generic.GenericRecord") -> Serializer:
    """Return the type of an Avro record from its schema (JSON text or parsed) and the job's class, if it is not a generic record."""
    out = Output()
    out.utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot")
    out.i4(3)
    write_string(out, runtime_class)
    write_string(out, schema if isinstance(schema, str) else json.dumps(schema))
    return _read(bytes(out))


_SQL_BASIC: Final = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INT,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BINARY": BYTES,
    "DATE": LOCAL_DATE,
    "TIMESTAMP": INSTANT,
    "TIMESTAMP_NTZ": LOCAL_DATE_TIME,
    "DECIMAL": BIG_DECIMAL,
    "VOID": VOID,
}


def _sql_type(name: str, parts: tuple[Serializer, ...]) -> Serializer:
    match name:
        case "ARRAY":
            return list_of(parts[0])
        case "MAP":
            return map_of(*parts)
        case "STRUCT":
            return row(*parts)
    return _SQL_BASIC[name]
