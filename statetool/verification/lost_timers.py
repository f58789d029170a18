"""Find timers that a savepoint lost when it was taken.

With the RocksDB backend and timers on heap (``state.backend.rocksdb.timer-service.factory: heap``), a native savepoint contains
no timers: Flink writes raw keyed state only into checkpoints, and the database has no column family for timers. A window operator always
has timer queues, so window state without any reveals the loss. For other operators the bytes do not show it.
"""

from __future__ import annotations

from collections.abc import Iterator

from statetool.formats.metadata.properties import CheckpointProperties
from statetool.snapshot.operator import OperatorInventory
from statetool.verification.problems import Problem


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
            problem="the windows have no timers, so they never fire: native savepoints of RocksDB lose timers on heap; "
            "take a canonical savepoint (flink savepoint --type canonical)",
        )
