"""Snapshots of a job that the adaptive scheduler has rescaled: equal to what the job counted, and rewritten, restored by Flink exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import UnsupportedError
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
_KEYS: Final = 40
#: The slow job takes at least 600 seconds for them.
_NUMBERS: Final = 240_000
#: Bytes of a record between two operators: length, tag and time, a number, and a text with its length.
_RECORD_BYTES: Final = {("numbers", "wide"): 4 + 1 + 8 + 8, ("wide", "counts"): 4 + 1 + 8 + 8 + 2 + 200}
_CONFIG: Final = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "0 ms",
    # Names in Flink 1.20.
    "jobmanager.adaptive-scheduler.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.scaling-interval.min": "0 ms",
    "jobmanager.adaptive-scheduler.max-delay-for-scale-trigger": "0 ms",
    "rest.port": "0",
    "taskmanager.memory.managed.size": "64m",
    "taskmanager.memory.network.min": "16m",
    "taskmanager.memory.network.max": "16m",
    "taskmanager.memory.segment-size": "4kb",
    "execution.checkpointing.interval": "200 ms",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.unaligned.enabled": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    # The one that is read was followed by others, also while the savepoint was taken.
    "execution.checkpointing.num-retained": "1000",
}


@pytest.fixture(scope="module", params=DEFAULT_VERSIONS)
def adaptive_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = FlinkMachine(
        request.param, tmp_path_factory.mktemp("adaptive"), (HERE / "support" / "flink" / "adaptive",)
    )
    yield machine
    machine.close()


def run_job(machine: FlinkMachine, work: Path, **request: Any) -> dict[str, Any]:
    return machine.call(
        "class",
        **{"class": "AdaptiveJob"},
        work=str(work),
        numbers=_NUMBERS,
        config={**_CONFIG, "io.tmp.dirs": str(work)},
        backend="rocksdb",
        **request,
    )


def restore(machine: FlinkMachine, work: Path, snapshot: Path, max_parallelism: int) -> dict[str, int]:
    """Run the job to its end from a snapshot, and return the counts."""
    counts: dict[str, int] = run_job(machine, work, max_parallelism=max_parallelism, snapshot=str(snapshot))["counts"]
    return counts


def test_a_job_that_was_rescaled_goes_on_exactly(adaptive_flink: FlinkMachine, tmp_path: Path) -> None:
    taken = run_job(adaptive_flink, tmp_path, max_parallelism=64, savepoint=str(tmp_path / "savepoints"))
    checkpoint = statetool.load(taken["checkpoint"], uids=["numbers", "wide", "counts"])
    assert statetool.verify(checkpoint, deep=True).problems == ()
    counts = {str(r["key"]): r["count"] for r in checkpoint["counts"].to_arrow("keyed_state").to_pylist()}
    assert counts == taken["counts"]
    assert checkpoint["counts"].to_arrow("seen").num_rows == 4
    # Each number was counted, is in flight, or was not sent.
    (split,) = checkpoint["numbers"].source_splits().to_pylist()
    sent = int(split["position"])
    in_flight = 0
    for (sender, receiver), size in _RECORD_BYTES.items():
        channels = [c for c in checkpoint[sender].in_flight().to_pylist() if c["side"] == "output"]
        channels += [c for c in checkpoint[receiver].in_flight().to_pylist() if c["side"] == "input"]
        # A record between channels begins in an input and ends in an output.
        records, rest = divmod(sum(c["size_bytes"] for c in channels), size)
        assert rest == 0
        in_flight += records
        for c in channels:
            # Where an output starts inside a record, the number of elements is an estimate.
            if c["side"] == "input" or c["size_bytes"] % size == 0:
                assert c["elements"] * size + c["cut_bytes"] == c["size_bytes"], c
    assert in_flight
    assert sum(counts.values()) + in_flight == sent

    # In-flight records stay with their channels, and keep their bytes.
    with pytest.raises(UnsupportedError, match="the checkpoint is unaligned"):
        statetool.rescale(taken["checkpoint"], str(tmp_path / "refused"), 128)
    exact = dict.fromkeys(counts, _NUMBERS // _KEYS)
    changed, rescaled = tmp_path / "changed", tmp_path / "rescaled"
    statetool.set_values(checkpoint, str(changed), "counts", 7, {"count": counts["7"] + 1000})
    assert restore(adaptive_flink, tmp_path, changed, 64) == {**exact, "7": exact["7"] + 1000}

    statetool.rescale(taken["savepoint"], str(rescaled), 96, parallelism=3, uids=["numbers", "wide", "counts"])
    # The savepoint was taken after the checkpoint: keys have counted more since then.
    differences = (
        checkpoint.diff(statetool.load(str(rescaled)), operators=["counts"], states=["count"]).to_arrow().to_pylist()
    )
    assert differences
    for row in differences:
        assert int(row["before"]) == taken["counts"][row["key"]] < int(row["after"])
    assert restore(adaptive_flink, tmp_path, rescaled, 96) == exact
