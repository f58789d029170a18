"""A checkpoint of terabytes in a simulated store: complete metadata and manifests, and table files that are sparse between a first block and
the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from statetool.formats.key_groups import prefix_size, range_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import ByteStreamHandle, FileHandle, IncrementalHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.rocksdb.table_file import FOOTER_BYTES, MAGIC
from statetool.kernels.rocksdb.checksums import CRC32C, masked_crc32c
from tests.support.servers.simulated_store import SimulatedObject, World
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import composite_key, encoded, group_of, keyed, serializer, timers

ROOT: Final = "bucket/job"
MAX_PARALLELISM: Final = 32768
OPERATORS: Final = ("orders", "payments")
#: Of a subtask: eight table files, the manifest and CURRENT.
FILES_OF_SUBTASK: Final = 10
STATES: Final = FILES_OF_SUBTASK - 2
TABLE_BYTES: Final = 62 << 20
#: Entries of a table file, as its properties say.
ENTRIES_OF_TABLE: Final = 1_000_000
#: The key that is stored in the operators, with its value.
KEY: Final = 7
VALUE: Final = 8
_PREFIX: Final = prefix_size(MAX_PARALLELISM)


def add_checkpoint(world: World, files: int, *, checkpoint_id: int) -> str:
    """Add a checkpoint with ``files`` files, which it shares with the others, and return its URI."""
    parallelism = files // FILES_OF_SUBTASK // len(OPERATORS)
    operators = tuple(_operator(world, uid, parallelism) for uid in OPERATORS)
    metadata = write_metadata(SnapshotMetadata(version=3, checkpoint_id=checkpoint_id, operators=operators))
    path = f"{ROOT}/chk-{checkpoint_id}"
    world.add(f"{path}/_metadata", _bytes_object(metadata))
    return f"sim://{path}"


def _operator(world: World, uid: str, parallelism: int) -> OperatorState:
    metas = (*(keyed(f"s{i}", "value", LONG) for i in range(STATES)), timers("_timer_state/event_t", LONG))
    header = write_keyed_header(
        KeyedHeader(version=6, compressed=False, key=serializer(LONG), states=metas, size_bytes=0)
    )

    names = [meta.name for meta in metas]
    # All keys have the same length.
    manifest_bytes = len(_manifest(_key(range(1)), names))

    def handle(subtask: int) -> IncrementalHandle:
        groups = range_for(subtask, parallelism, MAX_PARALLELISM)
        base = f"{ROOT}/shared/{uid}-{subtask}"
        objects: dict[str, SimulatedObject] = {f"{n:06}.sst": _table(groups) for n in range(1, STATES + 1)}
        manifest = "MANIFEST-000001"
        objects["CURRENT"] = _bytes_object(f"{manifest}\n".encode())
        objects[manifest] = SimulatedObject(
            manifest_bytes, lambda start, end: _manifest(_key(groups), names)[start:end]
        )
        for name, item in objects.items():
            world.add(f"{base}-{name}", item)
        named = [
            (name, FileHandle(path=f"sim://{base}-{name}", size_bytes=item.size)) for name, item in objects.items()
        ]
        return IncrementalHandle(
            tag=11,
            checkpoint_id=1,
            backend_id=f"00000000-0000-0000-0000-{subtask:012}",
            start=groups.start,
            count=len(groups),
            meta=ByteStreamHandle(name="meta", data=header),
            shared=tuple(named[:STATES]),
            private=tuple(named[STATES:]),
            checkpointed_size=0,
            handle_id=f"00000000-0000-0000-0001-{subtask:012}",
        )

    return OperatorState(
        operator_id=operator_id_for_uid(uid),
        parallelism=parallelism,
        max_parallelism=MAX_PARALLELISM,
        subtasks=tuple(SubtaskState(index=i, managed_keyed=handle(i)) for i in range(parallelism)),
    )


def _bytes_object(data: bytes) -> SimulatedObject:
    return SimulatedObject(len(data), lambda start, end: data[start:end])


def _key(groups: range) -> bytes:
    """Return a composite key of a subtask: that of :data:`KEY` if it is the subtask's."""
    group, key = _stored_key()
    return (group if group in groups else groups.start).to_bytes(_PREFIX, "big") + key


