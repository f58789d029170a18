"""Data model shared by all sources and sinks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal, Protocol, TypeAlias

from statetool.errors import several

Status: TypeAlias = Literal["assigned", "unassigned", "finished"]


class Split(Protocol):
    """A piece of a source that one reader reads: a dataclass of the connector with the stored fields."""

    @property
    def split_id(self) -> str:
        """Name of the split, the same in the enumerator and in readers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPosition:
    """Position of a split, in terms shared by all connectors.

    Attributes
    ----------
    source
        Topic, stream, table or path.
    start, position, stop
        Offsets as text, in the source's format; ``position`` is the next offset. ``None`` if unknown; for ``stop``, if there is none.
    marker
        Marker used instead of a position until one is known: ``earliest``, ``latest``, ``committed``.
    finished
        Whether nothing is left to read; ``None`` if the split does not store it.
    time_ms
        Time of the last record read, or the start time for reading (epoch ms), if the split stores one.
    """

    source: str | None = None
    partition: int | None = None
    start: str | None = None
    position: str | None = None
    stop: str | None = None
    marker: str | None = None
    finished: bool | None = None
    time_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSplit:
    """A split in a reader: its bytes, decoded if the connector is known."""

    subtask: int
    version: int
    data: bytes
    split: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSplit:
    """A split in the enumerator. ``subtask`` is set if the enumerator stores the assignment."""

    split: Any
    status: Status
    subtask: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerator:
    """Enumerator state.

    Attributes
    ----------
    lists_assigned
        Whether splits stay in the enumerator after assignment. Otherwise splits in readers are not listed here.
    facts
        Further fields besides splits, by name.
    """

    splits: tuple[KnownSplit, ...] = ()
    lists_assigned: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBytes:
    """State of one source as bytes: the splits of its readers, and version and bytes of the enumerator."""

    held: tuple[HeldSplit, ...]
    enumerator_version: int | None = None
    enumerator: bytes | None = None

    @property
    def split_versions(self) -> frozenset[int]:
        """Versions of the splits in readers."""
        return frozenset(h.version for h in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """State of a source, decoded by a connector.

    Attributes
    ----------
    held
        Splits of readers, in the order of the bytes.
    enumerator
        ``None`` if absent, or if its version is not known.
    backlog
        Whether the source had a backlog, as inferred from its state.
    """

    held: tuple[HeldSplit, ...]
    enumerator: Enumerator | None = None
    backlog: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """An uncommitted transaction or file of a sink, in terms shared by all connectors.

    Attributes
    ----------
    name
        Unique name in the sink: a transactional id, or the name of a file.
    status
        ``open`` (will be aborted on restore), ``pre_committed``, ``received``, ``retry``, ``failed``, ``committed``, ``compacting``,
        ``buffered`` (a record that the writer has not sent), ``in_progress`` (a file that a restored writer continues).
    subtask
        Subtask of the writer that created it if stored, otherwise the subtask that holds it.
    start_ms
        Start time, if stored.
    expires
        Whether the external system ends it after a timeout: true of transactions, not of files.
    is_decided_by_table
        Whether a restored sink asks its table if it commits it.
    is_removal
        Whether its commit only removes a file.
    fields
        All stored fields.
    """

    name: str
    status: str
    subtask: int
    checkpoint_id: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    epoch: int | None = None
    start_ms: int | None = None
    file: str | None = None
    temporary_file: str | None = None
    size_bytes: int | None = None
    retries: int | None = None
    version: int | None = None
    expires: bool = True
    is_decided_by_table: bool = False
    is_removal: bool = False
    fields: Any = None
    undecoded: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file that state names and metadata does not. A restored job reads or commits it.

    Attributes
    ----------
    path
        Absolute path or URI.
    size_bytes
        Bytes that the job reads, ``None`` if not stored.
    committed_path
        Where the file is after a commit, if that renames it. One of both must exist.
    is_state
        Whether the file is in Flink's directory of checkpoints. Copies of the snapshot need a copy of it. Other files belong to the system
        that the sink writes to.
    is_upload
        Whether it is an upload to an object store, which is no file before its commit.
    fails_restore
        Whether the restore fails if the file is missing. Otherwise its records are lost.
    name
        Name of the pending item that the file belongs to.
    """

    path: str
    size_bytes: int | None = None
    committed_path: str | None = None
    is_state: bool = False
    is_upload: bool = False
    fails_restore: bool = True
    subtask: int | None = None
    state: str | None = None
    name: str | None = None

    def other_commit(self, committed_bytes: int) -> str:
        """Return why the file at ``committed_path`` is not this one, empty if it may be: a commit does not change the size of a file."""
        if self.size_bytes in (None, committed_bytes):
            return ""
        return (
            f"{self.committed_path} has {several(committed_bytes, 'byte')}, the state says {self.size_bytes:,}: another job has committed it, "
            "which was restored from an earlier snapshot"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """State of an operator of a sink, decoded by a connector.

    Attributes
    ----------
    role
        ``writer``, ``committer``, ``global-committer``, ``compact-coordinator``, ``sink`` (one operator with all of these roles).
    writers
        Writer state besides transactions: subtask and fields.
    unread
        Subtask, version and bytes of elements that cannot be decoded.
    note
        Missing information, and how to get it.
    """

    role: str
    pending: tuple[PendingCommit, ...] = ()
    writers: tuple[tuple[int, Any], ...] = ()
    versions: frozenset[int] = frozenset()
    unread: tuple[tuple[int, int, bytes], ...] = ()
    note: str = ""


def as_plain(value: Any) -> Any:
    """Convert dataclasses to mappings and bytes to hexadecimal text, for JSON."""
    match value:
        case bytes():
            return value.hex()
        case str():
            return str(value)
        case Mapping():
            return {str(k): as_plain(v) for k, v in value.items()}
        case Sequence():
            return [as_plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return as_plain(asdict(value))
    return value


def as_json(value: Any) -> str:
    """Return fields as JSON text."""
    return json.dumps(as_plain(value), ensure_ascii=False)
