"""Keyed state written as native savepoints of RocksDB: same entries as the base, in databases that RocksDB itself opens."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.heap import group_writer
from statetool.formats.rocksdb import database_writer, table_writer
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_writer import TAG, TableWriter
from statetool.formats.rocksdb.tables import Tables
from statetool.kernels.core.arrays import frozen
from statetool.kernels.entries import heap_output
from statetool.saving import local
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink.corpus_cases import metadata_of
from tests.support.snapshots.keyed_content import content_of
from tests.support.snapshots.opened_databases import check_by_rocksdb, content, databases_of
from tests.support.zoo import ZOO


@pytest.mark.parametrize("backend", ["rocksdb", "forst", "heap"])
@pytest.mark.parametrize(
    "name",
    [
        "v1_20_5-rocksdb-canonical",
        "v1_20_5-rocksdb-native",
        "v2_3_0-hashmap-native",
        "v2_3_0-rocksdb-canonical-compressed",
        "v2_3_0-rocksdb-incremental",
        "v2_3_0-rocksdb-heap-timers",
        "v2_3_0-changelog-rocksdb",
        "v2_3_0-forst",
    ],
)
def test_entries_are_those_of_the_base(
    corpus: Path, tmp_path: Path, name: str, backend: Literal["rocksdb", "forst", "heap"]
) -> None:
    source = str(metadata_of(corpus / name))
    target, again = str(tmp_path / "native"), str(tmp_path / "canonical")
    plan = statetool.convert(statetool.load(source, declarations=CLASSES), target, format="native", backend=backend)
    assert {row.keyed_state for row in plan.operators} >= {"rewritten"}
    before = content_of(source)
    assert before
    assert content_of(target) == before
    if backend != "heap":
        assert check_by_rocksdb(target, tmp_path / "opened") == len(content_of(target, raw=False))
    found = statetool.verify(target, deep=True).problems
    assert [problem for problem in found if problem.severity == "error"] == []
    statetool.convert(statetool.load(target, declarations=CLASSES), again)
    assert content_of(again) == before


@pytest.mark.parametrize("by", ["kernels", "serializers"])
def test_nulls_in_maps_have_no_value_in_the_layout_of_the_heap_backend(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """In canonical savepoints of the heap backend a serialized null follows the flag of a null in a map (``HeapKeyValueStateIterator``)."""
    if by == "serializers":
        monkeypatch.setattr(heap_output, "write_heap", lambda *_: heap_output.SLOW)
    source = statetool.load(str(metadata_of(corpus / "v2_3_0-hashmap-canonical")), declarations=CLASSES)
    statetool.convert(source, str(tmp_path / "native"), format="native", backend="heap")
    target = statetool.load(str(tmp_path / "native"), declarations=CLASSES)
    assert [problem for problem in statetool.verify(target, deep=True).problems if problem.severity == "error"] == []
    assert source.diff(target).equal


@pytest.mark.parametrize("max_parallelism", [128, 1000])
def test_large_state_becomes_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_parallelism: int
) -> None:
    """Key groups larger than memory are written in pieces, and files end at their size."""
    monkeypatch.setattr(local, "MEMORY_BYTES", 1 << 20)
    monkeypatch.setattr(database_writer.DatabaseWriter.__init__, "__kwdefaults__", {"table_bytes": 1 << 17})
    draw = random.Random(3)
    keys = pa.array([f"key-{i * 7919 % 60_000}" for i in range(60_000)])
    data = pa.table({"key": keys, "text": [draw.randbytes(60).hex() for _ in range(60_000)], "n": range(60_000)})
    base = str(tmp_path / "base")
    state = statetool.bootstrap_keyed_state(data, key="key")
    statetool.SavepointWriter.new(max_parallelism=max_parallelism).with_operator("op", state, parallelism=2).write(base)
    target = str(tmp_path / "native")
    statetool.convert(base, target, format="native", backend="rocksdb")
    before = content_of(base)
    assert content_of(target) == before
    assert check_by_rocksdb(target, tmp_path / "opened") == len(before)
    for files, _ in databases_of(target):
        for own in Tables(files).families.values():
            assert len(own) == 0 or len(own) > 1
            assert max((f.size_bytes for f in own), default=0) < 1 << 20


@pytest.mark.parametrize("entries", [1, 7, 20_000])
def test_maps_larger_than_memory_are_whole_in_the_layout_of_the_heap_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    monkeypatch.setattr(local, "MEMORY_BYTES", 1 << 20)
    n = 60_000 // entries
    draw = random.Random(7)
    maps = [[(f"k{i}", draw.randbytes(20).hex()) for i in range(entries)] for _ in range(n)]
    texts = pa.array(maps, pa.map_(pa.string(), pa.string()))
    lists = pa.array([[f"a,{i}", "", ","] for i in range(n)], pa.list_(pa.string()))
    keys = pa.array([f"key-{i * 7919 % n}" for i in range(n)])
    data = pa.table({"key": keys, "texts": texts, "lists": lists, "n": range(n)})
    types = {
        "texts": statetool.map_of("STRING", "STRING"), "lists": statetool.list_of("STRING"),
        "n": statetool.value("BIGINT"),
    }  # fmt: skip
    base, target = str(tmp_path / "base"), str(tmp_path / "native")
    state = statetool.bootstrap_keyed_state(data, key="key", states=types)
    statetool.SavepointWriter.new(max_parallelism=2).with_operator("op", state, parallelism=1).write(base)
    resized: list[int] = []
    resize = group_writer._Section._resize

    def record(section: group_writer._Section, size: int) -> None:
        resized.append(size)
        resize(section, size)

    monkeypatch.setattr(group_writer._Section, "_resize", record)
    statetool.convert(base, target, format="native", backend="heap")
    assert bool(resized) == (entries > 1), "no map continues in another batch"
    assert content_of(target) == content_of(base)
    assert statetool.load(target)["op"].to_arrow("texts").num_rows == 60_000 // entries * entries


def test_what_a_native_savepoint_cannot_hold_is_refused(corpus: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "native")
    canonical = str(metadata_of(corpus / "v2_3_0-rocksdb-canonical"))
    with pytest.raises(OptionError, match="needs a backend"):
        statetool.convert(canonical, target, format="native")
    with pytest.raises(OptionError, match="with the canonical format"):
        statetool.convert(canonical, target, backend="rocksdb")
    with pytest.raises(OptionError, match="not write native savepoints of 'memory'"):
        statetool.convert(canonical, target, format="native", backend="memory")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="format 'heap'"):
        statetool.convert(canonical, target, format="heap")  # type: ignore[arg-type]
    assert not Path(target).exists()


def test_a_job_that_keeps_timers_on_the_heap_is_warned_of(tmp_path: Path) -> None:
    native = str(tmp_path / "native")
    with pytest.warns(
        UserWarning, match=r"timers: a job that keeps timers on the heap .* use the canonical format"
    ) as warned:
        statetool.convert(ZOO, native, format="native", backend="rocksdb")
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # these timers were read from a database
        statetool.convert(native, str(tmp_path / "again"), format="native", backend="rocksdb")


def test_asynchronous_state_in_a_canonical_savepoint_is_warned_of(tmp_path: Path) -> None:
    """RocksDB and the heap backend refuse the state, and ForSt refuses the savepoint."""
    with pytest.warns(UserWarning, match="asynchronous state, and the savepoint is canonical"):
        statetool.convert(ZOO, str(tmp_path / "canonical"), state_api="v2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statetool.convert(ZOO, str(tmp_path / "native"), state_api="v2", format="native", backend="forst")


def test_a_name_that_rocksdb_gives_to_no_state_is_refused(tmp_path: Path) -> None:
    data = pa.table({"key": ["a"], "default": ["b"]})
    state = statetool.bootstrap_keyed_state(data, key="key")
    base = str(tmp_path / "base")
    statetool.SavepointWriter.new().with_operator("op", state, parallelism=1).write(base)
    with pytest.raises(UnsupportedError, match="cannot use for a column family") as refused:
        statetool.convert(base, str(tmp_path / "native"), format="native", backend="rocksdb")
    assert refused.value.where.state == "default"


@pytest.mark.parametrize("backend", ["rocksdb", "forst"])
def test_an_operator_with_timers_alone_has_no_database_if_they_are_raw(
    tmp_path: Path, backend: Literal["rocksdb", "forst"]
) -> None:
    table = pa.table({"id": [1, 2], "v": [3, 4]})
    timers = pa.table({"id": [1, 2], "timestamp": [5, 6]})
    state = statetool.bootstrap_keyed_state(table, key="id", timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(tmp_path / "base"), flink_version="2.3")
    only, native = str(tmp_path / "only"), str(tmp_path / "native")
    statetool.drop(str(tmp_path / "base"), only, states={"op": ["v"]})
    statetool.convert(only, native, format="native", backend=backend)
    (operator,) = statetool.load(native).inventory.operators.values()
    handles = [(s.managed_keyed is None, s.raw_keyed is None) for s in operator.state.subtasks]
    assert handles == [(backend == "forst", backend == "rocksdb")] * 2
    assert content_of(native) == content_of(only)
    assert [p for p in statetool.verify(native, deep=True).problems if p.severity == "error"] == []


def swap_two(entries: Slice) -> Slice:
    """Exchange the first two entries, which have the same size."""
    data = entries.data.copy()
    (a, b), (c, d) = (int(entries.key[0]), int(entries.value_end[0])), (int(entries.key[1]), int(entries.value_end[1]))
    assert b - a == d - c
    data[a:b], data[c:d] = entries.data[c:d], entries.data[a:b]
    return replace(entries, data=frozen(data))


@pytest.mark.parametrize(
    ("method", "change", "found"),
    [
        ("add", lambda real, table, entries: real(table, swap_two(entries)), "keys are not in ascending order"),
        ("finish", lambda real, table: (real(table)[0], real_last(table)[:-9] + TAG), "keys are outside of the bounds"),
        ("finish", lambda real, table: (real(table)[0], b"\xff" * 40 + TAG), "overlap in level 6"),
        ("_index", lambda real, table: real(with_short_keys(table)), "keys are outside of the bounds"),
    ],
)
def test_what_rocksdb_would_not_find_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[..., Any], found: str
) -> None:
    """All checksums are right: only the order, the index or the manifest is wrong."""
    monkeypatch.setattr(database_writer.DatabaseWriter.__init__, "__kwdefaults__", {"table_bytes": 1 << 12})
    monkeypatch.setattr(table_writer, "_PORTION_BYTES", 1 << 12)
    real = getattr(TableWriter, method)
    monkeypatch.setattr(TableWriter, method, lambda table, *a: change(real, table, *a))
    n = 2000
    data = pa.table({"key": [f"key-{i:04}" for i in range(n)], "v": range(n)})
    writer = statetool.SavepointWriter.new(max_parallelism=1)
    writer = writer.with_operator("op", statetool.bootstrap_keyed_state(data, key="key"), parallelism=1)
    writer.write(str(tmp_path / "sp"), flink_version="2.3", format="native", backend="rocksdb", inline_bytes=0)
    problems = [p for p in statetool.verify(str(tmp_path / "sp"), deep=True).problems if p.severity == "error"]
    assert found in problems[0].problem
    assert problems[0].file is not None


def real_last(table: TableWriter) -> bytes:
    return table._index_keys[-1] + TAG


def with_short_keys(table: TableWriter) -> TableWriter:
    table._index_keys = [key[:-1] for key in table._index_keys]
    return table


def test_set_carries_the_table_files_without_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some twenty files, one is written for each key, at the start, at the end and in the middle, for new keys too."""
    monkeypatch.setattr(database_writer.DatabaseWriter.__init__, "__kwdefaults__", {"table_bytes": 1 << 12})
    monkeypatch.setattr(table_writer, "_PORTION_BYTES", 1 << 12)
    data = pa.table({"key": range(6000), "text": [f"{i:030}" for i in range(6000)], "n": range(6000)})
    state = statetool.bootstrap_keyed_state(data, key="key")
    base = str(tmp_path / "base")
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(base, flink_version="2.3", format="native", backend="rocksdb")
    order = [row["key"] for row in statetool.load(base)["op"].to_arrow("keyed_state").to_pylist()]
    for number, key in enumerate((order[0], order[3000], order[-1], 10_000)):
        target = str(tmp_path / f"set-{number}")
        statetool.set_values(base, target, "op", key, {"text": "new", "n": 7}, new_key=key >= 6000)
        before, after = (
            {
                (at, name): (stream.size_bytes, content(stream))
                for at, (files, _) in enumerate(databases_of(path))
                for name, stream in files.files
                if name.endswith(".sst")
            }
            for path in (base, target)
        )
        assert before.keys() == after.keys()
        assert len(before) > 20
        changed = {name for name in before if before[name] != after[name]}
        assert len(changed) == 2, "one of each state"
        assert sum(before[name][0] for name in changed) < sum(size for size, _ in before.values()) / 8
        rows = {row["key"]: row for row in statetool.load(target)["op"].to_arrow("keyed_state").to_pylist()}
        assert len(rows) == 6000 + (key >= 6000)
        assert (rows[key]["text"], rows[key]["n"]) == ("new", 7)
        assert check_by_rocksdb(target, tmp_path / f"opened-{number}") == 2 * len(rows)
        assert [p for p in statetool.verify(target, deep=True).problems if p.severity == "error"] == []
