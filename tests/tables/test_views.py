"""Views of operators equal the state in the raw tables, whatever its storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statetool
from statetool.errors import DecodeError, FormatError, OptionError
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.codes import OK
from statetool.kernels.entries.matches import BEGIN, MANY_WAYS, match_paths
from statetool.serializers.core.packages import full_name
from statetool.serializers.typeutils.basic import STRING
from statetool.snapshot.state_tables import state_tables
from statetool.snapshot.views import MERGED, check_view, views_of, window_states
from statetool.tables.kinds.keyed import UNDECODED_TYPE
from statetool.tables.kinds.matches import match_rows
from statetool.types import Scalar, StructType
from statetool.types.declared import class_of_fields
from statetool.types.options import ReadOptions

FORMS = [
    "v2_3_0-hashmap-canonical", "v2_3_0-rocksdb-native", "v2_3_0-changelog-rocksdb", "v2_3_0-forst", "v1_13_6-rocksdb-incremental",
]  # fmt: skip
Window = tuple[Any, Any]


def metadata_of(case: Path) -> str:
    return str(next((case / "snapshot").rglob("_metadata")))


def same(window: Mapping[str, int] | None) -> Any:
    return None if window is None else (window["start"], window["end"])


def joined(op: statetool.Operator) -> dict[Window, dict[str, Any]]:
    """Join the states stored per window from their raw tables."""
    metas = {name: meta for name, (_, meta) in op.inventory.keyed_states.items()}
    merged: dict[Window, Any] = {}
    for name in MERGED:
        for row in op.to_arrow(name).to_pylist() if name in metas else ():
            now, under = (row["map_key"], row["value"]) if "map_key" in row else row["value"].values()
            merged[str(row["key"]), same(under)] = same(now)
    windows: dict[Window, dict[str, Any]] = {(key, now): {} for (key, _), now in merged.items()}
    for name in window_states(metas):
        for row in op.to_arrow(name).to_pylist():
            key, window = str(row["key"]), same(row.get("namespace"))
            if name in ("window-contents", "window-aggs"):
                window = merged.get((key, window), window)
            states = windows.setdefault((key, window), {})
            if metas[name].kind == "list":
                states.setdefault(name, []).append(row["value"])
            else:
                states[name] = row["value"]
    return windows


def shown(op: statetool.Operator, **options: Any) -> dict[Window, dict[str, Any]]:
    rows = op.to_arrow("windows", **options).to_pylist()
    by_window = {(str(r.pop("key")), same(r.pop("window", None))): r for r in rows}
    assert len(by_window) == len(rows)
    return {w: {name: v for name, v in r.items() if v is not None} for w, r in by_window.items()}


@pytest.mark.parametrize("form", FORMS)
def test_a_window_has_all_that_is_kept_of_it_in_one_row(corpus: Path, form: str) -> None:
    sp = statetool.load(metadata_of(corpus / form))
    with_windows = [op for op in sp.operators.values() if "windows" in op.tables]
    assert len(with_windows) >= 3
    for op in with_windows:
        assert shown(op) == joined(op), op.name
    assert any("count" in row for op in with_windows for row in shown(op).values())


def test_key_groups_larger_than_memory_show_the_same_windows(corpus: Path) -> None:
    sp = statetool.load(metadata_of(corpus / FORMS[0]))
    for op in sp.operators.values():
        if "windows" in op.tables:
            assert shown(op, memory_bytes=1) == joined(op)


def test_windows_of_some_keys_with_bytes_kept(corpus: Path) -> None:
    op = statetool.load(metadata_of(corpus / FORMS[0]))["win-count"]
    (row,) = op.to_arrow("windows", keys=["w1"], key_group=True, on_error="keep_raw").to_pylist()
    assert (row["key"], row["count"], row["_undecoded"]) == ("w1", 4, None)
    assert row["key_group"] == op.to_arrow(keys=["w1"], key_group=True)["key_group"][0].as_py()


def test_sessions_of_sql_are_shown_as_they_are_now(sql_corpus: Path) -> None:
    sp = statetool.load(metadata_of(sql_corpus / "sql_group_window_legacy"))
    (op,) = (o for o in sp.operators.values() if "session-window-mapping" in o.states)
    assert shown(op) == joined(op)
    assert len(joined(op)) > 3


def test_sessions_whose_trigger_counts(connector_migration: Path) -> None:
    for case in sorted(connector_migration.glob("window-operator/*-session-with-stateful-trigger")):
        (op,) = statetool.load(str(case / "snapshot")).operators.values()
        first, purged = op.to_arrow("windows").to_pylist()
        assert first["window"] == {"start": 10, "end": 4000}
        assert (first["count"], [e["f1"] for e in first["window-contents"]]) == (2, [1, 2])
        assert (purged["key"], purged["count"], purged["window-contents"]) == ("key2", None, None)


def test_a_view_has_a_state_of_its_name_stand_aside() -> None:
    assert list(state_tables(["windows", "seen"], [], ["windows"])) == ["keyed:windows", "seen"]
    assert list(state_tables(["windows"], [])) == ["windows"]


@pytest.mark.parametrize("state", ["nfaStateName", "sharedBuffer-events", "sharedBuffer-entries-with-lockable-edges"])
def test_no_matches_of_states_with_other_parts(connector_cases: Path, state: str) -> None:
    op = statetool.load(str(connector_cases / "v2_3_0-cep" / "snapshot"))["cep"]
    assert "matches" in op.inventory.views
    assert "matches" not in views_of(changed(op, state), {})


def test_no_windows_where_what_merged_is_not_told_by_windows(corpus: Path, sql_corpus: Path) -> None:
    """One changed byte in a header turns a serializer into that of a pair."""
    of_sql = statetool.load(metadata_of(sql_corpus / "sql_group_window_legacy"))
    for sp, state in ((statetool.load(metadata_of(corpus / FORMS[0])), MERGED[0]), (of_sql, MERGED[1])):
        op = next(o for o in sp.operators.values() if state in o.states)
        assert "windows" in op.inventory.views
        assert "windows" not in views_of(changed(op, state), {})


def test_a_subtask_whose_states_have_other_parts_is_named(corpus: Path) -> None:
    op = next(o for o in statetool.load(metadata_of(corpus / FORMS[0])).operators.values() if MERGED[0] in o.states)
    metas = {name: meta for name, (_, meta) in op.inventory.keyed_states.items()}
    names = [*window_states(metas), MERGED[0]]
    check_view("windows", names, metas)
    check_view("windows", names, {})
    contents = metas["window-contents"]
    text = replace(
        contents,
        serializers={**contents.serializers, "NAMESPACE_SERIALIZER": STRING.serializer(full_name("StringSerializer"))},
    )
    for other in (changed(op, MERGED[0]), {**metas, "window-contents": text}):
        with pytest.raises(FormatError, match="'windows' have different parts"):
            check_view("windows", names, other)


def changed(op: statetool.Operator, state: str) -> dict[str, StateMetaInfo]:
    """Return the states of an operator, one of them with text instead of each of its parts."""
    metas = {name: meta for name, (_, meta) in op.inventory.keyed_states.items()}
    value = metas[state].value
    for step, _ in value.children():
        value = value.with_child(step, STRING.serializer(full_name("StringSerializer")))
    return {**metas, state: replace(metas[state], serializers={**metas[state].serializers, "VALUE_SERIALIZER": value})}


def test_what_an_operator_does_not_have_is_said(connector_cases: Path) -> None:
    op = statetool.load(str(connector_cases / "v2_3_0-async-wait" / "snapshot"))["async"]
    assert op.tables == ["waiting", "_async_wait_operator_state_"]
    with pytest.raises(OptionError, match="no pattern matches"):
        op.matches()
    with pytest.raises(OptionError, match="no state per window"):
        op.windows()


def test_bytes_that_are_kept_are_rows_of_views_too(connector_cases: Path) -> None:
    for case in ("v2_3_0-async-wait", "v2_3_0-cep"):
        for op in statetool.load(str(connector_cases / case / "snapshot")).operators.values():
            for view in op.inventory.views:
                plain, kept = op.to_arrow(view), op.to_arrow(view, on_error="keep_raw")
                assert kept["_undecoded"].null_count == len(kept)
                assert kept.drop_columns("_undecoded").equals(plain)


def test_matches_of_some_keys(connector_cases: Path) -> None:
    op = statetool.load(str(connector_cases / "v2_3_0-cep" / "snapshot"))["cep"]
    (row,) = op.to_arrow("matches", keys=["k3"], key_group=True).to_pylist()
    assert (row["key"], row["status"], row["waiting_for"]) == ("k3", "partial", "view")
    waiting = op.to_arrow("waiting", keys=["k2"]).to_pylist()
    assert [(r["timestamp"], r["value"]["f1"]) for r in waiting] == [(1700000037000, "login")]


def test_matches_that_branch_in_all_releases(connector_migration: Path) -> None:
    event = {"id": "int", "name": "java.lang.String", "price": "double"}
    declared = [
        class_of_fields("org.apache.flink.cep.Event", event),
        class_of_fields(
            "org.apache.flink.cep.SubEvent", {**event, "volume": "double"}, extends=["org.apache.flink.cep.Event"]
        ),
    ]
    wanted = {
        "after-branching": [
            ("end", {"start": ["start"], "middle": ["foo1"]}),
            ("end", {"start": ["start"], "middle": ["foo2"]}),
            ("middle", {"start": ["start"]}),
        ],
        "starting-new-pattern": [
            ("end", {"start": ["start"], "middle": ["foo1"]}),
            ("middle", {"start": ["start"]}),
        ],
        "conditions": [("start", {"start": ["start"]})],
        "single-pattern-afterwards": [],
    }
    cases = sorted(connector_migration.glob("cep/*"))
    assert len(cases) == 16
    for case in cases:
        (op,) = statetool.load(str(case / "snapshot"), declarations=declared).operators.values()
        matches = [
            (r["waiting_for"], {name: [e["name"] for e in events] for name, events in r["events"]})
            for r in op.to_arrow("matches").to_pylist()
        ]
        assert matches == wanted[case.name.partition("-")[2]], case.name


def test_a_match_without_its_event_is_damage(connector_cases: Path) -> None:
    op = statetool.load(str(connector_cases / "v2_3_0-cep" / "snapshot"))["cep"]
    names = ["nfaStateName", "sharedBuffer-events", "sharedBuffer-entries-with-lockable-edges"]
    table = op.to_arrow(states=names, keys=["k1"]).combine_chunks()
    columns: Any = [(n, Scalar("string"), table[n].chunk(0)) for n in table.column_names]
    event = StructType.of(f0=Scalar("string"), f1=Scalar("string"), f2=Scalar("int32"), f3=Scalar("int64"))
    n, _, _ = match_rows(np.zeros(1, dtype=np.int64), columns, event, ReadOptions())
    assert n == 1
    groups, options = np.zeros(1, dtype=np.int64), ReadOptions()
    columns[2] = (*columns[2][:2], pa.array([[]], columns[2][2].type))
    with pytest.raises(DecodeError, match="not in the shared buffer"):
        match_rows(groups, columns, event, options)
    kept = (
        "_undecoded",
        UNDECODED_TYPE,
        pa.array([[("sharedBuffer-events[00]", b"x")]], pa.map_(pa.string(), pa.binary())),
    )
    n, _, match_columns = match_rows(groups, [*columns, kept], event, options)
    assert n == 2
    assert [array.to_pylist() for _, _, array in match_columns[-2:]] == [
        [[("login", [None])], None],
        [None, [("sharedBuffer-events[00]", b"x")]],
    ]
    # Without a path back, Flink finds no events, and reports nothing.
    columns[3] = (*columns[3][:2], pa.array([[]], columns[3][2].type))
    _, _, match_columns = match_rows(groups, columns, event, options)
    assert match_columns[-1][2].to_pylist() == [None]


# ---- the kernel compared with a plain implementation -------------------------------------------

Graph = list[list[tuple[int, list[int]]]]


def compatible(version: list[int], other: list[int]) -> bool:
    if len(version) > len(other):
        return version[: len(other)] == other
    return len(version) == len(other) and version[:-1] == other[:-1] and version[-1] >= other[-1]


def ways(graph: Graph, node: int, version: list[int]) -> list[list[int]]:
    paths = []
    for target, edge in graph[node]:
        if compatible(version, edge):
            paths += [[node]] if target == BEGIN else [[*way, node] for way in ways(graph, target, edge)]
    return paths


versions = st.lists(st.integers(1, 2), min_size=1, max_size=3)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw nodes whose edges lead to earlier nodes, without cycles."""
    size = draw(st.integers(1, 6))
    return [draw(st.lists(st.tuples(st.integers(BEGIN, n - 1), versions), max_size=3)) for n in range(size)]


