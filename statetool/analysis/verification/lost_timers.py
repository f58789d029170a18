"""Find timers that a savepoint lost when it was taken.

With the RocksDB backend and timers on heap (``state.backend.rocksdb.timer-service.factory: heap``), a native savepoint contains
no timers: Flink writes raw keyed state only into checkpoints, and the database has no column family for timers. A window operator always
has timer queues, so window state without any reveals the loss. It affects all operators, because the factory is an option of the job. Without
windows, a savepoint without timers is that of a job without timers, or of one that lost them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from statetool.analysis.verification.problems import Problem
from statetool.errors import StatetoolError
from statetool.formats.metadata.properties import CheckpointProperties
from statetool.formats.state_meta import StateMetaInfo
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators


def lost_timers(operator: OperatorInventory, properties: CheckpointProperties | None) -> Iterator[Problem]:
    """Yield a warning if an operator's timers are missing from its savepoint.

    Parameters
    ----------
    properties
        Properties of the snapshot. Without them (before metadata version 4), a native savepoint looks like a checkpoint.

    Raises
    ------
    FormatError
        A header is damaged.
    """
    metas = _of_database(operator, properties)
    windows = [m for m in metas if m.namespace is not None and m.namespace.type_name.endswith("Window")]
    if windows and not any(m.kind == "timers" for m in metas):
        yield Problem(
            severity="warning",
            operator=operator.label,
            subtask=None,
            state=windows[0].name,
            file=None,
            offset=None,
            problem="the windows have no timers, so they never fire: native savepoints of RocksDB lose timers on heap; "
            "take a canonical savepoint (flink savepoint --type canonical)",
        )


def unseen_timers(
    operators: Iterable[OperatorInventory], properties: CheckpointProperties | None, *, windows_lost: bool
) -> Iterator[Problem]:
    """Yield a problem if a savepoint may have lost timers of other operators than windows.

    Parameters
    ----------
    windows_lost
        Whether :func:`lost_timers` has found windows without timers.
    """
    keyed: list[str] = []
    for operator in operators:
        with suppress(StatetoolError):  # what cannot be read has been reported
            metas = _of_database(operator, properties)
            if any(m.kind == "timers" for m in metas):
                return
            if any(m.namespace is None or not m.namespace.type_name.endswith("Window") for m in metas):
                keyed.append(operator.label)
    if keyed:
        where = f"in the state of {describe_operators(keyed)}"
        text = (
            f"no timers are {where}: windows without timers show that the job kept timers on heap, so timers of these operators are lost, too"
            if windows_lost
            else f"no timers are {where}: if the job has timers, it kept them on heap, and native savepoints of RocksDB lose those; "
            "take a canonical savepoint (flink savepoint --type canonical)"
        )
        yield Problem(
            severity="warning" if windows_lost else "note",
            operator=None,
            subtask=None,
            state=None,
            file=None,
            offset=None,
            problem=text,
        )


def _of_database(operator: OperatorInventory, properties: CheckpointProperties | None) -> list[StateMetaInfo]:
    """Return the keyed states of an operator in RocksDB in a native savepoint; none in other snapshots."""
    if properties is None or properties.format != "native" or operator.keyed.raw_timers:
        return []
    if not any(stored.database for stored in operator.keyed.managed):
        return []
    return [meta for _, meta in operator.keyed_states.values()]
