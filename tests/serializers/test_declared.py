"""User declarations: fields of ``Value`` classes, Avro schemas of classes, messages, JSON of declarations."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import DecodeError, EncodeError, FormatError, OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.declaring import classes as declarations
from statetool.java.declaring.classes import read_declarations
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import serializer_snapshot
from statetool.types.avro_java import classes_of_schema
from statetool.types.declared import ClassDeclaration, TypeContext, class_of_fields, enum_of, from_json, to_json
from statetool.types.java import from_binary_name, parse_java_type
from tests.support.corpora.kryo_golden import encoded, of_type
from tests.support.snapshots import build


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "DECLARED", declarations.DeclaredClasses())


def bound(snapshot: bytes, *classes: ClassDeclaration) -> Serializer:
    return snapshot_reader(TypeContext(kryo=5, classes=classes)).snapshot(Cursor(snapshot))


def value_snapshot(cls: str) -> bytes:
    out = Output()
    out.utf("org.apache.flink.api.java.typeutils.runtime.ValueSerializer$ValueSerializerSnapshot")
    out.i4(2)
    out.utf(cls)
    return bytes(out)


def test_a_value_class_is_read_in_the_order_of_its_write_method() -> None:
    inner = class_of_fields("a.Inner", {"y": "double", "x": "org.apache.flink.types.StringValue"})
    outer = class_of_fields("a.Outer", {"s": "String", "n": "int", "in": "a.Inner", "raw": "byte[]"})
    s = bound(value_snapshot("a.Outer"), inner, outer)
    raw = b"\0\1k\0\0\0\5" + bytes.fromhex("3ff8000000000000") + b"\1q" + b"\0\0\0\2\1\2"
    value = ("k", 5, (1.5, "q"), b"\1\2")
    assert s.decode(Cursor(raw)) == value
    assert encoded(s, value) == raw
    assert not s.needs_frame
    with pytest.raises(FormatError, match="s"):
        s.decode(Cursor(raw[:2]))
    with pytest.raises(EncodeError):
        encoded(s, ("k", None, (1.5, "q"), b""))


def test_a_value_class_with_a_type_that_data_output_does_not_write_is_refused() -> None:
    with pytest.raises(OptionError, match=r"java.util.List<java.lang.String>"):
        bound(value_snapshot("a.B"), class_of_fields("a.B", {"x": "List<String>"}))


def test_an_avro_schema_declares_a_class_and_those_inside() -> None:
    schema = {
        "type": "record", "name": "Order", "namespace": "com.acme", "java-extends": ["com.acme.Base"],
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "count", "type": ["null", "int"]},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "sizes", "type": {"type": "map", "values": "long"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "when", "type": {"type": "long", "java-type": "java.util.Date"}},
            {"name": "color", "type": {"type": "enum", "name": "Color", "java-class": "com.acme.Order$Color", "symbols": ["R", "G"]}},
            {"name": "other", "type": ["null", "Color"]},
            {"name": "ids", "type": "bytes", "java-type": "java.util.Set<java.util.UUID>"},
        ],
    }  # fmt: skip
    order, color = sorted(classes_of_schema(schema), key=lambda c: c.kind, reverse=True)
    assert color == enum_of("com.acme.Order$Color", ["R", "G"])
    assert order.extends == ("com.acme.Base",)
    assert {n: str(t) for n, t in order.fields} == {
        "id": "long",
        "count": "java.lang.Integer",
        "tags": "java.util.List<java.lang.String>",
        "sizes": "java.util.Map<java.lang.String, java.lang.Long>",
        "at": "java.time.Instant",
        "when": "java.util.Date",
        "color": "com.acme.Order$Color",
        "other": "com.acme.Order$Color",
        "ids": "java.util.Set<java.util.UUID>",
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "record", "name": "A", "fields": [{"name": "x"}]},
        {"type": "record", "name": "A", "fields": [{"name": "x", "type": ["int", "string"]}]},
        {"type": "record", "name": "A", "fields": [{"name": "x", "type": "Unknown"}]},
    ],
)
def test_other_schemas_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        classes_of_schema(schema)


def test_schema_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text('{"type":"record","name":"a.A","fields":[]}')
    (tmp_path / "b.avsc").write_text('[{"type":"enum","name":"a.B","symbols":["X"]}]')
    (tmp_path / "readme.txt").write_text("no schema")
    assert [c.name for c in read_declarations(tmp_path)] == ["a.A", "a.B"]
    statetool.declare_from(tmp_path / "a.avsc")
    assert [c.name for c in declarations.declared_classes()] == ["a.A"]
    (tmp_path / "c.avsc").write_bytes(b"{\xff}")
    with pytest.raises(OptionError, match=r"not UTF-8.*c\.avsc"):
        read_declarations(tmp_path)
    (tmp_path / "c.avsc").write_text("{")
    with pytest.raises(OptionError, match=r"c\.avsc"):
        read_declarations(tmp_path)


def test_declare_takes_fields_constants_and_schemas() -> None:
    assert statetool.declare("a.P", {"type": "String", "id": "long"}).fields[0][0] == "type"
    assert statetool.declare("a.E", ["X", "Y{}"]).bodies == ("Y",)
    assert statetool.declare("a.R", '{"type":"record","name":"R","fields":[]}').name == "a.R"
    with pytest.raises(OptionError, match="not a Java type"):
        statetool.declare("a.Q", {"x": "List<"})


@pytest.mark.parametrize(
    "text", ["int", "java.lang.String[][]", "java.util.Map<java.lang.String, a.B<a.C>[]>", "json:a.B<a.C>"]
)
def test_java_types_are_printed_as_they_are_parsed(text: str) -> None:
    assert str(parse_java_type(text)) == text


@pytest.mark.parametrize("name", ["int", "[I", "[[J", "[Ljava.lang.String;", "a.B$C"])
def test_binary_names(name: str) -> None:
    assert from_binary_name(name).binary_name == name


def test_declarations_survive_being_text() -> None:
    classes = (
        class_of_fields("a.A", {"x": "json:List<T>"}, parameters=["T"], extends=["a.B"], record=True, generic=True),
        enum_of("a.E", ["X", "Y{}"]),
        ClassDeclaration(name="a.P", kind="protobuf", descriptor=b"\1\2", message="p.P"),
    )
    for c in classes:
        assert from_json(json.loads(json.dumps(to_json(c)))) == c


def test_types_of_fields_get_the_serializers_of_type_extraction() -> None:
    context = TypeContext(kryo=5, classes=(enum_of("a.E", ["X"]),))
    names = {
        "List<String>": "Nullable<List<Nullable<String>>>",
        "Set<Long>": "Nullable<Set<Long>>",
        "Map<String, Integer>": "Nullable<Map<Nullable<String>, Int>>",
        "int[]": "IntPrimitiveArray",
        "Integer[]": "GenericArray<Int>",
        "a.E": "Enum a.E",
        "LocalDate": "Kryo java.time.LocalDate",
    }
    for text, name in names.items():
        assert bound(serializer_snapshot(parse_java_type(text), context)).type_name == name
    old = TypeContext(kryo=2)
    assert bound(serializer_snapshot(parse_java_type("List<String>"), old)).type_name == "Kryo java.util.List"


def test_the_elements_of_a_pojo_field_that_kryo_wrote_can_be_declared() -> None:
    snapshot = build.pojo("a.P", {"id": build.INT, "tags": build.kryo("java.util.List")})
    raw = b"\2\0\0\0\0\7\0\1\0java.util.ArrayLis\xf4\1\x83\3\0\1\x82a\1\x82b"
    plain = bound(snapshot)
    assert plain.decode(Cursor(raw)) == (7, '["a","b"]')
    typed = bound(snapshot, class_of_fields("a.P", {"tags": "List<String>"}))
    assert typed.decode(Cursor(raw)) == (7, ["a", "b"])
    assert encoded(typed, (7, ["a", "b"])) == raw
    wrong = bound(snapshot, class_of_fields("a.P", {"tags": "List<Long>"}))
    with pytest.raises(DecodeError, match=r"java\.lang\.String where java\.lang\.Long is declared"):
        wrong.decode(Cursor(raw))


def test_thrift_structs_are_json() -> None:
    declared = ClassDeclaration(name="a.T", kind="thrift", constants=("id", "name"))
    message = bytes.fromhex("08000100000007" + "0b0002000000016b" + "0f0003080000000100000005" + "00")
    s = of_type(5, "a.T", (declared,))
    raw = encoded(of_type(5, "a.T", (ClassDeclaration(name="a.T", kind="java"),)), b"\xac\xed\0\5")[:-4]
    text = s.decode(Cursor(raw + bytes((len(message),)) + message))
    assert json.loads(text) == {"id": 7, "name": "k", "3": [5]}
    with pytest.raises(EncodeError, match="read, not written"):
        encoded(s, text)


def test_protobuf_messages_are_json() -> None:
    pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    files = pb2.FileDescriptorSet()
    file = files.file.add(name="t.proto", package="t")
    message = file.message_type.add(name="M")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="some_name", number=2, type=9, label=1)
    declared = statetool.declare_protobuf("a.P", files.SerializeToString(), "t.M")
    s = of_type(5, "a.P", (declared,))
    raw = encoded(s, '{"id":"7","some_name":"n"}')
    assert raw.endswith(b"\x05\x08\x07\x12\x01n")
    assert json.loads(s.decode(Cursor(raw))) == {"id": "7", "some_name": "n"}
    more = raw[:-6] + b"\x04\x08\x07\x18\x01"
    assert json.loads(s.decode(Cursor(more))) == {"id": "7", "$unknown": "GAE="}
    assert encoded(s, s.decode(Cursor(more))) == more


def test_a_message_without_a_declaration_is_its_bytes() -> None:
    out = Output()
    kryo = serializer_snapshot(parse_java_type("a.P"), TypeContext(kryo=5), generic=True)
    plain = b"\0\x03a.P\0\0\0\0"
    name = b"com.twitter.chill.protobuf.ProtobufSerializer"
    entry = b"\0\x03a.P\0\0\0\1" + len(name).to_bytes(2, "big") + name
    at = kryo.index(len(plain).to_bytes(4, "big") + plain)
    out += kryo[:at] + len(entry).to_bytes(4, "big") + entry + kryo[at + 4 + len(plain) :]
    s = bound(bytes(out))
    assert not s.needs_frame
    assert s.decode(Cursor(b"\x57\x01\x03abc")) == b"abc"
    assert encoded(s, b"abc") == b"\x57\x01\x03abc"


def test_java_serialization_is_its_bytes() -> None:
    stream = bytes.fromhex("aced0005737200036120420000000000000001020000787000").replace(b"a B", b"a.B")[:-1]
    s = of_type(2, "a.B", (ClassDeclaration(name="a.B", kind="java"),))
    raw = encoded(s, stream)
    assert raw.endswith(stream)
    assert s.decode(Cursor(raw)) == stream
    loose = of_type(2, "Object", ())
    text = loose.decode(Cursor(b"\1\0a.\xc2\1" + stream))
    assert json.loads(text) == {"a.B": {"java": base64.b64encode(stream).decode()}}
