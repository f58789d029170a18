"""Properties of many RocksDB table files, read from their last kilobytes: one request per file.

The properties block, the metaindex block and the footer are the last parts of a table file (:mod:`statetool.formats.rocksdb.table_file`). All
files of one call are decoded together by kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError
from statetool.formats.rocksdb.table_file import FOOTER_BYTES, MAGIC, OLD_MAGIC
from statetool.formats.stream import Stream, read_parts
from statetool.kernels.core.arrays import Bytes, Int64s, frozen
from statetool.kernels.core.codes import OK
from statetool.kernels.rocksdb.blocks import (
    BLOCK_MESSAGES,
    TRAILER_BYTES,
    decode_blocks,
    find_values,
    measure_blocks,
    read_numbers,
)
from statetool.kernels.rocksdb.checksums import CRC32C, XXH3, first_bad_block

#: Properties and metaindex usually have about 1 KiB.
TAIL_BYTES: Final = 4 << 10
_OLD_FOOTER: Final = 48
_TAG_BYTES: Final = 8
_MAGIC: Final = np.frombuffer(MAGIC, dtype=np.uint8)
_OLD_MAGIC: Final = np.frombuffer(OLD_MAGIC, dtype=np.uint8)
_HANDLE: Final = (b"rocksdb.properties",)
_NUMBERS: Final = (
    b"rocksdb.num.entries",
    b"rocksdb.deleted.keys",
    b"rocksdb.merge.operands",
    b"rocksdb.raw.key.size",
    b"rocksdb.raw.value.size",
    b"rocksdb.num.range-deletions",
)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """Counts of one table file, as RocksDB stored them when it wrote the file.

    Attributes
    ----------
    entries
        Values, merge operands and deletions.
    deletions, merges
        The deletions and the merge operands among them.
    raw_key_bytes, raw_value_bytes
        Bytes of keys, each with a tag of 8 bytes, and of values, before compression.
    """

    entries: int
    deletions: int
    merges: int
    raw_key_bytes: int
    raw_value_bytes: int


def read_properties(streams: Sequence[Stream]) -> list[TableProperties | str]:
    """Return the properties of table files; for a file that only RocksDB itself can read, the reason.

    Raises
    ------
    FormatError
        Damaged; with file and offset.
    """
    found: list[TableProperties | str] = ["not read"] * len(streams)
    sizes = np.array([s.size_bytes for s in streams], dtype=np.int64)
    wanted = np.minimum(sizes, TAIL_BYTES)
    todo = np.arange(len(streams))
    while len(todo):
        tails = _Tails([streams[i] for i in todo.tolist()], sizes[todo], wanted[todo])
        needed = tails.read()
        for i, result in zip(todo.tolist(), tails.found, strict=True):
            found[i] = result
        short = needed > wanted[todo]
        wanted[todo] = np.maximum(needed, wanted[todo])
        todo = todo[short]
    return found


class _Tails:
    """The last bytes of files, in one buffer: those of file ``i`` end at ``ends[i]``."""

    def __init__(self, streams: Sequence[Stream], sizes: Int64s, wanted: Int64s) -> None:
        self.streams = streams
        self.sizes = sizes
        #: The properties of each file, or why they are not known.
        self.found: list[TableProperties | str] = ["not a table file that statetool can read"] * len(streams)
        for stream in streams:
            if stream.size_bytes < FOOTER_BYTES:
                raise FormatError(f"a table file of {stream.size_bytes} bytes").at(
                    file=stream.file, offset=stream.start
                )
        parts = zip(streams, (sizes - wanted).tolist(), wanted.tolist(), strict=True)
        self.data: Bytes = frozen(np.frombuffer(b"".join(read_parts(list(parts))), dtype=np.uint8))
        self.ends = np.cumsum(wanted)
        #: First byte of each file in the buffer.
        self.starts = self.ends - wanted
        #: What has to be added to an offset in a file to find it in the buffer.
        self.shift = self.ends - sizes

    def read(self) -> Int64s:
        """Fill ``found``, and return the number of last bytes that each file needs."""
        needed = self.ends - self.starts
        known, kinds, metaindex = self._footers()
        known, blocks = self._blocks(known, metaindex, needed)
        handles = self._values(known, kinds[known], blocks, _HANDLE)
        with_properties = handles[0][:, 0] >= 0
        known = known[with_properties]
        places = self._numbers(known, handles[0][with_properties, 0], handles[1][with_properties, 0], 2)
        known, blocks = self._blocks(known, places, needed)
        starts, ends = self._values(known, kinds[known], blocks, _NUMBERS)
        present = (starts[:, :2] >= 0).all(axis=1) & (starts[:, 3:5] >= 0).all(axis=1)
        known, starts, ends = known[present], starts[present], ends[present]
        numbers = np.zeros(starts.shape, dtype=np.int64)
        for column in range(len(_NUMBERS)):
            has = starts[:, column] >= 0
            numbers[has, column] = self._numbers(known[has], starts[has, column], ends[has, column], 1)[:, 0]
        in_files = cast("list[list[int]]", numbers.tolist())
        for i, (entries, deletions, merges, keys, values, ranges) in zip(known.tolist(), in_files, strict=True):
            if ranges:
                self.found[i] = f"{self.streams[i].file} deletes ranges of keys"
            elif deletions + merges > entries:
                raise self._damaged(i, f"{deletions} deletions and {merges} merge operands among {entries} entries")
            else:
                self.found[i] = TableProperties(entries, deletions, merges, keys, values)
        return needed

    def _footers(self) -> tuple[Int64s, Int64s, Int64s]:
        """Return the files of known versions; the kinds of all checksums; and offset and size of each known file's metaindex."""
        at = self.ends[:, None] + np.arange(-FOOTER_BYTES, 0)
        footers = self.data[at]
        old = (footers[:, -_TAG_BYTES:] == _OLD_MAGIC).all(axis=1)
        new = (footers[:, -_TAG_BYTES:] == _MAGIC).all(axis=1)
        version = footers[:, 41:45].astype(np.int64) @ (1 << np.arange(0, 32, 8))
        kinds = np.where(old, CRC32C, footers[:, 0]).astype(np.int64)
        known = np.flatnonzero(old | (new & (version <= 5) & ((kinds == CRC32C) | (kinds == XXH3))))
        first = self.ends[known] - np.where(old[known], _OLD_FOOTER, FOOTER_BYTES - 1)
        return known, kinds, self._numbers(known, first, self.ends[known] - len(MAGIC), 2)

    def _blocks(self, files: Int64s, places: Int64s, needed: Int64s) -> tuple[Int64s, Int64s]:
        """Return the files whose blocks are in the buffer, and start and end of each block there. ``needed`` grows for the others."""
        offsets, sizes = places[:, 0], places[:, 1]
        last = self.sizes[files] - TRAILER_BYTES
        outside = (offsets < 0) | (sizes < 0) | (offsets > last) | (sizes > last - np.minimum(offsets, last))
        if outside.any():
            raise self._damaged(int(files[np.argmax(outside)]), "a block beyond the end of the file")
        needed[files] = np.maximum(needed[files], self.sizes[files] - offsets)
        inside = offsets + self.shift[files] >= self.starts[files]
        files, starts = files[inside], (offsets + self.shift[files])[inside]
        return files, np.stack([starts, starts + sizes[inside]], axis=1)

    def _values(self, files: Int64s, kinds: Int64s, blocks: Int64s, names: Sequence[bytes]) -> tuple[Int64s, Int64s]:
        """Return start and end of the values of names in blocks, -1 for absent ones, as int64[blocks, names]."""
        starts, ends = np.ascontiguousarray(blocks[:, 0]), np.ascontiguousarray(blocks[:, 1])
        for kind in (CRC32C, XXH3):
            of_kind = np.flatnonzero(kinds == kind)
            bad = first_bad_block(self.data, starts[of_kind], ends[of_kind], kind)
            if bad >= 0:
                raise self._damaged(int(files[of_kind[bad]]), "a block of a table file has a wrong checksum")
        # RocksDB does not compress these blocks.
        plain = self.data[ends] == 0 if len(ends) else np.zeros(0, dtype=np.bool_)
        counts = np.zeros(len(starts), dtype=np.int64)
        found_starts, found_ends = (np.full((len(starts), len(names)), -1, dtype=np.int64) for _ in range(2))
        if not plain.all():
            return found_starts, found_ends
        code, bad, size, *_ = measure_blocks(self.data, starts, ends, counts)
        if code == OK:
            n = int(counts.sum())
            keys = np.empty(int(size) + _TAG_BYTES, dtype=np.uint8)
            key, key_end, value, value_end = (np.empty(n, dtype=np.int64) for _ in range(4))
            tags = np.empty(n, dtype=np.uint64)
            code, bad = decode_blocks(self.data, starts, ends, keys, key, key_end, tags, value, value_end)
        if code != OK:
            raise self._damaged(int(files[bad]), BLOCK_MESSAGES[int(code)])
        # Names have no tag.
        joined, edges = _join(names)
        find_values(keys, key, key_end + _TAG_BYTES, counts, value, value_end, joined, edges, found_starts, found_ends)
        return found_starts, found_ends

    def _numbers(self, files: Int64s, starts: Int64s, ends: Int64s, count: int) -> Int64s:
        """Return consecutive varints, as int64[files, count]."""
        out = np.empty((len(files), count), dtype=np.int64)
        bad = read_numbers(self.data, np.ascontiguousarray(starts), np.ascontiguousarray(ends), out)
        if bad >= 0:
            raise self._damaged(int(files[bad]), "a number that does not end")
        return out

    def _damaged(self, index: int, words: str) -> FormatError:
        stream = self.streams[index]
        wanted = int(self.ends[index] - self.starts[index])
        return FormatError(f"properties of a table file: {words}", hint="the file is damaged").at(
            file=stream.file, offset=stream.start + stream.size_bytes - wanted
        )


def _join(names: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Return names one after another, and the edges between them."""
    return np.frombuffer(b"".join(names), dtype=np.uint8), np.cumsum([0, *map(len, names)])
