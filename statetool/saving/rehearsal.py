"""Dry run of a write: rows are encoded, values converted, and keys hashed by formulas of user classes, and nothing is written.

This is done completely, because each value can be one that the new type cannot hold. Of state that is read again without decoding it, only
the first entries are read, because a dry run would otherwise take as long as the write: damage in the rest is not found. Nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from statetool.formats.stream import Stream
from statetool.saving.publish import StagedFile, StagedOutput, Staging
from statetool.saving.recomputing.entries import ComputedEntries
from statetool.saving.streams.catch_up import CatchUpStreams
from statetool.saving.streams.elements import ElementStreams
from statetool.saving.streams.keyed import CarriedEntries

if TYPE_CHECKING:
    from collections.abc import Generator

    from statetool.saving.composition import Runner, StreamWriteTask


@dataclass(frozen=True, slots=True)
class Rehearsal(Staging):
    """Staging of a dry run: files have sizes, and are not written."""

    def create(self, label: str = "state") -> StagedOutput:
        """Return an output that counts bytes."""
        return _CountedOutput(label)

    def copy(self, sources: Sequence[Stream], progress: Callable[[int], object] = lambda _: None) -> list[StagedFile]:
        """Return the files that copies would be."""
        return [StagedFile(f"copy-{i}", source.size_bytes) for i, source in enumerate(sources)]


class _CountedOutput(StagedOutput):
    """Output without a file."""

    def __init__(self, name: str) -> None:
        self._name, self._size_bytes = name, 0

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self._staged = StagedFile(self._name, self._size_bytes)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._size_bytes += len(data)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes


def rehearse(tasks: Iterable[StreamWriteTask], runner: Runner, target: str) -> None:
    """Run the tasks that encode, and read the first entries of the others; errors as for the write itself."""
    encoding: list[StreamWriteTask] = []
    for task in tasks:
        if _encodes(task):
            encoding.append(task)
            continue
        for entries in task.kept[:1]:
            with closing(cast("Generator[object]", entries.batches())) as batches:
                next(batches, None)
    runner.run(encoding, Rehearsal(target, "dry-run"))


def _encodes(task: StreamWriteTask) -> bool:
    """Return True if new bytes are made from values, or keys are hashed by a formula that was proved on a sample."""
    if task.tables or isinstance(task.streams, CatchUpStreams | ElementStreams):
        return True
    if any(isinstance(e, ComputedEntries) for e in task.kept):
        return True
    return any(isinstance(e, CarriedEntries) and bool(e.conversions or e.formula or e.rekeyed) for e in task.kept)
