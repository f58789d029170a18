"""Objects as JSON text, for types that do not determine their values (``Object``, a ``List`` without its element type).

``null``, ``Boolean``, ``Integer``, finite ``Double``, ``String`` and ``ArrayList`` are JSON values; everything else is an object with
one member, named like the class: ``{"java.lang.Long": 2}``, ``{"java.util.HashMap": [["a", 1]]}``,
``{"com.acme.Order": {"id": 1}}``. Fields of a declared class have no such wrapper if the declaration determines their class.
A JSON tree of Jackson has the members ``json`` and ``node_types`` (:mod:`statetool.serializers.kryo.codecs.jackson`).
The only information lost is that two places refer to the same object.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.serializers.kryo import model
from statetool.serializers.kryo.codecs import iso, jackson, libraries, messages, scala
from statetool.serializers.kryo.graph import fields_of
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import Headed, Obj, box_class
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    ListType,
    LogicalType,
    Scalar,
    StructType,
    TimestampType,
)
from statetool.types.java import PRIMITIVES, JavaType, from_binary_name

_LIST: Final = "java.util.ArrayList"
_JSON_TYPES: Final = {
    "java.lang.Boolean": bool,
    "java.lang.Integer": int,
    "java.lang.Double": float,
    "java.lang.String": str,
    _LIST: list,
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNITS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_JAVA_HEAD: Final = b"\xac\xed\x00\x05"
_PLAIN_NAN: Final = 0x7FF8_0000_0000_0000


def to_text(obj: Obj | None, kryo: KryoInstance) -> str | None:
    """Return an object as JSON text, null as ``None``."""
    if obj is None:
        return None
    return as_json(_tree(obj, None, kryo))


def as_json(tree: Any) -> str:
    """Return JSON text; lone surrogates are escaped."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def from_text(text: str | None, kryo: KryoInstance) -> Obj | None:
    """Return the object of a JSON text.

    Raises
    ------
    EncodeError
        Not JSON in the form of :func:`to_text`.
    """
    if text is None:
        return None
    return _object(of_json(text), None, kryo)


