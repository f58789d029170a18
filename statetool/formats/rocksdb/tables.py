"""RocksDB databases read by key range directly from their files, without a copy and without RocksDB.

The manifest lists the table files of a column family. In each, the blocks needed for a range of keys are decoded; runs of several files are
merged, and entries replaced by newer ones are dropped. Windows are cut at the last keys of blocks, so that memory stays bounded.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from statetool.errors import FormatError
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import TableFile, open_manifest, table_streams
from statetool.formats.rocksdb.slices import NO_ENTRIES, Slice
from statetool.formats.rocksdb.table_file import SortedTable, tail_of
from statetool.formats.rocksdb.table_runs import PlainBlocks, Run, read_runs
from statetool.formats.stream import Part, prefetch, whole
from statetool.kernels.core.arrays import Bytes, Int64s, Mask, frozen

_MOST_TABLES: Final = 32
_CUTS: Final = 16


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Prefixes of keys, ascending, at least one: int64[n] ranges in ``keys``."""

    keys: Bytes
    key: Int64s
    key_end: Int64s

    @classmethod
    def of(cls, prefixes: Iterable[bytes]) -> Prefixes:
        """Sort prefixes and remove duplicates."""
        distinct = sorted(set(prefixes))
        edges = np.cumsum([0, *map(len, distinct)])
        return cls(frozen(np.frombuffer(b"".join(distinct), dtype=np.uint8)), edges[:-1].copy(), edges[1:].copy())

    def wanted(self, table: SortedTable) -> Mask:
        """Return a mask of the blocks that may contain keys with one of the prefixes."""
        return table.blocks.marked(self.keys, self.key, self.key_end)


class Tables:
    """The table files of a database.

    Raises
    ------
    FormatError
        Damaged, or a file is missing.
    UnsupportedManifestError
    """

    def __init__(self, files: DatabaseFiles) -> None:
        self.name = files.name
        self._streams = table_streams(files)
        prefetch(files.first_parts)
        current = self._whole("CURRENT")
        if not re.fullmatch(rb"MANIFEST-\d{6,20}\n?", current):
            raise FormatError(f"CURRENT does not name a manifest: {current[:40]!r}").at(
                file=self._streams["CURRENT"].file
            )
        manifest = current.decode().strip()
        if manifest not in self._streams:
            raise FormatError(f"CURRENT names {manifest}, which the handle does not have").at(file=self.name)
        self.manifest_name = manifest
        self.manifest = open_manifest(self.name, self._streams, manifest, self._whole(manifest))
        self.families = self.manifest.files()
        self._tables: OrderedDict[str, SortedTable] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def file_count(self) -> int:
        """Number of files of the database."""
        return len(self._streams)

    def _whole(self, name: str) -> bytes:
        if name not in self._streams:
            raise FormatError(f"the database has no {name}").at(file=self.name)
        with self._streams[name].open() as f:
            return bytes(f.read_kept(0, f.stream.size_bytes))

    def _table(self, file: TableFile) -> SortedTable:
        with self._lock:
            table = self._tables.pop(file.name, None) or SortedTable(self._streams[file.name])
            self._tables[file.name] = table
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
            return table

    def open_file(self, file: TableFile) -> SortedTable:
        """Open one file.

        Raises
        ------
        FormatError, UnsupportedManifestError
        """
        return self._table(file)

    def open_range(self, column_family: str, low: bytes, high: bytes) -> list[tuple[TableFile, SortedTable]]:
        """Open the files that may contain keys from ``low`` (inclusive) to ``high`` (exclusive).

        Raises
        ------
        FormatError, UnsupportedManifestError
        """
        files = self._files_between(column_family, low, high)
        prefetch(self._opening_parts(files))
        return [(f, self._table(f)) for f in files]

    def check_levels(self) -> None:
        """Check that the files of each level but the first do not overlap: RocksDB looks for a key in one of them.

        Raises
        ------
        FormatError
        """
        for name, files in self.families.items():
            ordered = sorted((f for f in files if f.level), key=lambda f: (f.level, f.smallest))
            for before, after in pairwise(ordered):
                if before.level == after.level and before.largest > after.smallest:
                    raise FormatError(
                        f"{before.name} and {after.name} of column family {name} overlap in level {after.level}"
                    ).at(file=self.name)

    def opening_parts(self, column_families: Iterable[str], ranges: Sequence[tuple[bytes, bytes]]) -> list[Part]:
        """Return what :meth:`open_range` reads for ranges of keys in column families."""
        return [
            part
            for name in column_families
            for low, high in ranges
            for part in self._opening_parts(self._files_between(name, low, high))
        ]

    def _files_between(self, column_family: str, low: bytes, high: bytes) -> list[TableFile]:
        return [f for f in self.families[column_family] if f.smallest < high and f.largest >= low]

    def _opening_parts(self, files: Iterable[TableFile]) -> Iterator[Part]:
        """Yield small files as a whole, and the ends of large ones that are not open."""
        for file in files:
            stream = self._streams[file.name]
            if stream.is_small:
                yield from whole([stream])
            elif file.name not in self._tables:
                yield tail_of(stream)


