"""Copies of RocksDB table files without some entries. Blocks without such entries keep their bytes.

A changed file has the data blocks of the old one, of which some are encoded again, and then a new tail: its filter as it was (it may name
keys that are gone), an index with one level, the properties, the metaindex and the footer. Partitioned filters, whose parts would move, and
hash indexes are left out: RocksDB reads the file without them, and writes new ones at its next compaction.

RocksDB names blocks in a cache that several jobs may share by the session that wrote the file. A changed file therefore has another session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.errors import UnsupportedError
from statetool.formats.rocksdb.manifest import varint
from statetool.formats.rocksdb.table_file import (
    FOOTER_BYTES,
    INDEX_TYPE,
    OLD_MAGIC,
    PROPERTIES,
    TAG_BYTES,
    Blocks,
    SortedTable,
    block_place,
    numeric_properties,
)
from statetool.formats.rocksdb.table_output import TableOutput, Write, compress_block, footer_places, meta_block
from statetool.formats.rocksdb.table_runs import PlainBlocks, Run, read_runs
from statetool.kernels.core.arrays import Bytes, Int64s, Mask, frozen
from statetool.kernels.rocksdb.blocks import TRAILER_BYTES, encode_index
from statetool.kernels.rocksdb.merge import DELETION, MERGE, SINGLE_DELETION

#: Stored bytes of blocks that are decoded at once.
_PORTION_BYTES: Final = 4 << 20
_RESTART_INTERVAL: Final = 16
_FULL_FILTER: Final = b"fullfilter."
_LEFT_OUT: Final = (b"filter.", b"partitionedfilter.", b"rocksdb.hashindex.")
_SESSION: Final = b"rocksdb.creating.session.identity"
_SESSION_DIGITS: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SESSION_SIZE: Final = 20


@dataclass(frozen=True, slots=True)
class Removed:
    """Numbers of removed entries, of deletions and merge operands among them, and the bytes of their keys and values."""

    entries: int = 0
    deletions: int = 0
    operands: int = 0
    key_bytes: int = 0
    value_bytes: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(
            self.entries + other.entries, self.deletions + other.deletions, self.operands + other.operands,
            self.key_bytes + other.key_bytes, self.value_bytes + other.value_bytes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """A data block from which entries were removed: its index in the file, its new bytes and the first and last key with their tags.

    All of them are empty if no entry is left.
    """

    index: int
    plain: bytes
    first: bytes
    last: bytes
    removed: Removed


def changed_blocks(table: SortedTable, wanted: Mask, stays: Callable[[Run], Mask]) -> Iterator[ChangedBlock]:
    """Yield the blocks of a file from which entries are removed, in order.

    Parameters
    ----------
    wanted
        Mask of the blocks that may have such entries; others are not read.
    stays
        Returns a mask of the entries that stay.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    numbers = np.flatnonzero(wanted)
    portion = np.cumsum(table.blocks.size[numbers]) // _PORTION_BYTES
    for indexes in np.split(numbers, np.flatnonzero(np.diff(portion)) + 1):
        if not len(indexes):
            continue
        blocks = PlainBlocks.read([(table, indexes)])
        (run,) = blocks.runs()
        mask = stays(run)
        ends = np.cumsum(blocks.counts)
        block_of = np.repeat(np.arange(len(ends)), blocks.counts)
        for b in np.unique(block_of[~mask]).tolist():
            entries = np.arange(int(ends[b] - blocks.counts[b]), int(ends[b]))
            left = run.take(entries[mask[entries]])
            plain, first, last = _encode(left)
            yield ChangedBlock(int(indexes[b]), plain, first, last, _count(run.take(entries[~mask[entries]])))


def _encode(run: Run) -> tuple[bytes, bytes, bytes]:
    """Return the bytes of a block, and its first and last key."""
    if not len(run.key):
        return b"", b"", b""
    return run.encode(_RESTART_INTERVAL).tobytes(), _key_at(run, 0), _key_at(run, -1)


def _key_at(run: Run, index: int) -> bytes:
    return run.keys[run.key[index] : run.key_end[index] + TAG_BYTES].tobytes()


def _count(run: Run) -> Removed:
    kinds = (run.tag & np.uint64(0xFF)).astype(np.int64)
    return Removed(
        entries=len(kinds),
        deletions=int(((kinds == DELETION) | (kinds == SINGLE_DELETION)).sum()),
        operands=int((kinds == MERGE).sum()),
        key_bytes=int((run.key_end - run.key).sum()) + TAG_BYTES * len(kinds),
        value_bytes=int((run.value_end - run.value).sum()),
    )


