"""User-given names for the fields of rows, and reads of single keys of SQL operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import EncodeError, OptionError
from tests.support.snapshots.stored import groups_of


def _operator(corpus: Path, case: str, name: str) -> statetool.Operator:
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    return next(op for op in savepoint.operators.values() if op.name.endswith(name))


@pytest.fixture
def aggregate(sql_corpus: Path) -> statetool.Operator:
    """Return a GROUP BY: key (customer), value with nine aggregates, a map of the distinct values."""
    return _operator(sql_corpus, "sql_group_agg_rocksdb", "group-aggregate")


@pytest.fixture
def join(sql_corpus: Path) -> statetool.Operator:
    """Return a join without unique keys: maps from row to count."""
    return _operator(sql_corpus, "sql_join_types", "join")


def _names(table: pa.Table, column: str) -> list[str]:
    return [f.name for f in table.schema.field(column).type]


def test_fields_are_numbered_until_they_are_named(aggregate: statetool.Operator) -> None:
    given = ["n", "amounts", "total", "rate_sum", "rate_n", "least", "latest", "products", "qty", "distinct"]
    plain = aggregate.to_arrow(states=["accState"], nanos="companion")
    assert _names(plain, "key") == ["f0"]
    assert _names(plain, "accState")[:3] == ["f0", "f1", "f2"]
    columns = {"key": ["customer"], "accState": given}
    named = aggregate.to_arrow(states=["accState"], nanos="companion", columns=columns)
    assert _names(named, "key") == ["customer"]
    assert _names(named, "accState") == [*given[:7], "latest_nanos", *given[7:], "_kind"]
    rows = [dict(zip(_names(plain, "accState"), r["accState"].values(), strict=True)) for r in named.to_pylist()]
    assert rows == [r["accState"] for r in plain.to_pylist()]


def test_the_one_row_of_a_state_needs_no_path(join: statetool.Operator) -> None:
    table = join.to_arrow("left-records", columns={"left-records": ["k", "text", "numbers"], "key": ["k"]})
    assert _names(table, "map_key") == ["k", "text", "numbers", "_kind"]
    assert _names(table, "key") == ["k"]


def test_timers_have_the_same_key(sql_corpus: Path) -> None:
    op = _operator(sql_corpus, "sql_group_window_legacy", "group-window-aggregate")
    assert _names(op.to_arrow("timers", columns={"key": ["usr"]}), "key") == ["usr"]


def test_one_of_several_rows_is_named_by_its_path(sql_corpus: Path) -> None:
    op = _operator(sql_corpus, "sql_dedup_topn", "rank")
    (name,) = [s for s in op.states if s.startswith("data-state")]
    with pytest.raises(OptionError, match=rf"'{name}.key', '{name}.value.element'"):
        op.to_arrow(name, columns={name: ["a", "b"]})
    table = op.to_arrow(name, columns={f"{name}.key": ["score", "id"], f"{name}.value": ["usr", "id", "score", "page"]})
    assert _names(table, "map_key") == ["score", "id", "_kind"]
    assert [f.name for f in table.schema.field("value").type.value_type] == ["usr", "id", "score", "page", "_kind"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"accState": ["a"]}, "1 names for the 10 fields"),
        ({"key": ["_kind"]}, "_kind"),
        ({"nothing": ["a"]}, "not a state"),
        ({"key": "customer"}, "not a list of names"),
        ({"distinctAcc_0": ["a"]}, "0 rows"),
        ({"accState": ["a", "A", *"bcdefghi"]}, "at most in case"),
    ],
)
def test_names_that_do_not_fit_are_refused(aggregate: statetool.Operator, columns: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        aggregate.to_arrow(columns=columns)


def test_one_key_of_a_sql_operator_reads_one_key_group(aggregate: statetool.Operator) -> None:
    whole = aggregate.to_arrow(nanos="truncate", key_group=True).to_pylist()
    for row in whole:
        key = tuple(row["key"].values())
        scan = aggregate.scan("keyed_state", nanos="truncate", keys=[key], key_group=True)
        assert groups_of(scan.splits) == [row["key_group"]]
        assert [r for b in scan.batches() for r in b.to_pylist()] == [row]
    assert aggregate.to_arrow(nanos="truncate", keys=[("nobody",), (None,)]).num_rows == sum(
        r["key"]["f0"] is None for r in whole
    )
    with pytest.raises(EncodeError):
        aggregate.to_arrow(keys=[(1,)])
