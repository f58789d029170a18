"""The time that a read took, compared with the time that a job keeps a checkpoint."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from statetool.cli import options
from statetool.cli.main import cli
from statetool.io.retention import Retention
from statetool.operations.cluster.jobs import NO_CHECKPOINTS, Checkpoint, CheckpointHistory
from statetool.operations.cluster.retention import observed_retention
from tests.support.servers.flink_rest import RELEASES, flink_rest
from tests.support.zoo import ZOO


def history(*deleted: bool, step_ms: int = 2000, kind: str = "checkpoint") -> CheckpointHistory:
    """Return a history of completed checkpoints, deleted or not."""
    recent = tuple(
        Checkpoint(
            checkpoint_id=i,
            kind=kind,
            status="COMPLETED",
            triggered_ms=i * step_ms,
            duration_ms=1,
            state_bytes=1,
            path=f"/chk-{i}",
            deleted=gone,
            reason=None,
        )
        for i, gone in enumerate(deleted)
    )
    return replace(NO_CHECKPOINTS, recent=recent)


def test_retention_is_observed() -> None:
    assert observed_retention(history(True, True, False, False)) == Retention(retained=2, period_s=2.0)
    assert observed_retention(history(True, False, step_ms=500)) == Retention(retained=1, period_s=0.5)


@pytest.mark.parametrize(
    "unknown",
    [
        NO_CHECKPOINTS, history(False), history(False, False, False), history(True, True),
        history(True, False, step_ms=0), history(True, True, False, kind="savepoint"),
    ],
)  # fmt: skip
def test_an_unknown_retention_is_no_advice(unknown: CheckpointHistory) -> None:
    assert observed_retention(unknown) is None


def test_only_reads_that_take_too_long_are_reported() -> None:
    retention = Retention(retained=3, period_s=2.0)
    assert retention.advice(6.0) is None
    assert retention.advice(6.1) == (
        "the read took 6.1 s, but the job deletes a checkpoint after about 6.0 s "
        "(it keeps 3 checkpoints, and takes one each 2.0 s). set execution.checkpointing.num-retained: 5"
    )


@pytest.mark.parametrize("release", RELEASES)
def test_commands_say_it_once(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with flink_rest(release, tmp_path) as rest:
        tree = rest.history("orders")
        shutil.copytree(ZOO, rest.checkpoint_path("orders", tree["latest"]["completed"]["id"]))
        url = f"flink://{rest.host}/orders"
        monkeypatch.setattr(options, "_LEAST_CHECKED_S", math.inf)  # no read is slow, on a busy machine neither
        assert "num-retained" not in CliRunner().invoke(cli, ["info", url]).stderr
        asked = len(rest.requests)
        # As if the read were slow: each checkpoint of the job exists for some milliseconds.
        monkeypatch.setattr(options, "_LEAST_CHECKED_S", 0.0)
        completed = [c for c in tree["history"] if c["status"] == "COMPLETED" and not c["is_savepoint"]]
        for i, checkpoint in enumerate(completed):
            checkpoint["trigger_timestamp"] = 1000 - i
            checkpoint["discarded"] = checkpoint["discarded"] or i > 2
        tree["latest"]["completed"]["trigger_timestamp"] = 1000
        done = CliRunner().invoke(cli, ["diff", url, url])
        assert done.exit_code == 0, done.output
        assert done.stderr.count("set execution.checkpointing.num-retained") == 1
        assert len(rest.requests) - asked == 6
        savepoint = CliRunner().invoke(cli, ["info", f"{url}?savepoint=latest"])
        assert "num-retained" not in savepoint.stderr
