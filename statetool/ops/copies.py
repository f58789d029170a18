"""Copy a snapshot with every file that it needs, to any file system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statetool.errors import FormatError
from statetool.formats.metadata import SnapshotMetadata, write_metadata
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.io.listing import stat
from statetool.ops.carry import Carrier
from statetool.ops.structure import StructureCheck
from statetool.plan.inventory import Inventory
from statetool.plan.locate import METADATA_NAME, Locator
from statetool.plan.operator import OperatorInventory
from statetool.write.publish import Publication, StagedFile, Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """A range of a file that is copied into a file of its own."""

    source: str
    start: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCopy:
    """A copy, or the plan of one where ``metadata_file`` is ``None``."""

    target: str
    files: tuple[CopiedFile, ...]
    metadata_bytes: int
    metadata_file: str | None

    @property
    def size_bytes(self) -> int:
        """Bytes of all files of the copy."""
        return self.metadata_bytes + sum(f.size_bytes for f in self.files)


def copy(
    source: str,
    target: str,
    *,
    dry_run: bool = False,
    rebase: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    threads: int | None = None,
    compare: bool = False,
    progress: Callable[[int], object] | None = None,
) -> SnapshotCopy:
    """Copy a snapshot of any kind, so that the copy needs nothing of the original.

    Files are staged in the target, the handles of the new metadata are resolved and their lengths compared, then
    ``_metadata`` is written last. The state's bytes, ids and properties stay as they are.

    Parameters
    ----------
    source
        Directory of the snapshot, or its metadata file.
    target
        Directory of the copy, which must not exist: a local path or any URI that fsspec can write to.
    dry_run
        Plan only; writes nothing.
    rebase
        ``{old prefix: new prefix}`` for files that absolute paths no longer reach.
    spark
        Copy in tasks of a cluster; otherwise in ``threads`` of this process (one a core by default).
    compare
        Read every copied file back and compare it with the original.
    progress
        Called with the bytes of each file that was copied.

    Raises
    ------
    TargetExistsError
        The target holds something.
    SnapshotNotFoundError
        The snapshot, or a file that it needs, is not there.
    FormatError
        Its metadata is damaged, a file is shorter than it says, or a copy differs.
    """
    inventory = Inventory(source, rebase=tuple((rebase or {}).items()))
    metadata = inventory.metadata
    carrier = Carrier(inventory.resolve, target)
    streams = carrier.plan(metadata.operators)
    Publication.check(target)
    # Inline state stays in the metadata; the paths alone differ in length.
    plan = SnapshotCopy(
        target=target,
        files=tuple(CopiedFile(source=s.file, start=s.start, size_bytes=s.size_bytes) for s in streams),
        metadata_bytes=len(write_metadata(metadata)),
        metadata_file=None,
    )
    if dry_run:
        return plan
    with Publication(target) as publication:
        staging = publication.staging
        carrier.copy(metadata.operators, lambda streams: _copy_all(streams, staging, spark, threads, progress))
        if compare:
            for stream, file in carrier.staged.items():
                _compare(stream, files.join(publication.target, file.name))
        copied = replace(metadata, operators=tuple(map(carrier.carried, metadata.operators)))
        _check(copied, publication.target)
        data = write_metadata(copied)
        uri = publication.commit(data, carrier.staged.values())
    return replace(plan, metadata_bytes=len(data), metadata_file=uri)


def _copy_all(
    streams: Sequence[Stream],
    staging: Staging,
    spark: SparkSession | None,
    threads: int | None,
    progress: Callable[[int], object] | None,
) -> list[StagedFile]:
    if spark is not None:
        from statetool.spark.tasks import run_tasks

        return run_tasks(spark, staging.copy, streams)
    from statetool.ops.jobs import LocalRunner

    return LocalRunner(threads, progress).copy_all(list(streams), staging)


def _check(metadata: SnapshotMetadata, target: str) -> None:
    """Resolve every handle of a copy before it is published.

    Raises
    ------
    FormatError
        One that does not resolve inside the target, or has another length.
    """
    locator = Locator(files.join(target, METADATA_NAME))
    for state in metadata.operators:
        operator = OperatorInventory(state, state.uid, locator)
        check = StructureCheck(operator, locator.resolve, stat)
        check.streams_only()
        for problem in check.problems:
            raise FormatError(
                f"the copy is not whole: {problem.problem}", hint="nothing was published; copy it again"
            ).at(file=problem.file, operator=problem.operator)


def _compare(source: Stream, copy: str) -> None:
    with source.open() as a, files.InputFile(copy) as b:
        for at in range(0, source.size_bytes, _COMPARE_BYTES):
            length = min(_COMPARE_BYTES, source.size_bytes - at)
            if a.read_at(at, length) != b.read_at(at, length):
                raise FormatError(
                    f"the copy of {source.file} differs from it", hint="nothing was published; copy it again"
                ).at(file=copy, offset=at)
