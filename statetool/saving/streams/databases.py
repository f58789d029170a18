"""Databases of RocksDB or ForSt from which keys are removed, or in which single entries are replaced. Other table files are copied.

Only blocks that may contain the keys are decoded. All versions of a key are removed from all files, also those that RocksDB would drop
at its next compaction, so that no deletion has to be recorded. New entries get into the files at the lowest level, whose bounds may grow up
to the next file. The manifest is written again, without history: it may name removed keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

from statetool.entries.database import DatabaseSource, StoredDatabase
from statetool.entries.form import error_context
from statetool.formats.backends.column_families import family_name
from statetool.formats.backends.native import batch_of_slices, key_prefixes
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata.handles import ByteStreamHandle, IncrementalHandle, RelativeFileHandle, StreamHandle
from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.manifest import TableFile, UnsupportedManifestError
from statetool.formats.rocksdb.table_edit import changed_blocks, place_additions, write_changed
from statetool.formats.rocksdb.table_runs import Run
from statetool.formats.rocksdb.tables import Prefixes, Tables
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.threads import in_threads
from statetool.kernels.core.arrays import Mask
from statetool.saving.carry import carried_handle
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.streams.filtered import FilteredStreams, filtered_streams
from statetool.saving.streams.filters import EntryFilter, KeyFilter, ReplaceFilter
from statetool.saving.streams.output import NewStream, StreamOutput, UnshuffledStreams
from statetool.saving.streams.predicates import PredicateFilter
from statetool.snapshot.operator import OperatorInventory

#: Filters that remove entries by the bytes of their keys, which deleted and replaced entries in table files have, too.
ByKey: TypeAlias = KeyFilter | PredicateFilter | ReplaceFilter
#: Number of files whose tails are read concurrently.
_THREADS: Final = 16
#: Name of the header among the files: no file of a database is named so.
_HEADER: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFiles:
    """The files of one subtask's database: its handle, and a reader of all its key groups."""

    handle: IncrementalHandle
    source: DatabaseSource


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStreams(UnshuffledStreams):
    """The databases of an operator without some keys; picklable.

    Attributes
    ----------
    stored
        The databases of the base, by subtask.
    inline_bytes
        A manifest with fewer bytes is stored in the metadata if the old one was.
    """

    filter: ByKey
    stored: dict[int, StoredFiles]
    inline_bytes: int

    @property
    def parsed(self) -> KeyedHeader:
        return next(iter(self.stored.values())).source.header()

    @property
    def subtasks(self) -> Sequence[int]:
        return sorted(self.stored)

    @property
    def size_bytes(self) -> int:
        return sum(stored.source.files.size_bytes for stored in self.stored.values())

    def of_subtask(self, subtask: int) -> DatabaseStreams:
        return replace(self, stored={subtask: self.stored[subtask]})

    def write(self, subtask: int, staging: Staging) -> NewStream:
        stored = self.stored[subtask]
        with error_context(stored.source):
            return _NewDatabase(stored, self.filter, staging).write(subtask, self.inline_bytes)


