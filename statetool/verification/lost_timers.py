"""Find timers that a savepoint lost when it was taken.

With the RocksDB backend and timers on heap (``state.backend.rocksdb.timer-service.factory: heap``), a native savepoint holds timers
nowhere: Flink writes raw keyed state only into checkpoints, and the database has no column family for them. A window operator always
has queues of timers, so states of windows without any give the loss away; of other operators the bytes do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from statetool.formats.metadata.properties import CheckpointProperties
from statetool.snapshot.operator import OperatorInventory
from statetool.verification.problems import Problem


def lost_timers(operator: OperatorInventory, properties: CheckpointProperties | None) -> Iterator[Problem]:
    """Yield a warning where an operator's timers are not in its savepoint.

    Parameters
    ----------
    properties
        Those of the snapshot; without (before metadata version 4) nothing tells a native savepoint from a checkpoint.

    Raises
    ------
    FormatError
        A damaged header.
    """
    if properties is None or properties.format != "native" or operator.keyed.raw_timers:
        return
    if not any(stored.database for stored in operator.keyed.managed):
        return
    metas = [meta for _, meta in operator.keyed_states.values()]
    windows = [m for m in metas if m.namespace is not None and m.namespace.type_name.endswith("Window")]
    if windows and not any(m.kind == "timers" for m in metas):
        yield Problem(
            severity="warning",
            operator=operator.label,
            subtask=None,
            state=windows[0].name,
            file=None,
            offset=None,
            problem="windows without timers, so they never fire: native savepoints of RocksDB with timers on heap lose them; "
            "take a canonical savepoint (flink savepoint --type canonical)",
        )
