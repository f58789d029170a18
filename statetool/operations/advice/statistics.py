"""Checkpoint statistics of Flink's REST interface.

``/jobs/<id>/checkpoints`` (``CheckpointingStatistics``): ``counts``, ``summary`` (for each number ``min``, ``max``, ``avg``, ``p50`` to
``p999``, or the text ``NaN`` if there is none), ``latest`` and ``history``, newest first: ``id``, ``status``, ``is_savepoint``,
``trigger_timestamp``, ``end_to_end_duration``, ``checkpointed_size`` (bytes written), ``state_size``.
``/jobs/<id>/checkpoints/details/<id>/subtasks/<vertex>`` (``TaskCheckpointStatisticsWithSubtaskDetails``): ``subtasks``, each with
``end_to_end_duration``, ``checkpoint`` (``sync``, ``async``), ``alignment`` and ``start_delay``. Times are milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetool.errors import FormatError, SnapshotNotFoundError
from statetool.io import files
from statetool.io.json_text import parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTimes:
    """A completed checkpoint of a job's history."""

    checkpoint_id: int
    triggered_ms: int
    duration_ms: int
    written_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatistics:
    """Statistics of a job's checkpoints; ``checkpoints`` are the completed ones, without savepoints, oldest first."""

    checkpoints: tuple[CheckpointTimes, ...]
    failed: int
    completed: int
    p99_ms: float | None
    average_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskTimes:
    """One subtask in one checkpoint."""

    subtask: int
    duration_ms: int
    sync_ms: int
    async_ms: int

    @property
    def barrier_ms(self) -> int:
        """Return the time until the barrier arrived: end to end minus sync minus async."""
        return max(0, self.duration_ms - self.sync_ms - self.async_ms)


def read_json(path: str) -> Mapping[str, Any]:
    """Read a JSON object from a file, local or by URI.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    FormatError
        The content is not a JSON object.
    """
    if not files.exists(path) or files.is_dir(path):
        raise SnapshotNotFoundError(f"{path} does not exist", hint="save the response of the REST interface to a file")
    try:
        tree = parse_json(files.read_whole(path))
    except ValueError as error:
        raise FormatError(f"not valid JSON: {error}").at(file=path) from error
    if not isinstance(tree, dict):
        raise FormatError("expected a JSON object").at(file=path)
    return tree


def statistics_of(tree: Mapping[str, Any], path: str) -> CheckpointStatistics:
    """Parse the response of ``/jobs/<id>/checkpoints``; ``path`` is for messages.

    Raises
    ------
    FormatError
        Not a response of that endpoint.
    """
    try:
        completed = [c for c in tree["history"] if c["status"] == "COMPLETED" and not c["is_savepoint"]]
        times = tuple(sorted((_times(c) for c in completed), key=lambda c: c.checkpoint_id))
        counts = tree["counts"]
        summary = (tree.get("summary") or {}).get("end_to_end_duration") or {}
        durations = sorted(c.duration_ms for c in times)
        return CheckpointStatistics(
            checkpoints=times,
            failed=int(counts["failed"]),
            completed=int(counts["completed"]),
            p99_ms=_number(summary.get("p99"), _quantile(durations, 0.99)),
            average_ms=_number(summary.get("avg"), sum(durations) / len(durations) if durations else None),
        )
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise FormatError(
            f"not a response of /jobs/<id>/checkpoints: {type(error).__name__} {error}",
            hint="save it with curl http://jobmanager:8081/jobs/<id>/checkpoints",
        ).at(file=path) from error


def subtasks_of(tree: Mapping[str, Any], path: str) -> tuple[SubtaskTimes, ...]:
    """Parse the response of ``/jobs/<id>/checkpoints/details/<id>/subtasks/<vertex>``; pending subtasks are left out.

    Raises
    ------
    FormatError
        Not a response of that endpoint.
    """
    try:
        return tuple(
            SubtaskTimes(
                subtask=int(s["index"]),
                duration_ms=int(s["end_to_end_duration"]),
                sync_ms=int(s["checkpoint"]["sync"]),
                async_ms=int(s["checkpoint"]["async"]),
            )
            for s in tree["subtasks"]
            if s["status"] == "completed"
        )
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise FormatError(
            f"not a response of .../checkpoints/details/<id>/subtasks/<vertex>: {type(error).__name__} {error}"
        ).at(file=path) from error


def _times(checkpoint: Mapping[str, Any]) -> CheckpointTimes:
    state = int(checkpoint["state_size"])
    return CheckpointTimes(
        checkpoint_id=int(checkpoint["id"]),
        triggered_ms=int(checkpoint["trigger_timestamp"]),
        duration_ms=int(checkpoint["end_to_end_duration"]),
        written_bytes=int(checkpoint.get("checkpointed_size", state)),
        state_bytes=state,
    )


def _number(value: Any, default: float | None) -> float | None:
    number = None if value is None else float(value)
    return default if number is None or math.isnan(number) else number


def _quantile(values: Sequence[int], share: float) -> float | None:
    """Return the smallest value that at least this share of values does not exceed."""
    return float(values[max(0, math.ceil(share * len(values)) - 1)]) if values else None
