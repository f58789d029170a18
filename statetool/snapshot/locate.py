"""Find a snapshot's metadata file, and the files that its handles reference, even after the snapshot was moved."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from statetool.errors import (
    FormatError,
    MissingDependencyError,
    SnapshotNotFoundError,
    StatetoolError,
    StorageError,
    UnsupportedError,
)
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    EmptySegmentHandle,
    FileHandle,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
)
from statetool.formats.metadata.reader import columns_pay_off, parse_references
from statetool.formats.stream import Stream, tail_range
from statetool.io import files, requests
from statetool.io.deletion import check_deletion, check_replacement
from statetool.io.origins import may_open, origin_of
from statetool.io.requests import Opening, Range, new_opening

METADATA_NAME = "_metadata"
_TAIL_PARTS = 4
#: Number of files in an object store up to which each is looked for by a request; for more, directories are listed.
_FEW: Final = 64


def find_metadata(path: str) -> str:
    """Return the metadata file for a path: the path itself, or ``_metadata`` in the directory.

    Raises
    ------
    SnapshotNotFoundError
        Neither exists. The error names the snapshots directly below a directory, if any.
    CheckpointDeletedError
        Neither exists, and the path is that of a checkpoint with a newer one next to it.
    """
    metadata_file = files.join(path, METADATA_NAME)
    if files.exists(metadata_file):  # checked first: whether a remote directory exists takes more than one request
        return metadata_file
    is_directory = files.is_dir(path)
    if not is_directory and files.exists(path):
        return path
    files.check_links(path)
    check_replacement(metadata_file if is_directory or not path.endswith(f"/{METADATA_NAME}") else path)
    if not is_directory:
        files.check_bucket(path)
        raise SnapshotNotFoundError(f"{path} does not exist")
    below = [uri for uri, is_dir in files.list_dir(path) if is_dir and files.exists(files.join(uri, METADATA_NAME))]
    hint = f"did you mean one of: {', '.join(below[:5])}" if below else "point to a savepoint-... or chk-N directory"
    raise SnapshotNotFoundError(f"{path} has no {METADATA_NAME} file", hint=hint)


def has_complete_metadata(path: str) -> bool:
    """Return True if the metadata of a snapshot is complete. Not all file systems write it atomically.

    Raises
    ------
    UnsupportedError
        Its version is not known, so waiting will not make it readable.
    """
    file = files.join(path, METADATA_NAME)
    try:
        data = files.read_whole(file)
        parse_references(data, file=file, in_columns=columns_pay_off(len(data)))
    except (FormatError, SnapshotNotFoundError, OSError):
        return False
    return True


@dataclass(slots=True)
class Existence:
    """Checks that files exist.

    The first file of a remote directory is requested directly, because it will be read. For further files the directory is listed, unless
    they were expected.
    """

    opening: Opening = field(default_factory=new_opening)
    #: Expected files that exist.
    _found: set[str] = field(default_factory=set)
    _asked: set[str] = field(default_factory=set)
    _listed: dict[str, frozenset[str]] = field(default_factory=dict)

    def __call__(self, uri: str) -> bool:
        """Return True if a file exists."""
        if files.is_local(uri):
            return files.exists(uri)
        if uri in self._found:
            return True
        folder = files.parent(uri)
        if folder not in self._asked and folder not in self._listed:
            self._asked.add(folder)
            try:
                requests.read_start(uri, self.opening)
            except SnapshotNotFoundError:
                return False
            return True
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(file for file, _ in files.list_dir(folder))
            except FileNotFoundError:
                self._listed[folder] = frozenset()
        return uri in self._listed[folder]

    def expect(self, sizes: Mapping[str, int], *, opens: bool) -> None:
        """Look for remote files, given with their sizes, by a request for each, all at the same time.

        Small files are read. If table files will be opened, the ends of large files are read, too. Files that were listed are requested
        without waiting.
        """
        if opens:
            listed = {u: n for u, n in sizes.items() if u in self._listed.get(files.parent(u), ())}
            requests.begin(self._first_read(uri, size) for uri, size in listed.items())
        unknown = {u: n for u, n in sizes.items() if not files.is_local(u) and files.parent(u) not in self._listed}
        wanted = {u: self._first_read(u, n) for u, n in unknown.items() if opens or n <= requests.WHOLE_BYTES}
        requests.begin(wanted.values())
        self._found |= files.existing(unknown.keys() - wanted.keys())
        for uri, place in wanted.items():
            with contextlib.suppress(StatetoolError):
                requests.read_kept(place)
                self._found.add(uri)

    def _first_read(self, uri: str, size_bytes: int) -> Range:
        """Return what is read first of a file of a database: all of a small one, the end of a large one."""
        if size_bytes <= requests.WHOLE_BYTES:
            return requests.whole_file(uri, self.opening)
        return Range(uri, *tail_range(size_bytes), self.opening)

    def list_folders(self, uris: Iterable[str]) -> None:
        """List the remote directories of several files, all at the same time."""
        expected = Counter(files.parent(uri) for uri in uris if not files.is_local(uri))
        several = (folder for folder, count in expected.items() if count > 1 and folder not in self._listed)
        self._listed |= files.list_dirs(several)


@dataclass(slots=True)
class Locator:
    """Resolve stream handles of one snapshot.

    ``rebase`` maps prefixes of absolute paths to the current location of the files. ``exists`` returns whether a file exists. The
    metadata file of a snapshot that is not ``published`` does not exist yet.
    """

    metadata_file: str
    rebase: tuple[tuple[str, str], ...] = ()
    exists: Callable[[str], bool] = field(default_factory=Existence)
    published: bool = True
    opening: Opening = field(default_factory=new_opening)
    _known: dict[str, str] = field(default_factory=dict)
    #: Directories in the metadata's paths, and the current location of their files.
    _moved: dict[str, str] = field(default_factory=dict)
    #: Directories in the metadata's paths that have files.
    _in_place: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if isinstance(self.exists, Existence):
            self.opening = self.exists.opening

    def resolve(self, handle: StreamHandle) -> Stream | None:
        """Return the location of the bytes, ``None`` for a null or empty handle.

        Raises
        ------
        SnapshotNotFoundError
            An absolute path does not exist, and the file was not found near the metadata.
        CheckpointDeletedError
            The snapshot was deleted.
        """
        match handle:
            case None | EmptySegmentHandle():
                return None
            case ByteStreamHandle():
                return Stream(
                    file=self.metadata_file,
                    start=handle.position,
                    size_bytes=len(handle.data),
                    inline=handle.data,
                    opening=self.opening,
                )
            case RelativeFileHandle() | FileHandle():
                return self._stream(self.file_of(handle), 0, handle.size_bytes)
            case SegmentHandle():
                return self._stream(self.file_of(handle), handle.start, handle.size_bytes)
        raise UnsupportedError(f"a stream handle of kind {type(handle).__name__} inside another one")

    def expect(self, handles: Iterable[StreamHandle], *, opens: bool) -> None:
        """Look for files of databases in object stores at the same time, if no file was moved; :meth:`resolve` looks for one after another.

        Errors are those of :meth:`resolve`.

        Parameters
        ----------
        opens
            Whether the files will be opened.
        """
        if self._moved or not isinstance(self.exists, Existence):
            return
        searched = self._where_named(h for h in handles if isinstance(h, FileHandle | SegmentHandle))
        few = list(islice(searched, _FEW + 1))
        if self._moved:
            return
        if len(few) <= _FEW:
            with contextlib.suppress(StatetoolError):
                sizes = {self._likely(h): h.size_bytes for h in few if isinstance(h, FileHandle)}
                self.exists.expect(sizes, opens=opens)
        elif not all(files.is_local(self._likely(h)) for h in few):
            self.exists.list_folders(map(self._likely, chain(few, searched)))

    def _where_named(self, handles: Iterable[FileHandle | SegmentHandle]) -> Iterator[FileHandle | SegmentHandle]:
        """Yield the handles without those in stores that need not be asked: a file of each directory is looked for near the metadata."""
        looked: set[str] = set()
        for handle in handles:
            folder = files.parent(handle.path)
            if self._is_foreign(handle.path) and folder not in looked:
                looked.add(folder)
                with contextlib.suppress(StatetoolError):
                    self.file_of(handle)
            if not self._is_foreign(handle.path):
                yield handle

    def list_folders(self, handles: Iterable[StreamHandle]) -> None:
        """List the directories of the files of handles in object stores at the same time, if no file was moved: for their sizes."""
        if isinstance(self.exists, Existence) and not self._moved and not files.is_local(self.metadata_file):
            of_files = (h for h in handles if isinstance(h, FileHandle | RelativeFileHandle | SegmentHandle))
            self.exists.list_folders(map(self._likely, of_files))

    def _likely(self, handle: FileHandle | RelativeFileHandle | SegmentHandle) -> str:
        """Return the first place where :meth:`file_of` looks for a file, if no file was moved."""
        if isinstance(handle, RelativeFileHandle):
            return files.join(files.parent(self.metadata_file), handle.path)
        likely = next(rebase_path(handle.path, self.rebase), handle.path)
        if not self._may_open(likely):
            raise refuse_path(handle.path, self.metadata_file)
        return likely

    def _may_open(self, path: str) -> bool:
        """Return True if a path of the metadata may be opened. Users name the snapshot and the new prefixes."""
        return may_open(path, (self.metadata_file, *(new for _, new in self.rebase)))

    def file_of(self, handle: FileHandle | RelativeFileHandle | SegmentHandle) -> str:
        """Return the location of the file of a stream; errors as for :meth:`resolve`."""
        if "\0" in handle.path:
            raise FormatError(f"a path contains NUL, which no file name does: {handle.path!r}").at(
                file=self.metadata_file
            )
        if not isinstance(handle, RelativeFileHandle):
            return self._find(handle.path)
        if ".." in handle.path.split("/"):
            # Flink uses relative paths only for files in the snapshot's directory.
            raise FormatError(f"a relative path leads out of the snapshot: {handle.path!r}").at(file=self.metadata_file)
        return self._relative(handle.path)

    def _relative(self, path: str) -> str:
        """Return the location of a file that the metadata names relative to its directory.

        It is there, except for files of a claimed savepoint (:mod:`statetool.snapshot.claimed`), whose directory the user names.
        """
        home = files.parent(self.metadata_file)
        place = files.join(home, path)
        for old, new in self.rebase:
            if files.canonical(old) == files.canonical(home) and not self.exists(place):
                moved = files.join(new, path)
                if self.exists(moved):
                    return moved
        return place

    @property
    def tries_paths_first(self) -> bool:
        """Whether a file is looked for at its absolute path first: no file was moved, as far as is known."""
        return not self.rebase and not self._moved

    def tries_path_first(self, path: str) -> bool:
        """Return True if a file is looked for at its absolute path first: no file was moved, and its store is that of the metadata."""
        return self.tries_paths_first and not self._is_foreign(path)

    @property
    def moved(self) -> Mapping[str, str]:
        """Directories in the metadata's paths, and where their files were found instead."""
        return self._moved

    def _stream(self, file: str, start: int, size_bytes: int) -> Stream:
        return Stream(
            file=file, start=start, size_bytes=size_bytes, metadata_file=self._deleted_with, opening=self.opening
        )

    @property
    def _deleted_with(self) -> str:
        """The file whose absence shows that the snapshot was deleted. Empty before the snapshot is published."""
        return self.metadata_file if self.published else ""

    def _find(self, path: str) -> str:
        if path not in self._known:
            self._known[path] = self._search(path)
        return self._known[path]

    def _search(self, path: str) -> str:
        tried = [] if self.tries_paths_first else [*rebase_path(path, self.rebase), *self._moved_along(path)]
        for place in tried:
            if self._may_open(place) and self.exists(place):
                return place
        is_foreign = self._is_foreign(path)
        if is_foreign and (found := self._search_near(path, tried)):
            return found
        denied = None
        tried.append(path)
        try:
            if self._may_open(path) and self.exists(path):
                self._in_place.add(files.parent(path))
                return path
        except (StorageError, MissingDependencyError) as error:
            if origin_of(path) == origin_of(self.metadata_file):
                raise
            denied = error
        if not is_foreign and (found := self._search_near(path, tried)):
            return found
        check_deletion(self._deleted_with)
        if denied is not None:
            raise self._refuse_store(path, denied)
        if not self._may_open(path) and next(rebase_path(path, self.rebase), None) is None:
            raise refuse_path(path, self.metadata_file)
        raise SnapshotNotFoundError(
            f"file {path} of the snapshot does not exist; tried {', '.join(dict.fromkeys(tried))}",
            hint=f"{files.deletion_hint(path)}copy the files next to the metadata, or pass their new location: --rebase OLD=NEW, rebase={{old: new}}",
        )

    def _is_foreign(self, path: str) -> bool:
        """Return True if a path names a store, but the metadata is a local file: it was downloaded, probably with its files.

        The store is then only asked for files that are not near the metadata, and may need credentials that are not here.
        """
        return (
            files.is_local(self.metadata_file) and not files.is_local(path) and files.parent(path) not in self._in_place
        )

    def _search_near(self, path: str, tried: list[str]) -> str:
        """Return the location of a file near the metadata, or an empty text, and add to ``tried`` where it is not.

        A moved snapshot keeps its inner structure: chk-N, shared and taskowned are siblings. The longest path suffix that is found near the
        metadata is the most reliable match.
        """
        parts = [p for p in path.partition("://")[2].split("/") if p] if "://" in path else path.strip("/").split("/")
        above = [files.parent(files.canonical(self.metadata_file))]
        for _ in range(_TAIL_PARTS - 1):
            above.append(files.parent(above[-1]))
        for n in range(min(_TAIL_PARTS, len(parts) - 1), 0, -1):
            for directory in dict.fromkeys(above):
                candidate = files.join(directory, "/".join(parts[-n:]))
                if self.exists(candidate):
                    self._moved[path.removesuffix("/".join(parts[-n:]))] = f"{directory.rstrip('/')}/"
                    return candidate
                tried.append(candidate)
        return ""

    def _refuse_store(self, path: str, denied: StatetoolError) -> StorageError:
        """Return the error for a file that is not near the metadata, in a store that cannot be opened."""
        folder = files.parent(path)
        hint = f"copy the files next to the metadata, or pass their location: --rebase {folder}=DIR, rebase={{{folder!r}: dir}}"
        return StorageError(
            f"{path} is not next to {self.metadata_file}, and its store cannot be opened: {denied.message}",
            hint=f"{hint}; to read them in the store: {denied.hint}" if denied.hint else hint,
        )

    def _moved_along(self, path: str) -> Iterator[str]:
        """Yield the location of a file that was moved together with other files of its directory."""
        for old, new in self._moved.items():
            if path.startswith(old):
                yield new + path.removeprefix(old)


def refuse_path(path: str, source: str) -> FormatError:
    """Return the error for a path that is not opened. ``source`` names it."""
    return FormatError(
        f"{source} names {path!r}, which statetool does not open: by default, it opens only local files, HDFS and object stores",
        hint=f"to open it, pass its location: --rebase {path}={path}, rebase={{old: new}}",
    )


def rebase_path(path: str, rebase: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the locations of a path by the rebase rules. All spellings of a local prefix are equivalent."""
    if not rebase:
        return
    plain = files.local_path(path) if files.is_local(path) else path
    for old, new in rebase:
        prefix = (files.local_path(old) if files.is_local(old) else old).rstrip("/")
        if plain == prefix or plain.startswith(f"{prefix}/"):
            yield new.rstrip("/") + plain.removeprefix(prefix)
