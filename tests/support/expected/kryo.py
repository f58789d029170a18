"""Objects written by Kryo as the JSON of the corpora (see :mod:`tests.support.expected.values`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.serializers.kryo import model
from statetool.serializers.kryo.codecs.scalars import SCALARS
from statetool.serializers.kryo.codecs.times import TIMES
from statetool.serializers.kryo.model import Headed, Obj, box_class
from statetool.types import LogicalType
from tests.support.expected.scalars import Style, json_text

ByType = Callable[[Any, LogicalType, Style], Any]
_BODIES: Final = {**SCALARS, **TIMES}
_PRINTED: Final = (
    "java.util.BitSet", "java.lang.Class", "java.util.Currency", "java.time.Duration", "java.util.Locale",
    "java.lang.StringBuilder", "java.net.URI", "java.time.ZonedDateTime",
)  # fmt: skip
_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"


def kryo_json(obj: Obj | None, style: Style, by_type: ByType) -> Any:
    """Return an object in the corpus's notation."""
    if obj is None:
        return None
    body = _BODIES.get(box_class(obj.cls))
    if body is not None:
        return _scalar(obj, body.logical, style, by_type)
    items: Any = obj.value.items if isinstance(obj.value, Headed) else obj.value
    if isinstance(items, bytes):
        return {"$hex": items.hex()} if obj.cls == "[B" else _throwable(items)
    if isinstance(items, dict):
        fields = {n: kryo_json(v, style, by_type) for n, v in items.items()}
        if obj.cls.startswith(_TUPLE):
            parts = [fields[f"f{i}"] for i in range(len(fields))]
            return {"$tuple": parts} if style == "serializer" else parts
        if obj.cls.startswith("org.apache.flink.") and style == "serializer":
            return {"$class": obj.cls, **fields}  # Flink's cases are described differently
        return {"$class": obj.cls, "fields": fields} if style == "serializer" else fields
    if isinstance(items, str):
        return {"$enum": items} if style == "serializer" else items
    if obj.cls in model.HOLDERS:
        return {"$optional": kryo_json(items, style, by_type)}
    if obj.cls in model.MAP_LIKE:
        pairs = [[kryo_json(p, style, by_type) for p in pair] for pair in items]
        return {"$map": pairs} if style == "serializer" else sorted(pairs, key=lambda p: json_text(p[0]))
    elements = [kryo_json(i, style, by_type) for i in items]
    if style == "savepoint" and "Set" in obj.cls and not obj.cls.startswith("["):
        return {"$set": sorted(elements, key=json_text)}
    return elements


def _throwable(stream: bytes) -> Any:
    error = read_java_stream(Cursor(stream))
    assert isinstance(error, JavaObject)
    message = error.fields["detailMessage"]
    return {"$java": error.cls.name.rpartition("$")[2], "message": None if message is None else str(message)}


def _scalar(obj: Obj, logical: LogicalType, style: Style, by_type: ByType) -> Any:
    value = obj.value
    if style == "savepoint":
        return by_type(value, logical, style)
    if obj.cls in ("java.util.Date", "java.sql.Date", "java.sql.Time"):
        return {"$millis": value}
    if obj.cls == "java.sql.Timestamp":
        return {"$timestamp": [value // 1_000_000, value % 1_000_000_000]}
    if obj.cls == "java.util.UUID":
        return {"$uuid": value}
    if obj.cls in _PRINTED:
        text = {
            "java.util.BitSet": lambda: "{" + ", ".join(map(str, value)) + "}",
            "java.lang.Class": lambda: f"class {value}",
        }
        return {"$str": text.get(obj.cls, lambda: value)(), "class": obj.cls}
    return by_type(value, logical, style)


def object_of(serializer: Any, value: Any) -> Obj:
    """Return the object of a plain value of a Kryo serializer."""
    obj = serializer._view.object(value)
    assert isinstance(obj, Obj)
    return obj


def without_kryo(value: dict[str, Any]) -> Any:
    """Drop the wrapper that marks values written by Kryo."""
    return value["value"] if value.keys() == {"$kryo", "value"} else value
