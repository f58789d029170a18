"""Mistakes at the command line and in Python that were misinterpreted, or raised a Python error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.analysis.comparison.structure import operator_differences
from statetool.cli.main import cli
from statetool.errors import EncodeError, OptionError, UnknownNameError
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle
from tests.support.snapshots.trees import last_snapshot
from tests.support.zoo import ZOO

ANY = cast("Any", True)


@pytest.mark.parametrize(
    "call",
    [
        lambda sp, to: st.SavepointWriter.new(max_parallelism=ANY),
        lambda sp, to: st.SavepointWriter.from_existing(sp, max_parallelism=ANY),
        lambda sp, to: st.rescale(sp, to, ANY, dry_run=True),
        lambda sp, to: st.rescale(sp, to, {"timers": ANY}, dry_run=True),
        lambda sp, to: st.rescale(sp, to, cast("Any", "64"), dry_run=True),
        lambda sp, to: st.rescale(sp, to, cast("Any", 64.0), dry_run=True),
        lambda sp, to: st.rescale(sp, to, 64, parallelism=ANY, dry_run=True),
        lambda sp, to: sp.stats(largest=ANY),
        lambda sp, to: sp.stats(parallelism=ANY),
        lambda sp, to: sp.stats(ttl_ms=ANY),
        lambda sp, to: sp.stats(now_ms=ANY),
        lambda sp, to: sp.stats(threads=ANY),
        lambda sp, to: sp.diff(sp, threads=ANY),
        lambda sp, to: st.verify(sp, max_problems=ANY),
        lambda sp, to: st.verify(sp, threads=ANY),
    ],
)
def test_true_is_not_the_number_1(call: Callable[[st.Savepoint, str], Any], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a whole number"):
        call(st.load(ZOO), str(tmp_path / "new"))


@pytest.mark.parametrize(
    "options", [{"bandwidth_mib": float("nan")}, {"latency_ms": float("inf")}, {"latency_ms": float("nan")}]
)
def test_what_is_no_number_measures_no_restore(options: Any) -> None:
    with pytest.raises(OptionError, match="a bandwidth of"):
        st.load(ZOO).stats(**options)


def test_one_name_is_no_list_of_names() -> None:
    sp = st.load(ZOO)
    for call in (
        lambda: sp.stats(operators="timers"),
        lambda: sp.diff(sp, operators="timers"),
        lambda: sp.diff(sp, states="registered"),
        lambda: st.load(ZOO, uids="timers"),
    ):
        with pytest.raises(OptionError, match=r"takes a list of .*, not one string"):
            call()


@pytest.mark.parametrize("name", [("a", "b"), 5, None, b"timers", slice(1, 2)])
def test_what_is_no_name_is_an_unknown_one(name: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"is not the name of an operator.*sp\['uid'\]"):
        st.load(ZOO)[name]


def test_a_comparison_takes_a_path(tmp_path: Path) -> None:
    sp = st.load(ZOO)
    assert sp.diff(ZOO, operators=["timers"]).equal
    assert sp.diff(st.load(ZOO), operators=["timers"]).equal
    with pytest.raises(OptionError, match="5 is neither a savepoint nor a path"):
        sp.diff(cast("Any", 5))


def head(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, ["head", *arguments, "--json"])
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return json.loads(done.stdout) if code == 0 else done.stderr


@pytest.mark.parametrize("keys", ["timer-3", '["timer-3"]', '"timer-3"', '{"text": "timer-3"}'])
def test_a_bare_word_is_a_key(keys: str) -> None:
    assert [r["key"] for r in head(ZOO, "timers", "--keys", keys)] == ["timer-3"]


def test_a_key_of_another_type_says_what_was_understood(tmp_path: Path) -> None:
    number = head(ZOO, "timers", "--keys", "[1]", code=3)
    assert "the key 1 is a number, but the keys are of type String [operator timers]" in number
    assert """--keys '["1"]'""" in number
    table = pa.table({"key": [7], "n": [1]})
    writer = st.SavepointWriter.new().with_operator("o", st.bootstrap_keyed_state(table))
    path = writer.write(str(tmp_path / "sp"), flink_version="2.3").path
    assert head(path, "o", "--keys", "[7]") == [{"key": 7, "n": 1}]
    text = head(path, "o", "--keys", '["7"]', code=3)
    assert "the key '7' is a string, but the keys are of type Long [operator o]" in text
    assert "--keys '[7]'" in text
    word = head(path, "o", "--keys", "seven", code=3)
    assert "the key 'seven' is not a whole number, but the keys are of type Long" in word
    with pytest.raises(EncodeError, match="the key True is a boolean"):
        st.load(ZOO)["timers"].to_arrow(keys=[True])


@pytest.mark.parametrize("keys", ["[5", "a,b", ""])
def test_what_is_no_list_of_keys_says_how_one_is_written(keys: str) -> None:
    assert """'["a", "b"]'""" in head(ZOO, "timers", "--keys", keys, code=2)


def test_no_difference_has_the_same_text_before_and_after(corpus: Path) -> None:
    cases = ("v1_20_5-rocksdb-canonical", "v2_3_0-rocksdb-canonical", "v2_3_0-unaligned", "v2_3_0-hashmap-canonical")
    savepoints = [st.load(last_snapshot(corpus, case)) for case in cases]
    seen = 0
    for first in savepoints:
        for second in savepoints:
            for row in first.diff(second).structure:
                assert row.before is None or row.before != row.after, row
                seen += row.before is not None
    assert seen > 10
    old = savepoints[1]["timers"].inventory
    assert [list(part) for part in operator_differences(old, old, None)] == [[]] * 5


def test_coordinators_of_one_size_are_told_apart(connector_cases: Path, tmp_path: Path) -> None:
    """Both have the same size, before and after."""
    path = connector_cases / "v2_3_0-kafka-source" / "snapshot"
    shutil.copytree(path, tmp_path / "changed")
    metadata = parse_metadata((path / "_metadata").read_bytes())
    changed = []
    for operator in metadata.operators:
        held = operator.coordinator
        if isinstance(held, ByteStreamHandle):
            operator = replace(operator, coordinator=replace(held, data=held.data[:-1] + bytes([held.data[-1] ^ 1])))
        changed.append(operator)
    (tmp_path / "changed" / "_metadata").write_bytes(write_metadata(replace(metadata, operators=tuple(changed))))
    (row,) = [r for r in st.load(str(path)).diff(str(tmp_path / "changed")).structure if r.what == "coordinator"]
    assert row.before is not None
    assert row.after is not None
    assert row.before.partition(" ")[0] == row.after.partition(" ")[0]
    assert row.before != row.after


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("orphans",), "README.md is a file. point to a directory that holds snapshots"),
        (("chain",), "README.md is a file. point to a directory that holds snapshots"),
        (("metrics",), "this is not a Flink _metadata file"),
        (("info",), "this is not a Flink _metadata file"),
        (("lint",), "not valid YAML: mapping values are not allowed here in"),
    ],
)
def test_a_file_that_is_no_snapshot_is_called_that(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("# A job\n\nIt counts: all orders: of all shops\n")
    done = CliRunner().invoke(cli, [*words, str(file)])
    assert done.exit_code == 3
    assert message in done.stderr
    assert "\\n" not in done.stderr


def test_check_without_b_names_options(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["check", str(ZOO)])
    assert "a snapshot of the new job (B), its jar (--jar-b" in done.stderr


def test_migrate_without_a_new_job_names_options(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["migrate", str(ZOO), str(tmp_path / "new")])
    assert "--to JOB or --plan FILE" in done.stderr


@pytest.mark.parametrize("command", ["head", "verify --deep"])
def test_hints_of_unknown_classes_name_the_jar_first(command: str) -> None:
    name, *more = command.split()
    done = CliRunner().invoke(cli, [name, str(ZOO), *(["orders"] if name == "head" else []), *more])
    said = done.stdout + done.stderr
    assert 0 < said.index("--jar") < said.index("--declare")
    assert name == "head" or f"statetool verify {ZOO} --jar FILE --deep" in said


def test_states_left_out_have_no_hints() -> None:
    done = CliRunner().invoke(cli, ["head", str(ZOO), "orders", "--states", "pet"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "order: " in CliRunner().invoke(cli, ["head", str(ZOO), "orders", "--states", "pet,order"]).stderr
    assert "--jar" not in st.load(ZOO)["orders"].head(states=["pet"])._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", ZOO, "-o", "json"], "--target/-o json: 'json' is the name of a format, not of a file"),
        (["erase", ZOO, "new", "--keys", "a", "--report", "JSON"], "--report JSON: 'JSON' is the name of a format"),
        (["sql", ZOO, "SELECT 1", "--to", "csv"], "--output csv chooses the format; a file of this name is ./csv"),
        (["diff", ZOO, ZOO, "--target", "parquet"], "--output parquet chooses the format"),
        (["check", ZOO, ZOO, "--write-plan", "json"], "--output json chooses the format"),
    ],
)
def test_the_name_of_a_format_is_none_of_a_file(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert words in done.stderr
