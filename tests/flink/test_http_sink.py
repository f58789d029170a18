"""The HTTP sink of GetInData sends the records of a rewritten savepoint in real Flink: each one once, and none that was dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.servers.http_answers import http_server
from tools.maven import maven_jars

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
#: Records that the writers have accepted when the savepoint is taken, and those of the restored job.
ACCEPTED = 9
MORE = 20


@pytest.fixture(scope="module")
def http_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    # The sink's release 0.25 is for Flink 1.x.
    job = HERE / "support" / "flink" / "http_sinks"
    machine = FlinkMachine("1.20.5", tmp_path_factory.mktemp("http"), (job,), jars=maven_jars("async-sinks"))
    yield machine
    machine.close()


def unsent(savepoint: statetool.Savepoint) -> dict[str, str]:
    """Return the names of the records that the sink has not sent, by their text."""
    rows = [r for r in savepoint.connector_rows("transactions") if r.connector == "http-sink"]
    assert {r.status for r in rows} == {"buffered"}
    return {json.loads(r.details)["text"]: r.name for r in rows}


def test_a_restored_sink_sends_what_was_not_dropped(http_flink: FlinkMachine, tmp_path: Path) -> None:
    received: list[str] = []

    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        received.append(body.decode())
        return 200, b"", {}

    with http_server(answer) as url:

        def job(**request: Any) -> dict[str, Any]:
            return http_flink.call("class", **{"class": "HttpJob"}, url=url, **request)

        taken = job(
            uid="out", limit=ACCEPTED, wanted=ACCEPTED, batch=1000, savepoint=str(tmp_path / "taken")
        )["savepoint"]  # fmt: skip
        assert received == []
        records = unsent(statetool.load(taken, uids=["out"]))
        assert sorted(records) == [f"record {n}" for n in range(ACCEPTED)]

        dropped = {"record 2", "record 3", "record 7"}
        smaller, renamed, rescaled = (str(tmp_path / name) for name in ("smaller", "renamed", "rescaled"))
        statetool.drop_transactions(taken, smaller, "out", [records[text] for text in dropped], uids=["out"])
        statetool.change_uids(smaller, renamed, {"out": "renamed"}, uids=["out"])
        statetool.rescale(renamed, rescaled, 64)
        kept = records.keys() - dropped
        assert unsent(statetool.load(rescaled, uids=["renamed"])).keys() == kept

        (split,) = statetool.load(rescaled, uids=["numbers"])["numbers"].source_splits().to_pylist()
        begin = int(split["position"])
        job(uid="renamed", limit=begin + MORE, wanted=MORE, batch=1, snapshot=rescaled)
    assert sorted(received) == sorted([*kept, *(f"record {n}" for n in range(begin, begin + MORE))])
