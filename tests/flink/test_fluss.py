"""Rewritten offsets of Fluss's sink: a job with the sink's serializer finds the changed values in Flink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.fluss_job import PACKED, fluss_machine, run_job
from tests.support.flink.tree_job import RELEASES

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_finds_rescaled_and_changed_offsets(release: str, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / release
    expected = json.loads((folder / "values.json").read_text("utf-8"))
    rescaled, changed = str(tmp_path / "rescaled"), str(tmp_path / "changed")
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"], format="canonical")
    offset = {"table_id": 8, "partition_id": None, "bucket": 3, "offset": 77}
    changes = {"offsets": {"version": 1, "table_id": None, "offsets": [offset]}}
    statetool.set_values(rescaled, changed, "keeper", "key-5", changes, uids=["keeper"])
    expected["key-5"]["offsets"] = {"8-3": 77}
    for values in expected.values():
        # Each subtask receives the union of both subtasks.
        values["undo"] = [{"7-0": 5000, "7-p35-1": 5001}] * 2
    machine = fluss_machine(release, tmp_path)
    try:
        for backend in ("hashmap", "rocksdb"):
            request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
            assert run_job(machine, **request)["values"] == expected, backend
    finally:
        machine.close()
