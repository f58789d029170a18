"""Savepoints of real jobs that write to Iceberg, compared with the snapshots of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.connectors.iceberg_sink import IcebergCommittable
from statetool.connectors.sinks import Sink, sinks_of
from statetool.errors import FormatError, OptionError
from tests.connectors.test_written_sinks import run
from tests.support.connectors.lake_cases import PACKED
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
    snapshots = {s["summary"][ID]: s["summary"] for s in metadata_of(lake_cases / name)["snapshots"]}
    assert committer.state.pending
    for pending in committer.state.pending:
        committable = pending.fields
        assert isinstance(committable, IcebergCommittable)
        summary = snapshots[str(committable.checkpoint_id)]
        assert committable.job_id == summary["flink.job-id"]
        operator_id = committable.operator_id or committer.operator.state.operator_id
        assert operator_id == summary["flink.operator-id"]
        (manifests,) = committable.manifests
        assert manifests.data is not None
        assert manifests.data["added_rows_count"] == int(summary["added-records"])
        assert manifests.data["added_files_count"] == int(summary["added-data-files"])


@pytest.mark.parametrize("name", CONNECTORS)
def test_commits_are_compared_with_the_table(name: str, lake_cases: Path, tmp_path: Path) -> None:
    case = lake_cases / name
    found = run("sinks", "check", case / "snapshot", "--iceberg", case / "table")
    assert {r["outcome"] for r in found} == {"is_committed"}
    ids = {r["checkpoint_id"] for r in found}
    metadata = metadata_of(case)

    def outcomes(keep: Callable[[dict[str, str]], bool], code: int) -> set[str]:
        kept = [s for s in metadata["snapshots"] if keep(s["summary"])]
        linked = [{**s, "parent-snapshot-id": p and p["snapshot-id"]} for p, s in zip([None, *kept], kept)]  # noqa: B905
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
    with pytest.raises(FormatError, match="not JSON"):
        (tmp_path / "x.json").write_text("{")
        savepoint.table_commits(iceberg=str(tmp_path / "x.json"))
