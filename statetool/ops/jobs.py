"""Rewriting the keyed state of one operator: its splits are dealt out, its new subtasks gathered. Here in threads.

A :class:`KeyedJob` is picklable and self-contained, so a cluster can run the same two functions (:mod:`statetool.spark.rewrite`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from statetool.errors import StatetoolError
from statetool.formats.key_groups import range_for
from statetool.formats.keyed.writer import KeyedStreamWriter
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.stream import Stream
from statetool.ops.gather import MEMORY_BYTES, gather_runs
from statetool.ops.redeal import DealTask, deal_split
from statetool.ops.runs import StoredRun, store_runs
from statetool.write.publish import StagedFile, Staging
from statetool.write.streams import StreamOutput

CANONICAL_TAG: Final = 7

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedJob:
    """The keyed state of one operator, and what it becomes.

    Attributes
    ----------
    header
        Bytes of the new streams' header.
    states
        Names of its states, by id.
    """

    operator: str
    tasks: tuple[DealTask, ...]
    header: bytes
    states: tuple[str, ...]
    compressed: bool
    max_parallelism: int
    parallelism: int
    memory_bytes: int = MEMORY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubtask:
    """The new keyed stream of one subtask, and its file where it has one."""

    subtask: int
    handle: KeyGroupsHandle
    file: StagedFile | None


class Runner(Protocol):
    """Runs the work of a rewrite."""

    def run(self, job: KeyedJob, staging: Staging) -> list[NewSubtask]:
        """Rewrite one operator's keyed state."""
        ...

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        ...

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a picklable function for each item."""
        ...


class LocalRunner:
    """Runs in threads of this process; spills to local disk.

    Parameters
    ----------
    threads
        How many, by default one a core.
    progress
        Called with bytes as they are done: of each split and of each copied file.
    """

    def __init__(self, threads: int | None = None, progress: Progress | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        self._progress = progress or (lambda _: None)

    def run(self, job: KeyedJob, staging: Staging) -> list[NewSubtask]:
        with tempfile.TemporaryDirectory(prefix="statetool-") as folder:
            paths = [Path(folder) / str(i) for i in range(len(job.tasks))]

            def deal(at: int) -> list[StoredRun]:
                with paths[at].open("wb") as f:
                    runs = list(store_runs(deal_split(job.tasks[at]), f.write, str(paths[at])))
                self._progress(job.tasks[at].split.size_bytes)
                return runs

            stored = [run for runs in self.each(deal, range(len(job.tasks))) for run in runs]
            share = max(1 << 20, job.memory_bytes // self.threads)
            return self.each(
                lambda subtask: gather_subtask(job, subtask, stored, staging, share), range(job.parallelism)
            )

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        def copy(stream: Stream) -> StagedFile:
            staged = staging.copy(stream)
            self._progress(stream.size_bytes)
            return staged

        return self.each(copy, streams)

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function for each item; the first error ends it all."""
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                return [f.result() for f in futures]
            except BaseException:
                for f in futures:
                    f.cancel()
                raise


def gather_subtask(
    job: KeyedJob, subtask: int, runs: Sequence[StoredRun], staging: Staging, memory_bytes: int
) -> NewSubtask:
    """Write the new keyed stream of one subtask.

    Raises
    ------
    FormatError
        A state has two entries with the same key.
    """
    groups = range_for(subtask, job.parallelism, job.max_parallelism)
    with StreamOutput(staging, "keyed") as out:
        writer = KeyedStreamWriter(out.write, job.header, groups, compressed=job.compressed)
        try:
            gather_runs(
                writer,
                runs,
                groups,
                states=job.states,
                max_parallelism=job.max_parallelism,
                memory_bytes=memory_bytes,
            )
        except StatetoolError as error:
            raise error.at(operator=job.operator) from None
        out.complete()
    handle = KeyGroupsHandle(
        tag=CANONICAL_TAG, start=groups.start, offsets=tuple(writer.offsets.tolist()), stream=out.written.handle()
    )
    return NewSubtask(subtask=subtask, handle=handle, file=out.written.file)
