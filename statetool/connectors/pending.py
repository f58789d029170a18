"""Outcome of uncommitted transactions of a sink: committed on restore, aborted, or expired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from statetool.connectors.connector import SinkConnector, StateSink
from statetool.connectors.model import PendingCommit, as_json
from statetool.connectors.sinks import UNKNOWN_NAME, UNKNOWN_ROLE, Sink, unread_pending
from statetool.types.operators import OperatorRecord

Verdict: TypeAlias = Literal[
    "will_commit",
    "may_expire",
    "has_expired",
    "will_abort",
    "is_committed",
    "will_send",
    "will_continue",
    "will_remove",
    "unknown",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow(OperatorRecord):
    """One uncommitted transaction or file of a sink, and its outcome.

    Attributes
    ----------
    age_ms, age_from
        Its age, and the start of the age: its ``start``, or the ``snapshot`` (a minimum) if state stores no start.
    verdict
        Outcome of a restore now: ``will_commit``, ``may_expire`` (its start is not stored), ``has_expired`` (the external system has
        aborted it: its records are lost), ``will_abort`` (it was open), ``is_committed``, ``will_send`` (a record that the writer has
        not sent), ``will_continue`` (an open file: a restored writer goes on with it and commits it later), ``will_remove`` (the commit
        removes a file); ``unknown`` without a timeout, or if it depends on the table.
    details
        All stored fields, as JSON.
    commands
        Command lines of the external system's tools, one per line.
    is_decoded
        Whether a connector decodes it. Otherwise its outcome is unknown.
    """

    connector: str
    name: str
    status: str
    subtask: int | None
    checkpoint_id: int | None
    producer_id: int | None
    epoch: int | None
    age_ms: int | None
    age_from: str | None
    verdict: str
    details: str | None
    commands: str | None
    is_decoded: bool


def pending_rows(sink: Sink, *, now_ms: int, snapshot_ms: int | None, timeout_ms: int | None) -> list[PendingRow]:
    """Return the uncommitted transactions and files of a sink.

    Parameters
    ----------
    now_ms
        Time of the restore (epoch ms).
    snapshot_ms
        Latest time of completion of the snapshot: the time of its metadata file.
    timeout_ms
        How long the external system keeps a transaction open (``transaction.timeout.ms``).
    """
    rows = []
    for pending in (*sink.state.pending, *_unread_elements(sink)):
        began = pending.start_ms if pending.start_ms is not None else snapshot_ms
        age = None if began is None else max(0, now_ms - began)
        rows.append(
            PendingRow(
                operator=sink.label,
                connector=sink.name,
                name=pending.name,
                status=pending.status,
                subtask=None if pending.subtask < 0 else pending.subtask,
                checkpoint_id=pending.checkpoint_id,
                producer_id=pending.producer_id,
                epoch=pending.epoch,
                age_ms=age,
                age_from=None if age is None else "snapshot" if pending.start_ms is None else "start",
                verdict=_verdict(pending, age, timeout_ms),
                details=None if pending.fields is None else as_json(pending.fields),
                commands="\n".join(_tools(sink.connector, pending)) or None,
                is_decoded=pending.undecoded is None,
            )
        )
    return rows


def _unread_elements(sink: Sink) -> Iterator[PendingCommit]:
    """Yield elements that cannot be decoded and may be uncommitted."""
    yield from unread_pending(sink)
    if sink.state.role == UNKNOWN_ROLE:
        yield PendingCommit(name=UNKNOWN_NAME, status="unknown", subtask=-1, undecoded=b"")


def _verdict(pending: PendingCommit, age: int | None, timeout: int | None) -> Verdict:
    if pending.status == "open":
        return "will_abort"
    if pending.status == "committed":
        return "is_committed"
    if pending.status == "buffered":
        return "will_send"
    if pending.status == "in_progress":
        return "will_continue"
    if pending.undecoded is not None or pending.is_decided_by_table:
        return "unknown"
    if pending.is_removal:
        return "will_remove"
    if not pending.expires:
        return "will_commit"
    if age is None or timeout is None:
        return "unknown"
    if age >= timeout:
        return "has_expired"
    return "may_expire" if pending.start_ms is None else "will_commit"


def _tools(connector: SinkConnector | StateSink | None, pending: PendingCommit) -> tuple[str, ...]:
    return () if connector is None else tuple(connector.tools(pending))
