"""Table files of RocksDB and ForSt that a changed copy keeps: those of states, and key groups of states, that do not change.

A change names the key groups that it changes, by state. A table file has the entries of one state, in a range of keys. It is replaced if its range meets
a key group that changes, or the range of a file that is replaced. So all versions of a key, and its deletions, are in kept files or in replaced ones:
nothing old hides a new entry, or becomes visible again. Kept files keep their numbers, levels and sequence numbers. The entries of the replaced files are
read as a database of their own and written to new files. These have sequence number 0, and no keys of a kept file within their bounds.

The files are copied as those of unchanged operators are. The task of a subtask writes the other files, and a manifest with all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statetool.entries.form import StoredState
from statetool.errors import FormatError
from statetool.formats.backends.column_families import OwnedDatabase, family_name
from statetool.formats.key_groups import range_for
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    FileHandle,
    IncrementalHandle,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
)
from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import Manifest, TableFile, UnsupportedManifestError
from statetool.formats.rocksdb.options import newest_options, options_of_families
from statetool.formats.rocksdb.tables import Tables
from statetool.formats.stream import Stream
from statetool.io.threads import in_threads
from statetool.snapshot.operator import OperatorInventory

#: Number of databases that are opened concurrently, and of files of each.
_DATABASES: Final = 4
_FILES: Final = 16
#: Stands for the header of a database in the handle of its kept files, until the new header is known.
_NO_HEADER: Final = ByteStreamHandle(name="", data=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """The change of a state that stays: its new name, and the key groups whose entries may change."""

    name: str
    groups: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTables:
    """What a task needs to know of the kept table files of a database to write the other files; picklable.

    Attributes
    ----------
    manifest, options
        Manifest and options of the old database; ``options`` may be absent.
    families
        New names of the column families with kept files, by their old names.
    replaced
        Numbers of their files that are not kept.
    """

    manifest: Stream
    options: tuple[str, Stream] | None
    families: Mapping[str, str]
    replaced: frozenset[int]

    def read_manifest(self) -> Manifest:
        """Return the manifest of the kept files, to which others can be added.

        Raises
        ------
        FormatError
            Damaged.
        """
        try:
            return Manifest.read(_content(self.manifest)).select(self.families, self.replaced)
        except FormatError as error:
            raise error.at(file=self.manifest.file) from None

    def read_options(self, families: list[str]) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the new file of options for all column families, if there is an old one."""
        if self.options is None:
            return None
        name, stream = self.options
        added = [family for family in families if family not in self.families.values()]
        return name, options_of_families(_content(stream), self.families, added)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDatabase:
    """The kept table files of one subtask.

    Attributes
    ----------
    handle
        Names the kept files only, and has no header.
    rest
        The other files, as a database of their own; ``None`` if it has no entries.
    """

    tables: KeptTables
    handle: IncrementalHandle
    rest: DatabaseFiles | None


def kept_databases(
    operator: OperatorInventory, changes: Mapping[str, StateChange], parallelism: int
) -> dict[int, KeptDatabase]:
    """Return the table files that the databases of an operator keep, by subtask; empty for subtasks that keep none.

    Parameters
    ----------
    changes
        By the old names of the states that keep their bytes outside of some key groups. All other states are written again.
    parallelism
        That of the operator. Each subtask must have its key groups.

    Raises
    ------
    FormatError
        A damaged manifest, or the footer, index or properties of a kept table file are damaged.
    """
    most = operator.state.max_parallelism
    stored = [(state, state.owned_database()) for state in operator.keyed.managed]
    databases = [(state, database) for state, database in stored if database is not None]
    if len(databases) < len(stored) or not changes:
        return {}
    if any(own.key_groups != range_for(state.place.subtask, parallelism, most) for state, own in databases):
        return {}
    found = in_threads(lambda pair: _keep(*pair, changes), databases, _DATABASES)
    return {state.place.subtask: kept for (state, _), kept in zip(databases, found, strict=True) if kept is not None}


