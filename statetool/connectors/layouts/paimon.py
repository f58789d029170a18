"""Paimon's sink (``org.apache.paimon.flink.sink``).

Writers and committer store the union list state ``commit_user_state`` (a string: the commit user). Writers also store the union list state
``paimon_store_sink_write_state``: table, key, partition (``BinaryRow``), bucket, value. The committer stores
``streaming_committer_raw_states``: byte arrays, each a versioned ``ManifestCommittable``, and with ``sink.savepoint.auto-tag``
``streaming_committer_for_tags_states``: the identifiers whose snapshots get a tag.

``ManifestCommittable``, versions 2 to 5: i8 identifier, the checkpoint id (``Long.MAX_VALUE`` at the end of the input), boolean has no
watermark [i8]; to version 4: i4 count of log offsets, each i4, i8; from version 4: i4 count of properties, each utf, utf; i4 version of
messages, i4 count, messages. A message (``CommitMessageSerializer``): i4 length and partition, i4 bucket; from version 7: boolean has a total
number of buckets [i4]; three lists of files (new, deleted, changelog); from version 10: new and deleted index files; three lists of files
(compacted, result of compaction, changelog) and new and deleted index files (before version 10, of both increments). A list is i4 count, each
i4 length and a ``BinaryRow``. Its columns change with the version, except the first: name, size and row count of a file; type, name and size
of an index file. Messages of other versions than 3 to 13 stay bytes beside the identifier:
releases 0.7 and 0.8 write different messages of version 2.

Jobs with releases 0.8 to 1.3 confirm versions 2 to 4, with messages 2, 3, 6, 7 and 10. Bytes of serializers that were compiled from their sources
confirm version 5, with messages 11 (release 1.4), 12 (2.0) and 13 (after 2.0). No release writes messages 4, 5, 8 and 9.

After a restore, the committer commits those of its state whose identifiers are higher than that of the user's newest snapshot, and drops the
others. It does not compare later commits with the table (``RestoreCommittableStateManager``, ``CommitterOperator``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import PendingCommit, SinkState
from statetool.connectors.wire import read_version, whole_versioned
from statetool.io.cursor import Cursor

_USER: Final = "commit_user_state"
_WRITE_STATE: Final = "paimon_store_sink_write_state"
_COMMITTABLES: Final = "streaming_committer_raw_states"
_TAGS: Final = "streaming_committer_for_tags_states"
_VERSIONS: Final = (2, 3, 4, 5)
_MESSAGE_VERSIONS: Final = range(3, 14)
_END_OF_INPUT: Final = (1 << 63) - 1
#: A row begins with its kind and the null bits of up to 56 columns, then has 8 bytes per column.
_FIRST_COLUMN: Final = 8
_INLINE: Final = 0x80
_FILE_LISTS: Final = (
    ("new_files", "deleted_files", "changelog_files"),
    ("compact_before", "compact_after", "compact_changelog_files"),
)
#: What counts for the number of rows of a commit. Results of compactions are commits of their own.
_SIGNS: Final = ((1, "new_files"), (-1, "deleted_files"))
_INDEX_LISTS: Final = (
    ("new_index_files", "deleted_index_files"),
    ("compact_new_index_files", "compact_deleted_index_files"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonFile:
    """A data or index file of a commit. ``rows`` is stored for data files."""

    name: str
    size_bytes: int
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonMessage:
    """Files of one bucket. ``partition`` is a ``BinaryRow``, ``files`` has only the lists that are not empty."""

    partition: bytes
    bucket: int
    total_buckets: int | None
    files: Mapping[str, tuple[PaimonFile, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonCommittable:
    """A commit to a table. ``messages`` is ``None`` if their version is not known."""

    identifier: int
    watermark: int | None
    properties: Mapping[str, str]
    message_version: int
    messages: tuple[PaimonMessage, ...] | None
    size_bytes: int

    @property
    def added_rows(self) -> int | None:
        """Return the number of rows that the commit adds to the data files, ``None`` if this is not known."""
        if self.messages is None:
            return None
        files = [(s, f) for m in self.messages for s, n in _SIGNS for f in m.files.get(n, ())]
        return None if any(f.rows is None for _, f in files) else sum(s * (f.rows or 0) for s, f in files)


class PaimonSink(StateSink):
    """Paimon's sink: writers and committer."""

    name: ClassVar[str] = "paimon-sink"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _USER in operator.states

    def read(self, operator: OperatorBytes) -> SinkState:
        committer = _COMMITTABLES in operator.states
        pending, unread, versions = [], [], set()
        for subtask, value in operator.values(_COMMITTABLES) if committer else ():
            version, raw = whole_versioned(value, "a committable")
            versions.add(version)
            if version in _VERSIONS:
                pending.append(_pending(subtask, version, raw))
            else:
                unread.append((subtask, version, raw))
        writers: list[tuple[int, Any]] = [(n, {"commit_user": user}) for n, user in operator.values(_USER)]
        if _TAGS in operator.states:
            writers += ((n, {"tag_of_identifier": identifier}) for n, identifier in operator.values(_TAGS))
        if _WRITE_STATE in operator.states:
            writers += ((n, _write_state(value)) for n, value in operator.values(_WRITE_STATE))
        return SinkState(
            role="committer" if committer else "writer",
            pending=tuple(pending),
            writers=tuple(writers),
            versions=frozenset(versions),
            unread=tuple(unread),
        )


