"""Copies that carry table files restore in Flink, and the jobs go on: from native savepoints, and from incremental checkpoints with shared files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from tests.support.flink import forms
from tests.support.flink.machine import FlinkMachine
from tests.support.snapshots.stored import databases

pytestmark = pytest.mark.full

Steps: TypeAlias = tuple[tuple[int, bool, bool], ...]
#: Parallelism of restores one after another, whether each claims its snapshot, and whether RocksDB ingests the files.
CHAIN: Final[Steps] = ((2, False, False), (3, True, True), (1, False, False))
#: Restores of the copy itself at another parallelism.
OTHERS: Final[Steps] = ((3, False, True), (1, False, False))
_NOW: Final = 1_900_000_000_010


def table_files(snapshot: Path) -> dict[tuple[str, int, str], bytes]:
    """Return the table files of a snapshot by operator, subtask and name."""
    found = {}
    for name, operator in statetool.load(str(snapshot)).operators.items():
        for number, database in enumerate(databases(operator.inventory)):
            for file, stream in database.files.files:
                if file.endswith(".sst"):
                    with stream.open() as f:
                        found[name, number, file] = bytes(f.read_at(0, stream.size_bytes))
    return found


def change(base: Path, work: Path, expected: dict[str, Any]) -> Path:
    """Transform a state, rename states and back, purge timers, and drop a state. Each copy carries files of the one before."""

    def double(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("sum"), "sum", pc.multiply(table["sum"], 2))

    paths = [work / name for name in ("transformed", "renamed", "again", "purged", "dropped")]
    statetool.load(str(base))["f-long"].transform(double, states=["sum"]).write(str(paths[0]))
    swapped = {"text": "list", "list": "other", "map": "text"}
    statetool.rename_states(str(paths[0]), str(paths[1]), "f-long", swapped)
    back = {new: old for old, new in swapped.items()}
    statetool.rename_states(str(paths[1]), str(paths[2]), "f-long", back)
    statetool.purge(str(paths[2]), str(paths[3]), event_timers_before_ms=_NOW)
    statetool.drop(str(paths[3]), str(paths[4]), states={"f-string": ["text"]})
    for before, after in zip((base, *paths), paths, strict=False):
        old, new = table_files(before), table_files(after)
        assert any(old[name] == new[name] for name in old.keys() & new.keys()), f"{after.name} carries nothing"
    for row in expected["f-long"]["keyed_state"]["states"]["sum"]["rows"]:
        row["value"] *= 2
    del expected["f-string"]["keyed_state"]["states"]["text"]
    for operator in expected.values():
        keyed = operator["keyed_state"]
        keyed["event_time_timers"] = [t for t in keyed["event_time_timers"] if t["timestamp"] >= _NOW]
    return paths[-1]


def check_restores(
    flink: FlinkMachine,
    copy: Path,
    expected: dict[str, Any],
    api: forms.Api,
    backend: str,
    steps: Steps,
    *,
    goes_on: bool,
) -> list[str]:
    """Restore a copy in steps: each the copy itself, or, if the job goes on, a checkpoint after the step before. Return the differences."""

    def restore(snapshot: Path, content: dict[str, Any], *step: Any) -> forms.Restored:
        parallelism, claims, ingests = step
        mode = "CLAIM" if claims else "NO_CLAIM"
        config = dict.fromkeys(("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"), mode)
        config["state.backend.rocksdb.use-ingest-db-restore-mode"] = "true" if ingests else "false"
        return forms.restore(
            flink, snapshot, content, api, backend=backend, parallelism=parallelism, config=config, append=True
        )

    differences: list[str] = []
    snapshot, content = copy, expected
    for step in steps:
        found = restore(snapshot, content, *step)
        differences += found.differences
        if goes_on:
            snapshot, content = found.checkpoint, forms.appended(content)
    return differences


@pytest.mark.parametrize(
    ("api", "backend"),
    [
        ("sync", "rocksdb"),
        pytest.param("sync", "forst", marks=pytest.mark.since(2, 1)),
        pytest.param("async", "forst", marks=pytest.mark.since(2, 1)),
    ],
)
def test_copies_that_carry_files_restore(zoo_flink: FlinkMachine, tmp_path: Path, api: forms.Api, backend: str) -> None:
    base, expected = forms.make_base(zoo_flink, tmp_path / "base", api, backend)
    (tmp_path / "savepoint").mkdir()
    (tmp_path / "checkpoint").mkdir()
    found = forms.restore(zoo_flink, base, expected, api, backend=backend, append=True)
    assert found.differences == []
    content = forms.appended(expected)
    copy = change(base, tmp_path / "savepoint", expected)
    assert check_restores(zoo_flink, copy, expected, api, backend, OTHERS, goes_on=False) == []
    copy = change(found.checkpoint, tmp_path / "checkpoint", content)
    assert check_restores(zoo_flink, copy, content, api, backend, CHAIN, goes_on=True) == []
