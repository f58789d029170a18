"""Tables in this process become keyed state a portion of key groups at a time.

Entries that were dealt to key groups would lie on local disk until the last row was read: as many bytes as the new state has. Rows in memory
can be found again instead, so that those of a few key groups become entries, which are written before the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from statetool.columns.taken import take_rows
from statetool.errors import EncodeError
from statetool.formats.keyed.entries import EntryBatch, Int64s, concat
from statetool.io.threads import in_threads
from statetool.saving.bootstrap.recipe import KeyedRecipe
from statetool.saving.bootstrap.records import measured_rows, table_entries
from statetool.saving.streams.runs import portions

if TYPE_CHECKING:
    import numpy.typing as npt

#: Rows that are encoded at once: few enough that their entries stay in the processor's cache.
BATCH_ROWS: Final = 1 << 14
#: Rows that are measured at once: with fewer, threads wait for each other between short steps.
_MEASURED_ROWS: Final = 1 << 16
#: Bytes of entries that are put together at once: few enough for the cache, enough to be worth a call.
_PORTION_BYTES: Final = 8 << 20
#: Bytes of rows, of several parts of a table, that are put into one batch.
_TOGETHER_BYTES: Final = 64 << 20
#: Rows of a chunk that each portion should have: taking fewer at once takes longer than dealing them through local disk.
_LEAST_ROWS: Final = 256
#: Rows that are ordered by key group together.
_PART_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a table, and how they are found by key group: ``groups`` uint16[n] ascending, of row ``order`` int32[n].

    ``size_bytes`` int64[max parallelism]: the bytes of the entries of each key group, about.
    """

    recipe: KeyedRecipe
    rows: pa.RecordBatch
    groups: npt.NDArray[np.uint16]
    order: npt.NDArray[np.int32]
    size_bytes: Int64s

    @classmethod
    def of(cls, recipe: KeyedRecipe, rows: pa.RecordBatch) -> _Part:
        groups = np.empty(rows.num_rows, dtype=np.uint16)
        size_bytes = np.zeros(recipe.max_parallelism, dtype=np.int64)
        for at in range(0, rows.num_rows, _MEASURED_ROWS):
            some = rows.slice(at, _MEASURED_ROWS)
            own, sizes = measured_rows(recipe, some)
            size_bytes += np.bincount(own, sizes, recipe.max_parallelism).astype(np.int64)
            groups[at : at + _MEASURED_ROWS] = own
        order = np.argsort(groups, kind="stable").astype(np.int32)
        return cls(recipe, rows, groups[order], order, size_bytes)

    def span(self, numbers: range) -> tuple[int, int]:
        """Return where the rows of a range of key groups begin and end in ``order``."""
        # Of another type, all groups would be converted.
        edges = np.array([numbers.start, numbers.stop], dtype=np.uint16)
        low, high = np.searchsorted(self.groups, edges).tolist()
        return low, high

    def taken(self, first: int, stop: int) -> pa.RecordBatch:
        return take_rows(self.rows, self.order[first:stop])


def comes_in_portions(table: pa.Table, subtasks: int) -> bool:
    """Tell whether the rows of portions are many enough in each chunk of a table: small tables are not worth it, nor are small chunks."""
    chunks = max(column.num_chunks for column in table.columns)
    # Entries have about twice the bytes of their rows. `nbytes` does not know all types.
    count: int = max(2 * table.get_total_buffer_size() // _PORTION_BYTES, subtasks)
    return bool(_LEAST_ROWS * chunks * count <= table.num_rows)


class TablesInPortions:
    """Tables of one operator's keyed state. Beside them it takes six bytes of memory a row.

    Raises
    ------
    EncodeError
        As :func:`~statetool.saving.bootstrap.records.table_entries`, of the keys; a column of a type whose rows Arrow cannot take.
    """

    def __init__(self, tables: Sequence[tuple[pa.Table, KeyedRecipe]], max_parallelism: int, threads: int) -> None:
        used = [(table.select(recipe.columns(table.column_names)), recipe) for table, recipe in tables]
        for table, recipe in used:
            _check_taken(recipe, table.schema)
        parts = ((recipe, rows) for table, recipe in used for rows in table.to_batches(max_chunksize=_PART_ROWS))
        self._parts = list(in_threads(lambda part: _Part.of(*part), (p for p in parts if p[1].num_rows), threads))
        size = np.zeros(max_parallelism, dtype=np.int64)
        for part in self._parts:
            size += part.size_bytes
        #: int64[max parallelism + 1]: bytes of the entries before each key group, about.
        self._edges: Int64s = np.append(0, np.cumsum(size))

    def cut(self, numbers: range) -> Iterator[range]:
        """Cut a range of key groups into portions."""
        for first, stop in portions(self._edges[numbers.start : numbers.stop + 1], _PORTION_BYTES):
            yield numbers[first:stop]

    def size_bytes(self, numbers: range) -> int:
        """Return the bytes of the entries of a range of key groups, about."""
        return int(self._edges[numbers.stop] - self._edges[numbers.start])

    def batches(self, numbers: range) -> Iterator[tuple[KeyedRecipe, pa.RecordBatch]]:
        """Yield the rows of a range of key groups, some at a time."""
        for part in self._parts:
            low, high = part.span(numbers)
            size = part.size_bytes[numbers.start : numbers.stop].sum() / max(1, high - low)
            step = max(1, min(BATCH_ROWS, int(_PORTION_BYTES / max(1, size))))
            for at in range(low, high, step):
                yield part.recipe, part.taken(at, min(at + step, high))

    def entries(self, numbers: range) -> EntryBatch | None:
        """Return the entries of a range of key groups, all at once; ``None`` where there is no row."""
        entries = [e for recipe, rows in self._rows(numbers) for e in table_entries(recipe, rows)]
        return concat(entries) if entries else None

    def _rows(self, numbers: range) -> Iterator[tuple[KeyedRecipe, pa.RecordBatch]]:
        """Yield the rows of a range of key groups, many at once: those of all parts of a table."""
        for recipe, parts in groupby(self._parts, key=lambda part: part.recipe):
            taken = [part.taken(low, high) for part in parts for low, high in [part.span(numbers)] if low < high]
            for first, stop in portions(np.cumsum([0, *(rows.nbytes for rows in taken)]), _TOGETHER_BYTES):
                yield from (
                    (recipe, rows) for rows in pa.Table.from_batches(taken[first:stop]).combine_chunks().to_batches()
                )


def _check_taken(recipe: KeyedRecipe, schema: pa.Schema) -> None:
    """Refuse columns whose rows Arrow cannot take."""
    for field in schema:
        try:
            take_rows(pa.RecordBatch.from_arrays([pa.nulls(0, field.type)], [field.name]), np.zeros(0, dtype=np.int32))
        except pa.ArrowNotImplementedError:
            raise EncodeError(f"column {field.name!r} is of type {field.type}", hint="cast the column first").at(
                operator=recipe.operator
            ) from None
