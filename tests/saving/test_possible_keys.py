"""Null keys and null namespaces are not written, and are detected in snapshots; null parts of keys are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.errors import EncodeError, OptionError
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata.handles import KeyGroupsHandle, RelativeFileHandle
from statetool.serializers.core.base import Serializer
from tests.support.failures.damage import Patient
from tests.support.snapshots import build, canonical, native

_SPACE = pa.struct([("start", pa.int64()), ("end", pa.int64())])
_SHOP = flink.pojo("com.acme.Shop", {"id": "BIGINT", "name": "STRING"})
_HASHES = {"com.acme.Shop": "Objects.hash(id, name)"}
#: A key of each type, by name; the type is declared if it does not follow from the column.
KEYS: dict[str, tuple[Any, str | Serializer | None]] = {
    "boolean": (True, None),
    "long": (7, None),
    "double": (1.5, None),
    "string": ("a", None),
    "date": (date(2020, 4, 12), None),
    "instant": (datetime(2020, 4, 12, tzinfo=timezone.utc), None),
    "local date-time": (datetime(2020, 4, 12), None),
    "local time": (5, flink.LOCAL_TIME),
    "java.util.Date": (datetime(2020, 4, 12, tzinfo=timezone.utc), flink.DATE),
    "java.sql.Timestamp": (datetime(2020, 4, 12, tzinfo=timezone.utc), flink.SQL_TIMESTAMP),
    "decimal": (Decimal("1.50"), None),
    "big integer": (Decimal(5), flink.BIG_INTEGER),
    "nullable": ("a", flink.nullable("STRING")),
    "nullable, padded": (5, flink.nullable("BIGINT", pad=True)),
    "list": (["a"], None),
    "row": ({"f0": 1, "f1": "a"}, None),
    "tuple": ({"f0": 1, "f1": "a"}, flink.tuple_of("BIGINT", "STRING")),
    "either": ({"left": 1, "right": None}, flink.either("BIGINT", "STRING")),
    "pojo": ({"id": 1, "name": "a"}, _SHOP),
    "sql row": ({"id": 1}, "ROW<id BIGINT>"),
}


def write(tmp_path: Path, *bootstraps: Any) -> st.Operator:
    return st.SavepointWriter.new().with_operator("op", *bootstraps).write(str(tmp_path / "sp"))["op"]


def errors(path: Path) -> list[str]:
    return [p.problem for p in st.verify(str(path)).problems if p.severity == "error"]


@pytest.mark.parametrize("name", KEYS)
def test_null_keys_are_refused_for_every_type(tmp_path: Path, name: str) -> None:
    key, declared = KEYS[name]
    table = pa.table({"id": pa.array([key, None, key]), "n": [5, 6, 7]})
    bootstrap = st.bootstrap_keyed_state(table, key="id", key_type=declared, hashes=_HASHES)
    with pytest.raises(EncodeError, match=r"a row without a key: id None, n 6 \[operator op.* no null keys") as caught:
        write(tmp_path, bootstrap)
    assert caught.value.where.operator == "op"
    assert not (tmp_path / "sp").exists()
    whole = st.bootstrap_keyed_state(table.slice(0, 1), key="id", key_type=declared, hashes=_HASHES)
    assert write(tmp_path, whole).to_arrow().num_rows == 1


def test_null_keys_of_the_long_form_of_timers_and_behind_a_dictionary(tmp_path: Path) -> None:
    keys = pa.array(["a", None])
    table = pa.table({"key": keys, "value": [1, 2]})
    with pytest.raises(EncodeError, match="a row without a key: key None, value 2"):
        write(tmp_path, st.bootstrap_state("v", table))
    timers = pa.table({"key": keys, "timestamp": [1, 2]})
    with pytest.raises(EncodeError, match="a row without a key: key None, timestamp 2"):
        write(tmp_path, st.bootstrap_keyed_state(table.slice(0, 1), timers=timers))
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), keys)
    with pytest.raises(EncodeError, match="a row without a key"):
        write(tmp_path, st.bootstrap_state("v", pa.table({"key": coded, "value": [1, 2]}), key_type="STRING"))


def test_null_namespaces_are_refused(tmp_path: Path) -> None:
    for spaces in (pa.array(["a", None]), pa.array([{"start": 0, "end": 1}, None], _SPACE)):
        table = pa.table({"key": [1, 2], "w": spaces, "v": [3, 4]})
        with pytest.raises(
            EncodeError, match=r"a row without a namespace: key 2, w None, v 4 .*state v.* null namespaces"
        ):
            write(tmp_path, st.bootstrap_keyed_state(table, namespace="w"))
        timers = pa.table({"key": [1, 2], "namespace": spaces, "timestamp": [3, 4]})
        with pytest.raises(EncodeError, match=r"a row without a namespace: key 2, namespace None, timestamp 4"):
            write(tmp_path, st.bootstrap_keyed_state(table.slice(0, 1), namespace="w", timers=timers))


@pytest.mark.parametrize(
    ("key", "declared"),
    [
        ({"f0": None, "f1": "a"}, flink.tuple_of("STRING", "STRING")),
        ({"f0": None, "f1": None}, flink.row("BIGINT", "STRING")),
        ({"f0": None}, flink.row("BIGINT")),
        ({"id": None, "name": None}, _SHOP),
        ([None, "a"], flink.list_of("STRING")),
        ({"f0": None}, "ROW<id BIGINT>"),
    ],
)
def test_null_parts_of_keys_are_written(tmp_path: Path, key: Any, declared: str | Serializer) -> None:
    table = pa.table({"key": [key, None], "v": [1, 2]}).slice(0, 1)
    op = write(tmp_path, st.bootstrap_keyed_state(table, key_type=declared, hashes=_HASHES))
    (row,) = op.to_arrow().to_pylist()
    assert row["v"] == 1
    assert row["key"] == (key if isinstance(key, list) else {**row["key"], **key})
    assert errors(tmp_path / "sp") == []


def test_a_null_alone_is_a_row_of_it_as_pyflink_makes_them(tmp_path: Path) -> None:
    table = pa.table({"key": pa.array([None, "a"]), "v": [1, 2]})
    op = write(tmp_path, st.bootstrap_keyed_state(table, key_type=flink.row("STRING")))
    assert sorted(r["key"]["f0"] or "" for r in op.to_arrow().to_pylist()) == ["", "a"]


def test_null_keys_inside_of_map_state_are_written(tmp_path: Path) -> None:
    table = pa.table({"key": [1, 1], "map_key": ["a", None], "value": [2, 3]})
    op = write(tmp_path, st.bootstrap_state("m", table, type=st.map_of("STRING", "BIGINT")))
    assert sorted(op.to_arrow("m")["map_key"].to_pylist(), key=str) == [None, "a"]
    assert errors(tmp_path / "sp") == []


@pytest.mark.parametrize(
    ("key", "declared", "message"),
    [
        (b"a", None, "a key of type BytePrimitiveArray is an array, which Java hashes by its address in memory"),
        ([1], flink.primitive_array("long"), "LongPrimitiveArray is an array"),
        ({"f0": 1, "f1": b"a"}, flink.tuple_of("BIGINT", "BINARY"), "inside of Tuple<Long, BytePrimitiveArray>, is an"),
        ([b"a"], None, "inside of List<BytePrimitiveArray>, is an array"),
        (None, flink.VOID, "keys of type Void can only be null"),
    ],
)
def test_keys_that_no_job_can_have_are_refused(
    tmp_path: Path, key: Any, declared: Serializer | None, message: str
) -> None:
    table = pa.table({"key": [key], "v": [1], "g": [0]})
    for group in (None, "g"):
        with pytest.raises(OptionError, match=message):
            write(
                tmp_path, st.bootstrap_keyed_state(table, key_type=declared, key_group=group, states={"v": st.value()})
            )


def test_arrays_that_java_hashes_by_their_elements_are_keys(tmp_path: Path) -> None:
    table = pa.table({"key": [{"f0": b"a"}], "v": [1]})
    assert write(tmp_path, st.bootstrap_keyed_state(table, key_type=flink.row("BINARY"))).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("snapshot", "form"),
    [
        (build.kryo("com.acme.Unknown"), b"\0"),
        (build.kryo("java.util.UUID"), b"\0"),
        (build.nullable(build.LONG), b"\1"),
        (canonical.VOID, None),
        (build.row_of(build.STRING), None),
        (
            build.composite("org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 2, b"", build.LONG),
            None,
        ),
    ],
)
def test_null_is_told_from_objects_that_are_shown_as_it(snapshot: bytes, form: bytes | None) -> None:
    assert canonical.serializer(snapshot).null_form() == form


# ---- snapshots with null keys -------------------------------------------------------------------

_GROUP = key_group_for(0, 128)
_STATES = (canonical.keyed("v", "value", flink.LONG, flink.STRING),)
_ONE = (1).to_bytes(8, "big")


@pytest.mark.parametrize("backend", ["canonical", "heap", "rocksdb"])
@pytest.mark.parametrize(("key", "space"), [("key", b"\x02n"), ("namespace", b"\x00")])
def test_null_keys_and_namespaces_are_found(tmp_path: Path, backend: str, key: str, space: bytes) -> None:
    null = b"\x00" if key == "key" else b"\x02k"
    group = _GROUP if key == "key" else canonical.group_of(flink.STRING, "k", 128)
    entry = ("v", group, canonical.composite_key(null, space, ambiguous=True), _ONE)
    subtask = canonical.Subtask(key=flink.STRING, states=_STATES, entries=[entry])
    if backend == "rocksdb":
        native.native_savepoint(tmp_path, [subtask])
    else:
        canonical.savepoint(tmp_path, [subtask])
    if backend == "heap":
        _on_heap(tmp_path, group, space + null + _ONE)
    (problem,) = [p for p in st.verify(str(tmp_path)).problems if p.severity == "error"]
    assert problem.problem.startswith(f"an entry with a null {key}")
    assert (problem.subtask, problem.state) == (0, "v")


def test_null_keys_of_timers_are_found(tmp_path: Path) -> None:
    timers = canonical.timers("_timer_state/event_user-timers", flink.STRING)
    stamp = (5 ^ -(1 << 63)).to_bytes(8, "big", signed=True)
    entry = (timers.name, _GROUP, stamp + b"\x00" + b"\x00", b"")
    canonical.savepoint(tmp_path, [canonical.Subtask(key=flink.STRING, states=(timers,), entries=[entry])])
    assert len(errors(tmp_path)) == 1
    assert errors(tmp_path)[0].startswith("a timer with a null key")


def _on_heap(folder: Path, group: int, entry: bytes) -> None:
    """Replace the keyed stream of a savepoint by one of the heap backend with one entry."""
    header = write_keyed_header(
        KeyedHeader(version=6, compressed=False, key=flink.STRING, states=_STATES, size_bytes=0)
    )
    groups = [
        n.to_bytes(4, "big") + (0).to_bytes(2, "big") + (n == group).to_bytes(4, "big") + (entry if n == group else b"")
        for n in range(128)
    ]
    (folder / "heap").write_bytes(header + b"".join(groups))
    offsets = [len(header) + sum(map(len, groups[:n])) for n in range(128)]
    stream = RelativeFileHandle(path="heap", size_bytes=(folder / "heap").stat().st_size)
    patient = Patient(folder)
    (operator,) = patient.metadata.operators
    (subtask,) = operator.subtasks
    handle = KeyGroupsHandle(tag=3, start=0, offsets=tuple(offsets), stream=stream)
    operator = replace(operator, subtasks=(replace(subtask, managed_keyed=handle),))
    patient.write(replace(patient.metadata, operators=(operator,)))


# ---- key groups passed by the user --------------------------------------------------------------


def test_given_key_groups_are_checked(tmp_path: Path) -> None:
    groups = [canonical.group_of(flink.STRING, k, 128) for k in ("a", "b")]
    right = pa.table({"key": ["a", "b"], "v": [1, 2], "g": groups})
    assert write(tmp_path, st.bootstrap_keyed_state(right, key_group="g")).to_arrow().num_rows == 2
    wrong = right.set_column(2, "g", pa.array([groups[0], groups[1] ^ 1]))
    message = f"key 'b' is given key group {groups[1] ^ 1}, its hash code belongs to {groups[1]} .*operator op"
    with pytest.raises(EncodeError, match=message):
        write(tmp_path / "wrong", st.bootstrap_keyed_state(wrong, key_group="g"))
    timers = wrong.drop_columns("v").append_column("timestamp", pa.array([1, 2]))
    with pytest.raises(EncodeError, match="key 'b' is given key group"):
        write(tmp_path / "wrong", st.bootstrap_keyed_state(right, key_group="g", timers=timers))
    with pytest.raises(EncodeError, match="'g' is not a key group below 128"):
        write(tmp_path / "wrong", st.bootstrap_keyed_state(right.set_column(2, "g", [[0, 128]]), key_group="g"))
    assert not (tmp_path / "wrong" / "sp").exists()


def test_given_key_groups_of_a_users_class_are_checked_by_its_formula(tmp_path: Path) -> None:
    table = pa.table({"key": [{"id": 1, "name": "a"}], "v": [1], "g": [5]})
    trusted = st.bootstrap_keyed_state(table, key_type=_SHOP, key_group="g")
    assert write(tmp_path, trusted).to_arrow(key_group=True)["key_group"].to_pylist() == [5]
    declared = st.bootstrap_keyed_state(table, key_type=_SHOP, key_group="g", hashes=_HASHES)
    with pytest.raises(EncodeError, match=r"key {id: 1, name: 'a'} is given key group 5, its hash code belongs to"):
        write(tmp_path / "wrong", declared)


def test_given_key_groups_of_a_users_class_are_checked_by_the_keys_of_an_operator(corpus: Path, tmp_path: Path) -> None:
    op = st.load(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"))["by-pojo"]
    table = op.to_arrow(key_group=True)
    assert (
        write(tmp_path, st.bootstrap_keyed_state(table, like=op, key_group="key_group")).to_arrow().num_rows
        == table.num_rows
    )
    at = table.schema.get_field_index("key_group")
    moved = table.set_column(at, "key_group", pa.array([n ^ 1 for n in table["key_group"].to_pylist()]))
    with pytest.raises(EncodeError, match="is given key group"):
        write(tmp_path / "wrong", st.bootstrap_keyed_state(moved, like=op, key_group="key_group"))


def test_as_many_entries_as_rows_are_still_those_of_their_rows(tmp_path: Path) -> None:
    """Elements, entries and values of only some rows, in the same total number as rows."""
    rows: list[dict[str, Any]] = [
        {"key": 1, "m": {"a": 1, "b": 2}, "l": None, "v": None},
        {"key": 2, "m": None, "l": [5, 6, 7], "v": 8},
        {"key": 3, "m": {"c": 3}, "l": None, "v": 9},
    ]
    schema = pa.schema(
        {"key": pa.int64(), "m": pa.map_(pa.string(), pa.int64()), "l": pa.list_(pa.int64()), "v": pa.int64()}.items()
    )
    op = write(tmp_path, st.bootstrap_keyed_state(pa.Table.from_pylist(rows, schema=schema)))
    entries = op.to_arrow("keyed_state", states=["m", "l", "v"]).sort_by("key").to_pylist()
    for row in entries:
        row["m"] = None if row["m"] is None else dict(row["m"])
    assert [{k: row[k] for k in rows[0]} for row in entries] == rows
