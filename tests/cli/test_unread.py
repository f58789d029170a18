"""Unreadable state of one operator does not affect results about the others, and marks each result as incomplete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import statetool as st
from statetool.cli.main import cli
from statetool.errors import UnknownSerializerError
from tests.support.corpora.archives import HERE, unpack
from tests.support.snapshots import unreadable


def run(*arguments: str | Path, code: int) -> Result:
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done


#: Operators named as in the snapshot, which stores only ids.
NAMES = ("--name-uid", unreadable.GOOD, "--name-uid", unreadable.BAD)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> st.Savepoint:
    """A change log without materialized state: the key type of three of its operators is unknown."""
    zoo = unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path_factory.mktemp("jobs"))
    (metadata,) = (zoo / "v2_3_0-logged-changelog").rglob("chk-4/_metadata")
    return st.load(str(metadata.parent))


UNKNOWN_KEYS = {"l-float", "l-char", "l-double"}


def test_statistics_count_the_other_operators(logged: st.Savepoint) -> None:
    statistics = logged.stats()
    assert {o for o in UNKNOWN_KEYS if any(f"({o})" in reason for reason in statistics.unread)} == UNKNOWN_KEYS
    assert len(statistics.unread) == 3
    entries = {r.operator: (r.entries, r.keys) for r in statistics.rows("operators") if r.operator.startswith("l-")}
    assert entries == {
        **dict.fromkeys(("l-long", "l-int", "l-string"), (60, 20)),
        **dict.fromkeys(UNKNOWN_KEYS, (None, None)),
    }
    of_unknown = [r for r in statistics.rows("states") if r.operator in UNKNOWN_KEYS and r.scope == "keyed"]
    assert of_unknown
    numbers = {
        (r.entries, r.keys, r.key_bytes, r.value_bytes, r.mean_value, r.largest_value, r.share) for r in of_unknown
    }
    assert numbers == {(None,) * 7}
    assert not [r for t in ("skew", "ages", "timers") for r in statistics.rows(t) if r.operator in UNKNOWN_KEYS]
    alone = logged.stats(operators=["l-long"])
    assert alone.unread == ()
    assert [r for r in statistics.rows("states") if r.operator == "l-long"] == alone.rows("states")
    shown = json.loads(run("stats", logged.path, "--json", code=1).stdout)
    assert shown["unread"] == list(statistics.unread)
    text = run("stats", logged.path, code=1)
    assert text.stderr.count("only the bytes are counted: ") == 3
    assert "l-string" in text.stdout
    (line, *_) = (
        line.split() for line in text.stdout.splitlines() if "(l-float)" in line or line.startswith("l-float ")
    )
    assert line.count("-") >= 3
    assert run("stats", logged.path, "--uid", "l-long", code=0).stderr == ""


def test_a_comparison_goes_on_with_the_other_operators(logged: st.Savepoint, tmp_path: Path) -> None:
    comparison = logged.diff(logged)
    assert not comparison.equal
    assert {o for o in UNKNOWN_KEYS if any(f"({o})" in reason for reason in comparison.unread)} == UNKNOWN_KEYS
    compared = {s.operator for s in comparison.summary() if s.entries_before}
    assert compared == {"numbers", "l-long", "l-int", "l-string"}
    for all_of_it in (comparison.to_arrow, lambda: list(comparison.batches())):
        with pytest.raises(UnknownSerializerError):  # no table that could be mistaken for all differences
            all_of_it()
    shown = json.loads(run("diff", logged.path, logged.path, "--json", code=1).stdout)
    assert not shown["equal"]
    assert shown["unread"] == list(comparison.unread)
    text = run("diff", logged.path, logged.path, code=1)
    assert text.stdout.count("Not compared: ") == 3
    target = tmp_path / "differences.parquet"
    written = run("diff", logged.path, logged.path, "--output", "parquet", "--target", target, code=1)
    assert written.stdout.count("Not compared: ") == 3
    assert pq.read_table(target).num_rows == 0
    assert logged.diff(logged, operators=["l-long"]).equal


def test_a_check_calls_the_operator_unknown(logged: st.Savepoint) -> None:
    for check in (st.check(logged, logged), st.check(logged, flink_version="2.3")):
        verdicts = {o.uid: o.verdict for o in check.operators if o.uid.startswith("l-")}
        assert verdicts == {
            **dict.fromkeys(("l-long", "l-int", "l-string"), "fully"),
            **dict.fromkeys(UNKNOWN_KEYS, "unknown"),
        }
        assert check.verdict == "unknown"
        assert not check.ok
    shown = run("check", logged.path, "--flink", "2.3", code=1)
    assert "unknown" in shown.stdout


@pytest.mark.parametrize("kind", unreadable.KINDS)
def test_what_cannot_be_read_is_unknown_and_hides_nothing_else(kind: str, tmp_path: Path) -> None:
    before, after = (unreadable.savepoint(tmp_path / str(v), kind, value=v) for v in (0, 5))
    statistics = before.stats()
    sizes = {r.operator: r.size_bytes for r in statistics.rows("operators")}
    assert sizes == {r.operator: r.state_bytes for r in before.metadata_rows("operators")}
    assert [r.entries for r in statistics.rows("operators") if r.operator == unreadable.GOOD] == [1]
    listed = not any(s.kind == "unread" for s in before[unreadable.BAD].states.values())
    assert bool(statistics.unread) == (not listed)
    comparison = before.diff(after)
    changed = {s.operator: s.changed for s in comparison.summary() if s.state == "count" and s.changed}
    assert changed[unreadable.GOOD] == 1
    assert (unreadable.BAD in changed) == (not comparison.unread) == listed
    for check in (st.check(before, after), st.check(before, flink_version="2.3")):
        assert [o.verdict for o in check.operators if o.uid == unreadable.GOOD] == ["fully"]
        assert [o.verdict for o in check.operators if o.uid == unreadable.BAD] == ["unknown"]
        assert "OursSerializer" in check.reason or "RocksDB" in check.reason


def test_commands_say_what_was_not_read(tmp_path: Path) -> None:
    first, second = (unreadable.savepoint(tmp_path / str(v), "raw timers", value=v).path for v in (0, 5))
    stats = run("stats", first, *NAMES, code=1)
    assert "OursSerializer" in stats.stderr
    assert unreadable.GOOD in stats.stdout
    diff = json.loads(run("diff", first, second, *NAMES, "--json", code=1).stdout)
    assert [(d["operator"], d["change"]) for d in diff["differences"]] == [(unreadable.GOOD, "changed")]
    assert "operator bad" in diff["unread"][0]
    check = json.loads(run("check", first, second, *NAMES, "--json", code=1).stdout)
    assert {o["uid"]: o["verdict"] for o in check["operators"]} == {unreadable.GOOD: "fully", unreadable.BAD: "unknown"}
    page = tmp_path / "report.html"
    run("report", first, second, "--target", page, *NAMES, code=1)
    assert "OursSerializer" in page.read_text()


def test_metrics_leave_out_what_cannot_be_read(logged: st.Savepoint) -> None:
    read = ("metrics", logged.path, "--read", "keyed")
    text = run(*read, code=0)
    assert text.stderr.count("left out: ") == 3
    counted = [line for line in text.stdout.splitlines() if 'scope="operator"' not in line]
    for name in ("statetool_state_entries", "statetool_state_bytes", "statetool_operator_keys", "statetool_timers"):
        of_name = [line for line in counted if line.startswith(name + "{")]
        assert not [line for line in of_name if any(f'"{o}"' in line for o in UNKNOWN_KEYS)], name
    assert sum("l-long" in line for line in counted if line.startswith("statetool_state_entries{"))
    assert run(*read, "--strict", code=1).stdout == text.stdout
    assert run("metrics", logged.path, "--strict", code=0).stderr == ""
    assert "--strict" in run("metrics", logged.path, "--strict", "--serve", "0", code=2).stderr


@pytest.mark.parametrize("kind", unreadable.KINDS)
def test_no_number_of_unread_state_is_0(kind: str, tmp_path: Path) -> None:
    savepoint = unreadable.savepoint(tmp_path / "a", kind)
    statistics = savepoint.stats()
    if not statistics.unread:
        return
    (row,) = (r for r in statistics.rows("operators") if r.operator == unreadable.BAD)
    assert (row.entries, row.keys, row.entries_bytes) == (None, None, None)
    assert row.unread_bytes
    for state in statistics.rows("states"):
        if state.operator == unreadable.BAD and state.scope == "keyed" and state.kind == "unread":
            assert (state.entries, state.largest_value, state.share) == (None, None, None)
    assert not [r for r in statistics.rows("sizes") if r.part == "unread" and r.entries is not None]
    metrics = run("metrics", savepoint.path, *NAMES, "--read", "keyed", code=0)
    assert f'statetool_operator_keys{{job_id="",job_name="",operator="{unreadable.BAD}"' not in metrics.stdout


def test_growth_does_not_know_what_cannot_be_read(tmp_path: Path) -> None:
    unreadable.savepoint(tmp_path / "chk-1", "raw timers")
    rows = {r.state: (r.entries, r.size_bytes) for r in st.growth(str(tmp_path))}
    assert rows == {"count": (1, 13), "(keyed state)": (None, None)}


def test_spark_says_the_same(spark: Any, tmp_path: Path) -> None:
    before, after = (unreadable.savepoint(tmp_path / str(v), "raw timers", value=v) for v in (0, 5))
    here, there = before.stats(now_ms=0), before.stats(now_ms=0, spark=spark)
    assert here.unread == there.unread != ()
    assert all(here.rows(t) == there.rows(t) for t in here.tables)
    comparison = before.with_session(spark).diff(after)
    assert comparison.unread == before.diff(after).unread != ()
    assert comparison.summary() == before.diff(after).summary()
    with pytest.raises(UnknownSerializerError):
        comparison.frame()


@pytest.mark.full
@pytest.mark.parametrize("command", ["stats", "diff"])
def test_commands_on_spark_exit_with_1(command: str, tmp_path: Path) -> None:
    paths = [unreadable.savepoint(tmp_path / str(v), "raw timers", value=v).path for v in (0, 5)]
    asked = [sys.executable, "-m", "statetool", command, *paths[: 1 if command == "stats" else 2], "--spark", *NAMES]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "OursSerializer" in (done.stderr if command == "stats" else done.stdout)
