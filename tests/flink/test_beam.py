"""Rewritten savepoints of Apache Beam: the same pipeline goes on from them in Beam's own Flink runner, and loses no number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.flink.beam_job import GROUP, KEEPER, KEYS, PACKED, beam_machine, run_job
from tests.support.flink.machine import FlinkMachine

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]

RENAMED = "renamed/ParMultiDo(Keeper)"


@pytest.fixture(scope="module")
def beam_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = beam_machine(tmp_path_factory.mktemp("beam-flink"))
    yield machine
    machine.close()


def expected_values(folder: Path, uid: str) -> dict[str, Any]:
    """Return what the pipeline saw before the savepoint, with the counts that the savepoint has."""
    values: dict[str, Any] = json.loads((folder / "values.json").read_text("utf-8"))
    for row in statetool.load(str(folder), uids=[uid])[uid].to_arrow("count").to_pylist():
        values[row["key"][1:].decode()]["count"] = row["value"]
    return values


def told_later(values: dict[str, Any]) -> dict[str, Any]:
    """Return what all timers of the stateful step tell when they fire."""
    return {key: seen["order"].split(" ")[0] for key, seen in values.items()}


@pytest.mark.parametrize(
    ("written", "restored"), [("filesystem", "filesystem"), ("filesystem", "rocksdb"), ("rocksdb", "rocksdb")]
)
def test_a_pipeline_goes_on_from_a_rescaled_and_edited_savepoint(
    beam_flink: FlinkMachine, tmp_path: Path, written: str, restored: str
) -> None:
    folder = unpack(PACKED, tmp_path) / written
    expected = expected_values(folder, KEEPER)
    rescaled, renamed, dropped, edited = (str(tmp_path / n) for n in ("rescaled", "renamed", "dropped", "edited"))
    statetool.rescale(str(folder), rescaled, 300, parallelism=3, uids=[KEEPER])
    statetool.change_uids(rescaled, renamed, {KEEPER: RENAMED})
    statetool.drop(renamed, dropped, states={RENAMED: ["bag"]}, uids=[RENAMED])
    changes = {"count": 1_000_000, 'amounts["x"]': -7, "order": {"name": "année", "amount": 300}}
    statetool.set_values(dropped, edited, RENAMED, b"\5key-3", changes, namespace="//", uids=[RENAMED])
    for seen in expected.values():
        seen["bag"] = []
    expected["key-3"] |= {"count": 1_000_000, "order": "année 300"}
    expected["key-3"]["amounts"]["x"] = -7
    found = run_job(
        beam_flink, restored, snapshot=edited, parallelism=3, max_parallelism=300, keeper=RENAMED.split("/")[0]
    )
    assert found["first"] == expected
    assert found["fired"] == told_later(expected)
    # Each window has all numbers from the first one, once.
    assert found["windows"] == {key: {"first": n, "twice": 0} for n, key in enumerate(KEYS)}


def test_a_pipeline_goes_on_without_the_state_of_a_dropped_step(beam_flink: FlinkMachine, tmp_path: Path) -> None:
    folder = unpack(PACKED, tmp_path) / "rocksdb"
    expected = expected_values(folder, KEEPER)
    dropped = str(tmp_path / "dropped")
    statetool.drop(str(folder), dropped, [GROUP], uids=[GROUP])
    found = run_job(beam_flink, "rocksdb", snapshot=dropped)
    assert found["first"] == expected
    assert found["fired"] == told_later(expected)
    for n, key in enumerate(KEYS):
        # Its windows begin with the numbers after the savepoint.
        assert found["windows"][key]["first"] >= n + 10
        assert found["windows"][key]["twice"] == 0
