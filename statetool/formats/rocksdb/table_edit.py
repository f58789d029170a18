"""Copies of RocksDB table files without some entries, or with new ones. Blocks without such entries keep their bytes.

A changed file has the data blocks of the old one, of which some are encoded again, and then a new tail: its filter as it was if no key is new
(it may name keys that are gone), an index with one level, the properties, the metaindex and the footer. Partitioned filters, whose parts
would move, and hash indexes are left out: RocksDB reads the file without them, and writes new ones at its next compaction.

RocksDB names blocks in a cache that several jobs may share by the session that wrote the file. A changed file therefore has another session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

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
from statetool.kernels.rocksdb.table_blocks import VALUE

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
    """Numbers of removed entries, of deletions and merge operands among them, and the bytes of their keys and values.

    Added entries count as negative ones.
    """

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
    """A changed data block: its index in the file, its new bytes and the first and last key with their tags.

    All of them are empty if no entry is left. ``adds`` tells if it has new entries.
    """

    index: int
    plain: bytes
    first: bytes
    last: bytes
    removed: Removed
    adds: bool = False


#: New entries, key and value, by the index of the block that gets them.
Additions: TypeAlias = Mapping[int, Sequence[tuple[bytes, bytes]]]


def place_additions(table: SortedTable, entries: Iterable[tuple[bytes, bytes]]) -> Additions:
    """Return the blocks that get new entries: by their keys, the last one if they sort after all others."""
    found: dict[int, list[tuple[bytes, bytes]]] = {}
    for key, value in entries:
        block = min(table.blocks.first_not_before(key), len(table.blocks.size) - 1)
        found.setdefault(block, []).append((key, value))
    return found


def changed_blocks(
    table: SortedTable, wanted: Mask, stays: Callable[[Run], Mask], added: Additions | None = None
) -> Iterator[ChangedBlock]:
    """Yield the blocks of a file from which entries are removed, or to which some are added, in order.

    Parameters
    ----------
    wanted
        Mask of the blocks that may have such entries; others are not read.
    stays
        Returns a mask of the entries that stay.
    added
        New entries by block. No entry that stays in any file of the database has their keys: they get the sequence number of another entry
        of their block, so that the bounds of the file remain true.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    added = added or {}
    is_wanted = wanted.copy()
    is_wanted[list(added)] = True
    numbers = np.flatnonzero(is_wanted)
    portion = np.cumsum(table.blocks.size[numbers]) // _PORTION_BYTES
    for indexes in np.split(numbers, np.flatnonzero(np.diff(portion)) + 1):
        if not len(indexes):
            continue
        blocks = PlainBlocks.read([(table, indexes)])
        (run,) = blocks.runs()
        mask = stays(run)
        ends = np.cumsum(blocks.counts)
        block_of = np.repeat(np.arange(len(ends)), blocks.counts)
        gets = np.flatnonzero(np.isin(indexes, list(added)))
        for b in np.union1d(block_of[~mask], gets).tolist():
            entries = np.arange(int(ends[b] - blocks.counts[b]), int(ends[b]))
            new = added.get(int(indexes[b]), ())
            sequence = int(run.tag[entries[0]]) >> 8
            left = _with_entries(run.take(entries[mask[entries]]), new, sequence)
            removed = _count(run.take(entries[~mask[entries]])) + _count_added(new)
            yield ChangedBlock(int(indexes[b]), *_encode(left), removed, adds=bool(new))


def _with_entries(run: Run, entries: Sequence[tuple[bytes, bytes]], sequence: int) -> Run:
    """Return a run with new entries of a sequence number in their places."""
    if not entries:
        return run
    tag = sequence << 8 | VALUE
    keys = b"".join(key + tag.to_bytes(TAG_BYTES, "little") for key, _ in entries)
    values = b"".join(value for _, value in entries)
    key_size, value_size = (np.array([len(e[i]) for e in entries], dtype=np.int64) for i in (0, 1))
    key_end = len(run.keys) + np.cumsum(key_size + TAG_BYTES) - TAG_BYTES
    value_end = len(run.data) + np.cumsum(value_size)
    joined = Run(
        keys=frozen(np.concatenate([run.keys, np.frombuffer(keys, dtype=np.uint8)])),
        key=np.concatenate([run.key, key_end - key_size]),
        key_end=np.concatenate([run.key_end, key_end]),
        tag=np.concatenate([run.tag, np.full(len(entries), tag, dtype=np.uint64)]),
        data=frozen(np.concatenate([run.data, np.frombuffer(values, dtype=np.uint8)])),
        value=np.concatenate([run.value, value_end - value_size]),
        value_end=np.concatenate([run.value_end, value_end]),
    )
    # Versions of a key follow each other, newest first.
    return joined.take(np.array(sorted(range(len(joined.key)), key=joined.key_at), dtype=np.int64))


def _count_added(entries: Sequence[tuple[bytes, bytes]]) -> Removed:
    return Removed(
        entries=-len(entries),
        key_bytes=-sum(len(key) + TAG_BYTES for key, _ in entries),
        value_bytes=-sum(len(value) for _, value in entries),
    )


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
            edits[edit.index] = replace(edit, plain=b"")
        out.copy(f, at, int(blocks.offset[-1] + blocks.size[-1]) + TRAILER_BYTES)
        left = np.flatnonzero(sizes >= 0)
        if not len(left):
            return None
        moved = blocks.offset + np.cumsum(added) - added
        data_bytes = out.size_bytes
        new_places = {}
        for name, handle in places.items():
            # The filter does not have the keys of new entries.
            if name.startswith(_FULL_FILTER) and not any(edit.adds for edit in edits.values()):
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
