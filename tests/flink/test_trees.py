"""Rewritten JSON trees and memory of agents: jobs find the changed values in Flink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.tree_job import PACKED, RELEASES, described, run_job, tree_machine

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_finds_rescaled_and_changed_trees(release: str, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / release
    expected = json.loads((folder / "values.json").read_text("utf-8"))
    operator = statetool.load(str(folder), uids=["keeper"])["keeper"]
    rare = next(r["value"] for r in operator.to_arrow("any").to_pylist() if r["key"] == "key-4")
    new = {"json": '{"größe":[1,-2.5,null,{"x":true}],"n":7}', "node_types": '{"/n":"LongNode"}'}
    shaded = {"json": "[7]", "node_types": None}
    tree = {"com.fasterxml.jackson.databind.node.ArrayNode": {"json": [1], "node_types": {"/0": "LongNode"}}}
    changes = {
        "tree": new, "any": rare, "shaded": shaded, "event": {"id": "key-3", "payload": new}, "sqrl": '{"a":[1]}',
        'sensoryMemory["user.name"]': {"type": "VALUE", "value": json.dumps(tree), "subKeys": []},
    }  # fmt: skip
    rescaled, changed = str(tmp_path / "rescaled"), str(tmp_path / "changed")
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"])
    statetool.set_values(rescaled, changed, "keeper", "key-3", changes, uids=["keeper"])
    key = expected["key-3"]
    key |= {
        "tree": described(new),
        "any": described(rare),
        "shaded": "[7]",
        "event": described(new),
        "sqrl": '{"a":[1]}',
    }
    key["sensoryMemory"]["user.name"] = "VALUE [1] []"
    machine = tree_machine(release, tmp_path)
    try:
        for backend in ("hashmap", "rocksdb"):
            request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
            assert run_job(machine, **request)["values"] == expected, backend
    finally:
        machine.close()


def test_a_job_of_flink_2_finds_all_values_that_flink_1_wrote(tmp_path: Path) -> None:
    old, new = (unpack(PACKED, tmp_path) / release for release in RELEASES)
    kept, migrated = str(tmp_path / "kept"), str(tmp_path / "migrated")
    sources = [name for name in statetool.load(str(old), uids=["keeper"]).operators if name != "keeper"]
    statetool.drop(str(old), kept, sources, uids=["keeper"])
    statetool.migrate(kept, migrated, to=str(new), uids=["keeper"])
    machine = tree_machine("2.3.0", tmp_path)
    try:
        found = run_job(machine, backend="rocksdb", snapshot=migrated)["values"]
    finally:
        machine.close()
    assert found == json.loads((old / "values.json").read_text("utf-8"))
