"""Whole states computed from old ones: joins, Top-N and deduplications that real Flink ran (``tests/support/flink/sql_changes.py``)."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool
from statetool.errors import EncodeError, UnsupportedError
from statetool.saving.recomputing.conditions import is_true
from statetool.saving.recomputing.entries import ComputedEntries, computed_entries
from statetool.saving.recomputing.joins import _check_counts, _only
from statetool.saving.recomputing.rows import other_type, ranks_of
from statetool.serializers.sql.logical_types import SqlType
from statetool.sql_plans.conditions import unknown_part
from statetool.sql_plans.ranks import SortedColumn
from tests.support.corpora.archives import unpack
from tests.support.flink.sql_changes import ARCHIVE, decide, difference_of_states, folder_of, open_savepoint
from tests.support.flink.sql_pairs import PAIRS
from tests.support.flink.sql_queries import Pair

#: Release and backend of the job.
_JOB = ("2.3.0", "hashmap")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("sql-states"))


def sides(stored: Path, name: str) -> tuple[statetool.Savepoint, statetool.Savepoint, Pair]:
    pair = next(p for p in PAIRS if p.name == name)
    configured = ((pair.old, pair.old_config), (pair.new, pair.new_config))
    old, new = (open_savepoint(stored / _JOB[0] / folder_of(*side)) for side in configured)
    return old, new, pair


@pytest.mark.parametrize(
    "name",
    [
        "join: inputs swapped",
        "joins: INNER to FULL, rows become equal",
        "joins: INNER to FULL by a key with nulls",
        "joins: INNER to LEFT with a condition",
        "joins: key: longer",
        "joins: unique: no longer part of the key",
        "joins: options: column removed, with TTL",
        "tops: 4 to 1, column removed",
        "tops: updated: 3 to 2",
        "tops: retracted: another order",
        "single: last becomes first",
    ],
)
def test_the_state_is_that_of_the_new_query(stored: Path, tmp_path: Path, name: str) -> None:
    old, new, pair = sides(stored, name)
    verdict, _ = decide(old, new, pair, tmp_path / "new", _JOB)
    assert verdict == ("asks" if pair.accept else "converted")
    assert difference_of_states(tmp_path / "new", new) == ""
    if name != "tops: 4 to 1, column removed":  # the old query has no such state
        assert difference_of_states(Path(old.path), new) != ""


def test_no_plan_stores_how_states_are_computed(stored: Path, tmp_path: Path) -> None:
    old, new, _ = sides(stored, "join: inner to left")
    plan = statetool.plan_migration(old, new)
    statetool.write_plan(plan, str(tmp_path / "plan.json"))
    with pytest.raises(UnsupportedError, match="whole states are computed"):
        statetool.migrate(old, str(tmp_path / "no"), plan=str(tmp_path / "plan.json"))
    assert any("cannot be caught up with" in text for text in plan.for_catching_up().refused)
    (warning,) = statetool.check(old, new).warnings
    assert "the partners of the left rows are counted" in warning


def test_partners_that_expired_need_consent(stored: Path, tmp_path: Path) -> None:
    old, new, pair = sides(stored, "joins: options: INNER to LEFT, with TTL")
    with pytest.raises(UnsupportedError, match="rows of the other side that expired are no partners"):
        statetool.migrate(old, str(tmp_path / "no"), to=new)
    statetool.migrate(old, str(tmp_path / "new"), to=new, accept=pair.accept)
    assert difference_of_states(tmp_path / "new", new) == ""


def test_tasks_compute_parts(stored: Path) -> None:
    """Entries are sent to tasks of Spark, and sources that share key groups stay together."""
    old, new, _ = sides(stored, "join: inner to left")
    (recomputed,) = statetool.plan_migration(old, new).recomputed.values()
    operator = old.inventory.operators["7_join"]
    sources = operator.keyed.sources()
    parts = computed_entries([*sources, *sources], recomputed.rule, recomputed.after, recomputed.types, 128)
    assert all(len(part.sources) == 2 for part in parts)
    parts = computed_entries(sources, recomputed.rule, recomputed.after, recomputed.types, 128)

    def entries(some: list[ComputedEntries]) -> list[bytes]:
        return [bytes(batch.data) for part in some for batch in part.batches()]

    assert entries(pickle.loads(pickle.dumps(parts))) == entries(parts) != []


def test_rows_that_do_not_fit_are_refused() -> None:
    first = np.array([0, 2])
    assert _only(np.array([3, 3, 1]), np.array([0, 0, 1]), first) is not None
    with pytest.raises(EncodeError, match="become equal"):
        _only(np.array([3, 4, 1]), np.array([0, 0, 1]), first)
    with pytest.raises(EncodeError, match="more often"):
        _check_counts(np.array([2**31]))


def column(index: int, kind: str = "INT") -> dict[str, Any]:
    return {"kind": "INPUT_REF", "inputIndex": index, "type": kind}


def call(name: str, *operands: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "CALL", "internalName": f"${name}$1", "operands": list(operands), "type": "BOOLEAN"}


def test_conditions_have_three_values() -> None:
    columns = [pa.array([1, 5, None, 7]), pa.array([2, 5, 5, None])]
    less, null = call("<", column(0), column(1, "BIGINT")), call("IS NULL", column(1))
    assert [bool(x) for x in is_true(less, columns)] == [True, False, False, False]
    assert [bool(x) for x in is_true(call("NOT", less), columns)] == [False, True, False, False]
    assert [bool(x) for x in is_true(call("OR", less, null), columns)] == [True, False, False, True]
    five = {"kind": "LITERAL", "value": 5, "type": "INT NOT NULL"}
    both = call("AND", call(">=", column(0), five), call("IS NOT NULL", column(1)))
    assert [bool(x) for x in is_true(both, columns)] == [False, True, False, False]
    assert {unknown_part(c) for c in (less, null, both)} == {""}


@pytest.mark.parametrize(
    "condition",
    [
        call("<", column(0, "DOUBLE"), column(1, "DOUBLE")),
        call("<", column(0), column(1, "DECIMAL(10, 2)")),
        call("=", column(0, "CHAR(3)"), column(1, "VARCHAR(3)")),
        call("=", column(0, "TIMESTAMP(9)"), column(1, "TIMESTAMP(9)")),
        call("=", column(0), {"kind": "LITERAL", "value": None, "type": "INT"}),
        call("AND", call("LIKE", column(0, "VARCHAR(3)"), column(1, "VARCHAR(3)"))),
        call("=", call("+", column(0), column(1)), column(1)),
        {"kind": "OTHER"},
    ],
)
def test_other_conditions_are_not_evaluated(condition: dict[str, Any]) -> None:
    assert unknown_part(condition)


def test_orders() -> None:
    values = pa.array([3, None, 1, 3])
    for ascending, last, wanted in (
        (True, True, [2, 0, 3, 1]),
        (True, False, [1, 2, 0, 3]),
        (False, True, [0, 3, 2, 1]),
        (False, False, [1, 0, 3, 2]),
    ):
        ranks = ranks_of(values, SortedColumn(column="x", ascending=ascending, nulls_last=last))
        assert np.argsort(ranks, kind="stable").tolist() == wanted


def test_types_of_kept_columns() -> None:
    whole, wide = SqlType(root="INT"), SqlType(root="BIGINT")
    assert other_type(whole, wide) == ""
    assert other_type(wide, whole)
    assert "NOT NULL" in other_type(whole, SqlType(root="INT", nullable=False))
    text = [SqlType(root="VARCHAR", length=n) for n in (5, 9)]
    assert other_type(*text) == ""
    assert other_type(*reversed(text))
    decimals = [SqlType(root="DECIMAL", precision=p, scale=s) for p, s in ((10, 2), (12, 2), (12, 3))]
    assert other_type(*decimals[:2]) == ""
    assert other_type(*decimals[1:])
