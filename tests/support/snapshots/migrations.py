"""Savepoints of one state before a migration, and the steps to another type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import statetool
from statetool import flink
from statetool.migration.choices import Choices
from statetool.migration.compiling import Compiler
from statetool.serializers.core.base import Serializer

KEYS = pa.array([1, 2, 3], pa.int64())


def written(path: Path, type: Any, values: Any, **bootstrap: Any) -> statetool.Savepoint:
    table = pa.table({"key": KEYS, "s": values, "other": ["x", "y", None]})
    states = {"s": statetool.value(type, **bootstrap), "other": statetool.value("STRING")}
    writer = statetool.SavepointWriter.new().with_operator("op", statetool.bootstrap_keyed_state(table, states=states))
    return writer.write(str(path), flink_version="2.3")


def steps(old: Serializer, new: Serializer, **choices: Any) -> list[tuple[str, str, bool]]:
    compiler = Compiler(Choices(**choices))
    compiler.value(old, new, "value")
    return [(s.path, s.change, s.loses) for s in (*compiler.steps, *compiler.unused())]


OLD = flink.pojo("com.acme.Order", {"gone": flink.STRING, "n": flink.INT, "town": flink.STRING})


NEW = flink.pojo("com.acme.Order", {"city": flink.STRING, "extra": flink.INT, "n": flink.LONG})


ORDERS = pa.array([{"gone": "g", "n": 1, "town": "a"}, {"gone": None, "n": None, "town": ""}, None])


NO_ORDERS = pa.array([{"city": "", "extra": 1, "n": 2}, None, None])
