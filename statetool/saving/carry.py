"""Carry operators over into a new snapshot unchanged: copy their files and rewrite their handles to name the copies.

Paths relative to the metadata stay relative (tag 6). Absolute paths become the absolute path of the copy (tag 2). State that Flink may
share between checkpoints needs absolute paths: otherwise a job that claims the new snapshot would resolve its files relative to a later
checkpoint. Segments of merged files become separate files, with relative paths if they belonged to the checkpoint alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from statetool.errors import FormatError, SnapshotNotFoundError, UnsupportedError
from statetool.formats.metadata import OperatorState, replace_streams
from statetool.formats.metadata.handles import FileHandle, RelativeFileHandle, SegmentHandle, StreamHandle, file_streams
from statetool.formats.metadata.model import operator_handles
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.io.deletion import check_deletion
from statetool.io.listing import FileStats
from statetool.saving.publish import StagedFile

Resolve: TypeAlias = Callable[[StreamHandle], Stream | None]
#: Copies streams into the target; the files are in the order of the streams.
CopyAll: TypeAlias = Callable[[list[Stream]], list[StagedFile]]
InFile: TypeAlias = FileHandle | RelativeFileHandle | SegmentHandle
_SHARED_SCOPE: Final = 1


@dataclass(slots=True)
class FileCarrier:
    """Copies the files of operators and rewrites their handles.

    Parameters
    ----------
    resolve
        Returns the location of a handle's bytes.
    target
        Directory of the new snapshot.
    """

    resolve: Resolve
    target: str
    staged: dict[Stream, StagedFile] = field(default_factory=dict)
    _streams: dict[InFile, Stream] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _stat: FileStats = field(default_factory=FileStats)

    def plan(self, operators: Iterable[OperatorState]) -> list[Stream]:
        """Return the streams to copy, without repeated file ranges.

        Raises
        ------
        SnapshotNotFoundError, FormatError
            A file is missing or too short.
        """
        wanted: dict[Stream, None] = {}
        for handle in (h for o in operators for h in operator_handles(o)):
            for old, is_log in file_streams(handle):
                if old not in self._streams:
                    self._streams[old] = self._source(old, is_log=is_log)
                if self._streams[old] not in self.staged:
                    wanted[self._streams[old]] = None
        return list(wanted)

    def _source(self, old: InFile, *, is_log: bool) -> Stream:
        place = self.resolve(old)
        if place is None:
            raise UnsupportedError(f"a stream handle of kind {type(old).__name__} cannot be copied")
        if place.file not in self._sizes:
            file = self._stat(place.file)
            if file is None:
                check_deletion(place.metadata_file)
                raise SnapshotNotFoundError(
                    f"file {place.file} of the snapshot does not exist",
                    hint=f"{files.deletion_hint(place.file)}run statetool verify to find all missing files",
                )
            self._sizes[place.file] = file.size_bytes
        size = self._sizes[place.file]
        if is_log:
            # The handle of a compressed change log counts uncompressed bytes.
            return replace(place, size_bytes=size, file_bytes=size)
        if size < place.start + place.size_bytes:
            check_deletion(place.metadata_file)
            raise FormatError(
                f"the file has {size} bytes, the metadata says {place.start + place.size_bytes}",
                hint="run statetool verify to find the damage",
            ).at(file=place.file)
        return replace(place, file_bytes=size)

    def copy(self, operators: Iterable[OperatorState], copy_all: CopyAll) -> None:
        """Copy the files of operators."""
        streams = self.plan(operators)
        self.staged |= dict(zip(streams, copy_all(streams), strict=True))

    def carried(self, operator: OperatorState) -> OperatorState:
        """Return a copied operator, with handles that name the copies."""
        return replace_streams(operator, self._moved)

    def _moved(self, old: StreamHandle) -> StreamHandle:
        if not isinstance(old, FileHandle | RelativeFileHandle | SegmentHandle):
            return old
        copy = self.staged[self._streams[old]]
        return replace(carried_handle(old, copy, self.target), size_bytes=old.size_bytes)


def carried_handle(old: StreamHandle, copy: StagedFile, target: str) -> FileHandle | RelativeFileHandle:
    """Return the handle of a copy of a file, in place of the handle ``old``."""
    assert isinstance(old, FileHandle | RelativeFileHandle | SegmentHandle)
    if is_absolute(old):
        return FileHandle(path=files.join(flink_uri(target), copy.name), size_bytes=copy.size_bytes)
    return RelativeFileHandle(path=copy.name, size_bytes=copy.size_bytes)


def is_absolute(old: InFile) -> bool:
    """Return True if the handle of a copy has an absolute path."""
    return isinstance(old, FileHandle) or (isinstance(old, SegmentHandle) and old.scope == _SHARED_SCOPE)


def flink_uri(directory: str) -> str:
    """Return the URI of a directory as Flink writes it, with a scheme."""
    return f"file:{files.canonical(directory)}" if files.is_local(directory) else directory.rstrip("/")


def find_references(operator: OperatorState, resolve: Resolve) -> OperatorState:
    """Return an operator whose handles name its files by absolute path."""

    def absolute(handle: StreamHandle) -> StreamHandle:
        if not isinstance(handle, FileHandle | RelativeFileHandle | SegmentHandle):
            return handle
        stream = resolve(handle)
        assert stream is not None
        path = stream.file
        if files.is_local(path):
            path = f"file:{os.path.abspath(files.local_path(path))}"
        if isinstance(handle, SegmentHandle):
            return replace(handle, path=path)
        return FileHandle(size_bytes=handle.size_bytes, path=path)

    return replace_streams(operator, absolute)
