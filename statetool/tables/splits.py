"""Splits of a table: the input of each task, independent of the job's parallelism. Immutable, picklable and self-contained.

Splits of operator state and of in-flight data are in :mod:`statetool.tables.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from statetool.columns.arrays import as_arrow
from statetool.entries.form import BATCH_BYTES, EntryRequest, KeyGroupReader, size_of
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.ahead import compile_together
from statetool.kernels.core.arrays import Int64s
from statetool.snapshot.views import check_view
from statetool.tables.kinds.keyed import Columns, KeyedTable
from statetool.tables.kinds.kind import KeyedKind, TableSpec
from statetool.types import Scalar

#: Number of rows, and their columns.
TableRows = tuple[int, Columns]
#: Bytes per batch of entries. Between kernels, a thread holds the interpreter, once per batch. With large batches, threads wait less for each other;
#: even larger ones take more memory, and two threads are not faster with them.
_BATCH_BYTES: Final = 16 << 20
#: Tasks that read splits of at least this size share the compilation of kernels.
_COMPILE_TOGETHER_BYTES: Final = 4 << 20
#: Kernels needed for rows of keyed state, those with the longest compilation first.
_KERNELS: Final = (
    "values.skip.skip_many", "entries.distinct.number_ranges", "values.decode_text.text_fill", "values.decode_fixed.load_fixed", "values.decode_text.text_sizes",
    "values.elements.joined_counts", "values.elements.joined_positions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(ABC):
    """A part of the rows of a table."""

    spec: TableSpec

    @property
    @abstractmethod
    def file(self) -> str:
        """The file that is read."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Number of stored bytes, as an estimate."""

    @abstractmethod
    def rows(self, *, reads_on: bool) -> Iterator[TableRows]:
        """Read the rows, in a task. ``reads_on`` is as for :func:`statetool.tables.read.read_split`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSplit(Split):
    """Some key groups of one subtask."""

    kind: KeyedKind
    source: KeyGroupReader

    @property
    def file(self) -> str:
        return self.source.file

    @property
    def size_bytes(self) -> int:
        return size_of(self.source)

    def reads(self) -> tuple[KeyGroupReader, EntryRequest]:
        return self.source, self._request(BATCH_BYTES, reads_on=False)

    def rows(self, *, reads_on: bool) -> Iterator[TableRows]:
        spec = self.spec
        header = self.source.header()
        if self.kind.view is not None:
            check_view(self.kind.view, spec.states, {meta.name: meta for meta in header.states})
        table = KeyedTable(header, spec.states, spec.options, spec.keys, spec.decoded)
        if not table.metas:
            return
        if self.size_bytes >= _COMPILE_TOGETHER_BYTES:
            compile_together((*self.source.kernels, *_KERNELS))
        # A loop's variable would keep each batch while the next one is read.
        batches = self.source.batches(self._request(_BATCH_BYTES, reads_on=reads_on))
        yield from chain.from_iterable(map(partial(self._rows_of_entries, table), batches))

    def _request(self, batch_bytes: int, *, reads_on: bool) -> EntryRequest:
        """Return the entries to read."""
        return EntryRequest(
            states=self.spec.states,
            keys=self.spec.keys if self.kind.stored_by_key else None,
            whole_keys=self.kind.whole_keys,
            batch_bytes=batch_bytes,
            memory_bytes=self.spec.memory_bytes,
            reads_on=reads_on,
        )

    def _rows_of_entries(self, table: KeyedTable, batch: EntryBatch) -> Iterator[TableRows]:
        for n, groups, columns in self.kind.rows(table, batch, self.spec):
            yield n, with_key_groups(columns, groups, self.spec)


def with_key_groups(columns: Columns, groups: Int64s, spec: TableSpec) -> Columns:
    """Return the columns of a keyed table, with the key groups of its rows if it has such a column."""
    if not spec.key_group_column:
        return columns
    return [*columns, ("key_group", Scalar("int32"), as_arrow(groups.astype(np.int32)))]
