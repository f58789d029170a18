"""Conversion of plain decoded values to the JSON of the corpora, to compare them exactly.

There are two dialects (``Style``). ``savepoint`` is used for the snapshots of complete jobs (arrays for tuples and lists,
ISO text for times, ``{"$decimal": ...}``), ``serializer`` for the single serializer cases, which keep more of
the Java type (``{"$tuple": ...}``, ``{"$millis": ...}``, ``{"$dec": [unscaled, scale]}``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.java_values import read_java
from statetool.serializers.typeutils.temporal import civil_from_days
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)
from tests.support.expected.kryo import kryo_json, object_of
from tests.support.expected.scalars import (
    Style,
    decimal_json,
    float_json,
    iso_date,
    json_text,
    millis_json,
    sql_date_json,
    sql_time_json,
    sql_timestamp_json,
    time_json,
    timestamp_json,
)
from tests.support.expected.sql import bitmap_list, row_json, slot_json, variant_text

_Encoder = Callable[[Any, Any, Style], Any]
_KIND_WORDS: Final = {"+I": "INSERT", "-U": "UPDATE_BEFORE", "+U": "UPDATE_AFTER", "-D": "DELETE"}
_UNITS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}


def to_json(
    value: Any, logical: LogicalType, serializer: Serializer | None = None, *, style: Style = "savepoint"
) -> Any:
    """Return ``value`` in the corpus's notation.

    Parameters
    ----------
    value
        Plain value (see :mod:`statetool.types.logical`).
    logical
        Its type, which is used if no serializer is given or if the serializer adds no information.
    serializer
        Origin of the value, which distinguishes a tuple from a row, a set from a list, an enum from a string.
    style
        Dialect of the corpus.
    """
    if serializer is not None:
        if value is None and not serializer.nullable:
            return None  # the null of, say, a map's value, not the serializer's null
        for cls in type(serializer).__mro__:
            encode = _BY_CLASS.get(cls.__name__)
            if encode is not None:
                return encode(value, serializer, style)
        name = getattr(getattr(serializer, "spec", None), "name", None)
        simple = _BY_NAME.get(name) if name is not None else None
        if simple is not None:
            return simple(value, serializer, style)
    return _by_type(value, logical, style)


def _child(value: Any, serializer: Serializer, style: Style) -> Any:
    return to_json(value, serializer.logical, serializer, style=style)


# By logical type


def _by_type(value: Any, logical: LogicalType, style: Style) -> Any:
    if isinstance(logical, TtlType):
        inner = _by_type(value[1], logical.value, style)
        return {"ttl_ts": value[0], "value": inner} if style == "serializer" else inner
    if value is None:
        return None
    match logical:
        case Scalar("float32" | "float64"):
            return float_json(value, style)
        case Scalar("binary"):
            return {"$hex": bytes(value).hex()}
        case Scalar("time"):
            return time_json(value, style)
        case Scalar():
            return value
        case BigDecimalType() | DecimalType():
            return decimal_json(value, style)
        case BigIntegerType():
            return {"$bigint": str(value)} if style == "serializer" else {"$decimal": str(value)}
        case DateType():
            return {"$date": list(civil_from_days(value))} if style == "serializer" else iso_date(value)
        case TimestampType(unit, zoned):
            return timestamp_json(value * _UNITS[unit], zoned, style)
        case ListType(element):
            return [_by_type(v, element, style) for v in value]
        case MapType(key, item):
            return _map([(_by_type(k, key, style), _by_type(v, item, style)) for k, v in value], style)
        case StructType(fields):
            return [_by_type(v, f.type, style) for v, f in zip(value, fields, strict=True)]
    raise TypeError(f"no JSON for {logical}")


def _map(pairs: list[tuple[Any, Any]], style: Style) -> Any:
    rows = [list(p) for p in pairs]
    return {"$map": rows} if style == "serializer" else sorted(rows, key=lambda row: json_text(row[0]))


# By simple serializer


def _one_value(name: str) -> _Encoder:
    return lambda value, s, style: {name: True} if style == "serializer" else None


def _variant(value: Any, s: Any, style: Style) -> Any:
    if value is None:
        return None
    text = variant_text(value)
    return {"$json": text} if style == "serializer" else {"$variant": json.loads(text)}


def _bitmap(value: Any, s: Any, style: Style) -> Any:
    if value is None:
        return None
    return bitmap_list(value) if style == "serializer" else {"$bitmap": bitmap_list(value)}


def _window(value: Any, s: Any, style: Style) -> Any:
    if style == "savepoint" and isinstance(value, tuple):
        return {"start": value[0], "end": value[1]}
    return {"$window": list(value) if isinstance(value, tuple) else value}


_BY_NAME: Final[dict[str, _Encoder]] = {
    "Date": millis_json,
    "SqlDate": sql_date_json,
    "SqlTime": sql_time_json,
    "SqlTimestamp": sql_timestamp_json,
    "NullValue": _one_value("$nullvalue"),
    "VoidNamespace": _one_value("$voidns"),
    "TimeWindow": _window,
    "GlobalWindow": _window,
    "CountWindow": _window,
    "Tuple0": lambda value, s, style: {"$tuple": []} if style == "serializer" else [],
    "Java": lambda value, s, style: None if value is None else read_java(value),
    "Variant": _variant,
    "Bitmap": _bitmap,
    "DeweyNumber": lambda value, s, style: ".".join(map(str, value)),
    "NullValueArray": lambda value, s, style: {"$nulls": value},
    "TransactionState": lambda value, s, style: dict(zip(("id", "producer", "epoch"), value, strict=True)),
}


# By class of serializer


def _wrapped(value: Any, s: Any, style: Style) -> Any:
    return None if value is None else _child(value, s.children()[0][1], style)


def _list(value: Any, s: Any, style: Style) -> Any:
    element = s.children()[0][1]
    return [None if v is None else _child(v, element, style) for v in value]


def _set(value: Any, s: Any, style: Style) -> Any:
    items = _list(value, s, style)
    return {"$set": items if style == "serializer" else sorted(items, key=json_text)}


def _map_of(value: Any, s: Any, style: Style) -> Any:
    (_, key), (_, item) = s.children()
    pairs = [
        (None if k is None else _child(k, key, style), None if v is None else _child(v, item, style)) for k, v in value
    ]
    return _map(pairs, style)


def _parts(value: Any, s: Any, style: Style) -> list[Any]:
    return [None if v is None else _child(v, part, style) for v, (_, part) in zip(value, s.children(), strict=False)]


def _tuple(value: Any, s: Any, style: Style) -> Any:
    parts = _parts(value, s, style)
    return {"$tuple": parts} if style == "serializer" else parts


def _row(value: Any, s: Any, style: Style) -> Any:
    kind = value[-1] if s.row_kind else "+I"
    return {"$row": _parts(value, s, style), "kind": kind if style == "serializer" else _KIND_WORDS[kind]}


def _pojo(value: Any, s: Any, style: Style) -> Any:
    if value is None:
        return None
    names = [f.name for f in s.logical.fields]
    row = dict(zip(names, value, strict=True))
    cls = row.pop(s.class_field) if s.open else s.pojo_class
    fields = _pojo_fields(row, cls, s, style)
    if style == "serializer":
        return {"$class": cls, "fields": fields}
    return {"$class": cls, **fields} if s.open else fields


def _pojo_fields(row: dict[str, Any], cls: str, s: Any, style: Style) -> dict[str, Any]:
    known = dict((*s.registered, *s.others))
    target = s if cls == s.pojo_class else known[cls]
    if not hasattr(target, "pojo_class"):
        # A subclass that is not a POJO (Kryo): one column has the complete value.
        (value,) = (v for v in row.values() if v is not None)
        return {"value": _child(value, target, style)}
    return {name: _child_or_none(row.get(f"{cls}.{name}", row.get(name)), part, style) for name, part in target.fields}


def _child_or_none(value: Any, part: Serializer, style: Style) -> Any:
    return None if value is None else _child(value, part, style)


def _enum(value: Any, s: Any, style: Style) -> Any:
    return value if value is None or style == "savepoint" else {"$enum": value}


def _choice(*words: str) -> _Encoder:
    def encode(value: Any, s: Any, style: Style) -> Any:
        side = 0 if value[0] is not None else 1
        return {words[side]: _child(value[side], s.children()[side][1], style)}

    return encode


def _option(value: Any, s: Any, style: Style) -> Any:
    return {"$optional": _wrapped(value, s, style)}


def _timer(value: Any, s: Any, style: Style) -> Any:
    (_, key), (_, namespace) = s.children()
    return {
        "timestamp": value[0],
        "key": _child(value[1], key, style),
        "namespace": _child(value[2], namespace, style),
    }


def _ttl(value: Any, s: Any, style: Style) -> Any:
    inner = _child_or_none(value[1], s.children()[1][1], style)
    return {"ttl_ts": value[0], "value": inner} if style == "serializer" else inner


def _named(**names: int | str) -> _Encoder:
    """Name the parts of a struct: JSON name to position of the part, with ``child`` where a serializer is nested."""

    def encode(value: Any, s: Any, style: Style) -> Any:
        types = [f.type for f in s.logical.fields]
        nested = {step: part for step, part in s.children()}
        fields = {}
        for name, at in names.items():
            i = int(str(at).partition(":")[0])
            step = str(at).partition(":")[2]
            part = nested.get(step)
            fields[name] = to_json(value[i], types[i], part, style=style) if value[i] is not None else None
        return fields

    return encode


def _stream_element(value: Any, s: Any, style: Style) -> Any:
    inner, timestamp, element, marker = value
    if element == "record":
        record = _child_or_none(inner, s.children()[0][1], style)
        return ["rec", timestamp, record] if style == "serializer" else {"value": record, "timestamp": timestamp}
    operator_id, subtask, idle, backlog = marker or ("", None, None, None)
    match element:
        case "watermark":
            return ["wm", timestamp]
        case "latency_marker":
            halves = [int.from_bytes(bytes.fromhex(operator_id)[i : i + 8], "big", signed=True) for i in (0, 8)]
            return ["lat", timestamp, *halves, subtask]
        case "watermark_status":
            return ["status", -1 if idle else 0]
        case "record_attributes":
            return ["attr", backlog]
    return ["iwm", subtask, timestamp]


def _transactions(value: Any, s: Any, style: Style) -> Any:
    (_, transaction), (_, context) = s.children()
    pending, commit, held = value

    def holder(pair: Any) -> Any:
        return None if pair is None else [_child(pair[0], transaction, style), pair[1]]

    return {
        "pending": holder(pending),
        "commit": [holder(p) for p in commit],
        "context": _child_or_none(held, context, style),
    }


def _node_id(value: Any, s: Any, style: Style) -> Any:
    return None if value is None else [*value[0], value[1]]


def _edge(value: Any, s: Any, style: Style) -> Any:
    (_, node), (_, dewey) = s.children()
    return [_child(value[0], node, style), _child(value[1], dewey, style)]


def _cep_node(value: Any, s: Any, style: Style) -> Any:
    part = s.children()[0][1]
    if isinstance(part.logical, ListType):
        return _child(value[0], part, style)
    return [[count, _child(edge, part, style)] for count, edge in value[0]]


def _nfa_state(value: Any, s: Any, style: Style) -> Any:
    dewey, node, event = (part for _, part in s.children())

    def match(m: Any) -> list[Any]:
        state, previous, version, start, previous_ms, first = m
        return [
            state,
            _child_or_none(previous, node, style),
            _child(version, dewey, style),
            start,
            previous_ms,
            _child_or_none(first, event, style),
        ]

    return [[match(m) for m in matches] for matches in value]


def _avro(value: Any, s: Any, style: Style) -> Any:
    return _avro_record(value, s.logical, style)


def _avro_record(value: Any, logical: LogicalType, style: Style) -> Any:
    if value is None:
        return None
    match logical:
        case StructType(fields):
            return {f.name: _avro_record(v, f.type, style) for f, v in zip(fields, value, strict=True)}
        case ListType(element):
            return [_avro_record(v, element, style) for v in value]
        case MapType(_, item):
            return {k: _avro_record(v, item, style) for k, v in value}
    return _by_type(value, logical, style)


def _timestamp_data(value: Any, s: Any, style: Style) -> Any:
    if style == "savepoint":
        return _by_type(value, s.logical, style)
    nanos = value * _UNITS[s.logical.unit]
    return {"$ts": [nanos // 1_000_000, nanos % 1_000_000]}


def _serializer_child(value: Any, s: Any) -> Any:
    return _child(value, s, "serializer")


def _row_data(value: Any, s: Any, style: Style) -> Any:
    fields = [slot_json(v, f, "serializer", _serializer_child) for v, f in zip(value, s.format.fields, strict=False)]
    return row_json(value[-1] if s.row_kind else "+I", fields, "serializer")


def _external(value: Any, s: Any, style: Style) -> Any:
    internal = _child(value, s.internal, style)
    if isinstance(internal, dict) and "$rowdata" in internal:
        return {"$row": internal["$rowdata"], "kind": internal["kind"]}
    return internal


def _kryo(value: Any, s: Any, style: Style) -> Any:
    if value is None or s.needs_frame:
        return _by_type(value, s.logical, style)
    return kryo_json(object_of(s, value), style, _by_type)


def _written(value: Any, s: Any, style: Style) -> Any:
    fields = {f.name: _by_type(v, f.type, style) for f, v in zip(s.logical.fields, value, strict=True)}
    if style == "savepoint":
        return fields
    own = s.type_class.startswith("org.apache.flink.")  # Flink's cases are described differently
    return {"$class": s.type_class, **fields} if own else {"$class": s.type_class, "fields": fields}


_BY_CLASS: Final[dict[str, _Encoder]] = {
    "DataOutputSerializer": _written,
    "KryoSerializer": _kryo,
    "BufferEntrySerializer": _named(joined=0, element="1:element"),
    "LockableSerializer": _named(refs=0, element="1:part0"),
    "WindowKeySerializer": _named(window=0, key="1:key"),
    "StreamElementSerializer": _stream_element,
    "TransactionsSerializer": _transactions,
    "NodeIdSerializer": _node_id,
    "EdgeSerializer": _edge,
    "NodeSerializer": _cep_node,
    "NfaStateSerializer": _nfa_state,
    "AvroSerializer": _avro,
    "TimestampDataSerializer": _timestamp_data,
    "RawValueSerializer": lambda value, s, style: {"$raw": _wrapped(value, s, style)},
    "ExternalSerializer": _external,
    "RowDataSerializer": _row_data,
    "ArrayDataSerializer": lambda value, s, style: slot_json(value, s.format, "serializer", _serializer_child),
    "MapDataSerializer": lambda value, s, style: slot_json(value, s.format, "serializer", _serializer_child),
    "SqnNodeSerializer": _named(
        row="0:row",
        sqn="1:sqn",
        prev="2:previous",
        next="3:next",
        nextForRecord="4:next_for_record",
        timestamp="5:timestamp",
    ),
    "LinkedListSerializer": _list,
    "TraversableSerializer": _list,
    "NullableSerializer": _wrapped,
    "WrapperSerializer": _wrapped,
    "TtlAwareSerializer": _wrapped,
    "GenericArraySerializer": _list,
    "SetSerializer": _set,
    "ListSerializer": _list,
    "MapSerializer": _map_of,
    "TupleSerializer": _tuple,
    "RowSerializer": _row,
    "PojoSerializer": _pojo,
    "EnumSerializer": _enum,
    "UnionSerializer": _choice("$one", "$two"),
    "TrySerializer": _choice("$success", "$failure"),
    "EitherSerializer": _choice("$left", "$right"),
    "OptionSerializer": _option,
    "TimerSerializer": _timer,
    "TtlSerializer": _ttl,
}
