"""Copy a snapshot with every file that it needs, to any file system.

What was relative in the metadata stays relative (tag 6), what was absolute becomes the absolute path of the copy (tag 2): state that
Flink may share between checkpoints has to have absolute paths, or a job that claims the copy would name its files
relative to a later checkpoint. Segments of merged files become files of their own, relative where they were the checkpoint's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from statetool.errors import FormatError, SnapshotNotFoundError, UnsupportedError
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, write_metadata
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    FileHandle,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
    replace_channel,
    replace_keyed,
    replace_operator,
    replace_stream,
)
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.io.listing import stat
from statetool.ops.structure import StructureCheck
from statetool.ops.survey import file_streams, handles_of
from statetool.plan.inventory import Inventory, OperatorInventory
from statetool.plan.locate import METADATA_NAME, Locator
from statetool.write.publish import Publication, StagedFile, Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHARED: Final = 1
_COMPARE_BYTES: Final = 8 << 20
InFile = FileHandle | RelativeFileHandle | SegmentHandle
#: What names one range of a file in the metadata.
_Name = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """A range of a file that is copied into a file of its own; ``path`` says how the new metadata names it."""

    source: str
    start: int
    size_bytes: int
    path: Literal["relative", "absolute"]


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    stream: Stream
    absolute: bool


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
    wanted = _wanted(inventory, Locator(inventory.metadata_file, inventory.rebase))
    Publication.check(target)
    # Inline state stays in the metadata; the paths alone differ in length.
    plan = SnapshotCopy(
        target=target,
        files=tuple(
            CopiedFile(
                source=w.stream.file,
                start=w.stream.start,
                size_bytes=w.stream.size_bytes,
                path="absolute" if w.absolute else "relative",
            )
            for w in dict.fromkeys(wanted.values())
        ),
        metadata_bytes=len(write_metadata(inventory.metadata)),
        metadata_file=None,
    )
    if dry_run:
        return plan
    with Publication(target) as publication:
        distinct = list(dict.fromkeys(wanted.values()))
        streams = [w.stream for w in distinct]
        staged = dict(zip(distinct, _copy_all(streams, publication.staging, spark, threads, progress), strict=True))
        if compare:
            for w, file in staged.items():
                _compare(w.stream, files.join(publication.target, file.name))
        names = {name: _moved(w, staged[w], publication.target) for name, w in wanted.items()}
        metadata = _rewritten(inventory.metadata, names)
        _check(metadata, publication.target)
        data = write_metadata(metadata)
        uri = publication.commit(data, staged.values())
    return replace(plan, metadata_bytes=len(data), metadata_file=uri)


def _wanted(inventory: Inventory, locator: Locator) -> dict[_Name, _Wanted]:
    """Return what has to be copied, by its name in the metadata.

    Raises
    ------
    SnapshotNotFoundError, FormatError
        A file is not there, or too short.
    """
    wanted: dict[_Name, _Wanted] = {}
    sizes: dict[str, int] = {}
    for handle in handles_of(inventory.metadata):
        for stream, is_log in file_streams(handle):
            name = _name(stream)
            if name in wanted:
                continue
            place = locator.resolve(stream)
            assert place is not None
            if place.file not in sizes:
                found = stat(place.file)
                if found is None:
                    raise SnapshotNotFoundError(f"file {place.file} of the snapshot is not there")
                sizes[place.file] = found.size_bytes
            size = sizes[place.file]
            if is_log:
                # The handle of a change log counts other bytes than those of the file.
                place = replace(place, size_bytes=size)
            elif size < place.start + place.size_bytes:
                raise FormatError(
                    f"the file has {size} bytes, the metadata says {place.start + place.size_bytes}",
                    hint="find out what is wrong with statetool verify",
                ).at(file=place.file)
            absolute = isinstance(stream, FileHandle) or (isinstance(stream, SegmentHandle) and stream.scope == _SHARED)
            wanted[name] = _Wanted(place, absolute)
    return wanted


def _name(stream: InFile) -> _Name:
    if isinstance(stream, SegmentHandle):
        return stream.path, stream.start, stream.size_bytes
    return stream.path, -1, -1


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


def _moved(wanted: _Wanted, file: StagedFile, target: str) -> Callable[[InFile], StreamHandle]:
    """Return what makes the handle of a copy from that of the original."""

    def moved(old: InFile) -> StreamHandle:
        if not wanted.absolute:
            return RelativeFileHandle(path=file.name, size_bytes=old.size_bytes)
        return FileHandle(path=files.join(_flink_uri(target), file.name), size_bytes=old.size_bytes)

    return moved


def _flink_uri(directory: str) -> str:
    """Return a directory as Flink names it: with a scheme."""
    return f"file:{files.canonical(directory)}" if files.is_local(directory) else directory


def _rewritten(metadata: SnapshotMetadata, names: Mapping[_Name, Callable[[InFile], StreamHandle]]) -> SnapshotMetadata:
    def change(handle: StreamHandle) -> StreamHandle:
        if isinstance(handle, ByteStreamHandle):
            return handle
        if isinstance(handle, FileHandle | RelativeFileHandle | SegmentHandle):
            return names[_name(handle)](handle)
        raise UnsupportedError(f"a stream handle of kind {type(handle).__name__} cannot be copied")

    def subtask(s: SubtaskState) -> SubtaskState:
        return replace(
            s,
            managed_operator=replace_operator(s.managed_operator, change),
            raw_operator=replace_operator(s.raw_operator, change),
            managed_keyed=replace_keyed(s.managed_keyed, change),
            raw_keyed=replace_keyed(s.raw_keyed, change),
            input_channels=tuple(replace_channel(h, change) for h in s.input_channels),
            output_channels=tuple(replace_channel(h, change) for h in s.output_channels),
        )

    def operator(o: OperatorState) -> OperatorState:
        return replace(
            o, coordinator=replace_stream(o.coordinator, change), subtasks=tuple(subtask(s) for s in o.subtasks)
        )

    return replace(metadata, operators=tuple(operator(o) for o in metadata.operators))


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
