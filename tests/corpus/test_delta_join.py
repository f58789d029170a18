"""Waiting rows of delta joins in savepoints of Flink 2.1 to 2.3: equal to what the jobs had sent, named by their plans."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool
from statetool.errors import FormatError
from statetool.snapshot.views import DELTA_JOIN_QUEUE, LOOKUP_QUEUE, views_of
from statetool.tables.kinds.waiting import lookup_rows
from statetool.types import Scalar
from statetool.types.options import ReadOptions
from tests.support.checks.sql_bytes import check_bytes
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink.delta_job import PACKED, RELEASES

#: Columns of the two inputs.
COLUMNS = {"left": ("id", "shop", "amount"), "right": ("city", "name")}
NO_WATERMARK = -(1 << 63)


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("delta-join"))


def delta_join(case: Path) -> tuple[statetool.Operator, dict[str, list[str]]]:
    (op,) = (o for o in statetool.load(str(case)).operators.values() if DELTA_JOIN_QUEUE in o.states)
    return op, op.columns_from_plan(str(case / "plan.json"))


def sent(case: Path) -> set[tuple[str, ...]]:
    """Return the rows that the job sent, as text. Flink looks nothing up for the one with a null key."""
    rows = json.loads((case / "sent.json").read_text("utf-8"))
    inputs = {"orders": "left", "shops": "right"}
    parts = [re.fullmatch(r"(\w+)\[(.*)\]", row) for row in rows]
    return {(inputs[p[1]], *p[2].split(", ")) for p in parts if p and p[2] != "6, null, 60"}


def as_sent(row: dict[str, Any]) -> tuple[str, ...]:
    values = [row[row["input"]][name] for name in COLUMNS[row["input"]]]
    return (row["input"], *("null" if v is None else str(v) for v in values))


@pytest.mark.parametrize("release", RELEASES)
def test_rows_wait_by_name(savepoints: Path, release: str) -> None:
    case = savepoints / release
    op, columns = delta_join(case)
    rows = op.to_arrow("waiting", columns=columns).to_pylist()
    assert len(rows) == 8
    assert {as_sent(row) for row in rows} == sent(case)
    for row in rows:
        here, other = (row[side] for side in (("left", "right") if row["input"] == "left" else ("right", "left")))
        assert (other, here["_kind"], row["timestamp"]) == (None, "+I", 1000)
        assert row["key"] == {"shop": here["shop" if row["input"] == "left" else "name"]}
    # The watermark is that of both inputs.
    assert {row["watermark"] for row in rows} <= {NO_WATERMARK, 999}
    north = [row["left"]["id"] for row in rows if row["key"]["shop"] == "north" and row["left"]]
    assert north == [1, 3], "rows of a key wait in their order"
    (chosen,) = op.to_arrow("waiting", columns=columns, keys=[("west",)], key_group=True).to_pylist()
    assert chosen["left"]["id"] == 4


@pytest.mark.parametrize("release", RELEASES)
def test_the_queue_is_written_back_as_it_was(savepoints: Path, release: str) -> None:
    assert check_bytes(savepoints / release) > 0
    assert all(p.severity == "note" for p in statetool.verify(str(savepoints / release), deep=True).problems)


def test_a_row_of_a_third_input(savepoints: Path) -> None:
    op, _ = delta_join(savepoints / "2.3.0")
    kind = op.inventory.keyed_states[DELTA_JOIN_QUEUE][1].parts[0].logical
    table = op.to_arrow(DELTA_JOIN_QUEUE)
    rows = table["value"].combine_chunks().flatten()
    tuples = pa.StructArray.from_arrays(
        [*rows[:3], pa.array([2] * len(table), pa.int32())], names=["f0", "f1", "f2", "f3"]
    )
    number = Scalar("int64")
    columns = [
        ("key", number, table["list_index"]),
        ("list_index", number, table["list_index"]),
        ("value", kind, tuples),
    ]
    with pytest.raises(FormatError, match="2 is not an input of a join"):
        lookup_rows(np.zeros(len(table), np.int64), columns, ReadOptions())


def test_a_lookup_join_in_the_order_of_its_keys(tmp_path: Path) -> None:
    case = (
        unpack(HERE / "corpus" / "sql-operators.tar.xz", tmp_path) / "sql-operators" / "2.3.0" / "lookup_key_ordered23"
    )
    (op,) = (o for o in statetool.load(str(case)).operators.values() if LOOKUP_QUEUE in o.states)
    rows = op.to_arrow("waiting", columns=op.columns_from_plan(str(case / "plan.json"))).to_pylist()
    assert {(r["key"]["v"], r["value"]["id"], r["value"]["v"]) for r in rows} == {("a", 4, "a"), ("b", 4, "b")}
    assert {(r["timestamp"], r["watermark"]) for r in rows} == {(None, NO_WATERMARK)}


def test_a_state_of_the_name_with_other_parts_is_no_queue(savepoints: Path) -> None:
    op, _ = delta_join(savepoints / "2.3.0")
    meta = op.inventory.keyed_states[DELTA_JOIN_QUEUE][1]
    assert "waiting" in views_of({DELTA_JOIN_QUEUE: meta}, {})
    assert "waiting" not in views_of({LOOKUP_QUEUE: replace(meta, name=LOOKUP_QUEUE)}, {})
