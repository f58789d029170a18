"""A job with a sink based on ``AsyncSinkBase``: a restored savepoint sends each buffered request once, without those that were forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.connectors.commands import run
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def async_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    job = HERE / "support" / "flink" / "async_sinks"
    machine = FlinkMachine("1.20.5", tmp_path_factory.mktemp("async"), (job,))
    yield machine
    machine.close()


def number_of(row: dict[str, Any]) -> int:
    return int(bytes.fromhex(json.loads(row["details"])["kryo"]).rpartition(b"\xee")[2])


def test_each_request_is_sent_once(async_flink: FlinkMachine, tmp_path: Path) -> None:
    def job(uid: str, **more: Any) -> dict[str, Any]:
        return async_flink.call("class", **{"class": "AsyncJob"}, uid=uid, **more)

    first = job("a", savepoint=str(tmp_path / "taken"))
    assert first["sent"] == []
    taken = statetool.load(first["savepoint"]).with_uids(["a"])
    statetool.rescale(taken, str(tmp_path / "rescaled"), 64)
    statetool.change_uids(str(tmp_path / "rescaled"), str(tmp_path / "uids"), {"a": "b"}, uids=["a"])
    (sink,) = run("sinks", "list", tmp_path / "uids")
    assert (sink["connector"], sink["role"], sink["undecoded"]) == ("elasticsearch8-sink", "writer", 0)
    buffered = {r["name"]: number_of(r) for r in run("sinks", "pending", tmp_path / "uids")}
    assert sorted(buffered.values()) == [*range(len(buffered))]
    assert len(buffered) > 20
    lost = [name for name, number in buffered.items() if number in (0, 7, len(buffered) - 1)]
    statetool.drop_transactions(str(tmp_path / "uids"), str(tmp_path / "forgotten"), "b", lost, uids=["b"])
    dropped = {buffered[name] for name in lost}
    kept = sorted({*buffered.values()} - dropped)
    sent = job("b", snapshot=str(tmp_path / "forgotten"), wanted=kept)["sent"]
    assert len(sent) == len(set(sent))
    assert not dropped & set(sent)
    # The source goes on after the savepoint.
    assert {n >= len(buffered) for n in set(sent) - set(kept)} == {True}
