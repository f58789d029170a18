"""Avro: Flink's encoding byte by byte, recursion, logical types, damaged schemas."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from statetool.errors import EncodeError, FormatError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.table import snapshot_reader
from statetool.types import DateType, DecimalType, ListType, Scalar, StructType, TimestampType
from statetool.types.options import ReadOptions
from tests.support.checks.contract import SerializerContract
from tests.support.values.arrow_columns import by_kernels


class TestGeneric(SerializerContract):
    """Bytes of Flink's ``AvroSerializer`` (``avro/java``)."""

    names = (
        "avro-primitives", "avro-unions", "avro-nested", "avro-tree", "avro-mutual", "avro-names", "avro-logical",
    )  # fmt: skip


class TestClasses(SerializerContract):
    names = ("avro-specific", "avro-reflect", "avro-reflect-text", "avro-reflect-enum")


class TestOldSchemas(SerializerContract):
    names = ("avro-snapshot-1", "avro-snapshot-2", "avro-evolved-before", "avro-evolved-after")


def _avro(schema: Any) -> AvroSerializer:
    return AvroSerializer(
        "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot", 3, "x.Y", json.dumps(schema)
    )


def _bytes(s: AvroSerializer, value: Any) -> str:
    out = Output()
    s.encode(out, value)
    c = Cursor(bytes(out))
    assert s.decode(c) == value
    assert c.left == 0
    return bytes(out).hex()


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("int", -2, "fffffffe"),
        ("long", 1, "0000000000000001"),
        ("float", 1.5, "3fc00000"),
        ("double", 1.5, "3ff8000000000000"),
        ("boolean", True, "01"),
        ("string", "aé", "0000000361c3a9"),
        ("bytes", b"\x01", "0000000101"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "6162"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "00000001"),
        (["null", "int"], None, "00000000"),
        (["null", "int"], 7, "0000000100000007"),
        (["string", "null", "int"], (None, 7), "0000000200000007"),
        ({"type": "array", "items": "int"}, [], "00"),
        ({"type": "array", "items": "int"}, [1, 2], "02000000010000000200"),
        ({"type": "array", "items": "boolean"}, [True] * 200, "c801" + "01" * 200 + "00"),
        ({"type": "map", "values": "int"}, [("k", 1)], "01000000016b0000000100"),
    ],
)
def test_flinks_own_encoding(schema: Any, value: Any, expected: str) -> None:
    assert _bytes(_avro(schema), value) == expected


def test_several_blocks_are_one_array() -> None:
    """Flink writes one block; the encoding allows any number."""
    s = _avro({"type": "array", "items": "boolean"})
    values = [bytes.fromhex(text) for text in ("0101" + "020000" + "00", "00", "0100" + "00", "0101" * 9 + "00")]
    expected = [[True, False, False], [], [False], [True] * 9]
    assert [s.decode(Cursor(v)) for v in values] == expected
    bounds = [sum(map(len, values[:i])) for i in range(len(values) + 1)]
    column, ends = by_kernels(s, b"".join(values), bounds[:-1], bounds[1:], ReadOptions())
    assert column.to_pylist() == expected
    assert ends == bounds[1:]


def test_logical_types() -> None:
    s = _avro(
        {"type": "record", "name": "R", "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "here", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "odd", "type": {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}},
        ]}
    )  # fmt: skip
    assert isinstance(s.logical, StructType)
    assert [f.type for f in s.logical.fields] == [
        DateType(), TimestampType("ms", zoned=True), TimestampType("us", zoned=False), DecimalType(9, 2), Scalar("string"),
        Scalar("binary"),
    ]  # fmt: skip
    assert _bytes(s, (1, 2, 3, Decimal("-1.28"), "u", b"")).endswith("0000000180" + "0000000175" + "00000000")


def test_a_record_inside_of_itself_is_its_exact_bytes() -> None:
    s = _avro(
        {"type": "record", "name": "Node", "namespace": "a.b", "fields": [
            {"name": "value", "type": "int"}, {"name": "next", "type": ["null", "Node"]},
            {"name": "children", "type": {"type": "array", "items": "a.b.Node"}},
        ]}
    )  # fmt: skip
    assert isinstance(s.logical, StructType)
    assert [f.type for f in s.logical.fields] == [Scalar("int32"), Scalar("binary"), ListType(Scalar("binary"))]
    leaf = bytes.fromhex("00000005" + "00000000" + "00")
    assert _bytes(s, (1, leaf, [leaf, leaf])) == "00000001" + "00000001" + leaf.hex() + "02" + leaf.hex() * 2 + "00"
    with pytest.raises(FormatError):
        s.encode(Output(), (1, leaf[:-1], []))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("int", True), ("int", "x"), ("int", 1 << 31), ("string", b"x"), ("string", "\ud800"), ("null", 0),
        (["null", "int", "string"], (1, "x")), (["int"], None), ({"type": "fixed", "name": "F", "size": 2}, b"a"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"), ({"type": "array", "items": "int"}, 3),
        ({"type": "int", "logicalType": "time-millis"}, 1),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, Decimal("0.01")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, Decimal(100)),
    ],
)  # fmt: skip
def test_what_it_cannot_hold_is_refused(schema: Any, value: Any) -> None:
    with pytest.raises(EncodeError):
        _avro(schema).encode(Output(), value)


@pytest.mark.parametrize(
    "schema",
    [
        '"nothing"', "[", "3", '{"type": "record", "name": "R"}', '{"type": "record", "name": 3, "fields": []}',
        '{"type": "fixed", "name": "F", "size": -1}', '{"type": "enum", "name": "E", "symbols": [1]}', '{"items": "int"}',
        "[" * 200 + "]" * 200, '{"type": "array", "items": {"type": "map"}}',
    ],
)  # fmt: skip
def test_schemas_that_are_none(schema: str) -> None:
    out = Output()
    out.utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot")
    out.i4(2)
    out.utf("x.Y")
    out.utf(schema)
    with pytest.raises(FormatError, match="Avro schema"):
        snapshot_reader().snapshot(Cursor(bytes(out)))


def test_names_that_stand_for_ever_more_parts() -> None:
    fields: list[Any] = [{"name": "a", "type": "int"}]
    schema: Any = {"type": "record", "name": "R0", "fields": fields}
    for i in range(1, 40):
        parts = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{i - 1}"}]
        schema = {"type": "record", "name": f"R{i}", "fields": parts}
    with pytest.raises(ValueError, match="more than"):
        _avro(schema)


def test_a_decimal_of_more_bytes_than_it_needs() -> None:
    """Generic records keep the user's bytes; an edited value is written in the form of ``BigDecimal``."""
    s = _avro({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    assert s.decode(Cursor(bytes.fromhex("0000000400000001"))) == Decimal("0.01")
