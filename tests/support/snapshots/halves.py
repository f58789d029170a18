"""Two snapshots with disjoint keys, made from one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import statetool


def write_halves(savepoint: statetool.Savepoint, uids: Sequence[str], work: Path) -> tuple[str, str]:
    """Write two copies of a snapshot; each has every second key of some operators and no other operators.

    Keys without state that have timers only go to one of them, too.
    """
    targets = (str(work / "half-0"), str(work / "half-1"))
    chosen_ids = {savepoint[uid].operator_id for uid in uids}
    others = [name for name, operator in savepoint.operators.items() if operator.operator_id not in chosen_ids]
    for half, target in enumerate(targets):
        writer = statetool.SavepointWriter.from_existing(savepoint)
        for name in others:
            writer = writer.remove_operator(name)
        for uid in uids:
            operator = savepoint[uid]
            states, timers = operator.to_arrow(ttl="raw"), operator.to_arrow("timers")
            texts = sorted({_text(key) for table in (states, timers) for key in table["key"].to_pylist()})
            chosen = set(texts[half::2])
            state = statetool.bootstrap_keyed_state(_take(states, chosen), like=operator, timers=_take(timers, chosen))
            writer = writer.with_operator(uid, state)
        writer.write(target)
    return targets


def _text(key: object) -> str:
    return json.dumps(key, sort_keys=True)


def _take(table: pa.Table, keys: set[str]) -> pa.Table:
    return table.filter(pa.array([_text(key) in keys for key in table["key"].to_pylist()], pa.bool_()))