def of_json(text: Any) -> Any:
    """Parse JSON text."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, TypeError, RecursionError) as e:
        raise EncodeError(f"not the JSON of a Java object: {e}") from e


def pojo_tree(kryo: KryoInstance) -> jackson.OfPojo:
    """Return the conversion of any object inside a JSON tree to JSON."""
    return lambda obj: _tree(obj, None, kryo)


def pojo_object(kryo: KryoInstance) -> jackson.OfPojo:
    """Return the conversion of JSON of :func:`pojo_tree` to an object."""
    return lambda tree: _object(tree, None, kryo)


def _wraps(obj: Obj, static: JavaType | None, kryo: KryoInstance) -> bool:
    if static is not None and (
        static.name in PRIMITIVES or (kryo.classes.is_final(static) and static.binary_name == obj.cls)
    ):
        return False
    if obj.cls == "java.lang.Double":
        return not math.isfinite(obj.value)
    return obj.cls not in _JSON_TYPES


def _tree(obj: Obj | None, static: JavaType | None, kryo: KryoInstance) -> Any:
    if obj is None:
        return None
    body = _body(obj, kryo)
    return {obj.cls: body} if _wraps(obj, static, kryo) else body


def _body(obj: Obj, kryo: KryoInstance) -> Any:
    scalar = kryo.registry.body(box_class(obj.cls))
    if scalar is not None:
        return _scalar(obj.value, scalar.logical)
    value = obj.value
    declared = kryo.classes.declared(obj.cls)
    if isinstance(value, bytes) and declared is not None and kryo.is_message(obj.cls):
        return messages.to_tree(declared, value, kryo.thrift)
    if isinstance(value, bytes):
        code = base64.b64encode(value).decode("ascii")
        return code if obj.cls == "[B" else {**_throwable_message(value), "java": code}
    if isinstance(value, dict) and kryo.is_tree(obj.cls):
        tree, node_types = jackson.to_tree(obj, pojo_tree(kryo))
        return {"json": tree, **({"node_types": node_types} if node_types else {})}
    if isinstance(value, dict):
        kinds = dict(fields_of(declared, (), kryo.gen)) if declared is not None else {}
        return {n: _tree(v, kinds.get(n), kryo) for n, v in value.items()}
    if isinstance(value, Headed):
        items = _elements(obj, value.items, kryo)
        match value.header:
            case None:
                return items
            case str(name):
                return {"class": name, "elements": items}
            case header:
                return {"comparator": _tree(header, None, kryo), "elements": items}
    if isinstance(value, list):
        return _elements(obj, value, kryo)
    return _tree(value, None, kryo) if value is None or isinstance(value, Obj) else value


def _throwable_message(stream: bytes) -> dict[str, Any]:
    """Return the message of a ``Throwable`` in Java serialization."""
    if not stream.startswith(_JAVA_HEAD):
        return {}
    throwable = read_java_stream(Cursor(stream))
    message = throwable.fields.get("detailMessage") if isinstance(throwable, JavaObject) else None
    return {} if message is None else {"message": str(message)}


def _elements(obj: Obj, items: list[Any], kryo: KryoInstance) -> list[Any]:
    static = from_binary_name(obj.cls).args[0] if obj.cls.startswith("[") else None
    if isinstance(obj.value, Headed) and obj.cls in model.ENUM_SETS:
        return [item.value for item in items]
    return [
        [_tree(part, None, kryo) for part in item] if isinstance(item, tuple) else _tree(item, static, kryo)
        for item in items
    ]


def _scalar(value: Any, logical: LogicalType) -> Any:
    if value is None:
        return None
    match logical:
        case Scalar("float32" | "float64"):
            return _float(value)
        case Scalar("time"):
            return iso.time_text(value)
        case BigDecimalType():
            return str(value)
        case BigIntegerType():
            return str(Decimal(value))
        case DateType():
            return iso.date_text(value)
        case TimestampType(unit, zoned):
            return iso.date_time_text(value * _UNITS[unit]) + ("Z" if zoned else "")
        case StructType(fields):
            return {f.name: _scalar(v, f.type) for f, v in zip(fields, value, strict=True)}
        case Scalar("binary"):
            return base64.b64encode(value).decode("ascii")
    return value


def _float(value: float) -> Any:
    if math.isfinite(value):
        return value
    if not math.isnan(value):
        return "Infinity" if value > 0 else "-Infinity"
    bits = int.from_bytes(struct.pack(">d", value), "big")
    return "NaN" if bits == _PLAIN_NAN else f"NaN:{bits:016x}"


# ---- from JSON ----------------------------------------------------------------------------------------------------


def _object(tree: Any, static: JavaType | None, kryo: KryoInstance) -> Obj | None:
    if tree is None:
        return None
    if static is not None and (static.name in PRIMITIVES or kryo.classes.is_final(static)):
        return _object_of_class(static.name if static.name in PRIMITIVES else static.binary_name, tree, kryo)
    if isinstance(tree, dict):
        if len(tree) != 1:
            raise EncodeError(f"an object with one member, the class, is expected, not {', '.join(tree)}")
        ((name, body),) = tree.items()
        return _object_of_class(name, body, kryo)
    for name, kind in _JSON_TYPES.items():
        if type(tree) is kind:
            return _object_of_class(name, tree, kryo)
    raise EncodeError(f"{tree!r} is not the JSON of a Java object")


def _object_of_class(name: str, tree: Any, kryo: KryoInstance) -> Obj:
    scalar = kryo.registry.body(box_class(name))
    if scalar is not None:
        return Obj(name, _unscalar(tree, scalar.logical))
    declared = kryo.classes.declared(name)
    if declared is not None and kryo.is_message(name):
        return Obj(name, messages.from_tree(declared, tree))
    if name in model.HOLDERS or name in scala.HOLDERS or kryo.registry.container(name) is libraries.WRAPPED:
        return Obj(name, _object(tree, None, kryo))
    if tree is None and kryo.is_scala_object(name):
        return Obj(name, None)
    if name == "[B":
        return Obj(name, _bytes(tree))
    if isinstance(tree, dict) and "java" in tree and (declared is None or declared.kind == "java"):
        return Obj(name, _bytes(tree["java"]))
    if kryo.is_tree(name):
        if not isinstance(tree, dict) or "json" not in tree or not tree.keys() <= {"json", "node_types"}:
            raise EncodeError(f"{tree!r} does not have the members json and node_types of {name}")
        return jackson.from_tree(name, tree["json"], tree.get("node_types"), pojo_object(kryo))
    if declared is not None and declared.kind in ("record", "written"):
        if not isinstance(tree, dict):
            raise EncodeError(f"{tree!r} does not have the fields of {name}")
        kinds = dict(fields_of(declared, (), kryo.gen))
        return Obj(name, {n: _object(v, kinds.get(n), kryo) for n, v in tree.items()})
    if declared is not None and declared.kind == "enum":
        return Obj(name, tree)
    return Obj(name, _container(name, tree, kryo))


def _container(name: str, tree: Any, kryo: KryoInstance) -> Any:
    header: Obj | str | None = None
    if isinstance(tree, dict):
        header = tree["class"] if "class" in tree else _object(tree.get("comparator"), None, kryo)
        tree = tree.get("elements")
    if not isinstance(tree, list):
        raise EncodeError(f"{tree!r} are not the elements of a {name}")
    declared = kryo.classes.declared(name)
    items: list[Any]
    if (
        name in model.MAP_LIKE
        or kryo.registry.container(name) in libraries.MAPS
        or (declared is not None and declared.kind == "map")
    ):
        items = [tuple(_object(part, None, kryo) for part in pair) for pair in tree]
    else:
        static = from_binary_name(name).args[0] if name.startswith("[") else None
        if name in model.ENUM_SETS and isinstance(header, str):
            items = [Obj(header, item) for item in tree]
        else:
            items = [_object(item, static, kryo) for item in tree]
    headed = name in model.SORTED or name in (model.SORTED_MAP, model.SKIP_LIST_MAP) or header is not None
    return Headed(header, items) if headed else items


def _bytes(tree: Any) -> bytes:
    try:
        return base64.b64decode(tree, validate=True)
    except (binascii.Error, TypeError, ValueError) as e:
        raise EncodeError(f"{tree!r} is not base64") from e


def _parse_float(value: Any) -> float:
    if isinstance(value, str) and value.startswith("NaN:"):
        return float(struct.unpack(">d", bytes.fromhex(value[4:]))[0])
    return float(value)


def _unscalar(tree: Any, logical: LogicalType) -> Any:
    if tree is None:
        return None
    try:
        match logical:
            case Scalar("float32" | "float64"):
                return _parse_float(tree)
            case Scalar("time"):
                return iso.parse_time(tree)
            case BigDecimalType():
                return Decimal(tree)
            case BigIntegerType():
                return int(tree)
            case DateType():
                return iso.parse_date(tree)
            case TimestampType(unit, zoned):
                nanos, rest = iso.parse_date_time(tree)
                if rest != ("Z" if zoned else ""):
                    raise EncodeError(f"{tree!r} ends in {rest!r}")
                return nanos // _UNITS[unit]
            case ListType(element):
                return [_unscalar(v, element) for v in tree]
            case StructType(fields):
                return tuple(_unscalar(tree[f.name], f.type) for f in fields)
            case Scalar("binary"):
                return _bytes(tree)
    except (KeyError, InvalidOperation, ValueError) as e:
        if isinstance(e, EncodeError):
            raise
        raise EncodeError(f"{tree!r} is not a value of {logical}") from e
    return tree
