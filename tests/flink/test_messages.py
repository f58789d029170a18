"""Rewritten Protobuf messages of a job's serializers: the job finds the changed values in Flink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.protobuf_job import PACKED, declared, protobuf_machine, run_job
from tests.support.flink.tree_job import RELEASES

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_finds_rescaled_and_changed_messages(release: str, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / release
    expected = json.loads((folder / "values.json").read_text("utf-8"))
    # The maximum parallelism is changed without declarations: the values are not read.
    rescaled, changed = str(tmp_path / "rescaled"), str(tmp_path / "changed")
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"], format="canonical")
    struct = {"größe": -1.5, "text": "x" * 300, "list": [1, None, {"a": True}]}
    changes = {
        "struct": json.dumps(struct),
        "times": [json.dumps("2026-01-02T03:04:05Z")],
        'lasts["long"]': json.dumps("7.500s"),
    }
    described = statetool.load(rescaled, uids=["keeper"], declarations=declared())
    statetool.set_values(described, changed, "keeper", "key-3", changes)
    expected["key-3"]["struct"] = json.dumps(struct)
    expected["key-3"]["times"] = [json.dumps("2026-01-02T03:04:05Z")]
    expected["key-3"]["lasts"]["long"] = json.dumps("7.500s")
    machine = protobuf_machine(release, tmp_path)
    try:
        for backend in ("hashmap", "rocksdb"):
            request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
            found = run_job(machine, **request)["values"]
            for values in (*found.values(), *expected.values()):
                if isinstance(values["struct"], str):
                    values["struct"] = json.loads(values["struct"])
            assert found == expected, backend
    finally:
        machine.close()
