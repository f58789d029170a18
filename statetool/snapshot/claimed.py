"""Files of a native savepoint that a job claimed, in the checkpoints that it takes afterwards (FLINK-39964).

Up to Flink 2.3, ``RocksIncrementalSnapshotStrategy`` passes the savepoint's relative handles on, and ``MetadataV2V3SerializerBase`` writes them
as relative to the checkpoint. Flink looks for the files in the directory of the checkpoint, but they are still in that of the savepoint.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from statetool.errors import FormatError, StatetoolError, several
from statetool.formats.metadata import SnapshotMetadata
from statetool.formats.metadata.handles import ChangelogHandle, Handle, IncrementalHandle, RelativeFileHandle
from statetool.formats.metadata.model import handles_of
from statetool.formats.metadata.properties import read_properties
from statetool.io import files

_CHECKPOINT: Final = re.compile(r"chk-\d+")


@dataclass(frozen=True, slots=True)
class ClaimedFiles:
    """The files of a claimed savepoint that a checkpoint names in its own directory ``home``, and the ``savepoint``, if it is near."""

    home: str
    files: Sequence[str]
    savepoint: str

    @property
    def text(self) -> str:
        """What is wrong."""
        where = (
            f"they are in {self.savepoint}" if self.savepoint else f"they are not there, for example {self.files[0]}"
        )
        names = f"The checkpoint names {several(len(self.files), 'file')} relative to its own directory, and {where}"
        return f"{names}: the job claimed a native savepoint (FLINK-39964), and Flink does not find them."

    @property
    def options(self) -> tuple[str, str]:
        """The option by which statetool finds the files."""
        return "--rebase", f"{self.home}={self.savepoint or 'SAVEPOINT'}"

    @property
    def cure(self) -> str:
        """What to do."""
        return f"Write a copy that has all files, with {shlex.join(self.options)}."


def claimed_files(metadata: SnapshotMetadata, metadata_file: str, missing: Collection[str]) -> ClaimedFiles | None:
    """Return the missing files that are of a claimed savepoint.

    In other checkpoints, files that later ones may share are never relative to one of them. If more is missing, files were deleted.
    """
    home = files.parent(metadata_file)
    if not missing or not _is_checkpoint(metadata, home):
        return None
    shared: dict[str, None] = {}
    own: set[str] = set()
    for handle in handles_of(metadata):
        for database in _databases(handle):
            shared |= {files.join(home, s.path): None for _, s in database.shared if isinstance(s, RelativeFileHandle)}
            streams = (database.meta, *(s for _, s in database.private))
            own |= {files.join(home, s.path) for s in streams if isinstance(s, RelativeFileHandle)}
    found = [file for file in shared if file in missing]
    if not found or not own.isdisjoint(missing):
        return None
    return ClaimedFiles(home, found, _savepoint_with(home, found[0].rpartition("/")[2]))


def _is_checkpoint(metadata: SnapshotMetadata, home: str) -> bool:
    with suppress(FormatError):
        properties = read_properties(metadata.properties)
        if properties is not None:
            return properties.kind == "checkpoint"
    return _CHECKPOINT.fullmatch(files.canonical(home).rpartition("/")[2]) is not None


def _databases(handle: Handle) -> Iterator[IncrementalHandle]:
    if isinstance(handle, IncrementalHandle):
        yield handle
    elif isinstance(handle, ChangelogHandle):
        for inner in handle.materialized:
            yield from _databases(inner)


def _savepoint_with(home: str, name: str) -> str:
    """Return the directory of a savepoint next to the checkpoint, or next to its job's directory, that has a file; empty if there is none."""
    above = files.parent(files.canonical(home))
    for folder in (above, files.parent(above)):
        with suppress(StatetoolError, OSError):
            for directory, is_directory in files.list_dir(folder):
                is_savepoint = is_directory and directory.rpartition("/")[2].startswith("savepoint-")
                if is_savepoint and files.exists(files.join(directory, name)):
                    return directory
    return ""
