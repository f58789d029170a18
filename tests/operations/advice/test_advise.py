from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError
from statetool.operations.advice import suggestions
from statetool.operations.advice.history import Advice
from tests.support.snapshots.trees import JOB, checkpoint_root, replace_file
from tests.support.zoo import ZOO


@pytest.fixture
def root(corpus: Path, tmp_path: Path) -> Path:
    job = checkpoint_root(corpus, tmp_path) / JOB
    for i in (3, 4):
        metadata = job / f"chk-{i}" / "_metadata"
        replace_file(metadata, metadata.read_bytes())
        os.utime(metadata, (1_700_000_000 + 60 * i, 1_700_000_000 + 60 * i))
    return job


def answer(folder: Path, *, durations: list[int], p99: float | str) -> str:
    """Write a response of ``/jobs/<id>/checkpoints``, newest first."""
    history = [
        {
            "className": "completed",
            "id": i,
            "status": "COMPLETED",
            "is_savepoint": False,
            "checkpoint_type": "CHECKPOINT",
            "trigger_timestamp": 1_700_000_000_000 + 60_000 * i,
            "latest_ack_timestamp": 1_700_000_000_000 + 60_000 * i + d,
            "end_to_end_duration": d,
            "checkpointed_size": 1 << 20,
            "state_size": 4 << 20,
            "num_subtasks": 2,
            "num_acknowledged_subtasks": 2,
            "tasks": {},
        }
        for i, d in enumerate(durations, 1)
    ]
    failed = {**history[0], "id": 99, "status": "FAILED", "className": "failed"}
    file = folder / "checkpoints.json"
    summary = {"end_to_end_duration": {"min": 1, "max": 9, "avg": 5, "p99": p99}}
    counts = {"restored": 0, "total": 9, "in_progress": 0, "completed": len(durations), "failed": 1}
    file.write_text(
        json.dumps({"counts": counts, "summary": summary, "latest": {}, "history": [failed, *reversed(history)]})
    )
    return str(file)


def by_topic(advice: list[Advice]) -> dict[str, Advice]:
    return {a.topic: a for a in advice}


def test_the_interval_lies_between_overhead_and_recovery(root: Path, tmp_path: Path) -> None:
    rest = answer(tmp_path, durations=[5000] * 6, p99=5000.0)
    advice = by_topic(statetool.advise(str(root), rest=rest, max_overhead=0.05, max_recovery="10 min", catch_up=1.5))
    # d / x = 5 / 0.05; (600 - r) * 0.5 - 5 - r with r = 10 s plus the loading time
    r = 10 + found_bytes(root) / (3 * (100 << 20))
    most = int((600 - r) * 0.5 - 5 - r)
    assert "= 100 s; at most" in advice["interval"].arithmetic
    assert advice["interval"].arithmetic.endswith(f"= {most} s")
    assert (advice["interval"].now, advice["interval"].advised) == ("60 s", "100 s")
    assert advice["min-pause"].advised == "95 s"
    assert advice["timeout"].advised is None
    assert "transactions" not in advice  # the job has no sink of Kafka
    assert advice["backlog"].advised == "1000 s"
    assert advice["restore"].now == f"{r:.4g} s"


def found_bytes(root: Path) -> int:
    return statetool.chain(str(root)).checkpoints[-1].total_bytes


def test_what_is_configured_counts(root: Path, tmp_path: Path) -> None:
    config = tmp_path / "flink-conf.yaml"
    config.write_text(
        "execution.checkpointing.interval: 2 min\nexecution.checkpointing.min-pause: 1 min\n"
        "execution.checkpointing.timeout: 10 s\nexecution.checkpointing.interval-during-backlog: 0\n"
    )
    rest = answer(tmp_path, durations=[4000, 5000, 5000, 6000], p99="NaN")
    advice = by_topic(statetool.advise(str(root), rest=[rest], config=str(config)))
    assert (advice["interval"].now, advice["interval"].advised) == ("120 s", None)
    assert advice["min-pause"].advised is None
    assert (advice["timeout"].now, advice["timeout"].advised) == ("10 s", "18 s")
    assert advice["backlog"].advised is None
    assert "transactions" not in advice
    for i in (1, 2):
        shutil.copytree(Path(ZOO).parent / "kafka-sink", tmp_path / "kafka" / f"chk-{i}")
    of_kafka = by_topic(statetool.advise(str(tmp_path / "kafka"), rest=[rest], config=str(config)))
    assert of_kafka["transactions"].advised == "138000"
    assert advice["duration"].arithmetic == "average of the newer 2: 5.5 s; of the older 2: 4.5 s"


def test_aims_that_cannot_be_met_say_so(root: Path, tmp_path: Path) -> None:
    rest = answer(tmp_path, durations=[50_000] * 4, p99=50_000.0)
    advice = by_topic(statetool.advise(str(root), rest=rest, max_overhead=0.1, max_recovery="2 min"))
    assert advice["interval"].advised is None
    assert "no interval keeps overhead below 10% and recovery below 120 s" in advice["interval"].message


