"""Transactions of JDBC's sink compared with a running database, which is asked for its prepared XA transactions. Nothing is changed in it.

A restored writer commits the prepared transactions of its state, and skips those that the database does not have (``XaTransaction.open``).
The committer's state commits nothing (``JdbcCommitter`` has transactions of the running job only). A database forgets a transaction when it
ends, so it does not tell whether it was committed.

The writer commits earlier than the committer: when it takes the snapshot (``JdbcWriter.snapshotState``). Its state only has prepared
transactions that the database could not commit at that time. So a committable that its writer does not have is committed, if the open
transaction of the writer shows that it went on. Only if the database still has it prepared, the two disagree.

A writer's state also has the transaction that was open at the snapshot. If the job went on, this one and later ones may be prepared. A
restored sink writes their rows again. It tries to roll them back, but never does: to end an open transaction fails where it is prepared, and
``TransactionId.belongsTo`` is false of the ids that a driver returns. So they keep their locks (releases 3.2 to 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from statetool.connectors.layouts.jdbc import JdbcSink, JdbcWriter, Xid
from statetool.connectors.outside.table_commits import Outcome, TableCommitRow
from statetool.connectors.outside.xa_databases import Prepared, prepared_transactions
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import OptionError
from statetool.snapshot.operator import OperatorInventory

_COMMITTED: Final = "its writer has committed it"
_ENDED: Final = "the database does not have it prepared: it was committed or rolled back, or this is another database"


def jdbc_commit_rows(operators: Iterable[OperatorInventory], url: str) -> list[TableCommitRow]:
    """Compare the transactions of JDBC's sinks with a database.

    Parameters
    ----------
    operators
        All operators of the snapshot. Sinks of one job use the same ids in all databases: choose one sink if the job has several.
    url
        URL of the database, as of its JDBC driver or of libpq.

    Raises
    ------
    OptionError
        The snapshot has no JDBC sink with XA transactions, or the URL is not valid.
    ConnectionFailedError
        The database did not answer in time, or refused.
    MissingDependencyError
        The driver of the database is not installed.
    """
    sinks = sinks_and_unknown(operators)
    ours = [s for s in sinks if isinstance(s.connector, JdbcSink)]
    if not ours:
        raise OptionError(
            "the snapshot has no JDBC sink with XA transactions", hint="statetool sinks list shows the sinks"
        )
    comparison = _Comparison(
        found={p.xid: p for p in prepared_transactions(url)},
        pending={p.fields: p.checkpoint_id for s in ours for p in s.state.pending if isinstance(p.fields, Xid)},
        in_writers=frozenset(t.xid for s in ours for w in _writers(s) for t in w.prepared),
        reached=_reached(ours),
        job_ids=frozenset(_job_ids(ours)),
        all_read=all(s.is_read for s in sinks),
    )
    has_writer = any(s.state.role == "writer" for s in ours)
    rows: list[TableCommitRow] = []
    for sink in ours:
        rows += comparison.known_rows(sink)
        if sink.state.role == "writer" or not has_writer:
            rows += comparison.lingering_rows(sink)
    return rows


def _writers(sink: Sink) -> list[JdbcWriter]:
    return [w for _, w in sink.state.writers if isinstance(w, JdbcWriter)]


def _reached(sinks: Iterable[Sink]) -> dict[tuple[bytes, bytes], int]:
    """Return the checkpoint of the last open transaction by writer."""
    reached: dict[tuple[bytes, bytes], int] = {}
    for transaction in (t for sink in sinks for w in _writers(sink) for t in w.hanging):
        writer = transaction.xid.writer
        reached[writer] = max(transaction.checkpoint_id, reached.get(writer, transaction.checkpoint_id))
    return reached


def _job_ids(sinks: Iterable[Sink]) -> Iterator[str]:
    """Yield the jobs that the transactions of a snapshot began in: the last one, and earlier ones whose commits failed."""
    for sink in sinks:
        for writer in _writers(sink):
            yield from (t.job_id for t in (*writer.hanging, *writer.prepared))
        for pending in sink.state.pending:
            if isinstance(pending.fields, Xid) and pending.fields.job_id is not None:
                yield pending.fields.job_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """Transactions that a database has prepared, beside those of a snapshot.

    ``pending`` has the checkpoints of committables, ``in_writers`` the transactions that a restore commits, and ``reached`` the checkpoint of
    each writer's open transaction. ``all_read`` is false if a writer may have more of them.
    """

    found: Mapping[Xid, Prepared]
    pending: Mapping[Xid, int | None]
    in_writers: frozenset[Xid]
    reached: Mapping[tuple[bytes, bytes], int]
    job_ids: frozenset[str]
    all_read: bool

    def known_rows(self, sink: Sink) -> Iterator[TableCommitRow]:
        """Yield what a restore does with the transactions of a snapshot. Those that writers have are shown there only."""
        for writer in _writers(sink):
            for transaction in writer.prepared:
                yield self._row(sink, transaction.xid, *self._in_writer(transaction.xid))
        for pending in (*sink.state.pending, *unread_pending(sink)):
            xid = pending.fields
            if not isinstance(xid, Xid):
                yield _row(sink, pending.name, pending.checkpoint_id, "unknown", "no connector reads it")
            elif xid not in self.in_writers:
                yield self._row(sink, xid, *self._in_committer(xid))

    def lingering_rows(self, sink: Sink) -> Iterator[TableCommitRow]:
        """Yield the prepared transactions of the job that the snapshot does not have, or has as open ones."""
        known = {t.xid for w in _writers(sink) for t in w.prepared} | (self.pending.keys() - self.in_writers)
        for xid, prepared in sorted(self.found.items(), key=lambda item: str(item[0])):
            if xid.job_id in self.job_ids and xid not in known and prepared.other_database is None:
                since = f"prepared at {prepared.time} UTC, but not" if prepared.time else "not prepared"
                message = (
                    f"{since} in the snapshot: a restored job writes its rows in another transaction, and leaves this one, with its locks. "
                    f"While no job runs, end it: {prepared.rollback}"
                )
                yield self._row(sink, xid, "will_linger", message)

    def _in_writer(self, xid: Xid) -> tuple[Outcome, str]:
        prepared = self.found.get(xid)
        if prepared is None:
            return "unknown", _ENDED
        if prepared.other_database is not None:
            return "unknown", _elsewhere(prepared.other_database)
        return "will_commit", f"prepared at {prepared.time} UTC" if prepared.time else ""

    def _in_committer(self, xid: Xid) -> tuple[Outcome, str]:
        has_gone_on = xid.checkpoint_id < self.reached.get(xid.writer, xid.checkpoint_id)
        if has_gone_on and self.all_read and xid not in self.found:
            return "is_committed", _COMMITTED
        outcome, message = self._in_writer(xid)
        if outcome == "unknown":
            return outcome, message
        if not self.all_read:
            return "unknown", "not all state of writers is read: a restore commits it only if a writer has it"
        return "will_drop", "no writer of the snapshot has it: a restore does not commit it, and leaves it prepared"

    def _row(self, sink: Sink, xid: Xid, outcome: Outcome, message: str) -> TableCommitRow:
        return _row(sink, str(xid), self.pending.get(xid), outcome, message)


def _elsewhere(database: str) -> str:
    return f"the database {database} of the same server has it prepared: compare with that one"


def _row(sink: Sink, name: str, checkpoint_id: int | None, outcome: Outcome, message: str) -> TableCommitRow:
    return TableCommitRow(
        operator=sink.label,
        connector=sink.name,
        name=name,
        checkpoint_id=checkpoint_id,
        highest_committed=None,
        outcome=outcome,
        is_problem=outcome not in ("is_committed", "will_commit"),
        message=message,
    )
