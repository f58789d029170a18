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

The protocol
------------

Every write has a random id ``W``. The names that it makes in the target are:

======================  ====================================================================================
``.statetool-W``        marker: the write goes on; it names the process (:mod:`statetool.saving.owner`)
``.statetool-W.over``   tombstone: another write took over; files of ``W`` may remain, and ``W`` must stop
``W-label-uuid``        a staged file, of one attempt of one task
``_metadata``           the commit; created only if the name is free
======================  ====================================================================================

A write begins: it refuses a target that holds ``_metadata`` or a file of anybody else, makes its marker, and lists the target again. Of
two writes at least the later one to list sees the marker of the other, and judges it:

- its process is known to have ended (same machine, PID and start time): the write takes over, and removes its files at once;
- its process is known to run, or its marker is younger than 24 hours: the write refuses the target, unless it was told to take over;
- otherwise it takes over. Ages are differences of two times of the file system, that of the other marker and that of its own.

To take over means to make the tombstone and to remove the marker. A task looks for its marker before it begins a file and after it closed it,
and removes its file if the marker is gone, and so does the commit before it creates ``_metadata``.

What makes this safe is not the marker but the order of removals. *A file of another write is removed only when that write can no longer publish*:
its process ended and ``_metadata`` did not exist after that, or ``_metadata`` of this write exists. As ``_metadata`` is created in one step
that fails if the name is taken, only one write can publish, and nobody removes a file that it names.

*A file of this write is removed only when ``_metadata`` does not name it.* From the step before the first call that can create ``_metadata`` on,
a failure or an interrupt asks the file system: if ``_metadata`` has the bytes of this write, the write succeeded; if not, and the file system
refused the creation for certain, the write failed, and its files are removed; if there is no certain answer, everything stays and the error says so.
Once the write succeeded, a failure to clean up is a warning: a marker, a tombstone or the file of a lost attempt beside
``_metadata`` is harmless, as no reader looks at it, and copies leave it out.

