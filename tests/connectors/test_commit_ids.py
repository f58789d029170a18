"""Sinks of table formats drop commits with a checkpoint id that they have already seen: stored ids, and warnings if they are too high."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors.sinks import COMMITTER_STATE
from statetool.connectors.wire import write_versioned
from tests.support.connectors.committers import JOB, iceberg, new, paimon


def rows(*args: str | Path, code: int) -> list[dict[str, Any]]:
    done = CliRunner().invoke(cli, [*map(str, args), "--json"])
    assert done.exit_code == code, (done.stdout, done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_new_savepoint_takes_its_id(tmp_path: Path) -> None:
    assert new(41, *iceberg(40, 41)).write(str(tmp_path / "s")).checkpoint_id == 41
    with pytest.raises(statetool.errors.OptionError, match="of at least 0"):
        statetool.SavepointWriter.new(checkpoint_id=-1)


def test_an_id_below_those_of_the_state_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="table: .* commits by checkpoint id.* 17 .*checkpoint_id=17"):
        new(0, *iceberg(16, 17)).write(str(tmp_path / "low"))
    (row,) = rows("sinks", "committed", tmp_path / "low", code=1)
    assert (row["connector"], row["checkpoint_id"]) == ("iceberg-files-committer", 0)
    assert (row["highest_known"], row["is_problem"]) == (17, True)
    assert "--checkpoint-id 17" in row["message"]
    listed = CliRunner().invoke(cli, ["sinks", "list", str(tmp_path / "low")])
    assert "commits by checkpoint id" in listed.stderr
    savepoint = new(17, *iceberg(16, 17)).write(str(tmp_path / "fine"))
    (fine,) = rows("sinks", "committed", tmp_path / "fine", code=0)
    assert (fine["highest_known"], fine["is_problem"]) == (17, False)
    assert [t.checkpoint_id for t in savepoint.connector_rows("transactions")] == [16, 17]
    pending = rows("sinks", "pending", tmp_path / "fine", code=0)
    assert {(p["verdict"], p["is_decoded"]) for p in pending} == {("will_commit", True)}


def test_a_new_savepoint_with_id_0_and_no_commits_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="which ids the table has committed is unknown"):
        new(0, *iceberg()).write(str(tmp_path / "s"))
    (row,) = rows("sinks", "committed", tmp_path / "s", code=1)
    assert (row["highest_known"], row["is_problem"]) == (None, True)


def test_paimon_needs_no_id(tmp_path: Path) -> None:
    """Only the commits of the state are compared with the table (``tests/flink/test_lakes.py``)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        low = new(0, *paimon(16, 17)).write(str(tmp_path / "low"))
    assert rows("sinks", "committed", tmp_path / "low", code=0) == []
    assert CliRunner().invoke(cli, ["sinks", "list", str(tmp_path / "low")]).stderr == ""
    job = new(17, *paimon(17)).write(str(tmp_path / "job"))
    assert not [w for w in statetool.check(low, job).warnings if "loses" in w]


def test_check_says_it(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="commits by checkpoint id"):
        low = new(3, *iceberg(17)).write(str(tmp_path / "low"))
    check = statetool.check(low, flink_version="1.20")
    assert not check.ok
    assert [w for w in check.warnings if w.startswith("table: loses: ") and "17" in w]
    fine = new(17, *iceberg(17)).write(str(tmp_path / "fine"))
    assert statetool.check(fine, flink_version="1.20").warnings == ()
    # State written from scratch, compared with the savepoint of a job that has committed.
    keyed = statetool.bootstrap_keyed_state(pa.table({"k": ["a"], "v": [1]}), key="k", states={"v": statetool.value()})
    made = statetool.SavepointWriter.new().with_operator("accounts", keyed).write(str(tmp_path / "made"))
    job = (
        statetool.SavepointWriter.new(checkpoint_id=17)
        .with_operator("accounts", keyed)
        .with_operator("table", *iceberg(17), parallelism=1)
        .write(str(tmp_path / "job"))
    )
    warned = statetool.check(made, job).warnings
    assert [
        w for w in warned if w.startswith("table: loses: ") and "at least 17 (--checkpoint-id, checkpoint_id=)" in w
    ], warned
    again = statetool.SavepointWriter.from_existing(made).with_checkpoint_id(17).write(str(tmp_path / "again"))
    assert statetool.check(again, job).warnings == ()


def test_a_sink_that_nobody_reads_may_commit_by_id(tmp_path: Path) -> None:
    state = statetool.bootstrap_list_state(
        COMMITTER_STATE, pa.table({"value": [write_versioned(9, b"new")]}), type="BINARY"
    )
    new(5, state).write(str(tmp_path / "s"))
    (row,) = rows("sinks", "committed", tmp_path / "s", code=1)
    assert (row["connector"], row["highest_known"], row["is_problem"]) == ("unknown", None, True)


def test_sinks_of_other_kinds_have_no_row(connector_cases: Path) -> None:
    assert rows("sinks", "committed", connector_cases / "v2_3_0-kafka-sink" / "snapshot", code=0) == []


def test_rewrites_keep_the_id(connector_cases: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        base = new(17, *iceberg(16, 17)).write(str(tmp_path / "base")).with_uids(["table"])
        ids = {}
        statetool.rescale(base, str(tmp_path / "rescaled"), 64)
        statetool.convert(base, str(tmp_path / "converted"))
        statetool.change_uids(base, str(tmp_path / "uid"), {"table": "sink"})
        statetool.drop(base, str(tmp_path / "dropped"), states={"table": ["iceberg-flink-job-id"]})
        statetool.drop_transactions(base, str(tmp_path / "forgot"), "table", [f"{JOB}//16"])
        statetool.SavepointWriter.from_existing(base).rename_state("table", "iceberg-flink-job-id", "x").write(
            str(tmp_path / "renamed")
        )
        statetool.copy(str(tmp_path / "base"), str(tmp_path / "copied"))
        for folder in ("rescaled", "converted", "uid", "dropped", "forgot", "renamed", "copied"):
            ids[folder] = statetool.load(str(tmp_path / folder)).checkpoint_id
        assert set(ids.values()) == {17}, ids
        source = statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot"))
        statetool.edit_source(source, str(tmp_path / "source"), "orders", to="earliest")
        assert statetool.load(str(tmp_path / "source")).checkpoint_id == source.checkpoint_id != 0
        keyed = statetool.bootstrap_keyed_state(
            pa.table({"k": ["a"], "v": [1]}), key="k", states={"v": statetool.value()}
        )
        counted = (
            statetool.SavepointWriter.new(checkpoint_id=9).with_operator("o", keyed).write(str(tmp_path / "counted"))
        )
        transformed = counted["o"].transform(lambda table: table).write(str(tmp_path / "transformed"))
        assert transformed.checkpoint_id == 9
        job = statetool.SavepointWriter.new().with_operator("o", keyed).write(str(tmp_path / "job"))
        statetool.migrate(counted, str(tmp_path / "migrated"), to=job)
        assert statetool.load(str(tmp_path / "migrated")).checkpoint_id == 9


def test_an_id_that_is_set_lower_is_warned_of_in_the_command(tmp_path: Path) -> None:
    new(17, *iceberg(17)).write(str(tmp_path / "base"))
    lower = ["convert", str(tmp_path / "base"), str(tmp_path / "lower"), "--checkpoint-id", "3"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = CliRunner().invoke(cli, lower)
    assert done.exit_code == 0, done.stderr
    assert "warning: " in done.stderr
    assert "commits by checkpoint id" in done.stderr
