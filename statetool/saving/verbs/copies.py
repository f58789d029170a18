"""Copy a snapshot with every file that it needs, to any file system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statetool.analysis.verification.structure import StructureCheck
from statetool.errors import FormatError, UnsupportedError
from statetool.formats.metadata import SnapshotMetadata, write_metadata
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.io.listing import FileStats
from statetool.saving.carry import FileCarrier
from statetool.saving.named_files import NamedFileCopies, named_streams, write_elements
from statetool.saving.publish import Publication
from statetool.snapshot.locate import METADATA_NAME, Locator
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.uids import operator_labels
from statetool.snapshot.unflushed_lists import UNFLUSHED

if TYPE_CHECKING:
    from statetool.saving.composition import Runner
    from statetool.snapshot.inventory import Inventory

_COMPARE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """A range of a file that is copied into a separate file."""

    source: str
    start: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCopy:
    """A copy, or the plan of a copy if ``metadata_file`` is ``None``."""

    target: str
    files: tuple[CopiedFile, ...]
    metadata_bytes: int
    metadata_file: str | None

    @property
    def size_bytes(self) -> int:
        """Return the total size of the copied files in bytes."""
        return self.metadata_bytes + sum(f.size_bytes for f in self.files)


class Copying:
    """Copy of a snapshot of any kind that does not depend on the original.

    Files are staged in the target. The handles of the new metadata are resolved and their lengths compared. Then
    ``_metadata`` is written last. The state's bytes, ids and properties do not change, but for the paths of files that only state names
    (:mod:`statetool.saving.named_files`).

    Raises
    ------
    UnsupportedError
        Flink could not restore the copy (:mod:`statetool.snapshot.unflushed_lists`).
    SnapshotNotFoundError
        A required file is missing.
    FormatError
        A file is shorter than the metadata says.
    """

    def __init__(self, inventory: Inventory, target: str) -> None:
        for operator in inventory.operators.values():
            if operator.elements.are_unflushed:
                raise UnsupportedError(UNFLUSHED, hint="run statetool convert SRC DST").at(operator=operator.label)
        self._inventory = inventory
        self._metadata = inventory.metadata
        self._carrier = FileCarrier(inventory.resolve, target)
        named = [s for operator in inventory.operators.values() for s in named_streams(operator).values()]
        streams = [*self._carrier.plan(self._metadata.operators), *dict.fromkeys(named)]
        # Inline state stays in the metadata. Only the paths differ in length.
        self.plan: Final = SnapshotCopy(
            target=target,
            files=tuple(CopiedFile(source=s.file, start=s.start, size_bytes=s.size_bytes) for s in streams),
            metadata_bytes=len(write_metadata(self._metadata)),
            metadata_file=None,
        )

    def run(self, runner: Runner, *, compare: bool = False, take_over: bool = False) -> SnapshotCopy:
        """Copy the files, and read every copied file back if ``compare``."""
        with Publication(self.plan.target, take_over=take_over) as publication:
            staging = publication.staging
            copies = NamedFileCopies(staging)
            written = write_elements(self._inventory, copies)
            carried = [written.without(operator) for operator in self._metadata.operators]
            self._carrier.copy(carried, lambda streams: runner.copy_all(streams, staging))
            staged = [*copies.copy(), *written.files, *self._carrier.staged.values()]
            if compare:
                both = [(stream, file.name) for stream, file in self._carrier.staged.items()]
                for stream, name in (*both, *((stream, name) for name, stream in copies.streams.items())):
                    _compare(stream, files.join(publication.target, name))
            operators = tuple(written.added_to(self._carrier.carried(operator)) for operator in carried)
            copied = replace(self._metadata, operators=operators)
            _check(copied, publication.target)
            data = write_metadata(copied)
            uri = publication.commit(data, staged)
        return replace(self.plan, metadata_bytes=len(data), metadata_file=uri)


def _check(metadata: SnapshotMetadata, target: str) -> None:
    """Resolve every handle of a copy before it is published.

    Raises
    ------
    FormatError
        A handle does not resolve inside the target, or its length differs.
    """
    files.forget_listing(target)  # other threads wrote the files
    locator = Locator(files.join(target, METADATA_NAME), published=False)
    stat = FileStats()
    for state, label in zip(metadata.operators, operator_labels(metadata.operators), strict=True):
        operator = OperatorInventory(state, label, locator)
        check = StructureCheck(operator, locator.resolve, stat)
        check.streams_only()
        for problem in check.problems:
            raise FormatError(
                f"the copy is incomplete: {problem.problem}", hint="copy it again; nothing was published"
            ).at(file=problem.file, operator=problem.operator)


def _compare(source: Stream, copy: str) -> None:
    with source.open() as a, files.InputFile(copy) as b:
        for at in range(0, source.size_bytes, _COMPARE_BYTES):
            length = min(_COMPARE_BYTES, source.size_bytes - at)
            if a.read_at(at, length) != b.read_at(at, length):
                raise FormatError(
                    f"the copy of {source.file} differs from it", hint="copy it again; nothing was published"
                ).at(file=copy, offset=at)
