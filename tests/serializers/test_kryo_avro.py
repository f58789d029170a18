"""Values of flink-avro's Kryo serializers: all types of Avro, damage, and schemas that are none."""

from __future__ import annotations

import io
import json
from typing import Any, Final

import fastavro
import pytest

from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs.avro import read_datum
from statetool.serializers.kryo.graph import GraphReader
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.model import Obj, is_other_collection
from statetool.serializers.kryo.text import to_text
from statetool.types.declared import TypeContext

_KRYO: Final = KryoInstance(5, TypeContext(kryo=5), ())
_RECORD: Final = "org.apache.avro.generic.GenericData$Record"
_INNER: Final = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}
_COLOR: Final = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
_TYPES: Final[dict[str, tuple[Any, Any, Any]]] = {
    "flag": ("boolean", True, True),
    "number": ("int", -5, -5),
    "long": ("long", 1 << 40, {"java.lang.Long": 1 << 40}),
    "ratio": ("float", 0.5, {"java.lang.Float": 0.5}),
    "share": ("double", -0.25, -0.25),
    "text": ("string", "é", "é"),
    "raw": ("bytes", b"\x01", {"[B": "AQ=="}),
    "none": (["null", "string"], None, None),
    "some": (["null", "string"], "x", "x"),
    "items": ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    "counts": ({"type": "map", "values": "int"}, {"k": 3}, {"java.util.HashMap": [["k", 3]]}),
    "inner": (_INNER, {"a": 1}, {"shop.Inner": {"a": 1}}),
    "again": ("Inner", {"a": 2}, {"shop.Inner": {"a": 2}}),
    "color": (_COLOR, "BLUE", {"shop.Color": "BLUE"}),
    "fixed": ({"type": "fixed", "name": "Two", "size": 2}, b"ab", {"shop.Two": {"bytes": {"[B": "YWI="}}}),
}
_SCHEMA: Final = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": name, "type": schema} for name, (schema, _, _) in _TYPES.items()],
}  # fmt: skip


def bytes_of(schema: Any, datum: bytes) -> bytes:
    out = Output()
    wire.write_string(out, schema if isinstance(schema, str) else json.dumps(schema), 5)
    out.varint(len(datum))
    return bytes(out) + datum


def read(raw: bytes) -> Any:
    c = Cursor(raw)
    value = read_datum(GraphReader(c, _KRYO), _RECORD, ())
    c.expect_end("a value")
    return value


def order() -> bytes:
    stream = io.BytesIO()
    row = {name: value for name, (_, value, _) in _TYPES.items()}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(_SCHEMA), row)
    return bytes_of(_SCHEMA, stream.getvalue())


def test_all_types() -> None:
    text = to_text(Obj(_RECORD, read(order())), _KRYO)
    assert text is not None
    assert json.loads(text) == {_RECORD: {name: shown for name, (_, _, shown) in _TYPES.items()}}


def test_truncation_is_an_error() -> None:
    raw = order()
    for size in range(len(raw)):
        with pytest.raises(FormatError):
            read(raw[:size])


@pytest.mark.parametrize(
    "schema",
    [
        "no JSON", "5", '"none"', "{}", '{"type": 5}', '{"type": "record", "name": ["a"]}', '{"type": "record", "name": "A"}',
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}', '{"type": "enum", "name": "E"}',
        '{"type": "fixed", "name": "F", "size": -1}', '{"type": "array"}', "[[]]", '"null"',
    ],
)  # fmt: skip
def test_a_schema_that_is_none_is_an_error(schema: str) -> None:
    with pytest.raises(FormatError):
        read(bytes_of(schema, b"\0" * 9))


def _doubled(levels: int) -> Any:
    """Return the schema of a record with 2 ** levels nulls."""
    level: Any = "null"
    for n in range(levels):
        fields = [
            {"name": "a", "type": level},
            {"name": "b", "type": level if isinstance(level, str) else level["name"]},
        ]
        level = {"type": "record", "name": f"R{n}", "fields": fields}
    return level


def test_values_without_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="more than 100000 parts"):
        read(bytes_of(_doubled(30), b""))
    monkeypatch.setattr("statetool.serializers.kryo.codecs.avro._MAX_VALUES", 10_000)
    with pytest.raises(FormatError, match="more than 10,000 Avro values"):
        read(bytes_of({"type": "array", "items": _doubled(10)}, b"\x50\0"))


def test_a_record_inside_of_itself() -> None:
    schema = {
        "type": "record",
        "name": "Node",
        "namespace": "shop.Tree$",
        "fields": [{"name": "next", "type": ["null", "Node"]}],
    }
    text = to_text(Obj(_RECORD, read(bytes_of(schema, b"\2\2\0"))), _KRYO)
    assert json.loads(text or "") == {
        _RECORD: {"next": {"shop.Tree$Node": {"next": {"shop.Tree$Node": {"next": None}}}}}
    }
    with pytest.raises(FormatError, match="nested deeper than 64"):
        read(bytes_of(schema, b"\2" * 100 + b"\0"))


def test_values_of_logical_types_are_those_of_their_base_types() -> None:
    """The serializers read without Avro's conversions."""
    day, cents = {"type": "int", "logicalType": "date"}, {"type": "bytes", "logicalType": "decimal", "precision": 4}
    schema = {"type": "record", "name": "R", "fields": [{"name": "day", "type": day}, {"name": "cents", "type": cents}]}
    assert read(bytes_of(schema, b"\2\2\7")) == {"day": Obj("java.lang.Integer", 1), "cents": Obj("[B", b"\7")}


def test_a_class_whose_name_has_that_of_another_collection_is_none_of_it() -> None:
    sets = "java.util.concurrent.ConcurrentSkipListSet"
    assert is_other_collection("java.util.List", sets)
    assert is_other_collection("java.util.Deque", "java.util.PriorityQueue")
    assert not is_other_collection("java.util.SortedSet", sets)
    assert not is_other_collection("java.util.Queue", "java.util.PriorityQueue")
    assert not is_other_collection("java.util.List", "java.util.concurrent.CopyOnWriteArrayList")
