"""Find timers that a savepoint lost when it was taken.

With the RocksDB backend and timers on heap (``state.backend.rocksdb.timer-service.factory: heap``), a native savepoint contains
no timers: Flink writes raw keyed state only into checkpoints, and the database has no column family for timers. A window operator always
has timer queues, so a savepoint with windows and without any queue reveals the loss. It affects all operators, because the factory is an option
of the job. Without windows, a savepoint without timers is that of a job without timers, or of one that lost them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from statetool.analysis.verification.problems import Problem, Severity
from statetool.errors import StatetoolError
from statetool.formats.metadata.properties import CheckpointProperties
from statetool.formats.state_meta import StateMetaInfo
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

_GLOBAL: Final = "GlobalWindow"
_CANONICAL: Final = "take a canonical savepoint (flink savepoint --type canonical)"


def lost_timers(operators: Iterable[OperatorInventory], properties: CheckpointProperties | None) -> Iterator[Problem]:
    """Yield a problem for each window operator whose timers are missing from a savepoint, and one for other operators that may have lost theirs.

    A job has one factory for timers, so a queue of any operator in the database shows that no timers were on heap. Global windows may have no
    timers at all, and a savepoint that was converted from change logs has no queue that never had a timer.

    Parameters
    ----------
    properties
        Properties of the snapshot. Without them (before metadata version 4), a native savepoint looks like a checkpoint.
    """
    windows: list[tuple[str, str]] = []
    keyed: list[str] = []
    for operator in operators:
        with suppress(StatetoolError):  # what cannot be read has been reported
            if operator.keyed.raw_timers:
                return
            metas = _of_database(operator, properties)
            if any(m.kind == "timers" for m in metas):
                return
            namespaces = {m.name: "" if m.namespace is None else m.namespace.type_name for m in metas}
            bounded = [n for n, kind in namespaces.items() if kind.endswith("Window") and not kind.endswith(_GLOBAL)]
            if bounded:
                windows.append((operator.label, bounded[0]))
            elif metas:
                keyed.append(operator.label)
    for label, state in windows:
        text = "the windows have no timers, so they never fire: native savepoints of RocksDB lose timers on heap; "
        yield _problem("warning", f"{text}{_CANONICAL}", label, state)
    if keyed:
        where = f"in the state of {describe_operators(keyed)}"
        if windows:
            text = f"no timers are {where}: windows without timers show that the job kept timers on heap, so timers of these operators are lost, too"
        else:
            text = f"no timers are {where}: if the job has timers, it kept them on heap, and native savepoints of RocksDB lose those; {_CANONICAL}"
        yield _problem("warning" if windows else "note", text)


def _problem(severity: Severity, text: str, operator: str | None = None, state: str | None = None) -> Problem:
    return Problem(
        severity=severity, operator=operator, subtask=None, state=state, file=None, offset=None, problem=text
    )


def _of_database(operator: OperatorInventory, properties: CheckpointProperties | None) -> list[StateMetaInfo]:
    """Return the keyed states of an operator in RocksDB in a native savepoint; none in other snapshots."""
    if properties is None or properties.format != "native" or operator.keyed.raw_timers:
        return []
    if not any(stored.database for stored in operator.keyed.managed):
        return []
    return [meta for _, meta in operator.keyed_states.values()]
