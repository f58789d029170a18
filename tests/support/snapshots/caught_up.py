"""Two savepoints of one job, and a savepoint of a new job with wider types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import statetool
from statetool import flink

OLD = flink.pojo("com.acme.Order", {"n": flink.INT, "town": flink.STRING})
NEW = flink.pojo("com.acme.Order", {"extra": flink.INT, "n": flink.LONG, "town": flink.STRING})


def written(
    path: Path, numbers: dict[int, int], checkpoint: int, *, parallelism: int = 2, max_parallelism: int = 128
) -> statetool.Savepoint:
    """Write a snapshot of one operator: a POJO to migrate, a map, and timers, by key."""
    keys = pa.array(list(numbers), pa.int64())
    orders = [{"n": n, "town": f"town-{n % 7}"} for n in numbers.values()]
    table = pa.table(
        {
            "key": keys,
            "s": pa.array(orders, pa.struct([("n", pa.int32()), ("town", pa.string())])),
            "m": pa.array([[(n, "x"), (n + 1, "y")] for n in numbers.values()], pa.map_(pa.int32(), pa.string())),
            "other": [f"other-{key}" for key in numbers],
        }
    )
    timers = pa.table({"key": keys, "timestamp": pa.array(list(numbers.values()), pa.int64())})
    states = {"s": statetool.value(OLD), "m": statetool.map_of("INT", "STRING"), "other": statetool.value("STRING")}
    bootstrap = statetool.bootstrap_keyed_state(table, states=states, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator(
        "op", bootstrap, parallelism=parallelism, max_parallelism=max_parallelism
    )
    unchanged = statetool.bootstrap_list_state("l", pa.table({"value": [checkpoint]}), type="BIGINT")
    writer = writer.with_operator("source", unchanged, parallelism=1).with_checkpoint_id(checkpoint)
    return writer.write(str(path), flink_version="2.3")


def new_job(path: Path) -> statetool.Savepoint:
    """Write a snapshot of the new job, in which a POJO has a field more, and keys of a map are wider."""
    order = pa.struct([("extra", pa.int32()), ("n", pa.int64()), ("town", pa.string())])
    table = pa.table(
        {
            "key": pa.array([], pa.int64()),
            "s": pa.array([], order),
            "m": pa.array([], pa.map_(pa.int64(), pa.string())),
            "other": pa.array([], pa.string()),
        }
    )
    states = {"s": statetool.value(NEW), "m": statetool.map_of("BIGINT", "STRING"), "other": statetool.value("STRING")}
    elements = statetool.bootstrap_list_state("l", pa.table({"value": pa.array([], pa.int64())}), type="BIGINT")
    return (
        statetool.SavepointWriter.new()
        .with_operator("op", statetool.bootstrap_keyed_state(table, states=states), parallelism=1)
        .with_operator("source", elements, parallelism=1)
        .write(str(path), flink_version="2.3")
    )


def changed(numbers: dict[int, int]) -> dict[int, int]:
    """Change some values, remove some keys and add others."""
    kept = {key: n + (key % 50 == 3) for key, n in numbers.items() if key % 40 != 7}
    return kept | {key + 100_000: key for key in range(0, len(numbers), 90)}
