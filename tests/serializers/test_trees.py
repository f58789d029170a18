"""JSON trees of Jackson and DataSQRL, and memory of Flink Agents, written by Flink (``tests/support/flink/trees`` has the job)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import DecodeError, EncodeError, FormatError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.codecs import jackson
from statetool.serializers.kryo.model import Obj
from statetool.serializers.table import snapshot_reader
from statetool.types import Scalar, StructType
from statetool.types.declared import ClassDeclaration, TypeContext, class_of_fields
from tests.support.corpora.archives import unpack
from tests.support.flink.tree_job import PACKED, RELEASES, described
from tests.support.snapshots.entries import entries_of

STATES: Final = ("tree", "any", "shaded", "event", "sqrl", "sensoryMemory")
NODE: Final = "com.fasterxml.jackson.databind.node."


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("trees"))


def opened(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["keeper"])["keeper"]


def serializers(path: Path) -> dict[str, Serializer]:
    ((header, _), *_) = opened(path).inventory.keyed_states.values()
    return {m.name: m.serializers["VALUE_SERIALIZER"] for m in header.states}


def rows(operator: statetool.Operator, state: str) -> dict[str, Any]:
    return {row["key"]: row["value"] for row in operator.to_arrow(state).to_pylist()}


@pytest.mark.parametrize("release", RELEASES)
def test_all_values_are_those_of_the_job(savepoints: Path, release: str) -> None:
    operator = opened(savepoints / release)
    expected = json.loads((savepoints / release / "values.json").read_text("utf-8"))
    assert len(expected) == 10
    found = {state: rows(operator, state) for state in STATES if state != "sensoryMemory"}
    for key, values in expected.items():
        assert described(found["tree"][key]) == values["tree"]
        assert described(found["any"][key]) == values["any"]
        assert found["shaded"][key] == {"json": values["shaded"], "node_types": None}
        assert found["sqrl"][key] == values["sqrl"]
        payload = found["event"][key]["payload"]
        assert (key if payload is None else described(payload)) == values["event"]
    memory = operator.to_arrow("sensoryMemory").to_pylist()
    assert len(memory) == 20
    for row in memory:
        kind, shown, keys = row["value"]["type"], row["value"]["value"], sorted(row["value"]["subKeys"])
        text = f"[{', '.join(keys)}]"
        if shown is not None and "ObjectNode" in shown:
            ((name, tree),) = json.loads(shown).items()
            assert name == f"{NODE}ObjectNode"
            assert tree["node_types"]["/a~1b~0c"] == "LongNode"
            number = str(tree["json"]["a/b~c"])
            assert expected[row["key"]]["sensoryMemory"][row["map_key"]].startswith(f'VALUE {{"a/b~c":{number},')
            continue
        value = None if shown is None else json.loads(shown)["java.lang.Long"]
        assert (
            f"{kind} {'null' if value is None else value} {text}"
            == expected[row["key"]]["sensoryMemory"][row["map_key"]]
        )


@pytest.mark.parametrize("release", RELEASES)
def test_values_are_written_so_that_they_are_read_again(savepoints: Path, release: str) -> None:
    known = serializers(savepoints / release)
    written = 0
    for _, state, _, raw in entries_of(opened(savepoints / release).inventory):
        if state not in STATES:
            continue
        serializer = known[state].children()[-1][1] if state == "sensoryMemory" else known[state]
        raw = raw[1:] if state == "sensoryMemory" else raw
        value = serializer.decode(Cursor(raw))
        skipped = Cursor(raw)
        serializer.skip(skipped)
        assert not skipped.left
        out = Output()
        serializer.encode(out, value)
        assert serializer.decode(Cursor(bytes(out))) == value
        written += 1
    assert written == 70


def tree_serializer(name: str, kryo: Any = 5, classes: tuple[ClassDeclaration, ...] = ()) -> Serializer:
    out = Output()
    out.utf("org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot")
    out.i4(2)
    out.utf(name)
    for _ in range(3):
        out.i8(0x000004F2C69A3D70)
        out.i4(0)
    return snapshot_reader(TypeContext(kryo=kryo, classes=classes)).snapshot(Cursor(bytes(out)))


def test_declared_fields_win_over_the_bundled_ones() -> None:
    declared = class_of_fields(f"{NODE}IntNode", {"_value": "long"})
    assert tree_serializer(f"{NODE}IntNode", classes=(declared,)).logical == StructType.of(_value=Scalar("int64"))
    text = Scalar("string")
    assert tree_serializer(f"{NODE}IntNode").logical == StructType.of(json=text, node_types=text)


@pytest.mark.parametrize(
    ("name", "json_text", "node_types", "message"),
    [
        ("ObjectNode", "[]", None, "the root is of class ArrayNode, not ObjectNode"),
        ("ContainerNode", "1", None, "the root is of class IntNode, not ContainerNode"),
        ("ObjectNode", "{", None, "not the JSON"),
        ("ObjectNode", '{"a":1}', '{"/b":"LongNode"}', "node_types has /b, which the JSON does not have"),
        ("ObjectNode", '{"a":1}', '{"/a":"Long"}', "'Long' is not a class of a node, at /a"),
        ("ObjectNode", '{"a":1}', '{"/a":7}', "7 is not a class of a node"),
        ("ObjectNode", '{"a":"x"}', '{"/a":"LongNode"}', '"x" is not a value of LongNode, at /a'),
        ("ObjectNode", '{"a":"x"}', '{"/a":"DecimalNode"}', "is not a value of DecimalNode"),
        ("ObjectNode", '{"a":true}', '{"/a":"DecimalNode"}', "is not a value of DecimalNode"),
        ("ObjectNode", '{"a":"?"}', '{"/a":"BinaryNode"}', "is not a value of BinaryNode"),
        ("ObjectNode", '{"a":1}', '{"/a":"MissingNode"}', "1 is not a value of MissingNode"),
        ("ObjectNode", '{"a":1}', '{"":"ArrayNode"}', "is not a value of ArrayNode, at the root"),
        ("ObjectNode", '{"a":70000}', '{"/a":"ShortNode"}', "70000"),
        ("ObjectNode", "{}", "[]", "node_types is not a JSON object"),
    ],
)
def test_json_of_other_nodes_is_refused(name: str, json_text: str, node_types: str | None, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        tree_serializer(NODE + name).encode(Output(), (json_text, node_types))


@pytest.mark.parametrize("kryo", [2, 5])
@pytest.mark.parametrize(
    ("json_text", "node_types"),
    [
        ('"NaN"', None),
        ('"nan"', '{"":"DoubleNode"}'),
        ('{"a":{"b":[1,2.5,null,true,"x",-9223372036854775809]}}', None),
        ('{"com.fasterxml":1}', '{"":"ObjectNode bigDecimalExact"}'),
        ('"1E+3"', '{"":"DecimalNode"}'),
        ('{"":1}', '{"/":"LongNode"}'),
    ],
)
def test_json_is_read_as_it_was_written(kryo: int, json_text: str, node_types: str | None) -> None:
    serializer = tree_serializer("com.fasterxml.jackson.databind.JsonNode", kryo)
    out = Output()
    serializer.encode(out, (json_text, node_types))
    assert serializer.decode(Cursor(bytes(out))) == (json_text, node_types)
    with pytest.raises(StatetoolError):
        serializer.decode(Cursor(bytes(out)[:-1]))


def test_what_is_no_tree_of_jackson_is_refused_with_its_place() -> None:
    factory = Obj(f"{NODE}JsonNodeFactory", {"_cfgBigDecimalExact": Obj("boolean", False)})
    child = Obj(f"{NODE}ObjectNode", {"_children": Obj("java.util.TreeMap", []), "_nodeFactory": factory})

    def parent(node: Obj | None) -> Obj:
        children = [(Obj("java.lang.String", "a"), node)]
        return Obj(
            f"{NODE}ObjectNode", {"_children": Obj("java.util.LinkedHashMap", children), "_nodeFactory": factory}
        )

    def read(obj: Obj) -> Any:
        return jackson.to_tree(obj, lambda _: None)

    with pytest.raises(DecodeError, match="null where a JSON tree has a node, at /a"):
        read(parent(None))
    with pytest.raises(DecodeError, match=r"a com\.acme\.Node where a JSON tree has a node, at /a"):
        read(parent(Obj("com.acme.Node", {})))
    with pytest.raises(DecodeError, match=r"the children of ObjectNode are in java\.util\.TreeMap"):
        read(parent(child))
    child.value = {"_children": Obj("java.util.LinkedHashMap", []), "_nodeFactory": Obj("com.acme.Factory", {})}
    with pytest.raises(DecodeError, match=r"ObjectNode has the factory com\.acme\.Factory"):
        read(child)
    with pytest.raises(DecodeError, match=r"TextNode with null, not a value of java\.lang\.String"):
        read(parent(Obj(f"{NODE}TextNode", {"_value": None})))
    with pytest.raises(DecodeError, match=r"TextNode with a java\.util\.HashMap"):
        read(parent(Obj(f"{NODE}TextNode", {"_value": Obj("java.util.HashMap", [])})))
    empty = Obj(f"{NODE}NullNode", {})
    for key in (None, Obj("java.util.HashMap", []), Obj("java.lang.String", "a")):
        twice = parent(empty)
        twice.value["_children"].value.append((key, empty))
        with pytest.raises(DecodeError, match="is not a new name of a child, at the root"):
            read(twice)


def test_damaged_json_of_datasqrl_is_refused() -> None:
    name = "com.datasqrl.flinkrunner.stdlib.json.FlinkJsonTypeSerializerSnapshot"
    out = Output()
    out.utf(name)
    out.i4(3)
    serializer = snapshot_reader().snapshot(Cursor(bytes(out)))
    with pytest.raises(FormatError, match="JSON is not UTF-8"):
        serializer.decode(Cursor(b"\0\0\0\1\xff"))
    with pytest.raises(FormatError):
        serializer.decode(Cursor(b"\0\0\0\5{}"))
    with pytest.raises(EncodeError, match="not JSON"):
        serializer.encode(Output(), "{")
    with pytest.raises(StatetoolError, match="version 4"):
        snapshot_reader().snapshot(Cursor(bytes(out)[:-1] + b"\4"))
