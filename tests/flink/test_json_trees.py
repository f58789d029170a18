"""Rewritten JSON trees and memory of agents: jobs find the changed values in Flink."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.tree_job import PACKED, RELEASES, described, run_job, tree_machine

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.fixture(scope="module")
def tree_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], FlinkMachine]]:
    """Return the Flink of a release, which runs until the end of the module."""
    started: list[FlinkMachine] = []

    @cache
    def start(release: str) -> FlinkMachine:
        started.append(tree_machine(release, tmp_path_factory.mktemp(f"trees-{release}")))
        return started[-1]

    yield start
    for machine in started:
        machine.close()


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_finds_rescaled_and_changed_trees(
    release: str, tree_flink: Callable[[str], FlinkMachine], tmp_path: Path
) -> None:
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
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=["keeper"], format="canonical")
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
    for backend in ("hashmap", "rocksdb"):
        request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
        assert run_job(tree_flink(release), **request)["values"] == expected, backend


def test_a_job_of_flink_2_finds_all_values_that_flink_1_wrote(
    tree_flink: Callable[[str], FlinkMachine], tmp_path: Path
) -> None:
    old, new = (unpack(PACKED, tmp_path) / release for release in RELEASES)
    kept, migrated = str(tmp_path / "kept"), str(tmp_path / "migrated")
    sources = [name for name in statetool.load(str(old), uids=["keeper"]).operators if name != "keeper"]
    statetool.drop(str(old), kept, sources, uids=["keeper"])
    statetool.migrate(kept, migrated, to=str(new), uids=["keeper"])
    found = run_job(tree_flink("2.3.0"), backend="rocksdb", snapshot=migrated)["values"]
    assert found == json.loads((old / "values.json").read_text("utf-8"))