File systems without conditional creation (see :func:`statetool.io.targets.put_new`) show two writes that publish in the same moment, one after
a takeover, as one: the later ``_metadata`` replaces the earlier. It is complete, and the earlier write fails if it still looks.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
import uuid
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from statetool.errors import FormatError, SnapshotNotFoundError, TargetExistsError, WriteFailedError
from statetool.formats.stream import Stream
from statetool.io import files, targets
from statetool.io.listing import stat
from statetool.saving import owner
from statetool.saving.marks import (
    MARKER,
    METADATA_NAME,
    is_of,
    last_name,
    marker_of,
    other_write,
    survey,
    tombstone_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

#: Streams with fewer bytes go into the metadata (Flink's ``execution.checkpointing.data-inline-threshold``).
INLINE_BYTES: Final = 20 * 1024
#: A marker of this age is that of a write that was killed, if nothing else is known of it.
_ABANDONED_HOURS: Final = 24
_COPY_BYTES: Final = 8 << 20


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
        return marker_of(self.target, self.write_id)


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


#: ``uncertain``: a call that can create ``_metadata`` has begun; ``left``: nothing of this write may be removed any more.
_Stage = Literal["new", "open", "uncertain", "left", "published", "aborted"]
#: Writes of which it is unknown whether they published: they count as running as long as this process does.
_LEFT: Final[list[Publication]] = []


class Publication:
    """One write of one target; used on the driver as a context manager.

    Parameters
    ----------
    target
        Directory of the new snapshot: a local path or any URI that fsspec can write to.
    take_over
        Take the target over from another write that may still run.
    """

    def __init__(self, target: str, *, take_over: bool = False) -> None:
        self.target = files.canonical(target)  # tasks may have another working directory
        self.staging = Staging(self.target, uuid.uuid4().hex)
        self._take_over = take_over
        self._made_dir = False
        self._stage: _Stage = "new"
        self._metadata = b""
        #: Writes that this one took over, and those of them whose process ended.
        self._taken: list[str] = []
        self._ended: list[str] = []

    @staticmethod
    def check(target: str, *, take_over: bool = False) -> None:
        """Refuse a target that exists, except for an empty directory or files that a killed write left.

        Raises
        ------
        TargetExistsError
            Names what exists, or the process of another write that goes on.
        """
        target = files.canonical(target)
        for write_id in survey(target).writes:
            marker = targets.read_if_there(marker_of(target, write_id))
            if marker is not None and not take_over and owner.is_running(marker, write_id):
                raise other_write(target, marker)

    def __enter__(self) -> Self:
        survey(self.target)
        owner.RUNNING[self.staging.write_id] = self
        self._stage = "open"
        try:
            self._made_dir = targets.make_dir(self.target)
            targets.put_new(self.staging.marker, owner.describe_owner())
            self._take_turn()
        except BaseException:
            self.abort()
            raise
        return self

    def _take_turn(self) -> None:
        """Take over from other writes, or refuse the target; only then may files be staged."""
        found = survey(self.target)
        others = [w for w in found.writes if w != self.staging.write_id]
        over: list[tuple[str, bytes]] = []
        for write_id in others:
            marker = targets.read_if_there(marker_of(self.target, write_id))
            if marker is None:
                continue  # it ended meanwhile
            running = owner.is_running(marker, write_id)
            if not self._take_over and (running or (running is None and self._is_young(write_id))):
                raise other_write(self.target, marker)
            over.append((write_id, marker))
        for write_id, marker in over:
            with contextlib.suppress(TargetExistsError):  # somebody else takes it over, too
                targets.put_new(tombstone_of(self.target, write_id), marker)
            targets.remove(marker_of(self.target, write_id))
        for write_id in found.taken_over:
            marker = targets.read_if_there(tombstone_of(self.target, write_id))
            if marker is not None:
                over.append((write_id, marker))
        self._taken = list(dict.fromkeys(w for w, _ in over))
        ended = [w for w, marker in over if owner.is_running(marker, w) is False]
        # Asked after the processes ended, so that what is not published by now never will be.
        survey(self.target)
        self._ended = list(dict.fromkeys(ended))
        for write_id in self._ended:
            self._remove_staged(write_id, while_unpublished=True)

    def _is_young(self, write_id: str) -> bool:
        """Return whether the marker of another write is younger than a write may be old; unknown ages are."""
        other, own = stat(marker_of(self.target, write_id)), stat(self.staging.marker)
        if other is None or own is None or other.modified_ms is None or own.modified_ms is None:
            return True
        return own.modified_ms - other.modified_ms < _ABANDONED_HOURS * 3_600_000

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if self._stage == "uncertain":
                self._settle(error)
            if self._stage == "open":
                self.abort()
        finally:
            if self._stage in ("uncertain", "left"):
                _LEFT.append(self)
            else:
                owner.RUNNING.pop(self.staging.write_id, None)
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(self._told_to_interrupted()) from error
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
            A staged file does not exist or has another size than its task said.
        TargetExistsError, SnapshotNotFoundError
            Another write came first, or took the target over.
        WriteFailedError
            The file system refuses ``_metadata``, or it is unknown whether it has it.
        """
        wanted = {f.name: f.size_bytes for f in staged}
        self._verify(wanted)
        _check_going_on(self.staging)
        self._publish(metadata)
        try:
            self._verify(wanted)
        except FormatError as error:
            self._withdraw(error)
            raise
        except Exception as error:  # noqa: BLE001 - of any package; the sizes were right before
            self._warn(error)
        try:
            self._clean_up(wanted)
        except Exception as error:  # noqa: BLE001 - of any package; the write succeeded
            self._warn(error)
        return self._uri

    @property
    def _uri(self) -> str:
        return files.join(self.target, METADATA_NAME)

    def _publish(self, metadata: bytes) -> None:
        """Create ``_metadata``; on return it exists."""
        self._metadata = metadata
        self._stage = "uncertain"
        try:
            draft = files.join(self.target, f"{self.staging.write_id}-metadata-{uuid.uuid4()}")
            targets.put_new(self._uri, metadata, through=draft)
            self._stage = "published"
        except Exception as error:
            outcome = self._settle(error)
            if outcome == "published":
                return  # the answer was lost
            if outcome == "open":
                raise
            raise WriteFailedError(
                f"it is unknown whether {METADATA_NAME} was written ({error})", hint=self._told_if_unknown()
            ).at(file=self._uri) from error

    def _settle(self, error: BaseException | None) -> _Stage:
        """Find out after a failure or an interrupt whether ``_metadata`` of this write exists."""
        try:
            found = targets.read_if_there(self._uri)
        except Exception:  # noqa: BLE001 - of any package: no answer
            self._stage = "left"
            return self._stage
        if found == self._metadata:
            self._stage = "published"
        elif found is not None or files.is_local(self.target) or _is_refusal(error):
            self._stage = "open"
        else:
            self._stage = "left"  # the request may still be on its way
        return self._stage

    def _withdraw(self, error: FormatError) -> None:
        """Take ``_metadata`` back: somebody removed files of this write by other means."""
        self._stage = "left"
        error.hint = f"{self._uri} names files that are gone, and cannot be removed: remove it by hand"
        with contextlib.suppress(Exception):
            if targets.read_if_there(self._uri) == self._metadata:
                targets.remove(self._uri)
            if targets.read_if_there(self._uri) != self._metadata:
                self._stage = "open"
                error.hint = "another program removed it, and nothing was published; start the write again"

    def _clean_up(self, wanted: dict[str, int]) -> None:
        """Remove what no snapshot needs: lost attempts, files of writes that were taken over, markers."""
        over = {last_name(tombstone_of(self.target, w)) for w in (*self._taken, self.staging.write_id)}
        names = targets.list_sizes(self.target)
        for name in names:
            # The temporary file of a mark that nobody made belongs to a write that was killed, or that fails now.
            of_any = name.startswith(f".{MARKER}") or any(is_of(name, w) for w in (*self._taken, self.staging.write_id))
            if of_any and name not in wanted:
                targets.remove(files.join(self.target, name))
        for name in over & names.keys():
            targets.remove(files.join(self.target, name))
        targets.remove(self.staging.marker)
        # A task that closed its file while the marker existed is seen now; a later one removes its file itself.
        self._remove_staged(self.staging.write_id, keep=wanted)

    def abort(self) -> None:
        """Remove everything that was staged; the target itself too if this write made it."""
        self._stage = "aborted"
        owner.RUNNING.pop(self.staging.write_id, None)
        # What cannot be removed must not hide why. The marker goes when the files are gone: it is what the next write knows them by.
        with contextlib.suppress(Exception):
            self._remove_staged(self.staging.write_id)
            targets.remove(self.staging.marker)
            self._remove_staged(self.staging.write_id)
            for write_id in self._ended:
                self._remove_staged(write_id, while_unpublished=True)
                targets.remove(tombstone_of(self.target, write_id))
        if self._made_dir:
            with contextlib.suppress(Exception):
                targets.remove_dir(self.target)

    def _verify(self, wanted: dict[str, int]) -> None:
        sizes = targets.list_sizes(self.target)
        for name, size in wanted.items():
            if sizes.get(name) != size:
                raise FormatError(
                    f"staged file {name} should have {size} bytes, found {sizes.get(name, 'no file')}",
                    hint="the write was disturbed and nothing was published; start it again",
                ).at(file=files.join(self.target, name))

    def _remove_staged(self, write_id: str, *, keep: Iterable[str] = (), while_unpublished: bool = False) -> None:
        """Remove the files of a write, but those to keep; ``while_unpublished`` stops when ``_metadata`` exists."""
        for name in targets.list_sizes(self.target):
            if is_of(name, write_id) and name not in keep:
                if while_unpublished and targets.size_of(self._uri) is not None:
                    return
                targets.remove(files.join(self.target, name))

    def _warn(self, error: Exception) -> None:
        words = (
            f"{self.target} is complete, but files that it does not need could not be looked for or removed: {error}"
        )
        with contextlib.suppress(
            UserWarning
        ):  # a filter that makes errors of warnings: the write succeeded all the same
            warnings.warn(words, stacklevel=3)

    def _told_if_unknown(self) -> str:
        return (
            f"nothing was removed: if {self._uri} exists, the savepoint is complete; otherwise write it again, which removes "
            "what is left, with take_over=True (--take-over) if need be"
        )

    def _told_to_interrupted(self) -> str:
        if self._stage == "published":
            return f"interrupted; the savepoint in {self.target} is complete"
        if self._stage in ("uncertain", "left"):
            return f"interrupted; it is unknown whether {self.target} is complete; {self._told_if_unknown()}"
        return f"interrupted; no savepoint was written to {self.target}"


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether a file system has answered that it does not create a file, so that no request is on its way."""
    return isinstance(error, TargetExistsError) or (
        error is not None and isinstance(error.__cause__, PermissionError | FileNotFoundError)
    )
