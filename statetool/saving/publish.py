"""Two-phase publishing of a snapshot directory.

Files get their final, unique names inside the target at once, so that nothing has to be renamed (object stores cannot).
A directory is a snapshot only once ``_metadata`` is in it, and that is written last, in one step::

    with Publication(target) as publication:         # driver: refuses an existing target
        staging = publication.staging                # picklable, for tasks
        with staging.create("keyed") as f:           # in any task, any number of attempts
            f.write(...)
        ...                                          # each task returns its ``f.staged``
        publication.commit(metadata, staged_files)   # driver: verifies sizes, writes _metadata, removes what lost
    # leaving the block without commit removes everything that was staged

A marker file ``.statetool-<write id>`` tells an unfinished write: the next one to the same target removes what a killed one
left, and a task that comes too late sees that the marker is gone and removes its own file. Two writers of one target
at the same time: the later one takes the target over, the earlier one finds its marker gone and fails.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statetool.errors import FormatError, OptionError, SnapshotNotFoundError, TargetExistsError
from statetool.formats.stream import Stream
from statetool.io import files, targets

if TYPE_CHECKING:
    from typing_extensions import Self

METADATA_NAME: Final = "_metadata"
#: Streams with fewer bytes go into the metadata (Flink's ``execution.checkpointing.data-inline-threshold``).
INLINE_BYTES: Final = 20 * 1024
_MARKER: Final = ".statetool-"
_COPY_BYTES: Final = 8 << 20
_ELSEWHERE: Final = "choose a directory that is not there yet; nothing is overwritten"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete file in the target: its name (relative to the target) and size."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Staging:
    """What tasks need to put files into a target; picklable."""

    target: str
    write_id: str

    def create(self, label: str = "state") -> StagedOutput:
        """Open a new file; each attempt of a task gets one of its own."""
        return StagedOutput(self, f"{self.write_id}-{label}-{uuid.uuid4()}")

    def copy(self, source: Stream, label: str = "copy") -> StagedFile:
        """Copy a stream into a new file, in pieces.

        Raises
        ------
        FormatError
            The source is shorter than it should be.
        SnapshotNotFoundError
            It is not there.
        """
        with source.open() as f, self.create(label) as out:
            for at in range(0, source.size_bytes, _COPY_BYTES):
                out.write(f.read_at(at, min(_COPY_BYTES, source.size_bytes - at)))
        return out.staged

    @property
    def marker(self) -> str:
        """URI of the file that exists while this write goes on."""
        return files.join(self.target, _MARKER + self.write_id)


class StagedOutput:
    """A file being staged; a block that fails removes it, one that ends completes it."""

    def __init__(self, staging: Staging, name: str) -> None:
        self._staging = staging
        self._name = name
        _check_going_on(staging)
        self._file = targets.NewFile(files.join(staging.target, name))
        self._staged: StagedFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None:
            self._file.discard()
            return
        try:
            self._file.close()
            _check_going_on(self._staging)
        except BaseException:
            self._file.discard()
            raise
        self._staged = StagedFile(self._name, self._file.size_bytes)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self._file.write(data)

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return self._file.size_bytes

    @property
    def staged(self) -> StagedFile:
        """The complete file, after the block."""
        assert self._staged is not None
        return self._staged


def _check_going_on(staging: Staging) -> None:
    if targets.size_of(staging.marker) is None:
        raise SnapshotNotFoundError(
            f"the write to {staging.target} is over or was taken over by another one", hint="start the write again"
        )


class Publication:
    """One write of one target; used on the driver as a context manager.

    Parameters
    ----------
    target
        Directory of the new snapshot: a local path or any URI that fsspec can write to.
    """

    def __init__(self, target: str) -> None:
        self.target = files.canonical(target)  # tasks may have another working directory
        self.staging = Staging(self.target, uuid.uuid4().hex)
        self._made_dir = False
        self._open = False

    @staticmethod
    def check(target: str) -> None:
        """Refuse a target that exists, except for an empty directory or files that a killed write left.

        Raises
        ------
        TargetExistsError
            Names what exists.
        """
        _leftovers(target.rstrip("/") or "/")

    def __enter__(self) -> Self:
        old = _leftovers(self.target)
        self._made_dir = targets.make_dir(self.target)
        self._open = True
        try:
            targets.put_new(
                self.staging.marker, b"written by statetool; _metadata appears when the write is complete\n"
            )
            # Markers last, so that a kill in here leaves what the next write recognises.
            for name in sorted(old, key=lambda n: n.startswith(_MARKER)):
                targets.remove(files.join(self.target, name))
        except BaseException:
            self.abort()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._open:
            self.abort()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            # A temporary file had no space (for what does not fit into memory): errors of the target are ours already.
            raise targets.write_failed(error, error.filename or tempfile.gettempdir()) from error

    def commit(self, metadata: bytes, staged: Iterable[StagedFile]) -> str:
        """Make the snapshot visible.

        Parameters
        ----------
        metadata
            Bytes of ``_metadata``.
        staged
            The files that it names; every other file of this write is removed.

        Returns
        -------
        str
            URI of the metadata file.

        Raises
        ------
        FormatError
            A staged file is not there or has another size than its task said.
        TargetExistsError, SnapshotNotFoundError
            Another write came first, or took the target over.
        """
        wanted = {f.name: f.size_bytes for f in staged}
        uri = files.join(self.target, METADATA_NAME)
        self._verify(wanted)
        _check_going_on(self.staging)
        targets.put_new(uri, metadata)
        try:
            self._verify(wanted)
        except FormatError:
            targets.remove(uri)  # another write has taken the target over in this very moment
            raise
        self._remove_all_but(wanted)
        targets.remove(self.staging.marker)
        # A task that closed its file while the marker was there is seen now; a later one removes its file itself.
        self._remove_all_but(wanted)
        self._open = False
        return uri

    def abort(self) -> None:
        """Remove everything that was staged; the target itself too if this write made it."""
        self._open = False
        with contextlib.suppress(OSError):  # what cannot be removed must not hide why
            targets.remove(self.staging.marker)
            self._remove_all_but({})
        if self._made_dir:
            targets.remove_dir(self.target)

    def _verify(self, wanted: dict[str, int]) -> None:
        sizes = targets.list_sizes(self.target)
        for name, size in wanted.items():
            if sizes.get(name) != size:
                raise FormatError(
                    f"staged file {name} should have {size} bytes, found {sizes.get(name, 'no file')}",
                    hint="the write was disturbed and nothing was published; start it again",
                ).at(file=files.join(self.target, name))

    def _remove_all_but(self, wanted: dict[str, int]) -> None:
        for name in targets.list_sizes(self.target):
            if name.startswith(f"{self.staging.write_id}-") and name not in wanted:
                targets.remove(files.join(self.target, name))


def _leftovers(target: str) -> list[str]:
    """Return the names of files that killed writes left in a target; refuse one that holds anything else."""
    if "\0" in target:
        raise OptionError(f"{target!r} is no name of a directory")
    if files.exists(target) and not files.is_dir(target):
        raise TargetExistsError(f"{target} is a file", hint=_ELSEWHERE)
    names = targets.list_sizes(target)
    if METADATA_NAME in names:
        raise TargetExistsError(f"{target} holds a snapshot already", hint=_ELSEWHERE)
    unfinished = {n.removeprefix(_MARKER) for n in names if n.startswith(_MARKER)}
    for name in names:
        # Names with two dots in front are temporary ones of the marker, `._metadata-` those of the metadata.
        own = name.partition("-")[0] in unfinished or name.startswith((_MARKER, f".{_MARKER}", f".{METADATA_NAME}-"))
        if not own or names[name] is None:
            raise TargetExistsError(f"{target} is not empty: {name}", hint=_ELSEWHERE)
    return list(names)