def _keep(state: StoredState, owned: OwnedDatabase, changes: Mapping[str, StateChange]) -> KeptDatabase | None:
    """Return what a database keeps, ``None`` if it keeps no file or only RocksDB itself can read its manifest."""
    old = state.place.handle
    database = open_database(owned.files)
    tables = database.tables
    if not isinstance(old, IncrementalHandle) or tables is None or tables.families.get("default"):
        return None
    header = state.header()
    database.check_families(family_name(meta.name) for meta in header.states)
    families: dict[str, str] = {}
    kept: list[TableFile] = []
    for meta in header.states:
        files = tables.families[family_name(meta.name)]
        change = changes.get(meta.name)
        own = [] if change is None else _unchanged_files(files, change.groups, owned.prefix)
        if change is not None and (own or not files):
            families[family_name(meta.name)] = family_name(change.name)
        kept += own
    if not kept:
        return None
    numbers = frozenset(file.number for file in kept)
    replaced = {file.number for files in tables.families.values() for file in files} - numbers
    try:
        tables.manifest.select(families, replaced).write({})
        rest = tables.manifest.select({family: family for family in tables.families}, numbers).write({})
    except UnsupportedManifestError:
        return None
    for _ in in_threads(lambda file: _check(tables, file), kept, _FILES):
        pass
    streams = dict(owned.files.files)
    names = {file.name for file in kept}
    others = {name: stream for name, stream in streams.items() if name not in names}
    manifest = streams[tables.manifest_name]
    others[tables.manifest_name] = replace(manifest, start=0, size_bytes=len(rest), inline=rest)
    return KeptDatabase(
        tables=KeptTables(
            manifest=manifest,
            options=newest_options((name, (name, stream)) for name, stream in streams.items()),
            families=families,
            replaced=frozenset(replaced),
        ),
        handle=_handle_of(old, names),
        rest=DatabaseFiles(name=owned.files.name, files=tuple(others.items())) if replaced else None,
    )


def _unchanged_files(files: Sequence[TableFile], changed: frozenset[int], prefix: int) -> list[TableFile]:
    """Return the files of a state that are kept: those that neither meet a changed key group, nor, over others, a file that does."""
    kept: list[TableFile] = []
    meeting: list[TableFile] = []
    last = b""
    for file in [*sorted(files, key=lambda file: file.smallest), None]:
        if file is None or (meeting and file.smallest > last):
            if not any(_changes(one, changed, prefix) for one in meeting):
                kept += meeting
            meeting, last = [], b""
        if file is not None:
            meeting.append(file)
            last = max(last, file.largest)
    return kept


def _changes(file: TableFile, changed: frozenset[int], prefix: int) -> bool:
    """Return True if a file may have entries of a changed key group. A bound of a range of deletions may have fewer bytes than a key group."""
    first, last = (int.from_bytes(key[:prefix].ljust(prefix, b"\0"), "big") for key in (file.smallest, file.largest))
    return any(first <= group <= last for group in changed)


def _check(tables: Tables, file: TableFile) -> None:
    """Check the footer, the properties and the index of a kept file, as far as the reader of this package supports it.

    Raises
    ------
    FormatError
        Damaged, or not the file that the manifest describes.
    """
    try:
        blocks = tables.open_file(file).blocks
    except UnsupportedManifestError:
        return
    count = len(blocks.size)
    if not count or blocks.last_key(0) < file.smallest or blocks.last_key(count - 1) < file.largest:
        raise FormatError(f"keys of {file.name} are outside of the bounds in {tables.manifest_name}").at(
            file=tables.name
        )


def _content(stream: Stream) -> bytes:
    with stream.open() as f:
        return bytes(f.read_kept(0, stream.size_bytes))


def _handle_of(old: IncrementalHandle, names: set[str]) -> IncrementalHandle:
    """Return a handle with the kept files of another one."""

    def kept(named: tuple[tuple[str, StreamHandle], ...]) -> tuple[tuple[str, StreamHandle], ...]:
        return tuple((name, handle) for name, handle in named if name in names)

    return replace(old, meta=_NO_HEADER, shared=kept(old.shared), private=kept(old.private))


def join_handles(kept: IncrementalHandle, new: IncrementalHandle) -> IncrementalHandle:
    """Return the handle of a database with kept files and new ones, which belong to the new snapshot alone."""
    known = FileHandle | RelativeFileHandle | SegmentHandle | ByteStreamHandle
    sizes = [handle.size_bytes for _, handle in (*kept.shared, *kept.private) if isinstance(handle, known)]
    return replace(
        new,
        shared=kept.shared,
        private=(*kept.private, *new.private),
        checkpointed_size=(new.checkpointed_size or 0) + sum(sizes),
    )
