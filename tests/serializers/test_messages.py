"""Protobuf messages that serializers of a job write after their length (``tests/support/flink/protobufs`` has the job)."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import DecodeError, EncodeError, FormatError, OptionError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.declaring.classes import DeclaredClasses
from statetool.migration.choices import Choices
from statetool.migration.compiling import Compiler
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import LENGTH_PREFIXES, ClassDeclaration, TypeContext, from_json, to_json
from tests.support.corpora.archives import unpack
from tests.support.flink.protobuf_job import FRAMED, PACKED, STRUCTS, declared, message
from tests.support.flink.tree_job import RELEASES
from tests.support.snapshots.entries import entries_of
from tools.maven import maven_jars

pytest.importorskip("google.protobuf.unknown_fields")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("protobufs"))


def opened(path: Path, declarations: tuple[ClassDeclaration, ...]) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"], declarations=declarations)["keeper"]


def found_values(operator: statetool.Operator) -> dict[str, dict[str, Any]]:
    """Return the values of each key, in the form of the job."""
    values: dict[str, dict[str, Any]] = {}
    for row in operator.to_arrow("struct").to_pylist():
        values[row["key"]] = {"struct": json.loads(row["value"]), "times": [], "lasts": {}}
    for row in operator.to_arrow("times").to_pylist():
        values[row["key"]]["times"].append(row["value"])
    for row in operator.to_arrow("lasts").to_pylist():
        values[row["key"]]["lasts"][row["map_key"]] = row["value"]
    return values


@pytest.mark.parametrize("release", RELEASES)
def test_all_values_are_those_of_the_job(folder: Path, release: str) -> None:
    expected = json.loads((folder / release / "values.json").read_text("utf-8"))
    assert len(expected) == 10
    found = found_values(opened(folder / release, declared()))
    assert found == {key: {**values, "struct": json.loads(values["struct"])} for key, values in expected.items()}


def test_an_undeclared_serializer_stays_bytes(folder: Path) -> None:
    for release in RELEASES:
        states = opened(folder / release, ()).states
        assert f"serializer snapshot class '{STRUCTS}' is not known" in states["struct"].reason
        states = opened(folder / release, declared()[:2]).states
        assert states["struct"].readable
        assert states["times"].readable
        assert f"{FRAMED} names com.google.protobuf.Duration, which is not declared" in states["lasts"].reason


def serializers(path: Path) -> dict[str, Serializer]:
    ((header, _), *_) = opened(path, declared()).inventory.keyed_states.values()
    return {m.name: m.value for m in header.states}


@pytest.mark.parametrize("release", RELEASES)
def test_snapshots_and_values_are_written_as_they_were_read(folder: Path, release: str) -> None:
    known = serializers(folder / release)
    reader = snapshot_reader(TypeContext(classes=declared()))
    for serializer in known.values():
        out, rewritten = Output(), Output()
        serializer.write_snapshot(out)
        again = reader.snapshot(Cursor(bytes(out)))
        again.write_snapshot(rewritten)
        assert (again.type_name, bytes(rewritten)) == (serializer.type_name, bytes(out))
    written = 0
    for _, state, _, raw in entries_of(opened(folder / release, declared()).inventory):
        if state != "struct":
            continue
        c, skipped, out = Cursor(raw), Cursor(raw), Output()
        known[state].encode(out, known[state].decode(c))
        known[state].skip(skipped)
        assert not c.left
        assert not skipped.left
        # Protobuf does not determine the order of the entries of a map.
        assert sorted(out) == sorted(raw)
        written += 1
    assert written == 10


def struct_serializer(*classes: ClassDeclaration, version: int = 3, payload: bytes = b"") -> Serializer:
    out = Output()
    out.utf(STRUCTS)
    out.i4(version)
    c = Cursor(bytes(out) + payload)
    serializer = snapshot_reader(TypeContext(classes=classes)).snapshot(c)
    assert not c.left
    return serializer


def utf(text: str) -> bytes:
    out = Output()
    out.utf(text)
    return bytes(out)


@pytest.mark.parametrize("length_prefix", LENGTH_PREFIXES)
def test_each_length_prefix_has_its_bytes(length_prefix: str) -> None:
    serializer = struct_serializer(message("Struct", STRUCTS, length_prefix))
    value = json.dumps({"text": "x" * 200})
    out = Output()
    serializer.encode(out, value)
    size = len(out) - len(b"\xd5\x01" if length_prefix == "varint" else b"0000")
    prefix = bytes([size & 0x7F | 0x80, size >> 7]) if length_prefix == "varint" else size.to_bytes(4, "big")
    assert out.startswith(prefix)
    assert json.loads(serializer.decode(Cursor(bytes(out)))) == json.loads(value)
    with pytest.raises(EncodeError, match=r"not a google\.protobuf\.Struct"):
        serializer.encode(Output(), "[1]")
    for end in range(len(out)):
        with pytest.raises(FormatError):
            serializer.decode(Cursor(bytes(out[:end])))
    with pytest.raises(DecodeError, match=r"not a google\.protobuf\.Struct"):
        serializer.decode(Cursor(b"\x01\xff" if length_prefix == "varint" else b"\0\0\0\x01\xff"))


def test_a_snapshot_without_the_name_of_its_message_has_one_message() -> None:
    struct, other = message("Struct", STRUCTS, "varint"), message("Timestamp", STRUCTS, "varint")
    assert struct_serializer(struct).type_name == "Protobuf google.protobuf.Struct"
    with pytest.raises(UnknownSerializerError, match=r"Struct and com\.google\.protobuf\.Timestamp are declared"):
        struct_serializer(struct, other)
    named = struct_serializer(struct, other, version=1, payload=utf(other.name))
    assert named.type_name == "Protobuf google.protobuf.Timestamp"


def test_only_the_names_of_declared_classes_are_read() -> None:
    struct = message("Struct", STRUCTS, "varint")
    with pytest.raises(UnknownSerializerError, match=r"names com\.acme\.Order, which is not declared"):
        struct_serializer(struct, version=1, payload=utf("com.acme.Order"))
    # The name of a state, and the name of another snapshot.
    for following in ("my.state", "org.apache.flink.api.common.typeutils.base.LongSerializer$LongSerializerSnapshot"):
        c = Cursor(utf(STRUCTS) + b"\0\0\0\x03" + utf(following))
        snapshot_reader(TypeContext(classes=(struct,))).snapshot(c)
        assert c.utf() == following


def test_the_descriptor_is_found_in_the_jar(folder: Path, tmp_path: Path) -> None:
    (jar,) = (j for j in maven_jars("protobufs") if j.name.startswith("protobuf-java-3"))
    classes = declared(in_jar=True)
    file = tmp_path / "messages.json"
    file.write_text(json.dumps([to_json(c) for c in classes]), "utf-8")
    with_jar = statetool.load(str(folder / "2.3.0"), uids=["keeper"], declarations=str(file), jars=[str(jar)])
    assert found_values(with_jar["keeper"]) == found_values(opened(folder / "2.3.0", declared()))
    reason = opened(folder / "2.3.0", classes).states["struct"].reason
    assert "the descriptor of the Protobuf message com.google.protobuf.Struct is not known" in reason


def test_only_the_job_knows_whether_its_serializer_reads_the_messages() -> None:
    struct = struct_serializer(message("Struct", STRUCTS, "varint"))
    found = resolve(struct, struct_serializer(message("Struct", STRUCTS, "varint")))
    assert found.level is Level.UNKNOWN
    assert "Only the serializer class itself determines how to read Protobuf google.protobuf.Struct" in found.reason


def raw_field(kind: int) -> Serializer:
    """Return the serializer of a message with one field ``raw`` of a type."""
    file_set: Any = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet()
    file = file_set.file.add(name="raw.proto", package="acme", syntax="proto3")
    file.message_type.add(name="Raw").field.add(name="raw", number=1, type=kind, label=1)
    descriptor = file_set.SerializeToString()
    return struct_serializer(
        ClassDeclaration(
            name="com.acme.Raw",
            kind="protobuf",
            descriptor=descriptor,
            message="acme.Raw",
            serializer=STRUCTS,
            length_prefix="int",
        )
    )


def test_bytes_do_not_become_text() -> None:
    """In JSON, both are text."""
    types: Any = import_module("google.protobuf.descriptor_pb2").FieldDescriptorProto
    old, new = raw_field(types.TYPE_BYTES), raw_field(types.TYPE_STRING)
    compiler = Compiler(Choices())
    compiler.value(old, old, "value")
    assert not compiler.steps
    compiler.value(old, new, "value")
    assert [step.text for step in compiler.steps] == [
        "bytes cannot become another type, or the reverse, in the field raw"
    ]


def test_the_declaration_says_nothing_about_kryo() -> None:
    name = "com.google.protobuf.Struct"
    of_kryo = replace(message("Struct", STRUCTS, "varint"), serializer="", length_prefix="")
    registered = ((name, "com.twitter.chill.protobuf.ProtobufSerializer"),)
    for declaration, registrations, is_message in (
        (message("Struct", STRUCTS, "varint"), (), False),
        (message("Struct", STRUCTS, "varint"), registered, True),
        (of_kryo, (), True),
    ):
        kryo = KryoInstance(2, TypeContext(kryo=2, classes=(declaration,)), registrations)
        assert (kryo.known(name), kryo.is_message(name)) == (is_message, is_message)


def test_declarations_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.java.declaring.classes.DECLARED", DeclaredClasses())
    found = statetool.declare_protobuf("a.Order", serializer="a.Snapshot", length_prefix="int")
    assert from_json(to_json(found)) == found
    with pytest.raises(OptionError, match="without its descriptor"):
        statetool.declare_protobuf("a.Order")
    with pytest.raises(OptionError, match="without its descriptor"):
        statetool.declare_protobuf("a.Order", message="a.Order", serializer="a.Snapshot")
    with pytest.raises(OptionError, match="without its name"):
        statetool.declare_protobuf("a.Order", b"1", serializer="a.Snapshot")
    with pytest.raises(OptionError, match="the length prefix 'short'"):
        statetool.declare_protobuf("a.Order", serializer="a.Snapshot", length_prefix="short")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="the length prefix ''"):
        from_json({"class": "a.Order", "kind": "protobuf", "serializer": "a.Snapshot"})
    with pytest.raises(OptionError, match="the length prefix 'int'"):
        from_json({"class": "a.Order", "length_prefix": "int"})