def _write_state(value: Any) -> Mapping[str, Any]:
    table, key, partition, bucket, content = value
    return {"table": table, "key": key, "partition": partition, "bucket": bucket, "value_bytes": len(content)}


def _pending(subtask: int, version: int, raw: bytes) -> PendingCommit:
    committable = read_version(raw, version, read_committable, "a committable")
    return PendingCommit(
        name=str(committable.identifier),
        status="pre_committed",
        subtask=subtask,
        checkpoint_id=None if committable.identifier == _END_OF_INPUT else committable.identifier,
        version=version,
        expires=False,
        fields=committable,
    )


def read_committable(version: int, c: Cursor) -> PaimonCommittable:
    """Read a committable of a known version."""
    size = c.left
    identifier = c.i8()
    watermark = None if c.bool() else c.i8()
    if version <= 4:
        for _ in range(c.count("log offsets", at_least=12)):
            c.i4()
            c.i8()
    properties = {c.utf(): c.utf() for _ in range(c.count("properties", at_least=4))} if version >= 4 else {}
    message_version = c.i4()
    messages = None
    if message_version in _MESSAGE_VERSIONS:
        count = c.count("messages", at_least=12)
        messages = tuple(_read_message(message_version, c) for _ in range(count))
    else:
        c.take(c.left)
    return PaimonCommittable(
        identifier=identifier,
        watermark=watermark,
        properties=properties,
        message_version=message_version,
        messages=messages,
        size_bytes=size,
    )


def _read_message(version: int, c: Cursor) -> PaimonMessage:
    partition, bucket = c.bytes4("a partition"), c.i4()
    total_buckets = c.i4() if version >= 7 and c.bool() else None
    lists: dict[str, tuple[PaimonFile, ...]] = {}
    for files, index_files in zip(_FILE_LISTS, _INDEX_LISTS, strict=True):
        lists |= {name: _read_rows(c, _read_data_file) for name in files}
        if version >= 10:
            lists |= {name: _read_rows(c, _read_index_file) for name in index_files}
    if version < 10:
        lists |= {name: _read_rows(c, _read_index_file) for name in _INDEX_LISTS[0]}
    return PaimonMessage(
        partition=partition,
        bucket=bucket,
        total_buckets=total_buckets,
        files={name: of_name for name, of_name in lists.items() if of_name},
    )


def _read_rows(c: Cursor, read: Callable[[bytes, Cursor], PaimonFile]) -> tuple[PaimonFile, ...]:
    return tuple(read(c.bytes4("a row"), c) for _ in range(c.count("rows", at_least=4)))


def _read_data_file(row: bytes, c: Cursor) -> PaimonFile:
    return PaimonFile(name=_text(row, 0, c), size_bytes=_long(row, 1, c), rows=_long(row, 2, c))


def _read_index_file(row: bytes, c: Cursor) -> PaimonFile:
    return PaimonFile(name=_text(row, 1, c), size_bytes=_long(row, 2, c))


def _slot(row: bytes, column: int, c: Cursor) -> bytes:
    start = _FIRST_COLUMN + 8 * column
    if len(row) < start + 8:
        raise c.fail(f"a row of {len(row)} bytes has no column {column}")
    return row[start : start + 8]


def _long(row: bytes, column: int, c: Cursor) -> int:
    return int.from_bytes(_slot(row, column, c), "little", signed=True)


def _text(row: bytes, column: int, c: Cursor) -> str:
    """Return a text: up to 7 bytes inside its column, otherwise length and start of its bytes."""
    slot = _slot(row, column, c)
    if slot[7] & _INLINE:
        raw, length = slot, slot[7] & ~_INLINE
    else:
        length, start = int.from_bytes(slot[:4], "little"), int.from_bytes(slot[4:], "little")
        raw = row[start : start + length]
    try:
        text = raw[:length].decode("utf-8")
    except UnicodeDecodeError:
        raise c.fail(f"column {column} of a row is not UTF-8") from None
    if len(raw) < length or not text or not text.isprintable():
        raise c.fail(f"column {column} of a row is not the name of a file")
    return text
