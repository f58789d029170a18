"""RocksDB databases (and ForSt's): native savepoints, incremental and full checkpoints.

A database mixes its key groups in its files. A handle may contain keys outside its key groups, which Flink ignores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from statetool.entries.form import (
    ALL_ENTRIES,
    EntryRequest,
    KeyedContext,
    KeyedHandleRef,
    KeyGroupLocation,
    KeyGroupReader,
    OperatorReadContext,
    StateFormat,
    StoredState,
    cut_evenly,
    error_context,
)
from statetool.entries.headers import header_bytes, header_of_task
from statetool.errors import StatetoolError
from statetool.formats.backends.column_families import OwnedDatabase
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.metadata.handles import IncrementalHandle, StreamHandle
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.stream import Stream, begin
from statetool.io.cursor import Cursor
from statetool.io.requests import is_busy
from statetool.types.declared import TypeContext

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

#: The kernels used for databases that take longest to compile.
KERNELS: Final = (
    "rocksdb.merge.merge_blocks",
    "rocksdb.checksums._first_bad",
    "rocksdb.snappy.plain_blocks",
    "rocksdb.blocks.decode_index",
)


class DatabaseFormat:
    """Stored form of databases."""

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        return isinstance(place.handle, IncrementalHandle) and not place.raw

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        return [StoredDatabase(place, read_context) for place in places]


class StoredDatabase(StoredState):
    """The database of one subtask; its ``meta`` stream consists of a keyed header only."""

    database = True

    @property
    def handle(self) -> IncrementalHandle:
        """The handle."""
        assert isinstance(self.place.handle, IncrementalHandle)
        return self.place.handle

    @property
    def own_groups(self) -> range:
        """The key groups that belong to the subtask."""
        return range(self.handle.start, self.handle.start + self.handle.count)

    @cached_property
    def meta(self) -> Stream:
        """Location of the header."""
        return self.read_context.stream(self.handle.meta)

    @cached_property
    def files(self) -> DatabaseFiles:
        """Locations of the files."""
        named = (*self.handle.shared, *self.handle.private)
        return DatabaseFiles(name=self.meta.file, files=tuple((n, self.read_context.stream(s)) for n, s in named))

    def key_groups(self) -> Iterator[KeyGroupLocation]:
        for number in self.own_groups:
            yield KeyGroupLocation(key_group=number, offset=None, size_bytes=None)

    @property
    def _raw(self) -> bytes:
        if self.raw_header is None:
            self.raw_header = header_bytes(self.meta, self.meta.size_bytes)
        return self.raw_header

    def head(self) -> tuple[Stream, int]:
        return self.meta, self.meta.size_bytes

    def identity(self) -> bytes:
        return self._raw

    def description(self) -> tuple[bytes, int]:
        return self._raw, self.meta.start

    def header(self) -> KeyedHeader:
        try:
            return read_keyed_header(
                Cursor(self._raw, base=self.meta.start), self.read_context.types, end=len(self._raw)
            )
        except StatetoolError as error:
            raise error.at(file=self.meta.file, operator=self.read_context.operator) from None

    def owned_database(self) -> OwnedDatabase:
        return OwnedDatabase(files=self.files, key_groups=self.own_groups, prefix=self.read_context.context.prefix)

    def needed_files(self, groups: Collection[int] | None) -> Iterable[StreamHandle]:
        own = self.own_groups
        is_needed = groups is None or any(group in own for group in groups)
        return (stream for _, stream in (*self.handle.shared, *self.handle.private)) if is_needed else ()

    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterator[KeyGroupReader]:
        wanted = [g for g in self.own_groups if groups is None or g in groups]
        if not wanted:
            return
        source = self.source(context)
        group_bytes = self.files.size_bytes / max(1, len(self.own_groups))
        for run in cut_evenly(wanted, group_bytes * len(wanted), target_bytes):
            yield replace(source, key_groups=run)

    def source_without_header(self, context: KeyedContext, *, most_bytes: int) -> KeyGroupReader | None:
        is_needed = self.raw_header is not None or self.meta.inline is not None
        source = self.source(context)
        return None if is_needed or not source.key_groups or self.files.size_bytes > most_bytes else source

    def source(self, context: KeyedContext) -> DatabaseSource:
        """Return the reader of all key groups."""
        return DatabaseSource(
            context=context,
            subtask=self.place.subtask,
            meta=self.meta,
            files=self.files,
            key_groups=tuple(self.own_groups),
            group_bytes=int(self.files.size_bytes / max(1, len(self.own_groups))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSource:
    """Some key groups of one database; ``group_bytes`` is the average size of a key group."""

    context: KeyedContext
    subtask: int
    meta: Stream
    files: DatabaseFiles
    key_groups: tuple[int, ...]
    group_bytes: int

    @property
    def file(self) -> str:
        return self.meta.file

    @property
    def kernels(self) -> tuple[str, ...]:
        return KERNELS

    @property
    def is_canonical(self) -> bool:
        return False

    @property
    def reads_by_key(self) -> bool:
        return True

    def group_sizes(self) -> Mapping[int, int]:
        return dict.fromkeys(self.key_groups, max(1, self.group_bytes))

    def within(self, key_groups: Collection[int]) -> DatabaseSource | None:
        chosen = tuple(g for g in self.key_groups if g in key_groups)
        return replace(self, key_groups=chosen) if chosen else None

    def header(self) -> KeyedHeader:
        with error_context(self):
            return header_of_task(header_bytes(self.meta, self.meta.size_bytes), self.meta.start, self.context)

    def description(self) -> tuple[bytes, int, TypeContext, tuple[bytes, ...]]:
        """Return a value that is equal for databases whose bytes are decoded in the same way."""
        described = tuple(raw for raw, _ in self.context.descriptions)
        header = header_bytes(self.meta, self.meta.size_bytes)
        return header, self.context.max_parallelism, self.context.types, described

    def begin(self, request: EntryRequest) -> bool:
        from statetool.formats.backends.native import begin_native

        if not begin([(self.meta, 0, self.meta.size_bytes), *self.files.first_parts]):
            return False
        if self.files.are_small:
            return True
        header = self.header()
        states = [m.name for m in header.states if request.wants(m.name)]
        prefix = self.context.prefix
        begin_native(self.files, header, states, self.key_groups, prefix=prefix, keys=request.keys)
        return not is_busy()  # if too many requests were in flight, some were not made

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        from statetool.formats.backends.native import read_native

        with error_context(self):
            header = self.header()
            yield from read_native(
                self.files,
                header,
                [m.name for m in header.states if request.wants(m.name)],
                self.key_groups,
                prefix=self.context.prefix,
                whole_keys=request.whole_keys,
                keys=request.keys,
                batch_bytes=request.batch_bytes,
                reads_on=request.reads_on,
                checks_order=request.checks_order,
            )

    def batches_of_keys(self, keys: Collection[tuple[int, bytes]]) -> Iterator[EntryBatch]:
        """Return the entries of keys, given by key group and encoded key, and the timers in their key groups.

        Entries of other keys may be missing, or returned although they were replaced. Errors are those of :meth:`batches`.
        """
        from statetool.formats.backends.native import read_keys

        own = [(group, key) for group, key in keys if group in self.key_groups]
        with error_context(self):
            yield from read_keys(self.files, self.header(), own, prefix=self.context.prefix)

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield nothing: reading already verifies the checksum of each block."""
        return iter(())


