"""Entries of RocksDB table files in memory: one sorted run per file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.entries import Int64s
from statetool.formats.keyed.stored_blocks import uncompress
from statetool.formats.keyed.table_file import SortedTable
from statetool.kernels.arrays import Bytes, frozen
from statetool.kernels.blocks import BLOCK_MESSAGES, decode_blocks, measure_blocks
from statetool.kernels.codes import OK
from statetool.kernels.runs import first_not_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Entries of one file in order: full keys in ``keys``, values in ``data``; ``tag`` is sequence number * 256 + kind."""

    keys: Bytes
    key: Int64s
    key_end: Int64s
    tag: npt.NDArray[np.uint64]
    data: Bytes
    value: Int64s
    value_end: Int64s

    def between(self, low: bytes, high: bytes, *, behind_low: bool, with_high: bool) -> Run:
        """Return the entries with keys from ``low`` (optionally exclusive) to ``high`` (optionally inclusive)."""
        index = slice(
            first_not_before(self.keys, self.key, self.key_end, np.frombuffer(low, dtype=np.uint8), int(behind_low)),
            first_not_before(self.keys, self.key, self.key_end, np.frombuffer(high, dtype=np.uint8), int(with_high)),
        )
        return self.take(index)

    def key_at(self, index: int) -> bytes:
        """Return the key of one entry."""
        return bytes(self.keys[self.key[index] : self.key_end[index]])

    def take(self, index: slice | Int64s) -> Run:
        """Return the entries at these indexes."""
        return Run(
            keys=self.keys, key=self.key[index], key_end=self.key_end[index], tag=self.tag[index], data=self.data,
            value=self.value[index], value_end=self.value_end[index],
        )  # fmt: skip


def read_runs(wanted: Sequence[tuple[SortedTable, Int64s]]) -> list[Run]:
    """Read the entries of data blocks of several files by their ascending indexes: one run per file, all over the same two buffers.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    return [run for run, _ in read_blocks(wanted)]


def read_blocks(wanted: Sequence[tuple[SortedTable, Int64s]]) -> list[tuple[Run, Int64s]]:
    """Read blocks as :func:`read_runs`, and return the number of entries of each block too.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    if not wanted:
        return []
    for table, numbers in wanted:
        table.request(numbers)
    files = [table.stored(numbers) for table, numbers in wanted]
    edges = np.cumsum([0, *(len(f.sizes) for f in files)])
    plain, starts, ends = uncompress(files)
    counts = np.empty(len(starts), dtype=np.int64)
    code, bad, size = measure_blocks(plain, starts, ends, counts)
    stops = np.cumsum(counts)
    if code == OK:
        keys = np.empty(size, dtype=np.uint8)
        n = int(counts.sum())
        key, key_end, value, value_end = (np.empty(n, dtype=np.int64) for _ in range(4))
        tag = np.empty(n, dtype=np.uint64)
        code, bad = decode_blocks(plain, starts, ends, keys, key, key_end, tag, value, value_end)
    if code != OK:
        file = int(np.searchsorted(edges, bad, side="right")) - 1
        raise files[file].failure(bad - int(edges[file]), BLOCK_MESSAGES[int(code)])
    frozen(keys)
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), stops])[edges].tolist()
    runs = [
        Run(
            keys=keys, key=key[own], key_end=key_end[own], tag=tag[own], data=plain, value=value[own],
            value_end=value_end[own],
        )
        for own in map(slice, bounds[:-1], bounds[1:])
    ]  # fmt: skip
    return [(run, counts[a:b]) for run, a, b in zip(runs, edges[:-1], edges[1:], strict=True)]
