"""What all sources and all sinks have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal, Protocol, TypeAlias

Status: TypeAlias = Literal["assigned", "unassigned", "finished"]


class Split(Protocol):
    """A piece of a source that one reader reads: a dataclass of the connector's own, with the fields of the wire."""

    @property
    def split_id(self) -> str:
        """The name of the split, the same in the enumerator and in readers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a split is, in terms that all connectors have.

    Attributes
    ----------
    source
        Topic, stream, table or path.
    start, position, stop
        In the source's own terms, as text; ``position`` is what is read next. ``None``: not known, of ``stop`` none.
    marker
        What stands in the place of a position until there is one: ``earliest``, ``latest``, ``committed``.
    finished
        Whether nothing is left to read; ``None`` where the split does not say it.
    time_ms
        The time of what was read last, or from which it is read on (epoch ms), where the split keeps one.
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
    """A split in a reader: its bytes, and what they say where the connector is known."""

    subtask: int
    version: int
    data: bytes
    split: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSplit:
    """A split that the enumerator keeps; ``subtask`` where it stores which one it was assigned to."""

    split: Any
    status: Status
    subtask: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerator:
    """What the enumerator keeps.

    Attributes
    ----------
    lists_assigned
        Whether splits stay in it after they were assigned; else those in readers are not named here.
    facts
        What it keeps beside splits, by name.
    """

    splits: tuple[KnownSplit, ...] = ()
    lists_assigned: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBytes:
    """The state of one source as bytes: the splits of its readers, and version and bytes of the enumerator."""

    held: tuple[HeldSplit, ...]
    enumerator_version: int | None = None
    enumerator: bytes | None = None

    @property
    def split_versions(self) -> frozenset[int]:
        """Versions of the splits that readers hold."""
        return frozenset(h.version for h in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What a connector reads in the state of a source.

    Attributes
    ----------
    held
        Splits of readers, in the order of the bytes.
    enumerator
        ``None`` where there is none, or its version is not known.
    backlog
        Whether the source was behind, as far as its state tells: an inference of ours.
    """

    held: tuple[HeldSplit, ...]
    enumerator: Enumerator | None = None
    backlog: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Something that a sink has written and not committed, in terms that all connectors have.

    Attributes
    ----------
    name
        The name that a user calls it by, and no other of the sink has: a transactional id, the name of a file.
    status
        ``open`` (will be aborted on restore), ``pre_committed``, ``received``, ``retry``, ``failed``, ``committed``, ``compacting``.
    subtask
        The writer that made it where state says so, else the subtask that holds it.
    start_ms
        When it began, where state says so.
    expires
        Whether the outside system ends it by itself after a time: transactions, not files.
    fields
        All that is stored of it.
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
    fields: Any = None
    undecoded: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """What a connector reads in the state of an operator of a sink.

    Attributes
    ----------
    role
        ``writer``, ``committer``, ``compact-coordinator``, ``sink`` (one operator that is all of these).
    writers
        What writers keep beside transactions: subtask and fields.
    unread
        Subtask, version and bytes of what is not understood.
    """

    role: str
    pending: tuple[Pending, ...] = ()
    writers: tuple[tuple[int, Any], ...] = ()
    versions: frozenset[int] = frozenset()
    unread: tuple[tuple[int, int, bytes], ...] = ()


def as_plain(value: Any) -> Any:
    """Return fields of dataclasses as mappings, bytes as hexadecimal text: what JSON can hold."""
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
