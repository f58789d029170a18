"""Checkpoint ids that sinks of table formats commit under: the ids known to state, and whether the snapshot's id is high enough.

Iceberg's sinks store in the table the id of the checkpoint they commit. They drop later commits whose ids are not higher than those in the
table. A restored job continues counting from the id of its snapshot. If that id is lower than ids already committed, the first commits are
dropped without an error. A savepoint created from scratch has id 0.

Paimon's sink also stores the id, but compares only the commits of the restored state with the table
(:mod:`statetool.connectors.outside.table_commits`). It needs no id of a certain height.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from statetool.connectors.sinks import GLOBAL_ROLE, UNKNOWN_ROLE, Sink
from statetool.connectors.tables import sinks_and_unknown
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIdRow(OperatorRecord):
    """One operator of a sink that commits by checkpoint id.

    Attributes
    ----------
    checkpoint_id
        Checkpoint id of the snapshot. The first checkpoint of a job restored from it has the next id.
    highest_known
        The highest id waiting to be committed, ``None`` if nothing is waiting. The table may have higher ids.
    commits_by_id
        Whether the sink is known to commit by checkpoint id. False if no connector reads it.
    is_problem
        Whether commits would be dropped, or this is unknown.
    message
        The expected outcome, and how to avoid dropped commits.
    """

    connector: str
    checkpoint_id: int
    highest_known: int | None
    commits_by_id: bool
    is_problem: bool
    message: str


def commit_id_rows(operators: Iterable[OperatorInventory], checkpoint_id: int) -> list[CommitIdRow]:
    """Return the sinks of a snapshot that commit by checkpoint id, and sinks for which this is unknown.

    Parameters
    ----------
    checkpoint_id
        Checkpoint id of the snapshot.
    """
    return list(_rows(sinks_and_unknown(operators), checkpoint_id))


def _rows(sinks: Iterable[Sink], checkpoint_id: int) -> Iterator[CommitIdRow]:
    for sink in sinks:
        if sink.connector is None:
            if sink.state.role == UNKNOWN_ROLE or (sink.state.role in ("committer", GLOBAL_ROLE) and sink.note):
                yield _row(
                    sink, checkpoint_id, None, "no connector reads it: whether it commits by checkpoint id is unknown"
                )
            continue
        if not sink.connector.commits_by_checkpoint_id or sink.state.role == "writer":
            continue
        highest = max((p.checkpoint_id for p in sink.state.pending if p.checkpoint_id is not None), default=None)
        message = _message(sink.name, checkpoint_id, highest)
        yield _row(
            sink,
            checkpoint_id,
            highest,
            message or ("" if sink.is_read else f"not all of its state is read: {sink.note}"),
        )


def _message(connector: str, checkpoint_id: int, highest: int | None) -> str:
    by_id = f"{connector} commits by checkpoint id, and drops commits of ids that the table has"
    if highest is not None and checkpoint_id < highest:
        return f"{by_id}: the snapshot has id {checkpoint_id}, its state {highest} (write it with {advise_id(highest)})"
    if highest is None and checkpoint_id == 0:
        return f"{by_id}: the snapshot has id 0, and which ids the table has committed is unknown (write it with {advise_id(None)})"
    return ""


def advise_id(highest: int | None) -> str:
    """Return the advice to write a snapshot with an id that is high enough."""
    number = "N" if highest is None else str(highest)
    above = ", the table's highest id," if highest is None else ""
    return f"checkpoint_id={number} or --checkpoint-id {number}{above} or more"


def _row(sink: Sink, checkpoint_id: int, highest: int | None, message: str) -> CommitIdRow:
    return CommitIdRow(
        operator=sink.label,
        connector=sink.name,
        checkpoint_id=checkpoint_id,
        highest_known=highest,
        commits_by_id=sink.connector is not None,
        is_problem=bool(message),
        message=message,
    )
