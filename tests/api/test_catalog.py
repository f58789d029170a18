"""A directory of snapshots as a catalog."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, SnapshotNotFoundError, UnknownNameError
from tests.support.snapshots.trees import JOB, checkpoint_root, link, replace_file

SAVEPOINT = "savepoint_5ca1ab_0123456789ab"


@pytest.fixture
def root(corpus: Path, tmp_path: Path) -> Path:
    root = checkpoint_root(corpus, tmp_path)
    for hour, place in enumerate((root / SAVEPOINT.replace("_", "-"), root / JOB / "chk-3", root / JOB / "chk-4")):
        stamp = 1_700_000_000 + 3600 * hour
        replace_file(place / "_metadata", (place / "_metadata").read_bytes())
        os.utime(place / "_metadata", (stamp, stamp))
    return root


def test_databases_and_their_tables(root: Path) -> None:
    cat = statetool.catalog(None, str(root))
    assert cat.databases == list(cat) == [SAVEPOINT, "chk_3", "chk_4"]
    assert len(cat) == 3
    assert "chk-4" in cat
    assert cat["savepoint_5ca"].name == SAVEPOINT
    database = cat["chk-4"]
    sp = statetool.load(str(root / JOB / "chk-4"))
    assert database.tables
    assert len(database.tables) == sum(len(o.tables) for o in sp.operators.values())
    assert database["timers_keyed_state"].equals(sp["timers"].to_arrow())
    flat = database.table("collections-by-string.names$elements")
    assert flat.equals(sp["collections-by-string"].to_arrow("names"))
    assert "collections_by_string_names_elements" in database.tables
    with pytest.raises(UnknownNameError, match="timers_keyed_state"):
        database.table("timers_keyed_stat")
    with pytest.raises(UnknownNameError, match="chk_4"):
        cat["chk_5"]
    with pytest.raises(SnapshotNotFoundError):
        statetool.catalog(None, str(root / "nothing"))


def test_metadata_tables(root: Path) -> None:
    cat = statetool.catalog(None, str(root))
    snapshots = cat.snapshots()
    assert isinstance(snapshots, pa.Table)
    assert snapshots["checkpoint_id"].to_pylist() == [2, 3, 4]
    assert snapshots["kind"].to_pylist() == ["savepoint", "checkpoint", "checkpoint"]
    for table in ("operators", "states", "files"):
        whole = getattr(cat, table)()
        assert isinstance(whole, pa.Table)
        assert whole.num_rows == sum(getattr(cat[d], table)().num_rows for d in cat)
        assert set(whole["database"].to_pylist()) == set(cat)


def test_time_travel(root: Path) -> None:
    cat = statetool.catalog(None, str(root))
    assert cat.at(checkpoint_id=3).name == "chk_3"
    assert cat.at(time=1_700_003_600_000).name == "chk_3"
    assert cat.at(time=1_700_003_599_999).name == SAVEPOINT
    assert cat.at(time="2030-01-01T00:00:00Z").name == "chk_4"
    with pytest.raises(UnknownNameError, match="the oldest was written at 2023-11-14T22:13:20Z"):
        cat.at(time="2020-01-01")
    for far in (-(10**18), -(10**30)):
        with pytest.raises(UnknownNameError, match=f"at or before {far} epoch milliseconds"):
            cat.at(time=far)
    with pytest.raises(UnknownNameError, match=r"no snapshots .* id 7"):
        cat.at(checkpoint_id=7)
    for wrong in ({}, {"checkpoint_id": 1, "time": 1}, {"time": "yesterday"}):
        with pytest.raises(OptionError):
            cat.at(**wrong)


def test_snapshots_of_one_name_and_broken_ones(root: Path) -> None:
    link(root / JOB / "chk-4", root / ("ab" * 16) / "chk-4")
    replace_file(root / JOB / "chk-3" / "_metadata", b"no")
    cat = statetool.catalog(None, str(root))
    assert cat.databases == [SAVEPOINT, "chk_4_5ca1ab", "chk_4_ababab", "chk_3"]
    assert cat["chk_3"].head.problem
    with pytest.raises(UnknownNameError, match="2 snapshots"):
        cat.at(checkpoint_id=4)
    assert set(cat.operators()["database"].to_pylist()) == {SAVEPOINT, "chk_4_5ca1ab", "chk_4_ababab"}
    shutil.rmtree(root / JOB / "chk-4")
    assert "chk_4" in cat.refresh()


def test_a_thousand_checkpoints_are_listed_at_once_and_without_a_jvm(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4" / "_metadata"
    for i in range(1000):
        folder = tmp_path / JOB / f"chk-{i}"
        folder.mkdir(parents=True)
        os.link(source, folder / "_metadata")
    code = (
        "import sys, threading, statetool\n"
        "opened, calls = [], 0\n"
        "def count(frame, event, argument):\n"
        "    global calls\n"
        "    calls += event in ('call', 'c_call')\n"
        "sys.addaudithook(lambda event, words: opened.append(str(words[0])) if event == 'open' else None)\n"
        "threading.setprofile(count)\n"
        "sys.setprofile(count)\n"
        "cat = statetool.catalog(None, sys.argv[1])\n"
        "sys.setprofile(None)\n"
        "print(len(cat), sum(path.endswith('_metadata') for path in opened), 'pyspark' in sys.modules, calls)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    *found, calls = done.stdout.split()
    assert found == ["1000", "1000", "False"]
    assert int(calls) < 500 * 1000  # also those of imports


def test_sql(root: Path, spark: Any) -> None:
    from statetool.spark.session import has_data_sources

    if not has_data_sources():
        return
    cat = statetool.catalog(spark, str(root))
    assert cat.register("chk_4") == ["chk_4"]
    assert cat.register(cat.at(time=1_700_003_600_000).name, as_name="before") == ["before"]
    try:
        shown = {r.tableName for r in spark.sql("SHOW TABLES IN chk_4").collect() if not r.isTemporary}
        assert shown == {*cat["chk_4"].tables, "operators", "states", "files"}
        expected = sorted(map(tuple, cat["chk_4"].savepoint["timers"].to_arrow().to_pandas().itertuples(index=False)))
        assert sorted(map(tuple, spark.table("chk_4.timers_keyed_state").collect())) == expected
        joined = spark.sql(
            "SELECT a.key FROM chk_4.timers_keyed_state a JOIN before.timers_keyed_state b ON a.key = b.key WHERE a.key = 'timer-3'"
        )
        assert [r.key for r in joined.collect()] == ["timer-3"]
        named = spark.sql("SELECT DISTINCT operator FROM chk_4.states").collect()
        assert {r.operator for r in named} == {s.operator for s in cat["chk_4"].savepoint.metadata_rows("states")}
        cat.register("chk_4")
        spark.sql("CREATE DATABASE mine")
        with pytest.raises(OptionError, match="no catalog created it"):
            cat.register("chk_4", as_name="mine")
    finally:
        for name in ("chk_4", "before", "mine"):
            spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    assert (root / JOB / "chk-4" / "_metadata").exists()