class _NewDatabase:
    """A copy of a database without some keys, while it is written."""

    def __init__(self, stored: StoredFiles, entry_filter: ByKey, staging: Staging) -> None:
        self._stored, self._filter, self._staging = stored, entry_filter, staging
        self._source = stored.source
        self._header = self._source.header()
        tables = open_database(self._source.files).tables
        assert tables is not None
        self._tables: Tables = tables
        #: New files by name.
        self._files: dict[str, StagedFile] = {}
        #: Changed table files by number, ``None`` for those without entries.
        self._changed: dict[int, TableFile | None] = {}
        #: New entries by the number of the file that gets them.
        self._added: dict[int, list[tuple[bytes, bytes]]] = {}

    def write(self, subtask: int, inline_bytes: int) -> NewStream:
        ids = {family_name(meta.name): i for i, meta in enumerate(self._header.states)}
        self._place_added()
        for family, files in self._tables.families.items():
            for file in files:
                self._change(file, ids[family])
        inline = self._write_manifest(inline_bytes) if self._changed or self._is_in_history() else {}
        used = {file.name for file in self._table_files() if self._changed.get(file.number, file) is not None}
        # A table file that the manifest does not name may have any entries.
        gone = {name for name, _ in self._source.files.files if name.endswith(".sst")} - used
        streams = {
            name: stream
            for name, stream in (*self._source.files.files, (_HEADER, self._source.meta))
            if stream.inline is None and name not in gone and name not in inline and name not in self._files
        }
        copies = self._staging.copy([replace(s, file_bytes=s.file_size()) for s in streams.values()])
        self._files |= dict(zip(streams, copies, strict=True))

        def new(named: Sequence[tuple[str, StreamHandle]]) -> tuple[tuple[str, StreamHandle], ...]:
            return tuple((n, inline.get(n) or self._new_handle(n, h)) for n, h in named if n not in gone)

        old = self._stored.handle
        handle = replace(
            old,
            meta=self._new_handle(_HEADER, old.meta),
            shared=new(old.shared),
            private=new(old.private),
            checkpointed_size=old.checkpointed_size and sum(f.size_bytes for f in self._files.values()),
        )
        return NewStream(subtask=subtask, handle=handle, files=tuple(self._files.values()))

    def _place_added(self) -> None:
        prefix, groups = self._source.context.prefix, self._source.key_groups
        for entry in self._filter.added:
            if entry.key_group in groups:
                key = entry.key_group.to_bytes(prefix, "big") + entry.key
                file = _file_for(self._tables.families[family_name(entry.state)], key)
                self._added.setdefault(file.number, []).append((key, entry.value))

    def _is_in_history(self) -> bool:
        """Return True if the manifest names one of the keys, such as the first key of a file that no longer exists."""
        places = self._filter.places if isinstance(self._filter, KeyFilter) else None
        with dict(self._source.files.files)[self._tables.manifest_name].open() as f:
            data = bytes(f.read_at(0, f.stream.size_bytes))
        prefix = self._source.context.prefix
        return any(group.to_bytes(prefix, "big") + key in data for group, key in places or ())

    def _write_manifest(self, inline_bytes: int) -> dict[str, ByteStreamHandle]:
        """Write the manifest, and return its handle by name if it is stored in the metadata."""
        name = self._tables.manifest_name
        was_inline = dict(self._source.files.files)[name].inline is not None
        with StreamOutput(self._staging, "manifest", inline_bytes=inline_bytes if was_inline else 0) as out:
            out.write(self._tables.manifest.write(self._changed))
        handle = out.handle()
        if isinstance(handle, ByteStreamHandle):
            return {name: handle}
        (self._files[name],) = out.files
        return {}

    def _table_files(self) -> Iterator[TableFile]:
        return chain.from_iterable(self._tables.families.values())

    def _new_handle(self, name: str, old: StreamHandle) -> StreamHandle:
        if name not in self._files:
            return old
        if isinstance(old, ByteStreamHandle):
            return RelativeFileHandle(path=self._files[name].name, size_bytes=self._files[name].size_bytes)
        return carried_handle(old, self._files[name], self._staging.target)

    def _change(self, file: TableFile, state: int) -> None:
        """Write a table file without the keys, if it has them, and with its new entries."""
        table = self._tables.open_file(file)
        prefixes = _prefixes(self._filter, self._source, self._header.states[state])
        added = place_additions(table, self._added.get(file.number, ()))
        if prefixes is None:
            return
        changed = changed_blocks(table, prefixes.wanted(table), lambda run: self._stays(run, state), added)
        first = next(changed, None)
        if first is None:
            return
        with self._staging.create("table") as out:
            edges = write_changed(table, chain([first], changed), out.write)
        self._changed[file.number] = None if edges is None else file.changed(out.staged.size_bytes, *edges)
        if edges is not None:
            self._files[file.name] = out.staged

    def _stays(self, run: Run, state: int) -> Mask:
        batch = batch_of_slices([(state, run.packed())], self._source.context.prefix, self._source.files.name)
        return self._filter.mask(self._header, batch)


