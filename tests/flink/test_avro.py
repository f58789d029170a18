"""Avro values written by statetool are read by Flink, and those written by Flink are read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from tests.support.flink import judge, pairs
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.pair_avro import generic, record
from tests.support.flink.pair_states import State

pytestmark = pytest.mark.full

_SCHEMA: Final = record(
    {"name": "flag", "type": "boolean"},
    {"name": "number", "type": "long"},
    {"name": "share", "type": "double"},
    {"name": "text", "type": ["null", "string"]},
    {"name": "color", "type": {"type": "enum", "name": "shop.Color", "symbols": ["RED", "BLUE"]}},
    {"name": "items", "type": {"type": "array", "items": "int"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "inner", "type": record({"name": "a", "type": "int"}, name="shop.Inner")},
)
_ROWS: Final[tuple[dict[str, Any], ...]] = tuple(
    {
        "flag": bool(i % 2),
        "number": -i << 40,
        "share": i / 4,
        "text": f"é {i}" if i else None,
        "color": ("RED", "BLUE")[i % 2],
        "items": list(range(i)),
        "counts": {"x": i},
        "inner": {"a": i},
    }
    for i in range(3)
)


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_avro_values_written_here_are_what_flink_reads_and_writes(
    library_flink: FlinkMachine, tmp_path: Path, backend: str
) -> None:
    restore_and_read_back(library_flink, tmp_path, backend)


def restore_and_read_back(flink: FlinkMachine, work: Path, backend: str) -> None:
    """Let Flink restore values, compare them with the input, and read the savepoint that it takes."""
    rows = tuple({**row, "counts": list(row["counts"].items())} for row in _ROWS)
    state = State(element=generic(_SCHEMA, *rows))
    writer = statetool.SavepointWriter.new().with_operator("s", state.bootstrap(), parallelism=1)
    written = writer.write(str(work / "written"), flink_version=flink.version)
    requests = [state.request("s")]
    answer = judge.restore(
        flink, work / "written", requests, backend=backend, parallelism=1, savepoint=work / "of-flink"
    )
    found = {row["key"]: row["value"]["$avro"] for row in pairs.rows_of(answer)["s"]}
    assert found == dict(zip(state.key.values, _ROWS, strict=True))
    taken = statetool.load(answer["savepoint"], uids=["s"])
    assert statetool.check(written, taken, flink_version=flink.version).verdict == "fully"
    assert taken.diff(written, operators=["s"]).equal
