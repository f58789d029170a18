"""New RocksDB databases from sorted entries: table files at the bottom level, a manifest and ``CURRENT``.

A new database may have table files of another one. No new file may contain keys within their bounds, because files of one level do not overlap, and
new entries have sequence number 0. RocksDB itself makes the other files (``OPTIONS``, ``IDENTITY``) when it opens a database without them.
"""

from __future__ import annotations

import secrets
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from statetool.formats.rocksdb.manifest import Manifest, TableFile, varint
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_output import Write
from statetool.formats.rocksdb.table_settings import TableSettings
from statetool.formats.rocksdb.table_writer import TableWriter

if TYPE_CHECKING:
    from typing_extensions import Self

#: A table file may exceed its size by one part in this number.
_PORTIONS: Final = 8
_BOTTOM_LEVEL: Final = 6
#: Number of the first file of a new database, its manifest.
_FIRST_NUMBER: Final = 4
#: Numbers of properties in the manifest: times of the oldest entry and of the file.
_OLDEST_TIME, _FILE_TIME = 5, 6
_SESSION_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SESSION_SIZE: Final = 20


class FileOutput(Protocol):
    """Output of one file; a block that fails leaves no file."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def write(self) -> Write: ...

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None, /
    ) -> object: ...


class DatabaseWriter:
    """Writer of a database. Leave its block before the files are used; if it fails, unfinished files are given up.

    Parameters
    ----------
    create
        Opens a file by its name.
    families
        Names of the column families, besides ``default``.
    manifest
        Column families of another database with their files, which become part of this one. It is changed.
    table_bytes
        Size at which a table file ends, by default that of the settings.
    """

    def __init__(
        self,
        create: Callable[[str], FileOutput],
        families: Sequence[str],
        settings: TableSettings,
        manifest: Manifest | None = None,
        *,
        table_bytes: int | None = None,
    ) -> None:
        self._create, self._families, self._settings = create, families, settings
        self.table_bytes = table_bytes or settings.table_bytes
        # By these, RocksDB tells apart files of the same number in a shared cache.
        session = "".join(secrets.choice(_SESSION_DIGITS) for _ in range(_SESSION_SIZE))
        self._writer = str(uuid.uuid4()), session
        self._open: dict[int, tuple[TableWriter, FileOutput]] = {}
        self._manifest = Manifest.of_new(_FIRST_NUMBER) if manifest is None else manifest
        self._name = f"MANIFEST-{self._manifest.take_number():06d}"
        self._numbers = [self._manifest.family_number(name) for name in families]
        self._last: dict[int, bytes] = {}
        stored = self._manifest.files()
        #: The first key of each table file of the other database, by column family: a new file ends before it.
        self._edges = {i: sorted({f.smallest for f in stored[name]}) for i, name in enumerate(families)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None:
                self._finish()
        except BaseException:
            self._give_up()
            raise
        if kind is not None:
            self._give_up()

    def add(self, family: int, entries: Slice) -> None:
        """Append entries to a column family, by its index.

        Raises
        ------
        ValueError
            They do not sort after its previous ones.
        """
        if not len(entries):
            return
        if family in self._last and entries.key_at(0) <= self._last[family]:
            raise ValueError(f"entries of column family {self._families[family]} are not in ascending order")
        self._last[family] = entries.key_at(len(entries) - 1)
        portion = (entries.value_end - entries.key[0]) // max(1, self.table_bytes // _PORTIONS)
        for start, stop in pairwise([0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), len(entries)]):
            self._add_between_stored(family, entries.part(start, stop))

    def _add_between_stored(self, family: int, entries: Slice) -> None:
        """Append entries, in another table file after each one of the other database."""
        edges = self._edges[family]
        at = 0
        while edges and (stop := entries.position_of(edges[0])) < len(entries):
            if stop > at:
                self._add(family, entries.part(at, stop))
            if family in self._open:
                self._end_table(family)
            at = stop
            del edges[0]
        self._add(family, entries.part(at, len(entries)))

    def _add(self, family: int, entries: Slice) -> None:
        if family not in self._open:
            number = self._manifest.take_number()
            out = self._create(f"{number:06d}.sst")
            out.__enter__()
            name = self._families[family]
            table = TableWriter(out.write, self._numbers[family], name, number, self._settings, self._writer)
            self._open[family] = table, out
        table, _ = self._open[family]
        table.add(entries)
        if table.size_bytes >= self.table_bytes:
            self._end_table(family)

    def end_tables(self, least_bytes: int) -> None:
        """End the table files that have a size, so that the next entries begin others."""
        for family in [i for i, (table, _) in self._open.items() if table.size_bytes >= least_bytes]:
            self._end_table(family)

    def _end_table(self, family: int) -> None:
        table, out = self._open[family]
        first, last = table.finish()
        out.__exit__(None, None, None)
        del self._open[family]
        now = varint(int(time.time()))
        self._manifest.add_file(
            self._numbers[family],
            TableFile(
                number=table.number, level=_BOTTOM_LEVEL, size_bytes=out.size_bytes, first=first, last=last,
                sequences=(0, 0), properties=((_OLDEST_TIME, now), (_FILE_TIME, now)),
            ),
        )  # fmt: skip

    def _finish(self) -> None:
        """Write the rest of the files."""
        self.end_tables(0)
        self._write(self._name, self._manifest.write({}))
        self._write("CURRENT", f"{self._name}\n".encode())

    def _write(self, name: str, data: bytes) -> None:
        out = self._create(name)
        with out:
            out.write(data)

    def _give_up(self) -> None:
        """Discard the unfinished files."""
        for _, out in self._open.values():
            out.__exit__(*sys.exc_info())
        self._open.clear()
