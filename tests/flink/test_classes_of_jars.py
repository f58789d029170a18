"""Classes that statetool knows only from their class files, in Flink: keys are found again, and values that Kryo wrote are read."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import statetool
from statetool import flink as types
from statetool.analysis.verification.entry_check import EXACT
from statetool.columns.to_plain import arrow_to_plain
from statetool.columns.values import decode_framed
from statetool.compatibility.classes.job_classes import is_provided
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.java.classes.jar_classes import JarClasses
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.java_types import serializer_snapshot
from statetool.types import StructType
from statetool.types.declared import TypeContext
from statetool.types.java import JavaType
from tests.support.compile import compile_java, files_of, make_jar
from tests.support.flink import judge, typed_fields
from tests.support.flink.machine import AVRO_RECORDS, JARRED, MESSAGES, FlinkMachine
from tools.flink_jars import DEFAULT_VERSIONS, flink_jars
from tools.maven import maven_jars

_SHOPS: list[dict[str, Any]] = [
    {"id": n * 7919 - (1 << 40), "name": None if n % 5 == 0 else f"shop {n}", "open": n % 2 == 0, "share": n / 8}
    for n in range(40)
]
_ACCOUNTS: list[dict[str, Any]] = [
    {"owner": None if n % 4 == 0 else f"o{n}", "closed": n % 3 == 0, "number": n << 35} for n in range(40)
]
_PLACES: list[dict[str, Any]] = [
    {"city": f"c{n}", "zone": n * 31, "block": None if n % 3 == 0 else n << 33} for n in range(40)
]

_KEYS = {"Shop": _SHOPS, "Place": _PLACES, "Account": _ACCOUNTS}
_ARROW = {
    **dict.fromkeys(("id", "block", "number"), pa.int64()), **dict.fromkeys(("name", "city", "owner"), pa.string()),
    **dict.fromkeys(("open", "closed"), pa.bool_()), "share": pa.float64(), "zone": pa.int32(),
}  # fmt: skip


@pytest.fixture(scope="session")
def job_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a jar of the classes."""
    folder = tmp_path_factory.mktemp("job")
    return make_jar(folder / "job.jar", files_of(compile_java((JARRED / "jarred").rglob("*.java"), folder / "classes")))


_TYPES = {
    "Shop": types.pojo("jarred.Keys$Shop", {"id": "BIGINT", "name": "STRING", "open": "BOOLEAN", "share": "DOUBLE"}),
    "Place": types.pojo("jarred.Keys$Place", {"block": "BIGINT", "city": "STRING", "zone": "INT"}),
}


def key_column(rows: list[dict[str, Any]], kind: Serializer) -> pa.Array:
    """Return keys as a column with the fields in the order of their type."""
    assert isinstance(kind.logical, StructType)
    names = [f.name for f in kind.logical.fields]
    return pa.array([{n: row[n] for n in names} for row in rows], pa.struct([(n, _ARROW[n]) for n in names]))


def operator_of(key: str, max_parallelism: int, **more: Any) -> dict[str, Any]:
    states = [{"name": "n", "kind": "value", "type": "INT", **more}]
    return {"name": "keys", "uid": "keys", "key": key, "max_parallelism": max_parallelism, "states": states}


def restored(
    flink: FlinkMachine, snapshot: Path, key: str, count: int, max_parallelism: int, savepoint: Path, backend: str
) -> Path:
    """Restore keys with an int state, assert that a job finds each of them, and return a new savepoint of Flink."""
    answer = judge.restore(flink, snapshot, [operator_of(key, max_parallelism)], backend=backend, savepoint=savepoint)
    found = [row["value"] for opened in answer["opened"] for row in opened["states"].get("n", ())]
    assert sorted(found) == list(range(count))
    return Path(answer["savepoint"])


