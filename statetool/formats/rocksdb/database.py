"""Open databases with the reader of this package or, if a file uses a feature that it does not support, with RocksDB itself.

A process keeps a few open, so that the reads of one database share it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from statetool.errors import FormatError
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.library import RocksDatabase
from statetool.formats.rocksdb.manifest import UnsupportedManifestError
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.tables import Prefixes, Tables, TableSlices
from statetool.formats.stream import Stream, begin, prefetch
from statetool.io import files as io_files
from statetool.io.requests import AHEAD_BYTES
from statetool.io.threads import after_fork

_MOST_OPEN: Final = 2
#: Maximum number of files of databases that are about to be opened, unless a single one has more.
_MOST_BEGUN_FILES: Final = 20_000
_DEFAULT: Final = "default"


class Database:
    """An open database."""

    def __init__(self, files: DatabaseFiles) -> None:
        self.name = files.name
        self._files = files
        self.tables: Tables | None = None
        self._rocks: RocksDatabase | None = None
        self._lock = threading.Lock()
        _check_names(files)
        try:
            self.tables = _BEGUN.take(files) or Tables(files)
        except UnsupportedManifestError:
            self._by_rocksdb()

    def _by_rocksdb(self) -> RocksDatabase:
        with self._lock:
            if self._rocks is None:
                self._rocks = RocksDatabase(self._files)
            return self._rocks

    def check_families(self, expected: Iterable[str]) -> None:
        """Raise an error unless there is a column family of each name, and no other.

        Raises
        ------
        FormatError
            With their names.
        """
        families = self._by_rocksdb().column_families if self.tables is None else self.tables.families
        stored, named = set(families) - {_DEFAULT}, set(expected)
        if stored != named:
            raise FormatError(
                f"the database has the column families {_listed(stored - named)} that the header does not name, and lacks "
                f"{_listed(named - stored)}"
            ).at(file=self.name)

    def check_levels(self) -> None:
        """Check that files which must not overlap do not; RocksDB itself does so when it opens a database.

        Raises
        ------
        FormatError
        """
        if self.tables is not None:
            self.tables.check_levels()

    def prefetch(self, families: Iterable[str], ranges: Sequence[tuple[bytes, bytes]]) -> None:
        """Fetch concurrently what :meth:`slices` reads from an object store to open the files of column families for ranges of keys."""
        if self.tables is not None:
            prefetch(self.tables.opening_parts(families, ranges))

    def slices(
        self,
        family: str,
        low: bytes,
        high: bytes,
        limit: int,
        prefixes: Prefixes | None = None,
        *,
        ahead_bytes: int = AHEAD_BYTES,
        checks_order: bool = False,
    ) -> Iterable[Slice]:
        """Return the entries of a column family with keys from ``low`` (inclusive) to ``high`` (exclusive), about ``limit`` bytes at a time.

        Parameters
        ----------
        prefixes
            Prefixes of the keys to read. Entries of other keys may be missing, or returned although they were replaced.
        ahead_bytes
            Maximum number of bytes to request from an object store before they are needed.
        checks_order
            Whether to check the order of the entries as they are stored. RocksDB itself does not.

        Raises
        ------
        FormatError
            Damaged files.
        """
        if self.tables is not None:
            try:
                tables = self.tables.open_range(family, low, high)
            except UnsupportedManifestError:
                pass
            else:
                if prefixes is not None:
                    tables = [(file, table.restricted(prefixes.wanted(table))) for file, table in tables]
                return TableSlices(tables, low, high, limit, ahead_bytes, checks_order=checks_order)
        return self._by_rocksdb().slices(family, low, high, limit)


def _check_names(files: DatabaseFiles) -> None:
    seen: set[str] = set()
    for name, _ in files.files:
        if name in seen or not name or "/" in name or "\\" in name or name in (".", ".."):
            raise FormatError(f"{name!r} is not the name of one file of a database").at(file=files.name)
        seen.add(name)


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"


@dataclass(slots=True)
class _BegunDatabases:
    """Table files of remote databases that are about to be opened, by their files: each manifest is parsed once."""

    by_files: OrderedDict[object, Tables] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Start again in a new process."""
        self.by_files, self.lock = OrderedDict(), threading.Lock()

    def take(self, files: DatabaseFiles) -> Tables | None:
        """Return the table files of a database that is opened, and no longer keep them."""
        with self.lock:
            return self.by_files.pop(_identity(files), None)

    def tables(self, files: DatabaseFiles) -> Tables | None:
        """Return the table files of a database, whose manifest has arrived; ``None`` while another thread opens it."""
        identity = _identity(files)
        with self.lock:
            # Whoever opens a database makes its slot before :meth:`take`, so it is not parsed here meanwhile.
            if (slot := _OPEN.find(identity)) is not None:
                return None if slot.database is None else slot.database.tables
            if identity not in self.by_files:
                self.by_files[identity] = Tables(files)
                while sum(t.file_count for t in self.by_files.values()) > _MOST_BEGUN_FILES and len(self.by_files) > 1:
                    self.by_files.popitem(last=False)
            return self.by_files[identity]


_BEGUN: Final = _BegunDatabases()
after_fork(_BEGUN.reset)


def begin_database(files: DatabaseFiles, column_families: Iterable[str], ranges: Sequence[tuple[bytes, bytes]]) -> None:
    """Make the first requests for ranges of keys to an object store, as far as their answers to earlier calls allow.

    Raises
    ------
    FormatError
        Damaged files, or not a database.
    """
    if not begin(files.first_parts):
        return
    try:
        tables = _BEGUN.tables(files)
    except UnsupportedManifestError:
        return
    if tables is not None:
        begin(tables.opening_parts((name for name in column_families if name in tables.families), ranges))


@dataclass(slots=True)
class _Slot:
    """Place of one database, which the first who needs it opens."""

    database: Database | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, files: DatabaseFiles) -> Database:
        with self.lock:
            if self.database is None:
                self.database = Database(files)
            return self.database


@dataclass(slots=True)
class _OpenDatabases:
    """Cache of the most recently used databases, by their files."""

    by_files: OrderedDict[object, _Slot] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Start again in a new process."""
        self.by_files, self.lock = OrderedDict(), threading.Lock()

    def find(self, identity: object) -> _Slot | None:
        """Return the place of a database that is open, or that a thread opens."""
        with self.lock:
            return self.by_files.get(identity)

    def slot(self, identity: object) -> _Slot:
        """Return the place of a database, most recently used."""
        with self.lock:
            slot = self.by_files.pop(identity, None) or _Slot()
            self.by_files[identity] = slot
            if len(self.by_files) > _MOST_OPEN:
                self.by_files.popitem(last=False)
            return slot


_OPEN: Final = _OpenDatabases()
after_fork(_OPEN.reset)


def open_database(files: DatabaseFiles) -> Database:
    """Open a database, or return it if it is still open in this process.

    Raises
    ------
    FormatError, SnapshotNotFoundError, MissingDependencyError
    """
    return _OPEN.slot(_identity(files)).opened(files)


def _identity(files: DatabaseFiles) -> object:
    """Return a value that changes if a local file is replaced, and when remote files may have changed."""
    openings = frozenset(s.opening for _, s in files.files if s.is_far)
    return files, tuple(_stamp(s) for _, s in files.files), openings


def _stamp(stream: Stream) -> tuple[int, int] | None:
    """Return the modification time and inode of a local file: they change when it is replaced."""
    if stream.inline is not None or not io_files.is_local(stream.file):
        return None
    try:
        status = os.stat(io_files.local_path(stream.file))
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino
