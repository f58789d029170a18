"""State of the operators of SQL jobs, in savepoints of Flink 1.15.4, 1.17.2, 1.20.5 and 2.3.0 (``sql-operators.tar.xz``).

``generator/jobs.py`` in the archive has the tables, their rows and the queries, from which the expected values are derived. Jobs that Flink
could compile have their plan next to the savepoint, from which columns get their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import OptionError, StatetoolError, UnknownNameError
from statetool.formats.keyed.naming import named_header
from statetool.serializers.naming import rows_of
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.tables.scan import table_states
from tests.support.checks.sql_bytes import check_bytes
from tests.support.corpora.archives import HERE, unpack
from tests.support.quick import quick

#: Rows that plans do not name: of a lookup table, of a function's state, of values that are rows themselves.
UNNAMED: Final = {
    ("2.3.0/ptf_states", "memory"), ("2.3.0/ptf_states", "ttl"), ("2.3.0/ptf_states", "row"), ("2.3.0/ptf_timers", "memory"),
}  # fmt: skip
BIG: Final = Decimal("12345678901234567890.000000001")
START: Final = 1704067200000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "sql-operators.tar.xz", tmp_path_factory.mktemp("operators")) / "sql-operators"


@cache
def _stateful(case: Path) -> list[statetool.Operator]:
    """Return the operators of a job, except the generator's source."""
    operators = statetool.load(str(case)).operators.values()
    return [op for op in operators if any(not t.startswith("SourceReader") for t in op.tables)]


@cache
def _columns(op: statetool.Operator, case: Path) -> dict[str, list[str]]:
    plan = case / "plan.json"
    return op.columns_from_plan(str(plan)) if plan.exists() else {}


def _operator(case: Path, table: str) -> statetool.Operator:
    (op,) = [op for op in _stateful(case) if table in op.tables]
    return op


def _rows(case: Path, table: str, op: statetool.Operator | None = None) -> list[dict[str, Any]]:
    op = op or _operator(case, table)
    rows: list[dict[str, Any]] = op.to_arrow(table, nanos="companion", columns=_columns(op, case)).to_pylist()
    return rows


@pytest.mark.parametrize("version", quick(["1.15.4", "1.17.2", "1.20.5", "2.3.0"], "2.3.0"))
def test_every_state_decodes_and_is_written_back_as_it_was(root: Path, version: str) -> None:
    for case in sorted((root / version).iterdir()):
        assert check_bytes(case) > 0 or case.name.startswith(("lookup", "async")), case.name
        for op in _stateful(case):
            for table in op.tables:
                assert op.to_arrow(table, nanos="companion", columns=_columns(op, case)).num_rows >= 0
    # Keys of maps that are sort keys or unique keys with nulls are among them: Flink would not find them if written differently.


@pytest.mark.parametrize("version", quick(["1.15.4", "1.17.2", "1.20.5", "2.3.0"], "2.3.0"))
def test_a_plan_names_all_rows(root: Path, version: str) -> None:
    for case in sorted((root / version).iterdir()):
        for op in _stateful(case) if (case / "plan.json").exists() else ():
            names = tuple((k, tuple(v)) for k, v in _columns(op, case).items())
            for header, _ in op.inventory.keyed_states.values():
                key = named_header(header, names).key
                assert isinstance(key, RowDataSerializer)
                assert "f0" not in key.names, case.name
            named = table_states(op.inventory, names)
            metas = {n: m for n, m in {**named.keyed, **named.elements}.items() if m.kind != "timers"}
            for name, meta in metas.items():
                if (f"{version}/{case.name}", name) not in UNNAMED:
                    for _, row in rows_of(meta.value):
                        assert isinstance(row, RowDataSerializer)
                        assert "f0" not in row.names, (case.name, name)


