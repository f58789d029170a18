from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError
from statetool.formats.rocksdb import table_properties
from statetool.formats.rocksdb.table_file import SortedTable
from statetool.formats.rocksdb.table_properties import TableProperties, read_properties
from statetool.formats.rocksdb.table_runs import read_runs
from statetool.formats.stream import Stream
from tests.support.quick import fewer_uncompiled
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.native import block_options, database
from tests.support.snapshots.trees import last_snapshot
from tests.support.zoo import ZOO

DATABASES = (
    "v1_13_6-rocksdb-incremental",
    "v1_20_5-rocksdb-native",
    "v2_3_0-rocksdb-incremental",
    "v2_3_0-rocksdb-native-inline",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-forst",
)
#: Blocks of an old and a new release, and files within a file.
UNCOMPILED_DATABASES = (DATABASES[0], DATABASES[4])
DELETION, VALUE, MERGE, SINGLE_DELETION = 0, 1, 2, 7


def tables_of(savepoint: statetool.Savepoint) -> list[Stream]:
    """Return the table files of all databases."""
    databases = (stored.owned_database() for o in savepoint.operators.values() for stored in o.inventory.keyed.managed)
    return [s for d in databases if d is not None for name, s in d.files.files if name.endswith(".sst")]


def counted(stream: Stream) -> TableProperties:
    """Count the entries of a table file, one block after another."""
    table = SortedTable(stream)
    (run,) = read_runs([(table, np.arange(len(table.blocks.size)))])
    kinds = Counter((run.tag & np.uint64(0xFF)).tolist())
    keys = int((run.key_end - run.key).sum()) + 8 * len(run.key)
    values = int((run.value_end - run.value).sum())
    assert kinds.keys() <= {DELETION, VALUE, MERGE, SINGLE_DELETION}
    return TableProperties(len(run.key), kinds[DELETION] + kinds[SINGLE_DELETION], kinds[MERGE], keys, values)


