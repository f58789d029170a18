"""Warnings about sinks that would drop commits because the checkpoint id of the snapshot is lower than the ids in their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from statetool.compatibility.verdicts import CheckWarning, OperatorVerdict
from statetool.connectors.commit_ids import CommitIdRow, advise_id, commit_id_rows
from statetool.errors import StatetoolError
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory


def with_commit_ids(
    verdicts: Iterable[OperatorVerdict], old: Inventory, new: Inventory | None
) -> Iterator[OperatorVerdict]:
    """Yield verdicts with warnings about commits that would be dropped.

    A snapshot with id 0 was created from scratch, not by Flink. The savepoint of the new job then shows which ids its sinks have committed.
    """
    checkpoint_id = old.metadata.checkpoint_id
    texts = {r.operator: r.message for o in old.operators.values() for r in _rows(o, checkpoint_id) if r.is_problem}
    if new is not None and checkpoint_id == 0:
        known = {o.state.operator_id for o in old.operators.values()}
        fresh = [o for o in new.operators.values() if o.state.operator_id not in known]
        texts |= {r.operator: _from_the_job(r) for o in fresh for r in _rows(o, new.metadata.checkpoint_id)}
    for verdict in verdicts:
        text = texts.get(verdict.uid)
        warning = () if text is None else (CheckWarning(kind="loses", text=text),)
        yield replace(verdict, warnings=(*verdict.warnings, *warning))


def _rows(operator: OperatorInventory, checkpoint_id: int) -> list[CommitIdRow]:
    """Return the operator's row; nothing if its state cannot be read, as reported by its verdict, or if no connector reads it."""
    try:
        return [r for r in commit_id_rows([operator], checkpoint_id) if r.commits_by_id]
    except StatetoolError:
        return []


def _from_the_job(row: CommitIdRow) -> str:
    highest = max(row.checkpoint_id, row.highest_known or 0)
    return (
        f"{row.connector} commits by checkpoint id: the snapshot has id 0, that of the new job {highest}, and commits up to it are dropped"
        f" (write the snapshot with {advise_id(highest)})"
    )