class TableSlices:
    """Entries of table files with keys from ``low`` (inclusive) to ``high`` (exclusive), about ``limit`` bytes at a time; read once.

    Raises
    ------
    FormatError
        Damaged.
    """

    def __init__(
        self,
        tables: Sequence[tuple[TableFile, SortedTable]],
        low: bytes,
        high: bytes,
        limit: int,
        ahead_bytes: int,
        *,
        checks_order: bool = False,
    ) -> None:
        self._checks_order = checks_order
        share = ahead_bytes // max(1, len(tables))
        self._tables = [(file, table.reading_ahead(low, high, share)) for file, table in tables]
        self._low, self._high = low, high
        self._limit = limit

    @cached_property
    def bounds(self) -> list[bytes]:
        """Last keys of all slices but the last one. They may be replaced before the first slice is read."""
        return self.common_bounds([self], self._limit)

    @classmethod
    def common_bounds(cls, parts: Sequence[TableSlices], limit: int) -> list[bytes]:
        """Return keys that cut the entries of several column families in the same range, about ``limit`` bytes of all of them at a time."""
        tables = [table for part in parts for table in part._tables]
        return range_bounds(tables, parts[0]._low, parts[0]._high, limit) if parts else []

    @property
    def reads_ahead(self) -> bool:
        """Whether large files are in an object store."""
        return any(table.reads_ahead for _, table in self._tables)

    def begin(self) -> None:
        """Request bytes from an object store before they are needed."""
        for _, table in self._tables:
            table.begin()

    def begin_first(self) -> None:
        """Request the bytes of the first slice."""
        stop = self.bounds[0] if self.bounds else self._high
        for table, numbers in blocks_between(self._tables, self._low, stop, with_high=bool(self.bounds)):
            table.request(numbers)

    def close(self) -> None:
        """Give up all requests."""
        for _, table in self._tables:
            table.close()

    def __iter__(self) -> Iterator[Slice]:
        # No variable keeps the blocks of a slice, or the slice, while its reader works with it.
        bounds = [self._low, *self.bounds, self._high]
        try:
            yield from filter(len, map(self._between, range(len(bounds) - 1), bounds, bounds[1:]))
        finally:
            self.close()

    def _between(self, number: int, low: bytes, high: bytes) -> Slice:
        """Read the slice with a number, between two bounds; all but the first start after ``low``, and all but the last include ``high``."""
        behind, inclusive = number > 0, number < len(self.bounds)
        needed = list(blocks_between(self._tables, low, high, behind_low=behind, with_high=inclusive))
        if not needed:
            return NO_ENTRIES
        blocks = PlainBlocks.read(needed)
        if self._checks_order:
            files = {id(table): file for file, table in self._tables}
            blocks.check_order([(files[id(table)], table, numbers) for table, numbers in needed])
        return blocks.merge(low, high, behind_low=behind, with_high=inclusive, final=not inclusive)


def runs_between(
    tables: Sequence[tuple[TableFile, SortedTable]],
    low: bytes,
    high: bytes,
    *,
    wanted: Callable[[SortedTable], Mask] | None = None,
) -> list[tuple[Run, SortedTable]]:
    """Read the entries with keys from ``low`` (inclusive) to ``high`` (exclusive), one run per file.

    Parameters
    ----------
    wanted
        Selects the blocks of a file to read; ``None`` for all in the range.
    """
    needed = list(blocks_between(tables, low, high, wanted=wanted))
    runs = [run.between(low, high) for run in read_runs(needed)]
    return [(run, table) for run, (table, _) in zip(runs, needed, strict=True) if len(run.key)]


def blocks_between(
    tables: Sequence[tuple[TableFile, SortedTable]],
    low: bytes,
    high: bytes,
    *,
    behind_low: bool = False,
    with_high: bool = False,
    wanted: Callable[[SortedTable], Mask] | None = None,
) -> Iterator[tuple[SortedTable, Int64s]]:
    """Yield files with the indexes of their blocks that may have keys from ``low`` (optionally exclusive) to ``high`` (optionally inclusive).

    Only the last of them may also have keys after ``high``. ``wanted`` as in :func:`runs_between`.
    """
    for file, table in tables:
        if file.largest < low or file.smallest > high:
            continue
        blocks = table.blocks
        first = blocks.first_not_before(low, behind=behind_low)
        # The first block that ends after the bound is the last that may start before it.
        last = min(blocks.first_not_before(high, behind=with_high) + 1, len(blocks.size))
        numbers = np.arange(first, last)
        if wanted is not None:
            numbers = numbers[wanted(table)[first:last]]
        if len(numbers):
            yield table, numbers


def range_bounds(tables: Sequence[tuple[TableFile, SortedTable]], low: bytes, high: bytes, limit: int) -> list[bytes]:
    """Return keys that cut the range into windows of about ``limit`` bytes."""
    ends: list[tuple[bytes, float]] = []
    for _, table in tables:
        blocks = table.blocks
        first, last = blocks.first_not_before(low), blocks.first_not_before(high)
        sizes = np.cumsum(blocks.size[first:last]) * table.expansion
        if not len(sizes):
            continue
        # One key per few blocks is enough for cutting.
        step = max(1, int(limit * len(sizes) / (_CUTS * sizes[-1])))
        ends_of_steps = np.arange(step - 1, len(sizes), step)
        added = np.diff(sizes[ends_of_steps], prepend=0.0).tolist()
        ends += [(blocks.last_key(first + i), size) for i, size in zip(ends_of_steps.tolist(), added, strict=True)]
    ends.sort()
    bounds: list[bytes] = []
    size = 0.0
    for key, added_bytes in ends:
        size += added_bytes
        if size >= limit and (not bounds or key > bounds[-1]):
            bounds.append(key)
            size = 0
    return bounds
