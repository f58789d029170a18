"""Rewritten savepoints of a job that writes to Paimon: a restore commits what the table lacks once, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.connectors.lake_cases import CASES, LakeCase
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
#: Appended rows; and rows with a key, whose writers keep state of their own (the buckets that wait for a compaction).
TABLES = ("paimon-1.3.1", "paimon-1.3.1-compacted")


@pytest.fixture(scope="module")
def paimon_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = CASES[TABLES[0]].machine(tmp_path_factory.mktemp("paimon"), HERE / "support" / "flink" / "paimons")
    yield machine
    machine.close()


def snapshots(table: Path) -> list[tuple[Path, dict[str, Any]]]:
    found = [(p, json.loads(p.read_text())) for p in (table / "snapshot").glob("snapshot-*")]
    return sorted(found, key=lambda s: s[1]["id"])


def job_with_commits(
    case: LakeCase, paimon_flink: FlinkMachine, work: Path
) -> tuple[Path, statetool.Savepoint, dict[int, int]]:
    """Run the job until its savepoint has rows to commit: none came in between if a checkpoint was taken just before it.

    Returns the warehouse, the rescaled savepoint, and the number of rows by commit identifier.
    """
    for attempt in range(30):
        warehouse = work / f"warehouse-{attempt}"
        taken = case.run(paimon_flink, warehouse, savepoint=str(work / f"savepoints-{attempt}"))["savepoint"]
        path = str(work / f"rescaled-{attempt}")
        # With a checkpoint id lower than those of the table.
        statetool.rescale(taken, path, 64, checkpoint_id=0)
        rescaled = statetool.load(path)
        rows = {
            int(t.name): sum(
                f["rows"] for m in json.loads(t.details)["messages"] for f in m["files"].get("new_files", ())
            )
            for t in rescaled.connector_rows("transactions")
            if t.connector == "paimon-sink"
        }
        if rows and all(rows.values()):
            return warehouse, rescaled, rows
    raise AssertionError("no savepoint of thirty has rows to commit")


@pytest.mark.parametrize("name", TABLES)
def test_a_restore_commits_what_the_table_lacks_once(name: str, paimon_flink: FlinkMachine, tmp_path: Path) -> None:
    case = CASES[name]
    warehouse, rescaled, rows = job_with_commits(case, paimon_flink, tmp_path)
    table = warehouse / case.table

    def outcomes() -> set[str]:
        return {r["outcome"] for r in rescaled.table_commits(paimon=str(table)).to_pylist()}

    def committed() -> list[tuple[int, int]]:
        return [
            (s["commitIdentifier"], s["deltaRecordCount"]) for _, s in snapshots(table) if s["commitIdentifier"] in rows
        ]

    assert outcomes() == {"is_committed"}
    # The job failed before it committed.
    for file, snapshot in snapshots(table):
        if snapshot["commitIdentifier"] >= min(rows):
            file.unlink()
    (table / "snapshot" / "LATEST").write_text(str(snapshots(table)[-1][1]["id"]))
    assert outcomes() == {"will_commit"}
    # Paimon ends a job that had something to commit, so that writers start again after these commits.
    with pytest.raises(FlinkRefusedError, match="after committing the restored checkpoints"):
        case.run(paimon_flink, warehouse, snapshot=rescaled.path, wanted=len(rows) + 10)
    assert committed() == sorted(rows.items())
    assert outcomes() == {"is_committed"}
    # The table has them: another restore skips them.
    before = {s["id"] for _, s in snapshots(table)}
    case.run(paimon_flink, warehouse, snapshot=rescaled.path)
    new = [s for _, s in snapshots(table) if s["id"] not in before]
    # Commits of the restored job have lower ids than the table, and all are in it. A checkpoint without rows has none.
    ids = [s["commitIdentifier"] for s in new]
    assert ids == sorted({*ids})
    assert ids[0] <= max(rows)
    assert sum(s["deltaRecordCount"] for s in new) > 0
    assert committed()[: len(rows)] == sorted(rows.items())
    # The savepoint has the position of the source, so no row is lost, and none is there twice.
    numbers = paimon_flink.call("class", **{"class": "PaimonRows"}, table=str(table))["numbers"]
    assert numbers == [*range(len(numbers))]
    assert len(numbers) == sum(s["deltaRecordCount"] for _, s in snapshots(table))
