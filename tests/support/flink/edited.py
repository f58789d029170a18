"""Snapshots that tests change, and the differences between what they expect and what Flink restores."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import statetool
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import metadata_of
from tests.support.flink.machine import FlinkMachine

#: Snapshots that ``erase`` changes in place, of ForSt too.
IN_PLACE: Final = {"rocksdb-native", "rocksdb-incremental", "forst", "forst-native"}


def opened(case: Path, expected: dict[str, Any], work: Path) -> statetool.Savepoint:
    """Open a snapshot, without the operators in heap layout that have values whose end only user code can find."""
    uids = [n for n, o in judge.stateful(expected).items() if not o.get("no_uid")]
    savepoint = statetool.load(str(metadata_of(case)), uids=uids)
    unreadable = [
        operator.operator_id
        for operator in savepoint.operators.values()
        if any(meta.value.needs_frame for _, meta in operator.inventory.keyed_states.values())
    ]
    if (case.name.rpartition("-")[2] != "hashmap" and "hashmap-checkpoint" not in case.name) or not unreadable:
        return savepoint
    statetool.drop(savepoint, str(work / "readable"), unreadable)
    for name in [n for n, o in expected.items() if o["operator_id"] in unreadable]:
        del expected[name]
    return statetool.load(str(work / "readable"), uids=[uid for uid in uids if uid in expected])


def restored_differences(
    flink: FlinkMachine, tmp_path: Path, expected: dict[str, Any], backend: str, target: Path
) -> list[str]:
    requests = judge.requests_for(target, expected)
    # ForSt takes no canonical savepoints.
    form = "NATIVE" if backend == "forst" else "CANONICAL"
    answer = judge.restore(flink, target, requests, backend=backend, savepoint=tmp_path / "again", format=form)
    return [
        *judge.differences(answer, expected),
        *judge.read_back(Path(answer["savepoint"]), expected, parallelism=2),
        *windows.wrongly_continued(flink, target, expected, backend=backend),
    ]
