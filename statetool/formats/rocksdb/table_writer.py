"""New RocksDB table files: sorted entries with sequence number 0, as at the bottom level after a full compaction.

RocksDB 6.6 and later read format version 5 with CRC-32C. Each key is stored once, so the index has user keys from version 3 on. Index values
are delta-encoded from version 4 on, and each index entry is a restart point.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from statetool.formats.rocksdb.manifest import BYTEWISE, varint
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_file import INDEX_TYPE, MAGIC, PROPERTIES, TAG_BYTES
from statetool.formats.rocksdb.table_output import TableOutput, Write, compress_block, footer_places, meta_block
from statetool.formats.rocksdb.table_settings import BLOCK_SIZE, TableSettings
from statetool.kernels.core.arrays import Bytes, frozen
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.rocksdb.blocks import TRAILER_BYTES, encode_index
from statetool.kernels.rocksdb.checksums import CRC32C, seal
from statetool.kernels.rocksdb.table_blocks import VALUE, encode_blocks

#: Tag of all entries: sequence number 0, a value.
TAG: Final = bytes([VALUE]) + bytes(7)
#: Format versions from which the index has user keys, and delta-encoded values.
_USER_KEYS, _DELTA_VALUES = 3, 4
#: Bytes of entries that are encoded at once.
_PORTION_BYTES: Final = 256 << 10


class TableWriter:
    """Writer of one table file.

    Parameters
    ----------
    family, family_name
        The column family.
    number
        The number of the file.
    writer
        Identities of the database and of the session of its writer.
    """

    def __init__(
        self,
        write: Write,
        family: int,
        family_name: str,
        number: int,
        settings: TableSettings,
        writer: tuple[str, str],
    ) -> None:
        self._out = TableOutput(write)
        self._family, self._family_name, self.number = family, family_name, number
        self._settings, self._writer = settings, writer
        self._portion_bytes = max(_PORTION_BYTES, settings.block_bytes)
        self._waiting: list[Slice] = []
        self._waiting_bytes = 0
        self._entries = self._key_bytes = self._value_bytes = 0
        self._index_keys: list[bytes] = []
        self._sizes: list[int] = []
        self._first: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of data blocks so far."""
        return self._out.size_bytes

    def add(self, entries: Slice) -> None:
        """Append entries that sort after the previous ones."""
        if not len(entries):
            return
        if self._first is None:
            self._first = entries.key_at(0)
        self._entries += len(entries)
        key_bytes = int((entries.key_end - entries.key).sum())
        self._key_bytes += key_bytes + TAG_BYTES * len(entries)
        size = int(entries.value_end[-1] - entries.key[0])
        self._value_bytes += size - key_bytes
        self._waiting.append(_join([entries]))
        self._waiting_bytes += size
        if self._waiting_bytes >= self._portion_bytes:
            self._encode(final=False)

    def _encode(self, *, final: bool) -> None:
        """Write the full blocks of the waiting entries; all of them if no entries follow."""
        entries = _join(self._waiting)
        n = len(entries)
        room = int(entries.value_end[-1] - entries.key[0]) + 35 * n
        out: Bytes = np.empty(room, dtype=np.uint8)
        restarts, block_end, block_entries = (np.empty(n, dtype=np.int64) for _ in range(3))
        count = encode_blocks(
            entries.data, entries.key, entries.key_end, entries.value_end, self._settings.block_bytes,
            self._settings.restart_interval, int(final), restarts, out, block_end, block_entries,
        )  # fmt: skip
        compression = self._settings.compression.encode()
        parts, start = [], 0
        for end, following in zip(block_end[:count].tolist(), block_entries[:count].tolist(), strict=True):
            body, kind = compress_block(out[start:end].tobytes(), compression)
            parts += [body, bytes([kind, 0, 0, 0, 0])]
            self._sizes.append(len(body))
            self._index_keys.append(entries.key_at(following - 1))
            start = end
        if count:
            self._out.write(seal(b"".join(parts), self._sizes[-count:], CRC32C))
        done = int(block_entries[count - 1]) if count else 0
        left = entries.part(done, n)
        self._waiting = [_join([left])] if len(left) else []
        self._waiting_bytes = int(left.value_end[-1] - left.key[0]) if len(left) else 0

    def finish(self) -> tuple[bytes, bytes]:
        """Write the end of the file, and return the first and last key with their tags. It must have entries."""
        if self._waiting:
            self._encode(final=True)
        assert self._first is not None
        data_bytes = self._out.size_bytes
        index = self._index()
        index_place = self._out.block(index, 0, CRC32C)
        properties = self._out.block(meta_block(self._properties(data_bytes, len(index) + TRAILER_BYTES)), 0, CRC32C)
        metaindex = self._out.block(meta_block({PROPERTIES: b"".join(map(varint, properties))}), 0, CRC32C)
        footer = bytes([CRC32C]) + footer_places(metaindex, index_place)
        self._out.write(footer + self._settings.format_version.to_bytes(4, "little") + MAGIC)
        return self._first + TAG, self._index_keys[-1] + TAG

    @property
    def _has_user_keys(self) -> bool:
        return self._settings.format_version >= _USER_KEYS

    @property
    def _has_delta_values(self) -> bool:
        return self._settings.format_version >= _DELTA_VALUES

    def _index(self) -> bytes:
        tag = b"" if self._has_user_keys else TAG
        keys: Bytes = frozen(np.frombuffer(b"".join(key + tag for key in self._index_keys), dtype=np.uint8))
        key_end = np.cumsum([len(key) + len(tag) for key in self._index_keys])
        size = np.array(self._sizes, dtype=np.int64)
        offset = np.cumsum(size + TRAILER_BYTES) - size - TRAILER_BYTES
        key = np.concatenate([[0], key_end[:-1]]).astype(np.int64)
        out, restarts = np.empty(len(keys) + 44 * len(size) + 8, dtype=np.uint8), np.empty(len(size), dtype=np.int64)
        used = encode_index(
            keys, key, key_end - len(tag), len(tag), int(self._has_delta_values), offset, size, restarts, out
        )
        return out[:used].tobytes()

    def _properties(self, data_bytes: int, index_bytes: int) -> dict[bytes, bytes]:
        settings, now = self._settings, int(time.time())
        numbers = {
            "column.family.id": self._family, "creation.time": now, "data.size": data_bytes, "deleted.keys": 0,
            "file.creation.time": now, "filter.size": 0, "fixed.key.length": 0, "format.version": 0,
            "index.key.is.user.key": int(self._has_user_keys), "index.size": index_bytes,
            "index.value.is.delta.encoded": int(self._has_delta_values), "merge.operands": 0,
            "num.data.blocks": len(self._sizes), "num.entries": self._entries, "num.range-deletions": 0,
            "oldest.key.time": now, "original.file.number": self.number, "raw.key.size": self._key_bytes,
            "raw.value.size": self._value_bytes,
        }  # fmt: skip
        texts = {
            "block.based.table.prefix.filtering": "0", "block.based.table.whole.key.filtering": "1",
            "column.family.name": self._family_name, "comparator": BYTEWISE.decode(), "compression": settings.compression,
            "creating.db.identity": self._writer[0], "creating.session.identity": self._writer[1],
            "merge.operator": settings.merge_operator, "prefix.extractor.name": "nullptr", "property.collectors": "[]",
        }  # fmt: skip
        properties = {f"rocksdb.{name}".encode(): varint(value) for name, value in numbers.items()}
        properties |= {f"rocksdb.{name}".encode(): value.encode() for name, value in texts.items()}
        return properties | {INDEX_TYPE: bytes(4), BLOCK_SIZE: varint(settings.block_bytes)}


def _join(entries: list[Slice]) -> Slice:
    """Return adjacent entries over one buffer of only their bytes."""
    if len(entries) == 1 and not entries[0].key[0] and entries[0].value_end[-1] == len(entries[0].data):
        return entries[0]
    first = np.array([e.key[0] for e in entries], dtype=np.int64)
    size = np.array([e.value_end[-1] for e in entries], dtype=np.int64) - first
    moved = np.cumsum(size) - size - first
    data: Bytes = np.empty(int(size.sum()), dtype=np.uint8)
    for i, e in enumerate(entries):
        copy_ranges(e.data, first[i : i + 1], size[i : i + 1], data, (moved + first)[i : i + 1])
    columns = [
        np.concatenate([column + by for column, by in zip(own, moved, strict=True)])
        for own in ([e.key for e in entries], [e.key_end for e in entries], [e.value_end for e in entries])
    ]
    return Slice(data=frozen(data), key=columns[0], key_end=columns[1], value_end=columns[2])