@pytest.mark.parametrize("case", fewer_uncompiled([*DATABASES], *UNCOMPILED_DATABASES))
def test_properties_of_a_file_are_those_of_its_entries(
    corpus: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = tables_of(statetool.load(last_snapshot(corpus, case)))
    assert len(streams) > 20
    found = read_properties(streams)
    assert found == [counted(s) for s in streams]
    monkeypatch.setattr(table_properties, "TAIL_BYTES", 60)
    assert read_properties(streams) == found


@pytest.mark.parametrize("case", fewer_uncompiled([*DATABASES], *UNCOMPILED_DATABASES))
def test_exact_numbers_are_within_the_bounds(corpus: Path, case: str) -> None:
    savepoint = statetool.load(last_snapshot(corpus, case))
    exact, estimate = savepoint.stats(), savepoint.estimate_stats()
    assert estimate.unread == ()
    stored = {row.operator: row.stored_bytes for row in estimate.rows("operators")}
    assert stored == {row.operator: row.size_bytes for row in exact.rows("operators")}
    entries = {(r.operator, r.scope, r.state): r.entries for r in exact.rows("states")}
    rows = estimate.rows("states")
    assert {(r.operator, r.scope, r.state) for r in rows} == entries.keys()
    known = 0
    for row in rows:
        number = entries[row.operator, row.scope, row.state]
        if row.basis == "metadata":
            assert row.entries == row.at_least == row.at_most == number
        elif row.basis == "table properties":
            known += 1
            assert row.at_least <= number <= row.at_most
            assert row.at_least <= row.entries <= row.at_most
        else:
            assert row.entries is row.at_most is None
            assert row.at_least == 0
    assert known > 10
    of_ranges = Counter[str]()
    for part in estimate.rows("key_groups"):
        of_ranges[part.operator] += part.at_least
    for operator in estimate.rows("operators"):
        keyed = [r for r in rows if r.operator == operator.operator and r.scope == "keyed"]
        assert of_ranges[operator.operator] == sum(r.at_least for r in keyed)


def states_of(root: Path, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return estimated and exact rows of the states of a checkpoint."""
    savepoint = statetool.load(str(root / f"chk-{number}"), uids=["op"])
    estimate = {r.state: r for r in savepoint.estimate_stats().rows("states")}
    return estimate, {r.state: r for r in savepoint.stats().rows("states")}


def test_bounds_follow_from_overwritten_and_deleted_entries(tmp_path: Path) -> None:
    with Job(tmp_path / "checkpoints", states=("a", "b")) as job:
        for key in range(100):
            job.put("a", key, b"x" * key)
            job.put("b", key, b"y")
        job.checkpoint()
        estimate, exact = states_of(job.root, 1)
        for name in ("a", "b"):  # one file of each state, without deletions
            row = estimate[name]
            assert row.entries == row.at_least == row.at_most == exact[name].entries == 100
            assert (row.key_bytes, row.value_bytes) == (exact[name].key_bytes, exact[name].value_bytes)
        for key in range(40):
            job.put("a", key, b"z")
        for key in range(30):
            job.delete("b", key)
        job.checkpoint()
        estimate, exact = states_of(job.root, 2)
        assert (exact["a"].entries, exact["b"].entries) == (100, 70)
        assert (estimate["a"].at_least, estimate["a"].entries, estimate["a"].at_most) == (100, 140, 140)
        assert (estimate["b"].at_least, estimate["b"].entries, estimate["b"].at_most) == (70, 70, 100)
        job.compact()
        job.checkpoint()
        estimate, exact = states_of(job.root, 3)
        for name in ("a", "b"):  # compaction leaves one file of each state again
            row = estimate[name]
            assert row.entries == row.at_least == row.at_most == exact[name].entries
            assert (row.key_bytes, row.value_bytes) == (exact[name].key_bytes, exact[name].value_bytes)


def test_states_of_streams_have_unknown_entries_and_exact_bytes(corpus: Path) -> None:
    savepoint = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-canonical"))
    estimate = savepoint.estimate_stats()
    exact = {r.operator: r for r in savepoint.stats().rows("operators")}
    for row in estimate.rows("operators"):
        assert row.stored_bytes == exact[row.operator].size_bytes
    by_operator = Counter[str]()
    for part in estimate.rows("key_groups"):
        assert part.entries is None
        assert part.first_key_group == part.last_key_group
        by_operator[part.operator] += part.stored_bytes
    for name, operator in savepoint.operators.items():
        sizes = [r.size_bytes for r in savepoint.metadata_rows("key_groups") if r.operator == name]
        assert by_operator[name] == sum(sizes)
        assert operator.estimate_stats().rows("operators") == [
            r for r in estimate.rows("operators") if r.operator == name
        ]


@pytest.mark.parametrize("case", ["v2_3_0-changelog-rocksdb", "v2_3_0-hashmap-native"])
def test_other_forms_are_unknown_with_a_reason(corpus: Path, case: str) -> None:
    estimate = statetool.load(last_snapshot(corpus, case)).estimate_stats()
    keyed = [r for r in estimate.rows("states") if r.scope == "keyed"]
    assert keyed
    assert {r.basis.partition(" ")[0] for r in keyed} == {"changelogs" if "changelog" in case else "streams"}


def test_files_of_other_kinds_are_unknown_and_damaged_ones_are_errors(tmp_path: Path) -> None:
    entries = [("a", 1, bytes([1, i]), b"value") for i in range(100)]
    files = dict(database(tmp_path / "ranges", entries, deleted_range=(b"\x01\x01\x05", b"\x01\x01\x09")).files)
    with_range = [s for name, s in files.items() if name.endswith(".sst")]
    assert any(isinstance(p, str) and p.endswith("deletes ranges of keys") for p in read_properties(with_range))
    later = dict(database(tmp_path / "later", entries, blocks=block_options(6)).files)
    later_tables = [s for name, s in later.items() if name.endswith(".sst")]
    assert read_properties(later_tables) == ["not a table file that statetool can read"] * len(later_tables)
    (stream, *_) = (s for name, s in dict(database(tmp_path / "good", entries).files).items() if name.endswith(".sst"))
    good = Path(stream.file).read_bytes()
    whole = read_properties([stream])[0]
    refused = 0
    for at in range(len(good) - 1200, len(good)):
        damaged = tmp_path / "damaged.sst"
        damaged.write_bytes(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])
        try:
            (found,) = read_properties([Stream(file=str(damaged), start=0, size_bytes=len(good))])
        except FormatError as error:
            assert str(damaged) in str(error)
            refused += 1
        else:
            assert found == whole or isinstance(found, str)
    assert refused > 500
    with pytest.raises(FormatError, match="a table file of 10 bytes"):
        read_properties([Stream(file=stream.file, start=0, size_bytes=10)])


def test_the_command_prints_what_the_api_gives() -> None:
    run = CliRunner().invoke
    shown = run(cli, ["stats", ZOO, "--estimate"])
    assert shown.exit_code == 0
    assert "operators (estimate):" in shown.stdout
    printed = json.loads(run(cli, ["stats", ZOO, "--estimate", "--json"]).stdout)
    estimate = statetool.load(ZOO).estimate_stats()
    assert {name: len(rows) for name, rows in printed.items() if name not in ("unread", "json_version")} == {
        name: len(estimate.rows(name)) for name in estimate.tables
    }
    ranges = json.loads(run(cli, ["stats", ZOO, "--estimate", "--table", "key_groups", "--json"]).stdout)
    assert [r["stored_bytes"] for r in ranges] == [r.stored_bytes for r in estimate.rows("key_groups")]
    assert estimate.to_arrow("states").column("state").to_pylist() == [r.state for r in estimate.rows("states")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--estimate", "--largest", "3"], "--largest cannot be used with --estimate"),
        (["--estimate", "--table", "ages"], "pass one of operators, states, key_groups"),
        (["--table", "key_groups"], "add --estimate"),
    ],
)
def test_options_of_the_other_form_are_refused(options: list[str], words: str) -> None:
    failed = CliRunner().invoke(cli, ["stats", ZOO, *options])
    assert failed.exit_code != 0
    assert words in failed.output + str(failed.exception)


def test_spark_estimates_the_same(spark: Any, corpus: Path) -> None:
    savepoint = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-incremental"))
    here, there = savepoint.estimate_stats(), savepoint.estimate_stats(spark=spark)
    assert {name: here.rows(name) for name in here.tables} == {name: there.rows(name) for name in there.tables}


def test_notebooks_show_bounds() -> None:
    shown = statetool.load(ZOO).estimate_stats()._repr_html_()
    assert "at least" in shown
    assert "estimates" in shown
