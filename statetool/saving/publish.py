"""Two-phase publishing of a snapshot directory.

Files get their final, unique names inside the target immediately, because object stores cannot rename.
A directory is a snapshot only once it contains ``_metadata``, which is written last, in one step::

    with Publication(target) as publication:         # driver: refuses an existing target
        staging = publication.staging                # picklable, for tasks
        with staging.create("keyed") as f:           # in any task, any number of attempts
            f.write(...)
        ...                                          # each task returns its ``f.staged``
        publication.commit(metadata, staged_files)   # driver: verifies sizes, writes _metadata, removes lost attempts
    # leaving the block without commit removes all staged files

The protocol
------------

Every write has a random id ``W`` and uses these names in the target:

======================  ====================================================================================
``.statetool-W``        marker: the write is running; it names the process (:mod:`statetool.io.owner`)
``.statetool-W.over``   tombstone: another write took over; files of ``W`` may remain, and ``W`` must stop
``W-label-uuid``        a staged file, of one attempt of one task
``_metadata``           the commit; created only if the name is free
======================  ====================================================================================

At its start, a write refuses a target that contains ``_metadata`` or a foreign file, creates its marker, and lists the target again.
If two writes compete, at least the one that lists later sees the other marker. It acts on it:

- if the other process is known to have ended (same machine, PID and start time), the write takes over and removes its files immediately.
- if the other process is known to run, or its marker is younger than 24 hours, the write refuses the target unless told to take over.
- otherwise it takes over. An age is the difference between two file system times: those of the write's marker and of the other one.

To take over, a write creates the tombstone and removes the other marker. A task checks its marker before it opens a file and after it
closes it, and removes the file if the marker is gone. The commit checks its marker too before it creates ``_metadata``.

The order of removals makes this safe, not the marker. *A file of another write is removed only when that write can no longer publish*:
its process ended and ``_metadata`` did not exist after that, or ``_metadata`` of this write exists. ``_metadata`` is created in one step
that fails if the name is taken. Therefore only one write can publish, and no write removes a file that the published ``_metadata`` names.

*A file of this write is removed only when ``_metadata`` does not name it.* From just before the first call that can create ``_metadata``,
the write checks the file system after a failure or an interrupt:

- if ``_metadata`` has the bytes of this write, the write succeeded.
- if not, and the file system certainly refused the creation, the write failed, and its files are removed.
- if the outcome is uncertain, everything stays and the error says so.

After a successful write, a failure to clean up is only a warning: a marker, a tombstone or the file of a lost attempt next to
``_metadata`` is harmless, because no reader opens it and copies omit it.

File systems without conditional creation (see :func:`statetool.io.targets.put_new`) cannot separate two writes that publish at the same
moment, after a takeover: the later ``_metadata`` replaces the earlier one. It is complete, and the earlier write fails if it checks again.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from statetool.errors import FormatError, SnapshotNotFoundError, TargetExistsError, WriteFailedError
from statetool.formats.stream import Stream
from statetool.io import files, owner, targets
from statetool.io.listing import stat
from statetool.saving.marks import MARKER, METADATA_NAME, is_of, last_name, marker_of, other_write, survey, tombstone_of

if TYPE_CHECKING:
    from typing_extensions import Self

#: Streams with fewer bytes are stored in the metadata (Flink's ``execution.checkpointing.data-inline-threshold``).
INLINE_BYTES: Final = 20 * 1024
#: A marker of this age belongs to a killed write, if nothing else is known about it.
_ABANDONED_HOURS: Final = 24
_COPY_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete file in the target: its name (relative to the target) and size."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Staging:
    """Staging of files in a target by tasks; picklable."""

    target: str
    write_id: str

    def create(self, label: str = "state") -> StagedOutput:
        """Open a new file; each task attempt gets a separate one."""
        return StagedOutput(self, self.new_name(label))

    def new_name(self, label: str) -> str:
        """Return a new name of a file."""
        return f"{self.write_id}-{label}-{uuid.uuid4()}"

    def copy_as(self, source: Stream, name: str) -> StagedFile:
        """Copy a stream into a file with a name of :meth:`new_name`. Errors as for :meth:`copy`."""
        _check_going_on(self)
        copy = self._copy(source, name)
        try:
            _check_going_on(self)
        except BaseException:
            with contextlib.suppress(Exception):  # must not hide the cause
                targets.remove(files.join(self.target, name))
            raise
        return copy

    def copy(self, sources: Sequence[Stream], progress: Callable[[int], object] = lambda _: None) -> list[StagedFile]:
        """Copy streams into new files, one after the other. An object store copies whole objects itself.

        Parameters
        ----------
        progress
            Called with the number of bytes of each copied stream.

        Raises
        ------
        FormatError
            A source is shorter than it should be.
        SnapshotNotFoundError
            A source does not exist, or the write has ended.
        """
        _check_going_on(self)
        copies: list[StagedFile] = []
        try:
            for source in sources:
                copies.append(self._copy(source, self.new_name("copy")))
                progress(source.size_bytes)
            _check_going_on(self)
        except BaseException:
            with contextlib.suppress(Exception):  # must not hide the cause
                for copy in copies:
                    targets.remove(files.join(self.target, copy.name))
            raise
        return copies

    def _copy(self, source: Stream, name: str) -> StagedFile:
        uri = files.join(self.target, name)
        is_whole = source.inline is None and source.start == 0 and source.file_bytes == source.size_bytes
        if is_whole and targets.copy_in_store(source.file, uri):
            return StagedFile(name, source.size_bytes)
        with source.open() as f:
            file = targets.NewFile(uri)
            try:
                for at in range(0, source.size_bytes, _COPY_BYTES):
                    file.write(f.read_at(at, min(_COPY_BYTES, source.size_bytes - at)))
                file.close()
            except BaseException:
                file.discard()
                raise
        return StagedFile(name, file.size_bytes)

    @property
    def marker(self) -> str:
        """Return the URI of the file that exists while this write is running."""
        return marker_of(self.target, self.write_id)


class StagedOutput:
    """A file being staged; a failed block removes it, a successful one completes it."""

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
        """Return the number of bytes written so far."""
        return self._file.size_bytes

    @property
    def staged(self) -> StagedFile:
        """Return the complete file, after the block."""
        assert self._staged is not None
        return self._staged


def _check_going_on(staging: Staging) -> None:
    if targets.size_of(staging.marker) is None:
        raise SnapshotNotFoundError(
            f"the write to {staging.target} has ended, or another write took it over", hint="start the write again"
        )


def _is_young(marker: str, now_ms: int | None) -> bool:
    """Return True if a marker is younger than the age limit, or its age is unknown."""
    found = stat(marker)
    if found is None or found.modified_ms is None or now_ms is None:
        return True
    return now_ms - found.modified_ms < _ABANDONED_HOURS * 3_600_000


#: ``uncertain``: a call that can create ``_metadata`` has started. ``left``: no file of this write may be removed.
_Stage = Literal["new", "open", "uncertain", "left", "published", "aborted"]
#: Writes with an unknown outcome; they count as running as long as this process does.
_LEFT: Final[list[Publication]] = []


class Publication:
    """One write of one target; used on the driver as a context manager.

    Parameters
    ----------
    target
        Directory of the new snapshot: a local path or any URI that fsspec can write to.
    take_over
        Take over the target from another write that may still be running.
    """

    def __init__(self, target: str, *, take_over: bool = False) -> None:
        self.target = files.canonical(target)  # tasks may have another working directory
        self.staging = Staging(self.target, uuid.uuid4().hex)
        self._take_over = take_over
        self._made_dir = False
        self._stage: _Stage = "new"
        self._metadata = b""
        #: Writes that this one took over, and the subset whose process ended.
        self._taken: list[str] = []
        self._ended: list[str] = []

    @staticmethod
    def check(target: str, *, take_over: bool = False) -> None:
        """Refuse an existing target, except an empty directory or the files of a killed write, without writing to it.

        The age of a marker is compared with the clock of this machine, because there is no marker of this write yet.

        Raises
        ------
        TargetExistsError
            Names the existing file, or the process of another running write.
        """
        target = files.canonical(target)
        for write_id in survey(target).writes:
            marker = targets.read_if_there(marker_of(target, write_id))
            if marker is None or take_over:
                continue
            running = owner.is_running(marker, write_id)
            if running or (running is None and _is_young(marker_of(target, write_id), round(time.time() * 1000))):
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
                continue  # the write ended meanwhile
            running = owner.is_running(marker, write_id)
            if not self._take_over and (running or (running is None and self._was_made_lately(write_id))):
                raise other_write(self.target, marker)
            over.append((write_id, marker))
        for write_id, marker in over:
            with contextlib.suppress(TargetExistsError):  # another write takes it over, too
                targets.put_new(tombstone_of(self.target, write_id), marker)
            targets.remove(marker_of(self.target, write_id))
        for write_id in found.taken_over:
            marker = targets.read_if_there(tombstone_of(self.target, write_id))
            if marker is not None:
                over.append((write_id, marker))
        self._taken = list(dict.fromkeys(w for w, _ in over))
        ended = [w for w, marker in over if owner.is_running(marker, w) is False]
        # Checked after the processes ended: a snapshot not published by then is never published.
        survey(self.target)
        self._ended = list(dict.fromkeys(ended))
        for write_id in self._ended:
            self._remove_staged(write_id, while_unpublished=True)

    def _was_made_lately(self, write_id: str) -> bool:
        """Return True if the marker of another write is younger than the age limit, or its age is unknown."""
        own = stat(self.staging.marker)
        return _is_young(marker_of(self.target, write_id), None if own is None else own.modified_ms)

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
            # A temporary file (for data that does not fit into memory) had no space. Errors of the target are already statetool's.
            raise targets.write_failed(error, error.filename or tempfile.gettempdir()) from error

    def commit(self, metadata: bytes, staged: Iterable[StagedFile]) -> str:
        """Make the snapshot visible.

        Parameters
        ----------
        metadata
            Bytes of ``_metadata``.
        staged
            The files that ``metadata`` names; every other file of this write is removed.

        Returns
        -------
        str
            URI of the metadata file.

        Raises
        ------
        FormatError
            A staged file is missing, or its size differs from the one its task reported.
        TargetExistsError, SnapshotNotFoundError
            Another write published first, or took over the target.
        WriteFailedError
            The file system refuses ``_metadata``, or it is unknown whether ``_metadata`` exists.
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
                return  # the response was lost
            if outcome == "open":
                raise
            raise WriteFailedError(
                f"it is unknown whether {METADATA_NAME} was written ({error})", hint=self._told_if_unknown()
            ).at(file=self._uri) from error

    def _settle(self, error: BaseException | None) -> _Stage:
        """Determine after a failure or an interrupt whether ``_metadata`` of this write exists."""
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
            self._stage = "left"  # the request may still be in progress
        return self._stage

    def _withdraw(self, error: FormatError) -> None:
        """Remove ``_metadata`` again, because files of this write were removed externally."""
        self._stage = "left"
        error.hint = f"{self._uri} names files that are gone, and cannot be removed: remove it by hand"
        with contextlib.suppress(Exception):
            if targets.read_if_there(self._uri) == self._metadata:
                targets.remove(self._uri)
            if targets.read_if_there(self._uri) != self._metadata:
                self._stage = "open"
                error.hint = "another program removed it, and nothing was published; start the write again"

    def _clean_up(self, wanted: dict[str, int]) -> None:
        """Remove unneeded files: lost attempts, files of writes that were taken over, markers."""
        over = {last_name(tombstone_of(self.target, w)) for w in (*self._taken, self.staging.write_id)}
        names = targets.list_sizes(self.target)
        for name in names:
            # A temporary file of an unfinished mark belongs to a killed write, or to one that is failing.
            of_any = name.startswith(f".{MARKER}") or any(is_of(name, w) for w in (*self._taken, self.staging.write_id))
            if of_any and name not in wanted:
                targets.remove(files.join(self.target, name))
        for name in over & names.keys():
            targets.remove(files.join(self.target, name))
        targets.remove(self.staging.marker)
        # This finds the files of tasks that closed them while the marker existed. A later task removes its file itself.
        self._remove_staged(self.staging.write_id, keep=wanted)

    def abort(self) -> None:
        """Remove all staged files, and the target directory if this write created it."""
        self._stage = "aborted"
        owner.RUNNING.pop(self.staging.write_id, None)
        # A failed removal must not hide the cause. The marker is removed last: the next write recognizes these files by it.
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
                    hint="start the write again; nothing was published",
                ).at(file=files.join(self.target, name))

    def _remove_staged(self, write_id: str, *, keep: Iterable[str] = (), while_unpublished: bool = False) -> None:
        """Remove the files of a write except those to keep; ``while_unpublished`` stops when ``_metadata`` exists."""
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
        ):  # a filter that turns warnings into errors: the write succeeded nevertheless
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
    """Return True if a file system has confirmed that it does not create a file, so that no request is pending."""
    return isinstance(error, TargetExistsError) or (
        error is not None and isinstance(error.__cause__, PermissionError | FileNotFoundError)
    )
