"""Rewritten state of Stateful Functions, Hudi and RabbitMQ: jobs with their classes find the changed values in Flink."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.library_job import KINDS, PACKED, library_machine, read_rabbit, run_job
from tests.support.flink.machine import FlinkMachine

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.fixture(scope="module")
def library_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = library_machine(tmp_path_factory.mktemp("library-flink"))
    yield machine
    machine.close()


def test_a_job_finds_rescaled_and_changed_values(library_flink: FlinkMachine, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path)
    expected = json.loads((folder / "hashmap" / "values.json").read_text("utf-8"))
    rescaled, changed = str(tmp_path / "rescaled"), str(tmp_path / "changed")
    statetool.rescale(str(folder / "hashmap"), rescaled, 300, parallelism=3, uids=["keeper"])
    struct = {"inner": {"größe": -1.5}, "list": ["new"], "even": False}
    changes = {
        "struct": json.dumps(struct),
        "indexState": {"fileId": "f", "instantTime": "20260102", "partitionPath": "day=9", "position": 7},
    }
    statetool.set_values(rescaled, changed, "keeper", "key-3", changes, uids=["keeper"])
    expected["key-3"]["indexState"] = "day=9 20260102 f 7"
    expected["key-3"]["struct"] = struct
    for backend in KINDS:
        request = {"backend": backend, "snapshot": changed, "parallelism": 3, "max_parallelism": 300}
        found = run_job(library_flink, **request)["values"]
        for values in (*found.values(), *expected.values()):
            if isinstance(values["struct"], str):
                values["struct"] = json.loads(values["struct"])
        assert found == expected, backend


def test_a_rescaled_source_of_rabbitmq_drops_the_messages_that_it_has_received(
    library_flink: FlinkMachine, tmp_path: Path
) -> None:
    folder = unpack(PACKED, tmp_path) / "rabbitmq"
    received = json.loads((folder / "values.json").read_text("utf-8"))
    assert received == [f"body {n}" for n in range(5)]
    rescaled = str(tmp_path / "rescaled")
    statetool.rescale(str(folder), rescaled, 64, uids=["rabbit"])
    # The broker delivers the five messages again, and three more.
    found = read_rabbit(library_flink, 8, 3, snapshot=rescaled)["values"]
    assert found == ["body 5", "body 6", "body 7"]
