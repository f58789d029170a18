"""Rewriting the keyed state of one operator: its splits are dealt out, its new subtasks gathered. Here in threads.

A :class:`KeyedJob` is picklable and self-contained, so a cluster can run the same two functions (:mod:`statetool.spark.rewrite`).
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import numpy as np

from statetool.errors import StatetoolError
from statetool.formats.key_groups import range_for
from statetool.formats.keyed.writer import KeyedStreamWriter
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle, RelativeFileHandle, StreamHandle
from statetool.formats.stream import Stream
from statetool.ops.gather import MEMORY_BYTES, StoredRun, gather_runs
from statetool.ops.redeal import DealTask, PackedRun, deal_split
from statetool.write.publish import StagedFile, StagedOutput, Staging

#: Flink keeps smaller states inside the metadata (``state.storage.fs.memory-threshold``).
INLINE_BYTES: Final = 20 << 10
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
    """The new keyed stream of one subtask: ``data`` where it is small, else a staged file."""

    subtask: int
    offsets: tuple[int, ...]
    data: bytes | None
    file: StagedFile | None

    def handle(self, job: KeyedJob) -> KeyGroupsHandle:
        """Return the handle that names it."""
        stream: StreamHandle
        if self.file is not None:
            stream = RelativeFileHandle(path=self.file.name, size_bytes=self.file.size_bytes)
        else:
            stream = ByteStreamHandle(name=str(uuid.uuid4()), data=self.data or b"")
        groups = range_for(self.subtask, job.parallelism, job.max_parallelism)
        return KeyGroupsHandle(tag=CANONICAL_TAG, start=groups.start, offsets=self.offsets, stream=stream)


class Runner(Protocol):
    """Runs the work of a rewrite."""

    def run(self, job: KeyedJob, staging: Staging) -> list[NewSubtask]:
        """Rewrite one operator's keyed state."""
        ...

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
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
        """Call a function for each item, in threads; the first error ends it all."""
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                return [f.result() for f in futures]
            except BaseException:
                for f in futures:
                    f.cancel()
                raise


def store_runs(runs: Iterable[PackedRun], write: Callable[[memoryview], object], path: str) -> Iterator[StoredRun]:
    """Write packed runs one after another to a file, and yield where each is."""
    at = 0
    for run in runs:
        write(run.data.data)
        yield StoredRun(path, at, run.numbers, run.starts)
        at += len(run.data)


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
    with SubtaskOutput(staging) as out:
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
    return out.subtask(subtask, writer)


class SubtaskOutput:
    """Bytes of one stream: kept while they are few, in a staged file once they are more."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._stack = ExitStack()
        self._small = bytearray()
        self._file: StagedOutput | None = None

    def __enter__(self) -> SubtaskOutput:
        self._stack.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.__exit__(*exc)  # type: ignore[arg-type]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        if self._file is None:
            if len(self._small) + len(data) <= INLINE_BYTES:
                self._small += data
                return
            self._file = self._stack.enter_context(self._staging.create("keyed"))
            self._file.write(self._small)
        self._file.write(data)

    def subtask(self, number: int, writer: KeyedStreamWriter) -> NewSubtask:
        """Return what was written, after the block."""
        return NewSubtask(
            subtask=number,
            offsets=tuple(np.asarray(writer.offsets).tolist()),
            data=None if self._file is not None else bytes(self._small),
            file=None if self._file is None else self._file.staged,
        )
