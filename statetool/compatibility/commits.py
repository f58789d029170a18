"""Warnings about sinks that would drop commits because the checkpoint id of the snapshot is lower than the ids in their tables."""

from __future__ import annotations

from collections.abc import Iterator

from statetool.compatibility.verdicts import CheckWarning, Remedy
from statetool.connectors.commit_ids import CommitIdRow, commit_id_rows
from statetool.errors import StatetoolError, sentence
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory


def commit_id_warnings(old: Inventory, new: Inventory | None) -> Iterator[tuple[OperatorInventory, CheckWarning]]:
    """Yield warnings about commits that would be dropped, with the operators.

    A snapshot with id 0 was created from scratch, not by Flink. The savepoint of the new job then shows which ids its sinks have committed.
    """
    checkpoint_id = old.metadata.checkpoint_id
    for operator in old.operators.values():
        yield from ((operator, _of_state(r)) for r in _rows(operator, checkpoint_id) if r.is_problem)
    if new is not None and checkpoint_id == 0:
        known = {o.state.operator_id for o in old.operators.values()}
        for operator in new.operators.values():
            if operator.state.operator_id not in known:
                yield from ((operator, _from_the_job(r)) for r in _rows(operator, new.metadata.checkpoint_id))


def _rows(operator: OperatorInventory, checkpoint_id: int) -> list[CommitIdRow]:
    """Return the operator's row; nothing if its state cannot be read, as reported by its verdict, or if no connector reads it."""
    try:
        return [r for r in commit_id_rows([operator], checkpoint_id) if r.commits_by_id]
    except StatetoolError:
        return []


def _of_state(row: CommitIdRow) -> CheckWarning:
    known = row.highest_known
    if known is not None and row.checkpoint_id < known:
        committed = f"The snapshot has id {row.checkpoint_id}, its sink state {known}, so the job's first commits would be dropped."
    elif known is None and row.checkpoint_id == 0:
        committed = "The snapshot has id 0, and the ids that the table has committed are unknown."
    else:
        committed = sentence(row.message)
    return _warning(row, committed, known)


def _from_the_job(row: CommitIdRow) -> CheckWarning:
    highest = max(row.checkpoint_id, row.highest_known or 0)
    committed = f"The snapshot has id 0, that of the new job {highest}, and commits up to that id are dropped."
    return _warning(row, committed, highest)


def _warning(row: CommitIdRow, committed: str, least: int | None) -> CheckWarning:
    number = "the highest id of the table" if least is None else str(least)
    return CheckWarning(
        kind="loses",
        message=f"{row.connector} commits by checkpoint id, and drops commits of ids that the table has. {committed}",
        remedy=Remedy(
            f"Write the snapshot with a checkpoint id of at least {number} (--checkpoint-id, checkpoint_id=)."
        ),
    )
