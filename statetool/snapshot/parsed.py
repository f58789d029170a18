"""Metadata that is read and parsed once, also if one step chooses a snapshot and the next one opens it.

A staged snapshot has metadata in memory only: its files are in the target, and ``_metadata`` is not. No reader takes the target for a snapshot,
except the code that proves it, in :func:`opening_staged`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from statetool.errors import SnapshotNotFoundError
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.io import files
from statetool.io.deletion import noticing_deletion
from statetool.snapshot.locate import METADATA_NAME, find_metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMetadata:
    """A metadata file, by its canonical URI, and its contents. The file of a snapshot that is not ``published`` does not exist yet."""

    file: str
    metadata: SnapshotMetadata
    published: bool = True

    @property
    def directory(self) -> str:
        """The directory of the snapshot."""
        return files.parent(self.file)


#: Metadata that waits to be opened, by the directory of the snapshot; ``None`` outside of :func:`handing_over`.
_HANDED_OVER: Final[ContextVar[dict[str, ParsedMetadata] | None]] = ContextVar("handed_over", default=None)

_STAGED: Final[ContextVar[ParsedMetadata | None]] = ContextVar("staged", default=None)


@contextmanager
def opening_staged(parsed: ParsedMetadata) -> Iterator[None]:
    """Let :func:`open_parsed` open a staged snapshot by the path of its target in the same thread."""
    files.forget_listing(parsed.directory)  # other threads wrote the files
    token = _STAGED.set(parsed)
    try:
        yield
    finally:
        _STAGED.reset(token)


@contextmanager
def handing_over() -> Iterator[None]:
    """Let :func:`open_parsed` have what is passed to :func:`hand_over` in the same thread. Afterwards none of it is kept."""
    token = _HANDED_OVER.set({})
    try:
        yield
    finally:
        _HANDED_OVER.reset(token)


def hand_over(parsed: ParsedMetadata) -> None:
    """Keep metadata until its snapshot is opened; do nothing outside of :func:`handing_over`."""
    waiting = _HANDED_OVER.get()
    if waiting is not None:
        waiting[parsed.directory] = parsed


def open_parsed(path: str) -> ParsedMetadata:
    """Return the metadata of a snapshot: that of a staged one, or what was handed over, which is then no longer kept, or what the file has.

    Parameters
    ----------
    path
        Directory or metadata file of the snapshot.

    Raises
    ------
    SnapshotNotFoundError
        The snapshot does not exist, or was deleted.
    FormatError, UnsupportedError
        The metadata is damaged, or of an unknown version.
    """
    staged = _STAGED.get()
    if staged is not None and files.canonical(path) in (staged.directory, staged.file):
        return staged
    if waiting := _HANDED_OVER.get():
        metadata_file = files.canonical(find_metadata(path))
        parsed = waiting.pop(files.parent(metadata_file), None)
        if parsed is not None and parsed.file == metadata_file:
            return parsed
    metadata_file, raw = _read(path)
    return ParsedMetadata(file=metadata_file, metadata=parse_metadata(raw, file=metadata_file))


def _read(path: str) -> tuple[str, bytes]:
    """Return the metadata file for a path, and its bytes. In an object store it is not looked for first, which would be a request more."""
    if not files.is_local(path):
        likely = path if path.endswith(f"/{METADATA_NAME}") else files.join(path, METADATA_NAME)
        with suppress(SnapshotNotFoundError):
            return files.canonical(likely), files.read_whole(likely)
    # Tasks, and Spark's planning processes, may have another working directory.
    metadata_file = files.canonical(find_metadata(path))
    with noticing_deletion(metadata_file):
        return metadata_file, files.read_whole(metadata_file)