def _holds(actual: Any, expected: Any) -> bool:
    """Return True if a value has everything expected; additional fields are allowed."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(k in actual and _holds(actual[k], v) for k, v in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_holds, actual, expected))
    return bool(type(actual) is type(expected) and actual == expected)


def _window(start: int, end: int) -> dict[str, int]:
    return {"start": START + start * 1000, "end": START + end * 1000}


def _of(key: Any, **rest: Any) -> dict[str, Any]:
    return {"key": {"shop": key}, **rest}


ä = "ä€𝄞"
#: All rows of a table, as far as the query and its input determine them.
EXPECTED: Final[Mapping[tuple[str, str], list[dict[str, Any]]]] = {
    ("1.20.5/agg_retract", "accState"): [
        _of("a", value={"count(*)": 2, "sum(amount)": 14, "sum(price)": Decimal("14.40"), "avg_sum(amount)": 14, "avg_count(amount)": 2,
                        "min(amount)": {"min": 3, "mapSize": 2}, "max(price)": {"max": Decimal("11.10")}, "count(distinct amount)": 2}),
        _of("b", value={"count(*)": 1, "sum(amount)": 5, "min(wide)": {"min": BIG}, "count(distinct amount)": 1}),
        _of(ä, value={"count(*)": 1, "sum(price)": Decimal("-7.70"), "max(price)": {"max": Decimal("-7.70")}}),
        _of(None, value={"count(*)": 1, "sum_count(amount)": 0, "count(distinct amount)": 0}),
    ],
    ("1.20.5/agg_retract", "agg8$list"): [
        _of("a", list_index=0, value="3"), _of("a", list_index=1, value="11"), _of("b", value="5"), _of(ä, value="7"),
    ],
    # FILTER (WHERE amount > 1)
    ("1.20.5/agg_distinct_filter", "distinctAcc_1"): [
        _of("a", map_key=Decimal("3.30")), _of("b", map_key=Decimal("2.20")), _of("b", map_key=Decimal("5.50")),
        _of(ä, map_key=Decimal("-7.70")),
    ],
    ("1.20.5/agg_twophase", "accState"): [
        _of("a", value={"count(*)": 2, "avg_sum(amount)": 4, "sum(price)": Decimal("4.40"), "max(t9)_nanos": 789}),
        _of("b", value={"count(*)": 2, "avg_sum(amount)": 7, "sum(price)": Decimal("7.70"), "count(distinct amount)": 2}),
        _of(ä, value={"count(*)": 1, "avg_sum(amount)": 7}),
        _of(None, value={"count(*)": 1, "avg_count(amount)": 0}),
    ],
    ("1.20.5/udaf_views", "accState"): [
        _of("a", value={"myviews(shop, amount, t9)": {"count": 2, "inner": {"first": "a", "pair": [0, 2]}, "numbers": [1, 3],
                                                      "total": Decimal("0.4000"), "shares": [("a", 0.5)]}}),
        _of("b", value={"myviews(shop, amount, t9)": {"numbers": [2, 5], "total": Decimal("0.7000")}}),
        _of(ä, value={"myviews(shop, amount, t9)": {"count": 1, "numbers": [7]}}),
        _of(None, value={"myviews(shop, amount, t9)": {"count": 1, "numbers": [], "total": Decimal("0.0000")}}),
    ],
    ("1.20.5/udaf_views", "agg0$seen"): [
        _of("a", list_index=0, value="a"), _of("a", list_index=1, value="a"), _of("b", list_index=0, value="b"),
        _of("b", list_index=1, value="b"), _of(ä, list_index=0, value=ä),
    ],
    ("1.20.5/udaf_window", "window-aggs"): [
        _of("a", namespace=START + 60000, value={"rowacc(x, shop)": {"n": 2, "s": 1.0, "names": ["a", "a"]}}),
        _of("b", namespace=START + 60000, value={"rowacc(x, shop)": {"n": 2, "s": 1.0, "names": ["b", "b"]}}),
        _of(ä, value={"rowacc(x, shop)": {"n": 1, "names": [ä]}}), _of(None, value={"rowacc(x, shop)": {"n": 1, "names": [None]}}),
    ],
    ("1.20.5/join_haskey", "right-records"): [
        {"key": {"id": 1}, "map_key": {"k2": "k1"}, "value": {"k2": "k1", "rid": 1, "w": "a"}},
        {"key": {"id": 1}, "map_key": {"k2": "k2"}, "value": {"k2": "k2", "rid": 1, "w": "b"}},
        {"key": {"id": 9}, "map_key": {"k2": "k3"}, "value": {"k2": "k3", "rid": 9, "w": "c"}},
    ],
    ("1.15.4/join_haskey", "left-records"): [
        {"key": {"id": 1}, "value": {"f0": {"id": 1, "v": "one"}, "f1": 2}},
        {"key": {"id": 2}, "value": {"f0": {"id": 2, "v": "zwei"}, "f1": 0}},
    ],
    ("1.20.5/join_composite", "left-records"): [
        {"key": {"b": "k", "a": 1}, "map_key": {"a": 1, "b": "k", "v": "v1"}, "value": {"f0": 1, "f1": 1}},
        {"key": {"b": "k", "a": None}, "map_key": {"a": None, "b": "k", "v": "v2"}, "value": {"f0": 1, "f1": 0}},
    ],
    ("1.20.5/null_unique_key_join", "right-records"): [
        {"key": {"id": 1}, "map_key": {"wide": Decimal("1.500000000"), "t9_nanos": 789}, "value": {"wide": Decimal("1.500000000"), "m": 1}},
        {"key": {"id": 2}, "map_key": {"wide": None, "t9": None}, "value": {"wide": None, "t9": None, "m": 2}},
        {"key": {"id": 2}, "map_key": {"wide": None, "t9": datetime(2024, 1, 1), "t9_nanos": 1}, "value": {"m": 2}},
    ],
    ("1.20.5/temporal_row_left", "right"): [
        {"key": {"cur": "EUR"}, "map_key": START + 6000, "value": {"rate": Decimal("1.2000"), "_kind": "+U"}},
        {"key": {"cur": "YEN"}, "map_key": START + 2000, "value": {"rate": Decimal("0.0100"), "_kind": "+I"}},
    ],
    ("1.20.5/interval_join_left", "IntervalJoinLeftCache"): [
        {"key": {"u": "a"}, "map_key": START + 1000, "value": [{"f0": {"u": "a", "id": 1}, "f1": True}]},
        {"key": {"u": "a"}, "map_key": START + 9000, "value": [{"f0": {"u": "a", "id": 3}, "f1": True}]},
        {"key": {"u": "b"}, "map_key": START + 5000, "value": [{"f0": {"u": "b", "id": 2}, "f1": False}]},
    ],
    ("1.20.5/wtvf_session", "window-aggs"): [
        _of("a", namespace=_window(1, 6), value={"count(*)": 2, "sum(price)": Decimal("4.40"), "max(amount)": 3}),
        _of("b", namespace=_window(2, 7), value={"count(*)": 2, "sum(price)": Decimal("7.70"), "max(amount)": 5}),
        _of(ä, namespace=_window(6, 11), value={"count(*)": 1, "sum(price)": Decimal("-7.70")}),
        _of(None, namespace=_window(4, 9), value={"count(*)": 1, "sum(price)": None}),
    ],
    ("1.20.5/wtvf_session", "session-window-mapping"): [
        _of("a", map_key=_window(1, 8), value=_window(1, 6)), _of("b", map_key=_window(2, 10), value=_window(2, 7)),
        _of(ä, map_key=_window(6, 11), value=_window(6, 11)), _of(None, map_key=_window(4, 9), value=_window(4, 9)),
    ],
    ("1.20.5/window_topn", "window_rank"): [
        _of("a", map_key={"amount": 1, "price": Decimal("1.10")}, value=[{"shop": "a", "amount": 1}]),
        _of("a", map_key={"amount": 3, "price": Decimal("3.30")}, value=[{"shop": "a", "amount": 3}]),
        _of("b", map_key={"amount": 2}, value=[{"price": Decimal("2.20"), "window_end": datetime(2024, 1, 1, 0, 0, 30)}]),
        _of("b", map_key={"amount": 5}, value=[{"price": Decimal("5.50")}]), _of(ä, map_key={"amount": 7}, value=[{"price": Decimal("-7.70")}]),
        _of(None, map_key={"amount": None, "price": None}, value=[{"shop": None}]),
    ],
    ("1.20.5/topn_update_fast", "data-state-with-update"): [
        _of("a", map_key={"shop": "a", "amount": 1}, value={"f0": {"n": 1}}), _of("a", map_key={"amount": 3}, value={"f0": {"n": 1}}),
        _of("b", map_key={"amount": 2}, value={"f0": {"n": 1}}), _of("b", map_key={"amount": 5}, value={"f0": {"n": 1}}),
        _of(ä, map_key={"amount": 7}, value={"f0": {"n": 1}}), _of(None, map_key={"amount": None}, value={"f0": {"n": 1}}),
    ],
    ("1.20.5/materialize", "values"): [
        {"key": {"amount": 11}, "value": [{"shop": "a", "amount": 11, "price": Decimal("11.10")}]},
        {"key": {"amount": 3}, "value": [{"shop": "a"}]}, {"key": {"amount": 5}, "value": [{"shop": "b"}]},
        {"key": {"amount": 7}, "value": [{"shop": ä, "price": Decimal("-7.70")}]},
    ],
    ("1.20.5/lookup_async", "_async_wait_operator_state_"): [
        {"value": {"value": {"id": 4, "v": "four"}, "element": "record"}}, {"value": {"value": {"id": 9, "v": "nine"}}},
        {"value": {"value": {"id": 4, "v": "vier"}}},
    ],
    ("1.20.5/temporal_sort", "dataState"): [
        # Rows that the watermark has not passed yet.
        {"key": {}, "map_key": START + 6000, "value": [{"amount": 7}]},
    ],
    ("1.20.5/api_count_slide", "window-aggs"): [
        {"key": {"f0": "a"}, "namespace": 0, "value": {"f0": 4}}, {"key": {"f0": "b"}, "namespace": 0, "value": {"f0": 7}},
        {"key": {"f0": ä}, "namespace": 0, "value": {"f0": 7}}, {"key": {"f0": None}, "namespace": 0, "value": {"f0": None}},
    ],
    ("2.3.0/agg_percentile", "agg0$valueCount"): [
        _of("a", map_key=3.0, value=1), _of("a", map_key=11.0, value=1), _of("b", map_key=5.0, value=1), _of(ä, map_key=7.0, value=1),
    ],
    ("2.3.0/over_nontime", "accMapState"): [
        _of("a", map_key={"amount": 3}, value={"sum(amount)": 3, "count(*)": 1}),
        _of("a", map_key={"amount": 11}, value={"sum(amount)": 14, "count(*)": 2}),
        _of("b", map_key={"amount": 5}, value={"sum(amount)": 5, "count(*)": 1}),
        _of(ä, map_key={"amount": 7}, value={"sum(amount)": 7}), _of(None, map_key={"amount": None}, value={"count(amount)": 0}),
    ],
    ("2.3.0/multi_join", "multi-join-input-1"): [
        {"key": {"id": 1}, "map_key": {"join_key": {"bid_key": 1}, "record": {"bid": 1, "y": "b1"}}, "value": 1},
        {"key": {"id": 1}, "map_key": {"record": {"bid": 1, "y": "b1x"}}, "value": 1},
        {"key": {"id": 3}, "map_key": {"record": {"bid": 3, "y": "b3"}}, "value": 1},
    ],
    ("2.3.0/materialize_map", "rowToSqnState"): [
        {"key": {"amount": 11}, "map_key": {"shop": "a", "amount": 11}, "value": {"first_sqn": 0, "last_sqn": 0}},
        {"key": {"amount": 3}, "map_key": {"shop": "a"}}, {"key": {"amount": 5}, "map_key": {"shop": "b"}},
        {"key": {"amount": 7}, "map_key": {"shop": ä}},
    ],
    ("2.3.0/conflict_error", "current-value"): [
        {"key": {"v": "one"}, "value": {"id": 1, "p": Decimal("1.00")}}, {"key": {"v": "zwei"}, "value": {"id": 2, "p": Decimal("2.50")}},
    ],
    ("2.3.0/lookup_key_ordered23", "_keyed_async_wait_operator_state_"): [
        {"key": {"v": "a"}, "value": {"f0": {"value": {"id": 4, "v": "a", "_kind": "+U"}}}},
        {"key": {"v": "b"}, "value": {"f0": {"value": {"id": 4, "v": "b", "_kind": "+I"}}}},
    ],
    ("2.3.0/dedup_row_asc", "waiting-to-emit-on-timer"): [_of(ä, value={"shop": ä, "amount": 7})],
}  # fmt: skip


@pytest.mark.parametrize(("case", "table"), sorted(EXPECTED))
def test_what_jobs_hold(root: Path, case: str, table: str) -> None:
    rows, expected = _rows(root / case, table), EXPECTED[case, table]
    assert len(rows) == len(expected), rows
    for row in expected:
        assert sum(_holds(f, row) for f in rows) == 1, (row, rows)


def test_timers_with_and_without_a_name_in_one_table(root: Path) -> None:
    rows = _rows(root / "2.3.0/ptf_timers", "timers")
    hour = 3_600_000
    named = {(r["key"]["shop"], r["namespace"], r["timestamp"] - START) for r in rows if "un" not in r["service"]}
    assert named == {(k, "late", s * 1000 + hour) for k, s in (("a", 3), ("b", 5), (ä, 6), (None, 4))}
    unnamed = {(r["key"]["shop"], r["namespace"], r["timestamp"] - START) for r in rows if "unnamed" in r["service"]}
    seconds = (("a", 1), ("b", 2), ("a", 3), (None, 4), ("b", 5), (ä, 6))
    assert unnamed == {(k, None, s * 1000 + 2 * hour) for k, s in seconds}
    assert len(rows) == len(named) + len(unnamed)


def test_some_services_of_timers(root: Path) -> None:
    op = _operator(root / "2.3.0/ptf_timers", "timers")
    unnamed = op.to_arrow("timers", states=["_timer_state/event_user-unnamed-timers"])
    assert unnamed.num_rows == 6
    assert "namespace" not in unnamed.schema.names
    with pytest.raises(UnknownNameError, match=r"no timers .*user-named"):
        op.to_arrow("timers", states=["_timer_state/event_user-name-timers"])
    with pytest.raises(OptionError, match="list of names"):
        op.to_arrow("timers", states="_timer_state/event_user-named-timers")


def test_states_of_a_process_table_function(root: Path) -> None:
    case = root / "2.3.0/ptf_states"
    op = _operator(case, "keyed_state")
    assert op.name == "my_ptf"
    assert {r["key"]["shop"]: r["value"]["f1"] for r in _rows(case, "memory")} == {"a": 2, "b": 2, ä: 1, None: 1}
    assert {(r["key"]["shop"], r["map_key"]) for r in _rows(case, "map")} == {
        ("a", "1"), ("a", "3"), ("b", "2"), ("b", "5"), (ä, "7"), (None, "null"),
    }  # fmt: skip
    assert [r["value"] for r in _rows(case, "list") if r["key"]["shop"] == "b"] == ["b", "b"]


def test_a_plan_of_another_session_names_no_operator(root: Path) -> None:
    op = _operator(root / "1.20.5/topn_retract", "data-state")
    plan = str(root / "1.20.5/topn_update_fast/plan.json")
    with pytest.raises(OptionError, match="the plan has no node for operator"):
        op.columns_from_plan(plan)
    with pytest.raises(StatetoolError):
        op.to_arrow("data-state", nanos="truncate", columns=op.columns_from_plan(plan, node=0))


@pytest.mark.parametrize("case", ["wtvf_session", "legacy_session"])
def test_a_session_has_its_distinct_values_in_its_row(root: Path, case: str) -> None:
    (op,) = (op for op in _stateful(root / "1.20.5" / case) if "windows" in op.tables)
    rows = {row["key"]["f0"]: row for row in op.to_arrow("windows").to_pylist()}
    sessions = {row["key"]["f0"]: row["map_key"] for row in op.to_arrow("session-window-mapping").to_pylist()}
    assert {key: row["window"] for key, row in rows.items()} == sessions
    assert {key: dict(row["distinctAcc_0"] or ()) for key, row in rows.items()} == {
        "a": {1: 1, 3: 1}, "b": {2: 1, 5: 1}, "ä€𝄞": {7: 1}, None: {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("case", "states"),
    [
        ("1.15.4/wtvf_tumble_one", {"window-aggs", "distinctAcc_0", "distinctAcc_0_null_state"}),
        ("1.20.5/wtvf_hop", {"window-aggs", "distinctAcc_0", "distinctAcc_0_null_state"}),
        ("1.20.5/window_join_full", {"left-records", "right-records"}),
        ("1.20.5/window_topn", {"window_rank"}),
        ("1.20.5/window_dedup", {"window_deduplicate"}),
    ],
)
def test_windows_of_table_functions_are_rows(root: Path, case: str, states: set[str]) -> None:
    (op,) = (op for op in _stateful(root / case) if "windows" in op.tables)
    table = op.to_arrow("windows")
    assert set(table.column_names) == {"key", "window_end", *states}
    ends: dict[tuple[str, int], set[str]] = {}
    for name in states:
        for row in op.to_arrow(name).to_pylist():
            ends.setdefault((str(row["key"]), row["namespace"]), set()).add(name)
    assert {
        (str(row["key"]), row["window_end"]): {name for name in states if row[name] is not None}
        for row in table.to_pylist()
    } == ends