@pytest.mark.parametrize("backend", ["hashmap", pytest.param("rocksdb", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["Shop", "Place"])
def test_keys_are_written_to_the_key_groups_of_their_hash_codes(
    jarred_flink: FlinkMachine, job_jar: Path, tmp_path: Path, name: str, backend: str
) -> None:
    rows, kind, key = _KEYS[name], _TYPES[name], f"jarred.Keys${name}"
    table = pa.table({"key": key_column(rows, kind), "n": pa.array(range(len(rows)), pa.int32())})
    state = statetool.bootstrap_keyed_state(table, key_type=kind, states={"n": statetool.value("INT")}, jars=[job_jar])
    writer = statetool.SavepointWriter.new().with_operator("keys", state, parallelism=2)
    writer.write(str(tmp_path / "sp"), flink_version=jarred_flink.version)
    taken = restored(jarred_flink, tmp_path / "sp", key, len(rows), 128, tmp_path / "again", backend)
    rescale_and_restore(jarred_flink, taken, job_jar, tmp_path, key, backend)


@pytest.mark.parametrize("backend", ["hashmap", pytest.param("rocksdb", marks=pytest.mark.full)])
def test_keys_that_kryo_writes_are_found_again(
    jarred_flink: FlinkMachine, job_jar: Path, tmp_path: Path, backend: str
) -> None:
    key = "KRYO<jarred.Keys$Account>"
    request = operator_of(key, 128, keys="jarred.Keys")
    first = jarred_flink.call(
        "restore", operators=[request], backend=backend, parallelism=1, savepoint=str(tmp_path / "first")
    )
    operator = statetool.load(first["savepoint"], jars=[job_jar])["keys"]
    rows = operator.to_arrow("n")
    assert rows.num_rows == len(_ACCOUNTS)
    # Twice the keys: those of Flink, and others that only statetool has seen.
    added = [{**row, "owner": "new", "number": row["number"] + 1} for row in _ACCOUNTS]
    keys = pa.concat_arrays([rows["key"].combine_chunks(), key_column(added, operator.inventory.keyed.needed_key())])
    table = pa.table({"key": keys, "n": pa.array(range(len(keys)), pa.int32())})
    state = statetool.bootstrap_keyed_state(table, like=operator)
    statetool.SavepointWriter.new().with_operator("keys", state, parallelism=2).write(
        str(tmp_path / "sp"), flink_version=jarred_flink.version
    )
    taken = restored(jarred_flink, tmp_path / "sp", key, len(keys), 128, tmp_path / "again", backend)
    rescale_and_restore(jarred_flink, taken, job_jar, tmp_path, key, backend, count=len(keys))


def rescale_and_restore(
    flink: FlinkMachine, taken: Path, jar: Path, work: Path, key: str, backend: str, *, count: int = len(_SHOPS)
) -> None:
    snapshot = statetool.load(str(taken), jars=[jar])
    plan = statetool.rescale(snapshot, str(work / "rescaled"), {operator_id_for_uid("keys"): 90})
    (row,) = plan.operators
    assert (row.keys_move, row.keys_tested) == ("formula", count)
    restored(flink, work / "rescaled", key, count, 90, work / "more", backend)


def test_values_of_classes_with_type_variables_in_superclasses(jarred_flink: FlinkMachine, job_jar: Path) -> None:
    kryo: Literal[2, 5] = 2 if jarred_flink.version.startswith("1.") else 5
    context = TypeContext(kryo=kryo, source=JarClasses([job_jar]))
    written = jarred_flink.call("class", **{"class": "JarredValues", "source": "jarred.Generics"})
    found: dict[str, Any] = {}
    for name, row in written.items():
        serializer = snapshot_reader(context).snapshot(Cursor(bytes.fromhex(row["snapshot"])))
        if serializer.missing_declaration_hint:
            found[name] = context.reason(row["class"])
            continue
        c = Cursor(bytes.fromhex(row["value"]))
        values = serializer.decode(c)
        c.expect_end(name)
        assert isinstance(serializer.logical, StructType)
        fields = [f.name for f in serializer.logical.fields]
        found[name] = plain(dict(zip(fields, values, strict=True)))
    if kryo == 2:
        assert "type variables of the class and of a superclass have the same name" in found.pop("Crossed")
        assert "array of a type variable" in found.pop("OfArray")
    else:
        assert found.pop("Crossed") == {"a": 5, "b": "s"}
        assert found.pop("OfArray") == {"array": ["p", None, "q"]}
    # The declared type of these fields says nothing about the classes inside, so they are compared in their JSON form.
    assert {n: found.pop(n)["value"] for n in ("OfList", "OfMap", "OfDeep")} == {
        "OfList": ["x"],
        "OfMap": {"java.util.HashMap": [["one", 1]]},
        "OfDeep": ["x"],
    }
    holders = found.pop("Holder"), found.pop("DeepHolder")
    assert [holders[0]["text"][:2], holders[1]["pairs"][0][1][:2]] == [
        ["o", "c"],
        ["l", {"jarred.Generics$Closed": {"n": 6}}],
    ]
    item = (lambda n: {"jarred.Generics$Closed": {"n": n}}) if kryo == 2 else (lambda n: [n])
    opened = {"jarred.Generics$Open": {"n": 1}} if kryo == 2 else [1]
    text = {"value": "a", "list": ["a", "b"], "map": [["k", "a"]], "deep": [["a", "b"]]}
    assert found == {
        "OfText": {"own": "o", **text},
        "OfNumber": {"value": 1, "list": [1, -300], "map": [["k", 1]], "deep": [[1, -300]]},
        "OfOpen": {"value": [1], "list": [[1], [2]], "map": [["k", opened]], "deep": [[[1], [2]]]},
        "OfClosed": {
            "value": item(1),
            "list": [item(1), item(2)],
            "map": [["k", item(1)]],
            "deep": [[item(1), item(2)]],
        },
        "Raw": {"value": "a", "list": ["a", 5], "map": [["k", "a"]], "deep": [["a", 5]]},
        "OfMiddle": {"more": "c", **text},
        "OfSame": {"again": "c", **text},
        "OfSwapped": {"a": 5, "b": "s"},
        "OfBound": {"value": [3], "list": [item(4)]},
        "OfLimited": {"value": [3], "list": [[4]]},
    }


_CHILL = {
    "com.google.protobuf.Message": "com.twitter.chill.protobuf.ProtobufSerializer",
    "org.apache.thrift.TBase": "com.twitter.chill.thrift.TBaseSerializer",
}


@pytest.mark.full
def test_messages_are_read_with_the_descriptors_of_their_classes(message_flink: FlinkMachine, tmp_path: Path) -> None:
    jars = maven_jars("messages")
    libraries = ":".join(map(str, jars))
    classes = compile_java((MESSAGES / "messaged").rglob("*.java"), tmp_path / "classes", "-cp", libraries)
    context = TypeContext(kryo=2, source=JarClasses([classes, *jars]))
    request = {"class": "JarredValues", "source": "messaged.Messages"}
    found = {}
    for name, row in message_flink.call("class", **request, defaults=list(_CHILL.items())).items():
        serializer = snapshot_reader(context).snapshot(Cursor(bytes.fromhex(row["snapshot"])))
        value = serializer.decode(Cursor(bytes.fromhex(row["value"])))
        found[name] = json.loads(value)
        if name not in ("Parcel", "Schema"):  # Thrift is only read
            out = Output()
            serializer.encode(out, value)
            assert bytes(out).hex() == row["value"]
    assert found == {
        "Timestamp": "1970-01-01T00:00:05.000000007Z",
        "Api": {
            "name": "shop",
            "methods": [{"name": "buy", "request_streaming": True}],
            "source_context": {"file_name": "a.proto"},
        },
        "Descriptor": {"name": "Order", "field": [{"name": "id", "number": 3}]},
        "Parcel": {
            "id": 1 << 40, "owner": "me", "tags": ["a", "b"],
            "parts": [[7, [
                {"name": "a", "kind": "LARGE", "inside": {"name": "inside", "kind": "SMALL"}}, {"name": "b", "kind": "SMALL"},
            ]]],
            "kinds": ["LARGE"], "odd": "SMALL",
        },
        "Schema": {"columns": [{
            "columnName": "name", "position": 1,
            "typeDesc": {"types": [{"primitiveEntry": {
                "type": "VARCHAR_TYPE", "typeQualifiers": {"qualifiers": [["characterMaximumLength", {"i32Value": 9}]]},
            }}]},
        }]},
    }  # fmt: skip
    # Without a registration Kryo writes the private fields of a message, which are not those of its descriptor.
    snapshot = serializer_snapshot(JavaType("com.google.protobuf.Timestamp"), context, generic=True)
    unregistered = snapshot_reader(context).snapshot(Cursor(snapshot))
    assert unregistered.missing_declaration_hint


_UTILS = "org.apache.flink.formats.avro.utils.AvroKryoSerializerUtils$"


def utf8(text: str) -> dict[str, Any]:
    """Return a text of Avro's class, as Kryo writes its fields."""
    raw = base64.b64encode(text.encode()).decode()
    return {"org.apache.avro.util.Utf8": {"bytes": raw, "hash": 0, "length": len(text), "string": text}}


@pytest.mark.full
def test_avro_records_that_kryo_writes_are_read(avro_records_flink: FlinkMachine, tmp_path: Path) -> None:
    jars = maven_jars(f"flink-avro-{avro_records_flink.version}")
    libraries = ":".join(map(str, jars))
    classes = compile_java((AVRO_RECORDS / "avrorecords").rglob("*.java"), tmp_path / "classes", "-cp", libraries)
    kryo: Literal[2, 5] = 2 if avro_records_flink.version.startswith("1.") else 5
    context = TypeContext(kryo=kryo, source=JarClasses([classes, *jars]))

    def read(method: str, java_class: str = "", serializer: str = "") -> dict[str, Any]:
        """Return decoded values. Rows and columns have the same ones."""
        request = {"class": "JarredValues", "source": "avrorecords.Records", "method": method}
        given = [(java_class, _UTILS + serializer)] if serializer else []
        found = {}
        for name, row in avro_records_flink.call("class", **request, defaults=given).items():
            reader = snapshot_reader(context).snapshot(Cursor(bytes.fromhex(row["snapshot"])))
            raw = bytes.fromhex(row["value"])
            value = reader.decode(Cursor(raw))
            data, end = np.frombuffer(raw, np.uint8), np.array([len(raw)])
            column = decode_framed(reader, data, np.array([0]), end, EXACT)
            assert arrow_to_plain(column, reader.logical) == [value]
            found[name] = plain(value)
        return found

    first = [utf8("a"), 1]
    order = [1 << 40, None, True, 0.25, "BLUE", first, [first, ["b", 2]], [["x", 5]], None, "text"]
    # Kryo 5 has arrays in Avro's encoding, where all texts are alike.
    lines = [first, ["b", 2]] if kryo == 2 else [["a", 1], ["b", 2]]
    assert read("all") == {
        "Line": ["text", 7],
        "Utf8": [utf8("utf8"), 8],
        "Order": order,
        "Read": [order[0], "n", *order[2:6], lines, *order[7:9], 5],
    }
    # Without a serializer of Avro, Kryo writes the fields of the record and of its schema.
    (schema, values) = read("generic")["Generic"]
    name = schema["org.apache.avro.Schema$RecordSchema"]["name"]["org.apache.avro.Schema$Name"]
    assert name == {"full": "avrorecords.Records$.Line", "name": "Line", "space": "avrorecords.Records$"}
    assert values == [utf8("generic"), 9]
    row = avro_records_flink.call("class", **{"class": "JarredValues"}, source="avrorecords.Records", method="generic")
    bare = snapshot_reader(TypeContext(kryo=kryo)).snapshot(Cursor(bytes.fromhex(row["Generic"]["snapshot"])))
    assert "Avro's own one, which has this class: jars=[...] (--jar FILE)" in bare.missing_declaration_hint
    (schema, values) = read("generic", "org.apache.avro.Schema", "AvroSchemaSerializer")["Generic"]
    assert json.loads(schema["org.apache.avro.Schema$RecordSchema"])["name"] == "Line"
    assert values == [utf8("generic"), 9]
    if kryo == 5:
        found = read("generic", "org.apache.avro.generic.GenericData$Record", "AvroGenericRecordSerializer")
        assert found["Generic"] == {"org.apache.avro.generic.GenericData$Record": {"item": "generic", "count": 9}}


def plain(value: Any) -> Any:
    """Return a decoded value with its JSON texts parsed, and with lists for tuples."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return value


@pytest.mark.full
@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
def test_the_classes_of_a_release_are_provided(newest_flink: str, version: str) -> None:
    """A job's jar need not have the classes of the jars in Flink's ``lib`` folder."""
    del newest_flink  # fetched, or the test is skipped
    names = {name for jar in flink_jars(version) for name in zipfile.ZipFile(jar).namelist() if name.endswith(".class")}
    classes = {n.removesuffix(".class").replace("/", ".") for n in names if n.startswith("org/apache/flink/")}
    assert len(classes) > 10_000
    assert sorted(name for name in classes if not is_provided(name)) == []


@pytest.mark.full
@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
def test_flink_makes_the_recorded_serializers_of_classes(newest_flink: str, tmp_path: Path, version: str) -> None:
    del newest_flink  # fetched, or the test is skipped
    recorded = [a for a in typed_fields.answers() if (a.version, a.language) == (version, "java")]
    assert typed_fields.ask(version, typed_fields.unpack(tmp_path), "java") == recorded


@pytest.mark.full
@pytest.mark.usefixtures("connectors_by_maven")
@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
def test_flink_makes_the_recorded_serializers_of_other_languages(tmp_path: Path, version: str) -> None:
    classes = typed_fields.compile_all(tmp_path)
    found = [a for language in typed_fields.WITH_LIBRARIES for a in typed_fields.ask(version, classes, language)]
    wanted = [a for a in typed_fields.answers() if a.version == version and a.language in typed_fields.WITH_LIBRARIES]
    assert found == wanted
