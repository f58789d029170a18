"""Rows of the tables of sources and sinks. Positions are text in the source's format. ``details`` is JSON of all stored fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from statetool.connectors.checks import check_source
from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import HeldSplit, KnownSplit, PendingCommit, SourceState, SplitPosition, as_plain
from statetool.connectors.model import as_json as _json
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.sources import Source
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord

#: Value of the watermark columns of splits: readers do not store watermarks.
NO_WATERMARK: Final = "not stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRow(OperatorRecord):
    """One split in a reader.

    Attributes
    ----------
    source, partition
        Topic, stream, table or path, and partition number.
    start, position, stop
        Start if the enumerator stores it, next offset, and end.
    marker
        ``earliest``, ``latest``, ``committed`` and others, if no record was read yet.
    watermark
        ``not stored``: no source writes it to its state.
    time_ms
        Time of the last record read, or the start time for reading, if the split stores one (Flink CDC, Kinesis).
    undecoded
        The bytes of a split whose connector or version is not known.
    """

    connector: str
    subtask: int
    split_id: str | None
    source: str | None
    partition: int | None
    start: str | None
    position: str | None
    stop: str | None
    marker: str | None
    finished: bool | None
    watermark: str
    time_ms: int | None
    version: int
    details: str | None
    undecoded: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumeratorRow(OperatorRecord):
    """One split in an enumerator.

    Attributes
    ----------
    status
        ``assigned``, ``unassigned``, ``finished``.
    subtask
        Subtask it is assigned to, if the enumerator stores it.
    assigned_since
        Checkpoint since which it is assigned. No known enumerator stores it.
    position
        Where it began or will begin; ``None`` if this version does not store it.
    """

    connector: str
    split_id: str
    status: str
    subtask: int | None
    assigned_since: int | None
    source: str | None
    partition: int | None
    position: str | None
    stop: str | None
    marker: str | None
    version: int | None
    details: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow(OperatorRecord):
    """One source.

    Attributes
    ----------
    held, assigned, unassigned, finished
        Numbers of splits: in readers (``None`` if the state cannot be read), and by status in the enumerator (``None`` if it does not list
        such splits).
    discovered
        Whether the first discovery of splits was finished, if the enumerator stores it.
    backlog
        Whether it had a backlog, inferred from its state (a hybrid source's index, a snapshot phase); ``None`` if unknown.
    backlog_inferred_from
        The state from which the backlog is inferred; empty if unknown.
    facts
        Enumerator state besides splits, as JSON.
    undecoded
        Number of splits that stay bytes, ``None`` if the state cannot be read.
    problems
        Findings of the cross-check, ``None`` if the state cannot be read.
    note
        Missing information, and the reason.
    """

    connector: str
    subtasks: int
    split_versions: str
    enumerator_version: int | None
    held: int | None
    assigned: int | None
    unassigned: int | None
    finished: int | None
    discovered: bool | None
    backlog: bool | None
    backlog_inferred_from: str
    facts: str | None
    undecoded: int | None
    problems: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRow(OperatorRecord):
    """One operator of a sink.

    Attributes
    ----------
    role
        ``writer``, ``committer``, ``global-committer``, ``compact-coordinator``, ``sink`` (all in one).
    pending, open
        Number of uncommitted transactions or files, and number of those that are open: transactions are aborted on restore, files are
        continued; ``None`` if part of its state cannot be read (``undecoded``).
    finished_subtasks
        Number of finished subtasks.
    writers
        Writer state, as JSON.
    """

    connector: str
    role: str
    versions: str
    pending: int | None
    open: int | None
    oldest_checkpoint: int | None
    finished_subtasks: int
    writers: str | None
    undecoded: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow(OperatorRecord):
    """One uncommitted transaction or file of a sink.

    Attributes
    ----------
    name
        A transactional id, a file, or the user's handle.
    status
        ``open`` (aborted on restore), ``pre_committed``, ``received``, ``retry``, ``failed``, ``committed``, ``compacting``,
        ``buffered`` (a record that the writer has not sent), ``in_progress`` (a file that a restored writer continues).
    subtask
        Subtask of the writer that created it.
    start_ms
        Start time (epoch ms), if stored.
    """

    connector: str
    name: str
    status: str
    subtask: int
    checkpoint_id: int | None
    transactional_id: str | None
    producer_id: int | None
    epoch: int | None
    start_ms: int | None
    file: str | None
    temporary_file: str | None
    size_bytes: int | None
    retries: int | None
    version: int | None
    details: str | None
    undecoded: bytes | None


def split_rows(source: Source) -> list[SplitRow]:
    """Return the splits that readers of a source hold."""
    starts = {k.split.split_id: place_of(source, k).position for k in _known_splits(source) if k.status == "assigned"}
    return [_split_row(source, held, starts) for held in source.state.held]


def _split_row(source: Source, held: HeldSplit, starts: dict[str, str | None]) -> SplitRow:
    known = held.split is not None and source.connector is not None
    place = source.connector.place(held.split) if known and source.connector is not None else SplitPosition()
    split_id = held.split.split_id if known else None
    return SplitRow(
        operator=source.label,
        connector=source.name,
        subtask=held.subtask,
        split_id=split_id,
        source=place.source,
        partition=place.partition,
        start=place.start or (None if split_id is None else starts.get(split_id)),
        position=place.position,
        stop=place.stop,
        marker=place.marker,
        finished=place.finished,
        watermark=NO_WATERMARK,
        time_ms=place.time_ms,
        version=held.version,
        details=_json(held.split) if known else None,
        undecoded=None if known else held.data,
    )


def place_of(source: Source, known: KnownSplit) -> SplitPosition:
    """Return the position of a split in the enumerator."""
    return SplitPosition() if source.connector is None else source.connector.place(known.split)


def _known_splits(source: Source) -> tuple[KnownSplit, ...]:
    return () if source.state.enumerator is None else source.state.enumerator.splits


def enumerator_rows(source: Source) -> list[EnumeratorRow]:
    """Return the splits in the enumerator of a source."""
    rows = []
    for known in _known_splits(source):
        place = place_of(source, known)
        rows.append(
            EnumeratorRow(
                operator=source.label,
                connector=source.name,
                split_id=known.split.split_id,
                status=known.status,
                subtask=known.subtask,
                assigned_since=None,
                source=place.source,
                partition=place.partition,
                position=place.position,
                stop=place.stop,
                marker=place.marker,
                version=None if source.given is None else source.given.enumerator_version,
                details=_json(known.split),
            )
        )
    return rows


def source_row(source: Source) -> SourceRow:
    """Return a source as a row."""
    enumerator = source.state.enumerator
    statuses = [k.status for k in _known_splits(source)]
    lists_assigned = enumerator is not None and enumerator.lists_assigned
    return SourceRow(
        operator=source.label,
        connector=source.name,
        subtasks=source.operator.state.parallelism,
        split_versions=_versions(h.version for h in source.state.held),
        enumerator_version=None if source.given is None else source.given.enumerator_version,
        held=len(source.state.held),
        assigned=statuses.count("assigned") if lists_assigned or "assigned" in statuses else None,
        unassigned=None if enumerator is None else statuses.count("unassigned"),
        finished=statuses.count("finished") if "finished" in statuses else None,
        discovered=None if enumerator is None else enumerator.facts.get("initial_discovery_finished"),
        backlog=source.state.backlog,
        backlog_inferred_from=inferred_from(source),
        facts=_json(enumerator.facts) if enumerator is not None and enumerator.facts else None,
        undecoded=sum(h.split is None for h in source.state.held),
        problems=sum(c.is_problem for c in check_source(source)),
        note=source.note,
    )


def inferred_from(source: Source) -> str:
    """Return the state from which a source's backlog is inferred; empty if unknown."""
    if source.state.backlog is None or not isinstance(source.connector, SplitConnector):
        return ""
    return source.connector.phase(source.state)


def sink_row(sink: Sink) -> SinkRow:
    """Return an operator of a sink as a row."""
    pending = sink.state.pending
    countable = sink.is_read
    return SinkRow(
        operator=sink.label,
        connector=sink.name,
        role=sink.state.role,
        versions=_versions(sink.state.versions),
        pending=len(pending) if countable else None,
        open=sum(p.status in ("open", "in_progress") for p in pending) if countable else None,
        oldest_checkpoint=min(
            (p.checkpoint_id for p in pending if p.checkpoint_id is not None and countable), default=None
        ),
        finished_subtasks=sum(s.finished for s in sink.operator.state.subtasks),
        writers=_json([{"subtask": n, **as_plain(w)} for n, w in sink.state.writers]) if sink.state.writers else None,
        undecoded=len(sink.state.unread) + sum(p.undecoded is not None for p in pending),
        note=sink.note,
    )


def unreadable_source(operator: OperatorInventory, note: str) -> SourceRow:
    """Return the row of an operator that may be a source."""
    row = source_row(Source(operator=operator, state=SourceState(held=())))
    return replace(row, held=None, undecoded=None, problems=None, note=note)


def unreadable_sink(operator: OperatorInventory, note: str) -> SinkRow:
    """Return the row of an operator that may belong to a sink."""
    return replace(sink_row(Sink.unknown(operator)), undecoded=None, note=note)


def transaction_rows(sink: Sink) -> Iterator[TransactionRow]:
    """Yield the uncommitted transactions and files of a sink; elements that cannot be decoded are bytes."""
    for pending in sink.state.pending:
        yield _transaction_row(sink, pending)
    for pending in unread_pending(sink) if sink.state.role != "writer" else ():
        yield _transaction_row(sink, pending)


def _transaction_row(sink: Sink, pending: PendingCommit) -> TransactionRow:
    return TransactionRow(
        operator=sink.label,
        connector=sink.name,
        name=pending.name,
        status=pending.status,
        subtask=pending.subtask,
        checkpoint_id=pending.checkpoint_id,
        transactional_id=pending.transactional_id,
        producer_id=pending.producer_id,
        epoch=pending.epoch,
        start_ms=pending.start_ms,
        file=pending.file,
        temporary_file=pending.temporary_file,
        size_bytes=pending.size_bytes,
        retries=pending.retries,
        version=pending.version,
        details=None if pending.fields is None else _json(pending.fields),
        undecoded=pending.undecoded,
    )


def _versions(versions: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(versions))))
