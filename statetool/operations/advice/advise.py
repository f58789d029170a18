"""Advice from a history of checkpoints; formulas in :mod:`statetool.operations.advice.history`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import NO_FINDING, OptionError, SnapshotNotFoundError, StatetoolError
from statetool.formats.metadata import parse_metadata
from statetool.html.records import RecordList
from statetool.io import files
from statetool.operations.advice.configuration import parse_duration, parse_size, read_configuration
from statetool.operations.advice.history import Advice, Aims, History
from statetool.operations.advice.live_job import LiveJob
from statetool.operations.advice.statistics import (
    CheckpointStatistics,
    SubtaskTimes,
    read_json,
    statistics_of,
    subtasks_of,
)
from statetool.operations.advice.suggestions import SUGGESTIONS
from statetool.operations.cluster.paths import is_job
from statetool.operations.directories.chain import chain
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.locate import find_metadata

#: Connectors whose sinks have a ``transaction.timeout.ms``.
_KAFKA_SINKS: Final = frozenset(("kafka-sink", "flink-kafka-producer", "two-phase-commit-sink"))


def advise(
    root: str,
    *,
    rest: str | Sequence[str] = (),
    config: str | None = None,
    max_overhead: float = 0.1,
    max_recovery: str = "5 min",
    catch_up: float = 2.0,
    restore_rate: str = "100 mb",
    parallelism: int | None = None,
) -> list[Advice]:
    """Return suggestions from the history of a job's checkpoints, with the arithmetic.

    Parameters
    ----------
    root
        Directory of the job's checkpoints. Reads their metadata, and a few megabytes of keyed state of the newest one. Or the URL of the
        job: Flink's REST API names the directory, and provides ``rest`` and ``config`` unless they are given.
    rest
        Files with the responses of ``/jobs/<id>/checkpoints`` and ``.../checkpoints/details/<id>/subtasks/<vertex>``.
    config
        The job's ``flink-conf.yaml`` or ``config.yaml``.
    max_overhead
        Maximum share of time spent taking checkpoints.
    max_recovery
        Maximum time after a failure until results are up to date.
    catch_up
        Throughput while catching up, as a multiple of the normal input rate.
    restore_rate
        Bytes per second that a subtask loads.
    parallelism
        Number of subtasks that load state. Defaults to the largest parallelism in the newest snapshot.

    Raises
    ------
    SnapshotNotFoundError
        A file does not exist, or the directory contains no readable snapshot.
    FormatError, OptionError
        A file is not in the expected format, or an aim is out of range.
    """
    checkpoint_chain = chain(root)
    if not checkpoint_chain.checkpoints:
        raise SnapshotNotFoundError(f"no readable snapshot below {root}", hint="run statetool ls to see its snapshots")
    statistics, subtasks = _read_rest([rest] if isinstance(rest, str) else rest)
    configuration = None if config is None else read_configuration(config)
    if is_job(root):
        job = LiveJob.open(root, job_needed=True)
        if statistics is None:
            statistics, subtasks = job.statistics(), subtasks or job.subtasks()
        configuration = configuration or job.configuration()
    aims = Aims(
        overhead=max_overhead,
        recovery_ms=parse_duration(max_recovery),
        catch_up=catch_up,
        restore_bytes_s=parse_size(restore_rate),
    )
    history = History(
        chain=checkpoint_chain,
        statistics=statistics,
        subtasks=subtasks,
        configuration=configuration,
        aims=aims,
        parallelism=parallelism or _parallelism(checkpoint_chain.checkpoints[-1].path),
        writes_to_kafka=_writes_to_kafka(checkpoint_chain.checkpoints[-1].path),
    )
    return RecordList(advice for suggest in SUGGESTIONS for advice in suggest(history))


def _read_rest(paths: Sequence[str]) -> tuple[CheckpointStatistics | None, list[SubtaskTimes]]:
    statistics: CheckpointStatistics | None = None
    subtasks: list[SubtaskTimes] = []
    for path in paths:
        tree = read_json(path)
        if "subtasks" in tree:
            subtasks += subtasks_of(tree, path)
        elif statistics is None:
            statistics = statistics_of(tree, path)
        else:
            raise OptionError(
                f"{path} is a second response of /jobs/<id>/checkpoints", hint="pass one response of one job"
            )
    return statistics, subtasks


def _writes_to_kafka(path: str) -> bool:
    """Return True if a snapshot has a sink with transactions of Kafka, or of which this is unknown."""
    try:
        sinks = sinks_and_unknown(Inventory(path).operators.values())
        return any(s.name in _KAFKA_SINKS or _KAFKA_SINKS & {*s.candidates} or not s.is_read for s in sinks)
    except NO_FINDING:
        raise
    except StatetoolError:
        return True


def _parallelism(path: str) -> int:
    file = find_metadata(path)
    operators = parse_metadata(files.read_whole(file), file=file).operators
    return max((o.parallelism for o in operators), default=1)