def test_what_the_files_alone_say(root: Path) -> None:
    advice = by_topic(statetool.advise(str(root)))
    chain = statetool.chain(str(root)).checkpoints
    assert "is unknown" in advice["interval"].message
    assert advice["interval"].now == "60 s"
    saved = 1 - chain[1].new_bytes / chain[1].total_bytes
    assert f"= {saved:.3g}, over 1" in advice["incremental"].arithmetic
    kept = (sum(c.new_bytes for c in chain) - chain[1].total_bytes) / (1 << 10)
    assert advice["retention"].message == f"keeping more than the newest costs {kept:.4g} KiB"
    assert "timeout" not in advice
    assert advice["compression"].advised is None
    assert "compress their files themselves" in advice["compression"].message


def test_nothing_is_concluded_from_little_state(corpus: Path, tmp_path: Path) -> None:
    for i in (1, 2):
        shutil.copytree(corpus / "v2_3_0-hashmap-canonical" / "snapshot", tmp_path / f"chk-{i}")
    advice = by_topic(statetool.advise(str(tmp_path)))
    assert (advice["incremental"].now, advice["incremental"].advised) == ("writes everything each time", None)
    assert "KiB of state are too little" in advice["incremental"].message
    assert (advice["compression"].now, advice["compression"].advised) == ("false", None)
    assert "are too little to estimate the saving of Snappy" in advice["compression"].message
    # They were copied within moments.
    assert "growth" not in advice


def test_state_without_bytes_is_not_divided_by(connector_cases: Path, tmp_path: Path) -> None:
    metadata = (connector_cases / "v2_3_0-kafka-source" / "snapshot" / "_metadata").read_bytes()
    for i in (1, 2):
        (tmp_path / f"chk-{i}").mkdir()
        (tmp_path / f"chk-{i}" / "_metadata").write_bytes(metadata)
    texts = [a.arithmetic for a in statetool.advise(str(tmp_path))]
    assert not [text for text in texts if re.search(r"\b0 (Mi|Ki)?B|/ 0\b", text)]


def test_full_checkpoints_are_told(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The bytes are Flink's, and few: that they are enough is set here.
    for name in ("_LEAST_BYTES", "_LEAST_SAMPLE"):
        monkeypatch.setattr(suggestions, name, 1 << 10)
    for i in (1, 2):
        shutil.copytree(corpus / "v2_3_0-hashmap-canonical" / "snapshot", tmp_path / f"chk-{i}")
    advice = by_topic(statetool.advise(str(tmp_path)))
    assert (advice["incremental"].now, advice["incremental"].advised) == ("writes everything each time", "true")
    compression = advice["compression"]
    assert (compression.now, compression.advised) == ("false", "true")
    assert "of keyed state that is written as a stream" in compression.message
    measured = float(compression.arithmetic.partition("plain: 1 - ")[2].partition(" = ")[2].partition(",")[0])
    ratios = [
        r.snappy_ratio for r in statetool.load(str(tmp_path / "chk-2")).stats().rows("operators") if r.snappy_ratio
    ]
    assert 1 - max(ratios) < measured < 1 - min(ratios)


def test_barriers(root: Path, tmp_path: Path) -> None:
    def subtask(index: int, whole: int, sync: int, later: int) -> dict[str, Any]:
        return {
            "index": index,
            "status": "completed",
            "end_to_end_duration": whole,
            "checkpoint": {"sync": sync, "async": later},
            "alignment": {"buffered": 0, "duration": 1},
            "start_delay": 7,
        }

    file = tmp_path / "subtasks.json"
    pending = {"index": 2, "status": "pending_or_failed"}
    file.write_text(json.dumps({"id": 4, "subtasks": [subtask(0, 900, 50, 400), subtask(1, 9000, 100, 900), pending]}))
    advice = by_topic(statetool.advise(str(root), rest=str(file)))
    assert (advice["barriers"].now, advice["barriers"].advised) == ("8 s", "true")
    assert advice["barriers"].arithmetic == (
        "end to end - sync - async = 9 s - 0.1 s - 0.9 s = 8 s (subtask 1, the slowest)"
    )


def test_what_makes_no_sense_is_refused(root: Path, tmp_path: Path) -> None:
    for wrong in ({"max_overhead": 1.5}, {"catch_up": 1.0}, {"max_recovery": "soon"}, {"restore_rate": "0"}):
        with pytest.raises(OptionError):
            statetool.advise(str(root), **wrong)
    rest = answer(tmp_path, durations=[1], p99=1.0)
    with pytest.raises(OptionError, match="second response"):
        statetool.advise(str(root), rest=[rest, rest])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SnapshotNotFoundError, match="no readable snapshot"):
        statetool.advise(str(tmp_path / "empty"))
    other = tmp_path / "other.json"
    for text in ("no", "[]", '{"jobs": []}', '{"subtasks": [{}]}'):
        other.write_text(text)
        with pytest.raises(FormatError):
            statetool.advise(str(root), rest=str(other))


def test_command(root: Path, tmp_path: Path) -> None:
    rest = answer(tmp_path, durations=[5000] * 4, p99=5000.0)
    shown = CliRunner().invoke(cli, ["advise", str(root), "--rest", rest, "--output", "json"])
    assert shown.exit_code == 0, shown.output
    assert {"interval", "min-pause", "timeout", "retention"} <= {a["topic"] for a in json.loads(shown.stdout)}
    assert "arithmetic" in CliRunner().invoke(cli, ["advise", str(root)]).stdout
    assert CliRunner().invoke(cli, ["advise", str(tmp_path / "none")]).exit_code == 3