def _file_for(files: Sequence[TableFile], key: bytes) -> TableFile:
    """Return the file of a column family (that has some) that gets a new entry: at the lowest level, the last one that begins before its key."""
    lowest = max(file.level for file in files)
    ordered = sorted((file for file in files if file.level == lowest), key=lambda file: file.smallest)
    return next((file for file in reversed(ordered) if file.smallest <= key), ordered[0])


def _prefixes(entry_filter: ByKey, source: DatabaseSource, meta: StateMetaInfo) -> Prefixes | None:
    """Return the prefixes of the entries that may be removed, ``None`` if there are none."""
    prefix, timers = source.context.prefix, meta.kind == "timers"
    if isinstance(entry_filter, ReplaceFilter):
        # Whole keys, with the time of a timer.
        keys = [(group, key) for group in entry_filter.groups for key in entry_filter.removed.get(meta.name, ())]
        return key_prefixes(keys, prefix, timers=False) if keys else None
    places: Sequence[tuple[int, bytes]] | None = entry_filter.places if isinstance(entry_filter, KeyFilter) else None
    if places is None:
        groups = range(source.context.max_parallelism)
        places = [(group, b"") for group in groups if entry_filter.may_change(group)]
    return key_prefixes(places, prefix, timers=timers) if places else None


def has_databases(operator: OperatorInventory) -> bool:
    """Return True if keyed state of an operator is stored in databases."""
    return any(isinstance(state, StoredDatabase) for state in operator.keyed.managed)


def database_streams(
    operator: OperatorInventory, entry_filter: EntryFilter, inline_bytes: int
) -> DatabaseStreams | None:
    """Plan to remove keys from an operator's databases, or to replace entries in them.

    Returns ``None`` if the filter does not remove entries by the bytes of their keys, if other keyed state exists, if only RocksDB itself can
    read the files, or if no file has entries of a state that gets one.

    Raises
    ------
    FormatError
        A damaged file.
    """
    if isinstance(entry_filter, ReplaceFilter):
        # Old versions of new keys, and their deletions, would hide them.
        entry_filter = entry_filter.with_old_versions()
    elif not isinstance(entry_filter, KeyFilter | PredicateFilter) or entry_filter.keep:
        return None
    stored = {}
    unplaced = set(entry_filter.added)
    for state in operator.keyed.managed:
        if not isinstance(state, StoredDatabase) or state.place.subtask in stored:
            return None
        source = state.source(operator.keyed.context)
        if isinstance(entry_filter, ReplaceFilter) and not entry_filter.groups & set(source.key_groups):
            continue
        with error_context(source):
            if not _can_be_changed(source):
                return None
            tables = open_database(source.files).tables
            own = [entry for entry in entry_filter.added if entry.key_group in source.key_groups]
            if tables is None or not all(tables.families.get(family_name(entry.state)) for entry in own):
                return None
        unplaced.difference_update(own)
        stored[state.place.subtask] = StoredFiles(handle=state.handle, source=source)
    if not stored or unplaced:
        return None
    return DatabaseStreams(filter=entry_filter, stored=stored, inline_bytes=inline_bytes)


def streams_in_place(
    operator: OperatorInventory, entry_filter: EntryFilter, inline_bytes: int
) -> FilteredStreams | DatabaseStreams | None:
    """Plan to filter an operator's keyed state in its stored form; ``None`` if that form or the filter does not allow it."""
    streams = filtered_streams(operator, entry_filter, inline_bytes)
    return database_streams(operator, entry_filter, inline_bytes) if streams is None else streams


def _can_be_changed(source: DatabaseSource) -> bool:
    """Return True if all files of a database can be read without RocksDB, and belong to states."""
    tables = open_database(source.files).tables
    if tables is None or tables.families.get("default"):
        return False
    open_database(source.files).check_families(family_name(meta.name) for meta in source.header().states)
    files = list(chain.from_iterable(tables.families.values()))
    try:
        tables.manifest.write({})
        for _ in in_threads(tables.open_file, files, _THREADS):
            pass
    except UnsupportedManifestError:
        return False
    return True
