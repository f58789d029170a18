"""Entries of RocksDB table files in memory: blocks of several files, and one sorted run of entries per file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError
from statetool.formats.rocksdb.manifest import TableFile
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.stored_blocks import uncompress
from statetool.formats.rocksdb.table_file import TAG_BYTES, SortedTable
from statetool.kernels.core.arrays import Bytes, Int64s, frozen
from statetool.kernels.core.codes import OK
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.rocksdb.blocks import BLOCK_MESSAGES, decode_blocks, encode_block, measure_blocks
from statetool.kernels.rocksdb.merge import BlockRuns, MergeScratch, merge_blocks
from statetool.kernels.rocksdb.sorted_keys import first_not_before, first_unordered

#: Room for a key with its tag, so that eight bytes can be read from its start on.
_LEAST_WIDTH: Final = 2 * TAG_BYTES


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

    def key_at(self, index: int) -> bytes:
        """Return the key of one entry."""
        return bytes(self.keys[self.key[index] : self.key_end[index]])

    def between(self, low: bytes, high: bytes) -> Run:
        """Return the entries with keys from ``low`` (inclusive) to ``high`` (exclusive)."""
        low_bytes, high_bytes = (np.frombuffer(bound, dtype=np.uint8) for bound in (low, high))
        return self.take(
            slice(
                first_not_before(self.keys, self.key, self.key_end, low_bytes, 0),
                first_not_before(self.keys, self.key, self.key_end, high_bytes, 0),
            )
        )

    def take(self, index: slice | Int64s) -> Run:
        """Return the entries at these indexes."""
        return Run(
            keys=self.keys, key=self.key[index], key_end=self.key_end[index], tag=self.tag[index], data=self.data,
            value=self.value[index], value_end=self.value_end[index],
        )  # fmt: skip

    def packed(self) -> Slice:
        """Return all entries, those that others have replaced too, one after another over a new buffer."""
        key_size, value_size = self.key_end - self.key, self.value_end - self.value
        value_end = np.cumsum(key_size + value_size)
        key_end = value_end - value_size
        key = key_end - key_size
        data = np.empty(int(value_end[-1]) if len(value_end) else 0, dtype=np.uint8)
        copy_ranges(self.keys, self.key, key_size, data, key)
        copy_ranges(self.data, self.value, value_size, data, key_end)
        return Slice(data=frozen(data), key=key, key_end=key_end, value_end=value_end)

    def encode(self, interval: int) -> Bytes:
        """Return the bytes of a data block, with a restart point every ``interval`` entries."""
        n = len(self.key)
        size = int((self.key_end - self.key + self.value_end - self.value).sum()) + (34 + TAG_BYTES) * n + 8
        out, restarts = np.empty(size, dtype=np.uint8), np.empty(n, dtype=np.int64)
        used = encode_block(
            self.keys, self.key, self.key_end, self.data, self.value, self.value_end, interval, restarts, out
        )
        return out[:used]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBlocks:
    """Uncompressed blocks of several runs.

    Attributes
    ----------
    data, starts, ends
        Block ``i`` is in ``data`` from ``starts[i]`` to ``ends[i]``.
    edges
        int64[runs + 1]: the first block of each run.
    failure
        Makes the error for the block with this index, from what is wrong with it.
    counts
        int64[blocks]: number of entries of each block.
    key_bytes, longest_key, value_bytes
        Bytes of all full keys, of the longest one, and of all values.
    """

    data: Bytes
    starts: Int64s
    ends: Int64s
    edges: Int64s
    failure: Callable[[int, str], FormatError]
    counts: Int64s
    key_bytes: int
    longest_key: int
    value_bytes: int

    @classmethod
    def measure(
        cls, data: Bytes, starts: Int64s, ends: Int64s, edges: Int64s, failure: Callable[[int, str], FormatError]
    ) -> PlainBlocks:
        """Measure the entries of blocks.

        Raises
        ------
        FormatError
            Damaged.
        """
        counts = np.empty(len(starts), dtype=np.int64)
        code, bad, key_bytes, longest_key, value_bytes = measure_blocks(data, starts, ends, counts)
        if code != OK:
            raise failure(int(bad), BLOCK_MESSAGES[int(code)])
        return cls(
            data=data, starts=starts, ends=ends, edges=edges, failure=failure, counts=counts, key_bytes=int(key_bytes),
            longest_key=int(longest_key), value_bytes=int(value_bytes),
        )  # fmt: skip

    @classmethod
    def read(cls, wanted: Sequence[tuple[SortedTable, Int64s]]) -> PlainBlocks:
        """Read data blocks of several files (at least one) by their ascending indexes.

        Raises
        ------
        FormatError
            Damaged; with file and offset of the block.
        """

        def failure(block: int, words: str) -> FormatError:
            file = int(np.searchsorted(edges, block, side="right")) - 1
            return files[file].failure(block - int(edges[file]), words)

        for table, numbers in wanted:
            table.request(numbers)
        files = [table.stored(numbers) for table, numbers in wanted]
        edges = np.cumsum([0, *(len(f.sizes) for f in files)])
        return cls.measure(*uncompress(files), edges, failure)

    def runs(self) -> list[Run]:
        """Return the entries of each run, all over the same two buffers.

        Raises
        ------
        FormatError
            Damaged.
        """
        keys = np.empty(self.key_bytes, dtype=np.uint8)
        n = int(self.counts.sum())
        key, key_end, value, value_end = (np.empty(n, dtype=np.int64) for _ in range(4))
        tag = np.empty(n, dtype=np.uint64)
        code, bad = decode_blocks(self.data, self.starts, self.ends, keys, key, key_end, tag, value, value_end)
        if code != OK:
            raise self.failure(int(bad), BLOCK_MESSAGES[int(code)])
        frozen(keys)
        bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.counts)])[self.edges].tolist()
        return [
            Run(
                keys=keys, key=key[own], key_end=key_end[own], tag=tag[own], data=self.data, value=value[own],
                value_end=value_end[own],
            )
            for own in map(slice, bounds[:-1], bounds[1:])
        ]  # fmt: skip

    def check_order(self, wanted: Sequence[tuple[TableFile, SortedTable, Int64s]]) -> None:
        """Check that entries are in order, within the bounds that the index has for their blocks, and the manifest for their files.

        Parameters
        ----------
        wanted
            For each run its file, and the indexes of its blocks.

        Raises
        ------
        FormatError
            They are not: RocksDB would not find some of them.
        """
        for i, (run, (file, table, numbers)) in enumerate(zip(self.runs(), wanted, strict=True)):
            last = np.cumsum(self.counts[self.edges[i] : self.edges[i + 1]]) - 1
            if (bad := int(first_unordered(run.keys, run.key, run.key_end, run.tag))) >= 0:
                block = int(np.searchsorted(last, bad))
                raise self.failure(int(self.edges[i]) + block, "keys are not in ascending order")
            first = np.concatenate([[0], last[:-1] + 1])
            for block, (number, start, stop) in enumerate(
                zip(*(a.tolist() for a in (numbers, first, last)), strict=True)
            ):
                low = table.blocks.last_key(number - 1) if number else file.smallest
                high = min(table.blocks.last_key(number), file.largest)
                if stop >= start and not low <= run.key_at(start) <= run.key_at(stop) <= high:
                    raise self.failure(
                        int(self.edges[i]) + block, "keys are outside of the bounds of their block or file"
                    )

    def merge(self, low: bytes, high: bytes, *, behind_low: bool, with_high: bool, final: bool) -> Slice:
        """Merge the runs and drop entries replaced by newer ones.

        Parameters
        ----------
        low, high
            Keys to return, from ``low`` (optionally exclusive) to ``high`` (optionally inclusive). Only the last block of a run may contain
            keys after ``high``.

        Raises
        ------
        FormatError
            Damaged.
        """
        runs, n = len(self.edges) - 1, int(self.counts.sum())
        width = max(_LEAST_WIDTH, self.longest_key)
        out = np.empty(self.key_bytes + self.value_bytes, dtype=np.uint8)
        key, key_end, value_end = (np.empty(n, dtype=np.int64) for _ in range(3))
        code, n, size = merge_blocks(
            self.data, BlockRuns(self.starts, self.ends, self.edges), np.frombuffer(low, dtype=np.uint8),
            np.frombuffer(high, dtype=np.uint8), int(behind_low), int(with_high), width, MergeScratch.of(runs, width), out, key,
            key_end, value_end,
        )  # fmt: skip
        if code != OK:
            raise self.failure(int(n), BLOCK_MESSAGES[int(code)])
        return Slice(data=frozen(out[:size]), key=key[:n], key_end=key_end[:n], value_end=value_end[:n], final=final)


def read_runs(wanted: Sequence[tuple[SortedTable, Int64s]]) -> list[Run]:
    """Read the entries of data blocks of several files by their ascending indexes: one run per file, all over the same two buffers.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    return PlainBlocks.read(wanted).runs() if wanted else []


def merge_runs(runs: Sequence[tuple[Run, SortedTable]]) -> Slice:
    """Merge entries selected from files (at least one), and drop those replaced by newer ones.

    Raises
    ------
    FormatError
        Damaged; with the file.
    """
    blocks = [run.encode(len(run.key)) for run, _ in runs]
    ends = np.cumsum([len(block) for block in blocks])
    plain = PlainBlocks.measure(
        frozen(np.concatenate(blocks)),
        ends - [len(block) for block in blocks],
        ends,
        np.arange(len(blocks) + 1),
        lambda block, words: FormatError(words).at(file=runs[block][1].stream.file),
    )
    last = max(bytes(run.keys[run.key[-1] : run.key_end[-1]]) for run, _ in runs)
    return plain.merge(b"", last, behind_low=False, with_high=True, final=True)
