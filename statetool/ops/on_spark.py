"""Rewrites on a cluster: splits are dealt out in tasks, each new subtask is gathered in a task of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from statetool.formats.key_groups import range_for
from statetool.formats.stream import Stream
from statetool.ops.jobs import KeyedJob, NewSubtask, gather_subtask
from statetool.ops.redeal import DealTask, deal_split
from statetool.ops.runs import PackedRun, store_runs
from statetool.spark.shuffle import deal_and_gather
from statetool.spark.tasks import run_tasks
from statetool.write.publish import StagedFile, Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
#: Key groups, where each starts, and all their bytes.
Piece: TypeAlias = tuple[bytes, bytes, bytes]


class SparkRunner:
    """Runs rewrites on Spark.

    Parameters
    ----------
    spark
        Its executors need statetool and its dependencies.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def run(self, job: KeyedJob, staging: Staging) -> list[NewSubtask]:
        shape = replace(job, tasks=())
        deal = partial(_deal, max_parallelism=job.max_parallelism, parallelism=job.parallelism)
        gather = partial(_gather, job=shape, staging=staging)
        return deal_and_gather(self.spark, deal, job.tasks, gather, job.parallelism)

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        return run_tasks(self.spark, staging.copy, streams)

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return run_tasks(self.spark, function, list(items))


def _deal(task: DealTask, *, max_parallelism: int, parallelism: int) -> Iterator[tuple[int, Piece]]:
    """Yield what goes to each subtask."""
    bounds = [range_for(i, parallelism, max_parallelism).start for i in range(parallelism)]
    for run in deal_split(task):
        owners = np.searchsorted(bounds, run.numbers, side="right") - 1
        edges = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
        for low, high in pairwise(edges):
            starts = run.starts[low : high + 1]
            data = run.data[starts[0] : starts[-1]]
            yield int(owners[low]), (run.numbers[low:high].tobytes(), (starts - starts[0]).tobytes(), data.tobytes())


def _gather(subtask: int, pieces: Iterator[Piece], *, job: KeyedJob, staging: Staging) -> NewSubtask:
    """Write one subtask's stream; what comes in lies on local disk first."""
    with tempfile.NamedTemporaryFile(prefix="statetool-") as f:
        runs = list(store_runs(map(_run, pieces), f.write, f.name))
        f.flush()
        return gather_subtask(job, subtask, runs, staging, job.memory_bytes)


def _run(piece: Piece) -> PackedRun:
    numbers, starts, data = piece
    return PackedRun(
        np.frombuffer(data, dtype=np.uint8),
        np.frombuffer(numbers, dtype=np.int64),
        np.frombuffer(starts, dtype=np.int64),
    )