def in_files(source: KeyGroupReader, files: DatabaseFiles | None) -> KeyGroupReader | None:
    """Return a reader of a database with other files instead, ``None`` if there are none. Other readers stay as they are.

    Parameters
    ----------
    files
        Some of its table files, as a database of their own.
    """
    if not isinstance(source, DatabaseSource):
        return source
    if files is None:
        return None
    share = files.size_bytes / max(1, source.files.size_bytes)
    return replace(source, files=files, group_bytes=int(source.group_bytes * share))


def database_changes(
    old: KeyGroupReader, new: KeyGroupReader, states: Collection[str], *, whole_keys: bool, upserts: bool
) -> tuple[KeyedHeader, Iterator[tuple[EntryBatch, EntryBatch]]] | None:
    """Return the entries that differ between two databases, before and after. Shared files are hardly read.

    Returns ``None`` if a source is not a database, if key groups or headers differ, or if only RocksDB itself can read the files. The
    sources must then be compared in full.

    Parameters
    ----------
    whole_keys
        Whether a difference in one entry returns all entries of its key, of all ``states``.
    upserts
        Whether old entries may be omitted if they would have to be looked up only for this.

    Raises
    ------
    FormatError
        Damaged.
    """
    from statetool.entries.keys import split_keys
    from statetool.formats.backends.database_changes import changed_entries

    if not isinstance(old, DatabaseSource) or not isinstance(new, DatabaseSource) or old.key_groups != new.key_groups:
        return None
    if old.description() != new.description():
        return None
    with error_context(new):
        header = new.header()
        id_ends = (
            (lambda state, batch: split_keys(batch, header.key, header.states[state]).key_end) if whole_keys else None
        )
        groups, prefix = new.key_groups, new.context.prefix
        windows = changed_entries(
            old.files, new.files, header, states, groups, prefix=prefix, id_ends=id_ends, upserts=upserts
        )
    return None if windows is None else (header, _locate(new, windows))


def _locate(
    source: DatabaseSource, windows: Iterator[tuple[EntryBatch, EntryBatch]]
) -> Iterator[tuple[EntryBatch, EntryBatch]]:
    with error_context(source):
        yield from windows


_: StateFormat = DatabaseFormat()
