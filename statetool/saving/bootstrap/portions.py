"""Conversion of in-memory tables to keyed state, a portion of key groups at a time.

Entries shuffled to key groups would stay on local disk until the last row was read, using as many bytes as the new state. Rows in memory
can be looked up again instead: the rows of a few key groups become entries, which are written before the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from statetool.columns.take import take_rows
from statetool.errors import EncodeError
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.io.threads import in_threads
from statetool.kernels.core.arrays import Int64s
from statetool.saving.bootstrap.recipe import RowEncoder
from statetool.saving.bootstrap.records import measure_rows, table_entries
from statetool.saving.streams.runs import portions

if TYPE_CHECKING:
    import numpy.typing as npt

#: Rows that are encoded at once, chosen so that their entries stay in the processor's cache.
BATCH_ROWS: Final = 1 << 14
#: Rows that are measured at once. With fewer, threads wait for each other between short steps.
_MEASURED_ROWS: Final = 1 << 16
#: Bytes of entries that are assembled at once: few enough for the cache, enough to justify a call.
_PORTION_BYTES: Final = 8 << 20
#: Bytes of rows, from several parts of a table, that are combined into one batch.
_TOGETHER_BYTES: Final = 64 << 20
#: Minimum rows of a chunk per portion. Below this, taking rows takes longer than shuffling them through local disk.
_LEAST_ROWS: Final = 256
#: Rows that are sorted by key group together.
_PART_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a table with an index by key group: ``groups`` uint16[n] ascending, of row ``order`` int32[n].

    ``size_bytes`` int64[max parallelism]: approximate bytes of the entries of each key group.
    """

    recipe: RowEncoder
    rows: pa.RecordBatch
    groups: npt.NDArray[np.uint16]
    order: npt.NDArray[np.int32]
    size_bytes: Int64s

    @classmethod
    def of(cls, recipe: RowEncoder, rows: pa.RecordBatch) -> _Part:
        groups = np.empty(rows.num_rows, dtype=np.uint16)
        size_bytes = np.zeros(recipe.max_parallelism, dtype=np.int64)
        for at in range(0, rows.num_rows, _MEASURED_ROWS):
            some = rows.slice(at, _MEASURED_ROWS)
            own, sizes = measure_rows(recipe, some)
            size_bytes += np.bincount(own, sizes, recipe.max_parallelism).astype(np.int64)
            groups[at : at + _MEASURED_ROWS] = own
        order = np.argsort(groups, kind="stable").astype(np.int32)
        return cls(recipe, rows, groups[order], order, size_bytes)

    def span(self, numbers: range) -> tuple[int, int]:
        """Return the start and end of the rows of a range of key groups in ``order``."""
        # With another type, numpy would convert all groups.
        edges = np.array([numbers.start, numbers.stop], dtype=np.uint16)
        low, high = np.searchsorted(self.groups, edges).tolist()
        return low, high

    def taken(self, first: int, stop: int) -> pa.RecordBatch:
        return take_rows(self.rows, self.order[first:stop])


def comes_in_portions(table: pa.Table, subtasks: int) -> bool:
    """Return True if portions have enough rows in each chunk of a table. Small tables and small chunks are not worth it."""
    chunks = max(column.num_chunks for column in table.columns)
    # Entries have about twice the bytes of their rows. `nbytes` does not support all types.
    count: int = max(2 * table.get_total_buffer_size() // _PORTION_BYTES, subtasks)
    return bool(_LEAST_ROWS * chunks * count <= table.num_rows)


class TablesInPortions:
    """Tables of one operator's keyed state. The index takes six bytes of memory per row.

    Raises
    ------
    EncodeError
        As :func:`~statetool.saving.bootstrap.records.table_entries`, for the keys. Also if Arrow cannot take rows of a column's type.
    """

    def __init__(self, tables: Sequence[tuple[pa.Table, RowEncoder]], max_parallelism: int, threads: int) -> None:
        used = [(table.select(recipe.columns(table.column_names)), recipe) for table, recipe in tables]
        for table, recipe in used:
            _check_taken(recipe, table.schema)
        parts = ((recipe, rows) for table, recipe in used for rows in table.to_batches(max_chunksize=_PART_ROWS))
        self._parts = list(in_threads(lambda part: _Part.of(*part), (p for p in parts if p[1].num_rows), threads))
        size = np.zeros(max_parallelism, dtype=np.int64)
        for part in self._parts:
            size += part.size_bytes
        #: int64[max parallelism + 1]: approximate bytes of the entries before each key group.
        self._edges: Int64s = np.append(0, np.cumsum(size))

    def cut(self, numbers: range) -> Iterator[range]:
        """Cut a range of key groups into portions."""
        for first, stop in portions(self._edges[numbers.start : numbers.stop + 1], _PORTION_BYTES):
            yield numbers[first:stop]

    def size_bytes(self, numbers: range) -> int:
        """Return the approximate bytes of the entries of a range of key groups."""
        return int(self._edges[numbers.stop] - self._edges[numbers.start])

    def batches(self, numbers: range) -> Iterator[tuple[RowEncoder, pa.RecordBatch]]:
        """Yield the rows of a range of key groups in batches."""
        for part in self._parts:
            low, high = part.span(numbers)
            size = part.size_bytes[numbers.start : numbers.stop].sum() / max(1, high - low)
            step = max(1, min(BATCH_ROWS, int(_PORTION_BYTES / max(1, size))))
            for at in range(low, high, step):
                yield part.recipe, part.taken(at, min(at + step, high))

    def entries(self, numbers: range) -> EntryBatch | None:
        """Return all entries of a range of key groups; ``None`` if there are no rows."""
        entries = [e for recipe, rows in self._rows(numbers) for e in table_entries(recipe, rows)]
        return concat(entries) if entries else None

    def _rows(self, numbers: range) -> Iterator[tuple[RowEncoder, pa.RecordBatch]]:
        """Yield the rows of a range of key groups in large batches that combine all parts of a table."""
        for recipe, parts in groupby(self._parts, key=lambda part: part.recipe):
            taken = [part.taken(low, high) for part in parts for low, high in [part.span(numbers)] if low < high]
            for first, stop in portions(np.cumsum([0, *(rows.nbytes for rows in taken)]), _TOGETHER_BYTES):
                yield from (
                    (recipe, rows) for rows in pa.Table.from_batches(taken[first:stop]).combine_chunks().to_batches()
                )


def _check_taken(recipe: RowEncoder, schema: pa.Schema) -> None:
    """Refuse columns whose rows Arrow cannot take."""
    for field in schema:
        try:
            take_rows(pa.RecordBatch.from_arrays([pa.nulls(0, field.type)], [field.name]), np.zeros(0, dtype=np.int32))
        except pa.ArrowNotImplementedError:
            raise EncodeError(f"column {field.name!r} is of type {field.type}", hint="cast the column first").at(
                operator=recipe.operator
            ) from None