@cache
def _stored_key() -> tuple[int, bytes]:
    """Return key group and composite key of :data:`KEY`."""
    long = serializer(LONG)
    return group_of(long, KEY, MAX_PARALLELISM), composite_key(encoded(long, KEY))


def _table(groups: range) -> SimulatedObject:
    def read(start: int, end: int) -> bytes:
        first, last = _table_ends(_key(groups))
        parts = [first[start:end]] if start < len(first) else []
        behind = TABLE_BYTES - len(last)
        parts.append(bytes(max(0, min(end, behind) - max(start, len(first)))))
        if end > behind:
            parts.append(last[max(0, start - behind) : end - behind])
        return b"".join(parts)

    return SimulatedObject(TABLE_BYTES, read)


@cache
def _table_ends(key: bytes) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a table file with one entry."""
    tagged = key + (1 << 8 | 1).to_bytes(8, "little")
    first = _block({tagged: encoded(serializer(LONG), VALUE)})
    index = _block({tagged: _varint(0) + _varint(len(first) - 5)})
    properties = _block(
        {
            f"rocksdb.{name}".encode(): _varint(number)
            for name, number in sorted(
                {
                    "data.size": len(first),
                    "deleted.keys": 0,
                    "index.key.is.user.key": 0,
                    "index.value.is.delta.encoded": 0,
                    "merge.operands": 0,
                    "num.entries": ENTRIES_OF_TABLE,
                    "raw.key.size": ENTRIES_OF_TABLE * len(tagged),
                    "raw.value.size": ENTRIES_OF_TABLE * 8,
                }.items()
            )
        }
    )
    handle_size = len(_varint(TABLE_BYTES)) * 2
    metaindex_size = len(_block({b"rocksdb.properties": bytes(handle_size)}))
    start = TABLE_BYTES - FOOTER_BYTES - metaindex_size - len(properties) - len(index)
    at_properties = start + len(index)
    place = _varint(at_properties) + _varint(len(properties) - 5)
    metaindex = _block({b"rocksdb.properties": place.ljust(handle_size, b"\0")})
    footer = bytes([CRC32C]) + _varint(at_properties + len(properties)) + _varint(len(metaindex) - 5)
    footer += _varint(start) + _varint(len(index) - 5)
    footer = footer.ljust(41, b"\0") + (5).to_bytes(4, "little") + MAGIC
    return first, index + properties + metaindex + footer


def _block(entries: Mapping[bytes, bytes]) -> bytes:
    """Return a block with its trailer."""
    body = b"".join(_varint(0) + _varint(len(k)) + _varint(len(v)) + k + v for k, v in entries.items())
    body += (0).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\0"
    return body + masked_crc32c(body).to_bytes(4, "little")


def _manifest(key: bytes, states: Sequence[str]) -> bytes:
    """Return a manifest with a column family per state, and a table file in each but the last."""
    key = _sized(key + (1 << 8 | 1).to_bytes(8, "little"))
    edits = []
    for number, name in enumerate(states, 1):
        edits.append(_varint(200) + _varint(number) + _varint(201) + _sized(name.encode()))
        if number <= STATES:
            file = _varint(7) + _varint(0) + _varint(number) + _varint(TABLE_BYTES) + key + key
            edits.append(_varint(200) + _varint(number) + file)
    records = []
    for edit in edits:
        checksum = masked_crc32c(b"\1" + edit)
        records.append(checksum.to_bytes(4, "little") + len(edit).to_bytes(2, "little") + b"\1" + edit)
    return b"".join(records)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