def digits(many: list[list[int]]) -> tuple[Any, Any]:
    at = np.cumsum([0, *map(len, many)], dtype=np.int64)
    return at, np.array([d for one in many for d in one], dtype=np.int64)


@settings(max_examples=150)
@given(graphs(), st.data())
def test_events_are_found_by_the_rule_of_versions(graph: Graph, data: st.DataObject) -> None:
    last, version = data.draw(st.integers(0, len(graph) - 1)), data.draw(versions)
    edges = [edge for node in graph for edge in node]
    edge_at = np.cumsum([0, *map(len, graph)], dtype=np.int64)
    targets = np.array([target for target, _ in edges], dtype=np.int64)
    arguments = (np.array([last]), *digits([version]), edge_at, targets, *digits([v for _, v in edges]))
    room = np.empty(len(graph), dtype=np.int64), np.empty(len(graph), dtype=np.int64)
    lengths, path, nothing = np.empty(1, np.int64), np.full(len(graph), -1, np.int64), np.empty(0, np.int64)
    wanted = ways(graph, last, version)
    code, _ = match_paths(*arguments, *room, np.zeros(1, np.int64), lengths, nothing)
    assert code == (MANY_WAYS if len(wanted) > 1 else OK)
    if len(wanted) == 1:
        match_paths(*arguments, *room, np.zeros(1, np.int64), lengths, path)
        assert path[: lengths[0]].tolist() == wanted[0]
    elif not wanted:
        assert lengths[0] == 0


def test_sessions_of_datastream_v2_are_one_row_with_their_contents(restores: Path) -> None:
    sessions = statetool.load(str(restores / "datastream-v2-sessions"))["sess"].to_arrow("windows").to_pylist()
    contents = {row["key"]: row["window-state"] for row in sessions}
    assert len(sessions) == 3
    assert contents == {key: list(range(key, 46, 3)) for key in range(3)}