def write_changed(table: SortedTable, changed: Iterable[ChangedBlock], write: Write) -> tuple[bytes, bytes] | None:
    """Write a copy of a file with changed blocks.

    Returns
    -------
    tuple[bytes, bytes] or None
        The first and last key with their tags, ``None`` if no entry is left. The written bytes are then of no use.

    Raises
    ------
    UnsupportedError
        The file has a meta block of unknown meaning.
    """
    places, properties = table.meta()
    if unknown := [n for n in places if n != PROPERTIES and not n.startswith((_FULL_FILTER, *_LEFT_OUT))]:
        raise UnsupportedError(
            f"a table file with the block {unknown[0].decode('utf-8', 'replace')}, whose meaning is unknown",
            hint="run: statetool convert SRC CANONICAL, and use that",
        ).at(file=table.stream.file)
    blocks = table.blocks
    n = len(blocks.size)
    added = np.zeros(n, dtype=np.int64)
    sizes = blocks.size.copy()
    edits: dict[int, ChangedBlock] = {}
    out = TableOutput(write)
    removed = Removed()
    with table.stream.open() as f:
        at = 0
        for edit in changed:
            start, stored = int(blocks.offset[edit.index]), int(blocks.size[edit.index]) + TRAILER_BYTES
            out.copy(f, at, start)
            at = start + stored
            before = out.size_bytes
            sizes[edit.index] = _write_data(edit.plain, properties, out, table.checksum)
            added[edit.index] = out.size_bytes - before - stored
            removed += edit.removed
            edits[edit.index] = ChangedBlock(edit.index, b"", edit.first, edit.last, edit.removed)
        out.copy(f, at, int(blocks.offset[-1] + blocks.size[-1]) + TRAILER_BYTES)
        left = np.flatnonzero(sizes >= 0)
        if not len(left):
            return None
        moved = blocks.offset + np.cumsum(added) - added
        data_bytes = out.size_bytes
        new_places = {}
        for name, handle in places.items():
            if name.startswith(_FULL_FILTER):
                offset, size = block_place(handle)
                new_places[name] = out.size_bytes, size
                out.copy(f, offset, offset + size + TRAILER_BYTES)
    index = _index(table, replace(blocks, offset=moved, size=sizes), edits, left)
    index_place = out.block(index, 0, table.checksum)
    new_properties = _properties(properties, removed, data_bytes, len(index) + TRAILER_BYTES, len(left))
    new_places[PROPERTIES] = out.block(meta_block(new_properties), 0, table.checksum)
    handles = {name: varint(offset) + varint(size) for name, (offset, size) in new_places.items()}
    metaindex = out.block(meta_block(handles), 0, table.checksum)
    out.write(_footer(table, metaindex, index_place))
    return _edge(table, edits, int(left[0]), 0), _edge(table, edits, int(left[-1]), -1)


def _write_data(plain: bytes, properties: dict[bytes, bytes], out: TableOutput, checksum: int) -> int:
    """Append a data block, compressed if that helps, and return its size; -1 if it has no entries and is left out."""
    if not plain:
        return -1
    body, kind = compress_block(plain, properties.get(b"rocksdb.compression", b""))
    return out.block(body, kind, checksum)[1]


def _index(table: SortedTable, blocks: Blocks, edits: dict[int, ChangedBlock], left: Int64s) -> bytes:
    """Return the index of the remaining blocks. A changed block is found by its last key: the old one may be gone."""
    tail, delta = table.index_form
    keys, key, key_end = [blocks.keys.tobytes()], blocks.key.copy(), blocks.key_end.copy()
    size = len(blocks.keys)
    for edit in edits.values():
        last = edit.last if tail else edit.last[:-TAG_BYTES]
        key[edit.index], key_end[edit.index] = size, size + len(last) - tail
        keys.append(last)
        size += len(last)
    joined: Bytes = frozen(np.frombuffer(b"".join(keys), dtype=np.uint8))
    own = Blocks(keys=joined, key=key, key_end=key_end, offset=blocks.offset, size=blocks.size).take(left)
    room = int((own.key_end - own.key).sum()) + (44 + tail) * len(left) + 8
    out, restarts = np.empty(room, dtype=np.uint8), np.empty(len(left), dtype=np.int64)
    used = encode_index(own.keys, own.key, own.key_end, tail, delta, own.offset, own.size, restarts, out)
    return out[:used].tobytes()


def _properties(
    old: dict[bytes, bytes], removed: Removed, data_bytes: int, index_bytes: int, blocks: int
) -> dict[bytes, bytes]:
    """Return the properties of a changed file."""
    numbers = numeric_properties(old)
    changes = {
        b"rocksdb.num.entries": -removed.entries,
        b"rocksdb.deleted.keys": -removed.deletions,
        b"rocksdb.merge.operands": -removed.operands,
        b"rocksdb.raw.key.size": -removed.key_bytes,
        b"rocksdb.raw.value.size": -removed.value_bytes,
    }
    new = {name: numbers[name] + change for name, change in changes.items() if name in numbers}
    new |= {
        b"rocksdb.data.size": data_bytes, b"rocksdb.index.size": index_bytes, b"rocksdb.num.data.blocks": blocks,
        b"rocksdb.tail.start.offset": data_bytes, b"rocksdb.index.partitions": 0, b"rocksdb.top-level.index.size": 0,
    }  # fmt: skip
    properties = old | {name: varint(value) for name, value in new.items() if name in old}
    if INDEX_TYPE in old:
        properties[INDEX_TYPE] = bytes(4)
    if _SESSION in old:
        digest = hashlib.sha256(old[_SESSION] + repr(sorted(properties.items())).encode()).digest()
        properties[_SESSION] = bytes(_SESSION_DIGITS[b % len(_SESSION_DIGITS)] for b in digest[:_SESSION_SIZE])
    return properties


def _footer(table: SortedTable, metaindex: tuple[int, int], index: tuple[int, int]) -> bytes:
    with table.stream.open() as f:
        old = bytes(f.read_at(table.stream.size_bytes - FOOTER_BYTES, FOOTER_BYTES))
    places = footer_places(metaindex, index)
    # Version 0 has neither the kind of checksums nor a version.
    return places + OLD_MAGIC if old.endswith(OLD_MAGIC) else old[:1] + places + old[41:]


def _edge(table: SortedTable, edits: dict[int, ChangedBlock], block: int, entry: int) -> bytes:
    """Return the first (0) or last (-1) key of a block."""
    if block in edits:
        return edits[block].last if entry else edits[block].first
    (run,) = read_runs([(table, np.array([block]))])
    return _key_at(run, entry)
