"""Savepoints of real jobs that write to Iceberg, compared with the snapshots of the table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.layouts.iceberg_sink import IcebergCommittable
from statetool.connectors.sinks import Sink, sinks_of
from statetool.errors import FormatError, OptionError
from tests.support.connectors.commands import run
from tests.support.connectors.lake_cases import ALL_SINKS, PACKED
from tests.support.corpora.archives import unpack

CONNECTORS = {"iceberg-1.10.0": "iceberg-files-committer", "iceberg-1.10.0-v2": "iceberg-sink"}
ID = "flink.max-committed-checkpoint-id"


@pytest.fixture(scope="module")
def lake_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("lakes"))


def committer_of(case: Path) -> Sink:
    operators = statetool.load(str(case / "snapshot")).operators.values()
    (committer,) = (s for s in sinks_of(o.inventory for o in operators) if s.state.role == "committer")
    return committer


def metadata_of(case: Path) -> Any:
    (file,) = (case / "table" / "metadata").glob("*.metadata.json")
    return json.loads(file.read_text())


def written_metadata(folder: Path, metadata: Any) -> Path:
    file = folder / "v1.metadata.json"
    file.write_text(json.dumps(metadata))
    return file


@pytest.mark.parametrize("name", CONNECTORS)
def test_commits_are_those_of_the_table(name: str, lake_cases: Path) -> None:
    committer = committer_of(lake_cases / name)
    assert committer.name == CONNECTORS[name]
    snapshots = {int(s["summary"][ID]): s["summary"] for s in metadata_of(lake_cases / name)["snapshots"]}
    assert committer.state.pending
    rows: Counter[int] = Counter()
    files: Counter[int] = Counter()
    for pending in committer.state.pending:
        committable = pending.fields
        assert isinstance(committable, IcebergCommittable)
        # The commits of a savepoint wait for the next checkpoint, and become one snapshot with those of that checkpoint.
        at = min(n for n in snapshots if n >= committable.checkpoint_id)
        summary = snapshots[at]
        assert committable.job_id == summary["flink.job-id"]
        operator_id = committable.operator_id or committer.operator.state.operator_id
        assert operator_id == summary["flink.operator-id"]
        (manifests,) = committable.manifests
        assert manifests.data is not None
        rows[at] += manifests.data["added_rows_count"]
        files[at] += manifests.data["added_files_count"]
    held = {p.checkpoint_id for p in committer.state.pending}
    for at in rows:
        added = int(snapshots[at]["added-records"]), int(snapshots[at]["added-data-files"])
        assert (rows[at], files[at]) == added if at in held else (rows[at] <= added[0] and files[at] <= added[1])
    assert held & set(rows)


@pytest.mark.parametrize("name", CONNECTORS)
def test_commits_are_compared_with_the_table(name: str, lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / name
    metadata = metadata_of(case)
    in_table = {int(s["summary"][ID]) for s in metadata["snapshots"]}
    ids = {p.checkpoint_id for p in committer_of(case).state.pending if p.checkpoint_id is not None}
    found = run("sinks", "check", case / "snapshot", "--iceberg", case / "table", code=0 if ids <= in_table else 1)
    assert {r["checkpoint_id"]: r["outcome"] for r in found} == {
        n: "is_committed" if n in in_table else "unknown" for n in ids
    }
    assert ids & in_table

    def outcomes(keep: Callable[[dict[str, str]], bool], code: int) -> set[str]:
        kept = [s for s in metadata["snapshots"] if keep(s["summary"])]
        parents = [None, *(s["snapshot-id"] for s in kept)]
        linked = [{**s, "parent-snapshot-id": parents[n]} for n, s in enumerate(kept)]
        current = linked[-1]["snapshot-id"] if linked else -1
        table = written_metadata(tmp_path, {"snapshots": linked, "current-snapshot-id": current})
        return {r["outcome"] for r in run("sinks", "check", case / "snapshot", "--iceberg", table, code=code)}

    assert outcomes(lambda s: int(s[ID]) < min(ids), 0) == {"will_commit"}
    assert outcomes(lambda s: False, 0) == {"will_commit"}
    # A restored job commits several checkpoints under one id: whether the table has these cannot be told.
    assert outcomes(lambda s: int(s[ID]) > max(ids), 1) == {"unknown"}


def test_commits_of_other_jobs_do_not_count(lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / "iceberg-1.10.0-v2"
    metadata = metadata_of(case)
    for snapshot in metadata["snapshots"]:
        snapshot["summary"]["flink.job-id"] = "f" * 32
    rows = statetool.load(str(case / "snapshot")).table_commits(iceberg=str(written_metadata(tmp_path, metadata)))
    assert {(r["outcome"], r["highest_committed"]) for r in rows.to_pylist()} == {("will_commit", None)}


@pytest.mark.parametrize("name", ALL_SINKS)
def test_a_sink_to_several_tables(name: str, lake_cases: Path) -> None:
    case = lake_cases / name
    numbers = json.loads((case / "case.json").read_text())
    operators = statetool.load(str(case / "snapshot")).operators.values()
    sinks = [s for s in sinks_of(o.inventory for o in operators) if s.state.role == "committer"]
    assert Counter(s.name for s in sinks) == {
        "dynamic-iceberg-sink": 1,
        "iceberg-sink": 2,
        "iceberg-files-committer": 1,
    }
    (dynamic,) = (s for s in sinks if s.name == "dynamic-iceberg-sink")
    version = {"iceberg-1.10.0-all": 1, "iceberg-1.11.0-all": 2}[name]
    written = {}
    for pending in dynamic.state.pending:
        committable = pending.fields
        assert isinstance(committable, IcebergCommittable)
        assert (pending.version, committable.branch, committable.checkpoint_id) == (version, "main", 2)
        written[committable.table] = sum(m.data["added_rows_count"] for m in committable.manifests if m.data)
    # The numbers alternate between the tables.
    assert written.keys() == {"shop.even", "shop.odd"}
    assert abs(written["shop.even"] - written["shop.odd"]) <= 1
    assert min(written.values()) > 0
    operator = dynamic.operator.state.operator_id
    for table in ("even", "odd"):
        assert numbers[table]
        at = ("--uid", operator, "--iceberg", case / table)
        (row,) = run("sinks", "check", case / "snapshot", *at)
        assert (row["outcome"], row["highest_committed"]) == ("will_commit", 1)
        assert row["name"].startswith(f"shop.{table}@main ")
    rows = run("sinks", "check", case / "snapshot", "--uid", operator, "--iceberg", case / "plain", code=1)
    assert [r["outcome"] for r in rows] == ["unknown", "unknown"]


def test_a_change_of_the_uid_hides_commits(lake_cases: Path, tmp_path: Path) -> None:
    """``FlinkSink`` looks for commits of the operator that holds the state."""
    case = lake_cases / "iceberg-1.10.0"
    metadata = metadata_of(case)
    for snapshot in metadata["snapshots"]:
        snapshot["summary"]["flink.operator-id"] = "f" * 32
    table = written_metadata(tmp_path, metadata)
    rows = run("sinks", "check", case / "snapshot", "--iceberg", table, code=1)
    assert {r["outcome"] for r in rows} == {"may_double"}
    # Sink V2 stores the operator in its transactions.
    other = run("sinks", "check", lake_cases / "iceberg-1.10.0-v2" / "snapshot", "--iceberg", table)
    assert {r["outcome"] for r in other} == {"will_commit"}


def test_damaged_metadata_is_refused(lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / "iceberg-1.10.0"
    savepoint = statetool.load(str(case / "snapshot"))
    with pytest.raises(OptionError, match="0 newest metadata files"):
        savepoint.table_commits(iceberg=str(tmp_path))
    with pytest.raises(OptionError, match="no committer of paimon"):
        savepoint.table_commits(paimon=str(tmp_path))
    metadata = metadata_of(case)
    metadata["snapshots"][-1]["summary"][ID] = "many"
    with pytest.raises(FormatError, match="not a number"):
        savepoint.table_commits(iceberg=str(written_metadata(tmp_path, metadata)))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(FormatError, match="not JSON"):
        savepoint.table_commits(iceberg=str(tmp_path / "x.json"))
