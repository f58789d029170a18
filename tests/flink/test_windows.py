"""Obsolete windows are removed, and real jobs go on: windows that stay fire once with the right contents, the others never."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.local import LocalRunner
from statetool.saving.streams.expired import ExpiredFilter
from statetool.saving.versions import parse_release
from statetool.snapshot.inventory import Inventory
from tests.support.flink.corpus_cases import expected_of, own_case
from tests.support.flink.edited import IN_PLACE, opened, restored_differences
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.sql import Input, Query, Row, run_query

pytestmark = pytest.mark.full
_START: Final = datetime(2024, 1, 1)
#: Windows that end before it are removed.
_LIMIT: Final = _START + timedelta(minutes=45)
_SIZE, _GAP = timedelta(minutes=15), timedelta(minutes=4)
_WINDOW: Final = "SELECT '{name}', k, window_end, SUM(v) FROM TABLE({name}(TABLE t, DESCRIPTOR(ts), {sizes})) GROUP BY k, window_start, window_end"
_GROUP: Final = "SELECT 'group {name}', k, {name}_END(ts, {sizes}), SUM(v) FROM t GROUP BY k, {name}(ts, {sizes})"
_FUNCTIONS: Final = (
    (_WINDOW, "TUMBLE", "INTERVAL '15' MINUTES"),
    (_WINDOW, "HOP", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_WINDOW, "CUMULATE", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_WINDOW.replace("TABLE t", "TABLE t PARTITION BY k"), "SESSION", "INTERVAL '4' MINUTES"),
    (_GROUP, "TUMBLE", "INTERVAL '15' MINUTES"),
    (_GROUP, "HOP", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_GROUP, "SESSION", "INTERVAL '4' MINUTES"),
)
#: The watermark of the first job fires no window.
_QUERY: Final = Query(
    inputs=(
        Input(
            name="t",
            columns=(("ts", "LOCALDATETIME", "TIMESTAMP(3)"), ("k", "STRING", "STRING"), ("v", "LONG", "BIGINT")),
            watermark="ts - INTERVAL '2' HOURS",
        ),
    ),
    sql=" UNION ALL ".join(form.format(name=name, sizes=sizes) for form, name, sizes in _FUNCTIONS),
)
#: Key and minute of each record. Their values are powers of two, so that a sum tells which records a window has.
_RECORDS: Final = (
    ("a", 1), ("a", 3), ("b", 2), ("a", 21), ("a", 24), ("b", 26), ("c", 44), ("a", 46), ("a", 61), ("c", 70),
)  # fmt: skip
#: A record that lets all these windows fire.
_LAST: Final[list[Row]] = [["INSERT", (_START + timedelta(hours=12)).isoformat(), "z", 0]]
Fired = dict[tuple[str, str, str], int]


def _rows() -> list[Row]:
    return [["INSERT", (_START + timedelta(minutes=m)).isoformat(), key, 1 << i] for i, (key, m) in enumerate(_RECORDS)]


def _windows_of(function: str, minute: int) -> list[datetime]:
    """Return the ends of the windows of a record, that of its slice first."""
    tumble = _START + _SIZE * (minute // 15 + 1)
    slices = [_START + timedelta(minutes=5) * (minute // 5 + n) for n in (1, 2, 3)]
    return {"TUMBLE": [tumble], "HOP": slices, "CUMULATE": [end for end in slices if end <= tumble]}[function]


def _removed_slices(function: str, key: str) -> set[datetime]:
    """Return the ends of removed slices: those of runs whose windows all end before the limit."""
    ends = sorted({_windows_of(function, minute)[0] for k, minute in _RECORDS if k == key})
    runs = [[ends[0]]]
    for before, end in pairwise(ends):
        if end - before < _SIZE:
            runs[-1].append(end)
        else:
            runs.append([end])
    return {end for run in runs if run[-1] + _SIZE <= _LIMIT for end in run}


def _expected(slice_stays: Callable[[str, str, datetime], bool]) -> Fired:
    """Return the sum of each window that fires after the removal of others: aggregates of slices, and all others after the limit."""
    sums: dict[tuple[str, str, datetime], int] = defaultdict(int)
    for i, (key, minute) in enumerate(_RECORDS):
        for function in ("TUMBLE", "HOP", "CUMULATE"):
            ends = _windows_of(function, minute)
            if slice_stays(function, key, ends[0]):
                for end in ends:
                    sums[function, key, end] += 1 << i
            for end in ends if function != "CUMULATE" else ():
                sums[f"group {function}", key, end] += 1 << i
    for key, end, total in _sessions():
        for name in ("SESSION", "group SESSION"):
            sums[name, key, end] = total
    slices = ("TUMBLE", "HOP", "CUMULATE")
    return {
        (name, key, end.isoformat()): total
        for (name, key, end), total in sums.items()
        if name in slices or end > _LIMIT
    }


def _sessions() -> Iterator[tuple[str, datetime, int]]:
    for key in "abc":
        own = [(_START + timedelta(minutes=minute), 1 << i) for i, (k, minute) in enumerate(_RECORDS) if k == key]
        total = 0
        for (time, value), following in zip(own, [*(time for time, _ in own[1:]), datetime.max], strict=True):
            total += value
            if following > time + _GAP:
                yield key, time + _GAP, total
                total = 0


def _run(flink: FlinkMachine, snapshot: Path | str, backend: str, results: int) -> Fired:
    """Let all windows fire, each once."""
    answer = run_query(flink, _QUERY, {"t": _LAST}, results=results, snapshot=Path(snapshot), backend=backend)
    rows = [r["$row"] for r in answer["results"]]
    fired = {(name, key, datetime.fromisoformat(end).isoformat()): total for name, key, end, total in rows}
    assert len(fired) == len(rows) == results
    return fired


def _ms(time: datetime) -> int:
    return int(time.replace(tzinfo=timezone.utc).timestamp() * 1000)


@pytest.mark.in_turn(1)
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_windows_of_sql(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    answer = run_query(flink, _QUERY, {"t": _rows()}, results=0, savepoint=tmp_path / "sp", backend=backend)
    source = answer["savepoint"]
    plan = statetool.purge(
        source, str(tmp_path / "new"), windows_before_ms=_ms(_LIMIT), window_size_ms=_SIZE // timedelta(milliseconds=1)
    )
    assert len(plan.windows) == len(_FUNCTIONS)
    assert all(row.removed_windows and not row.left for row in plan.windows)
    kept = _expected(lambda function, key, end: end not in _removed_slices(function, key))
    assert _run(flink, tmp_path / "new", backend, len(kept)) == kept
    without = tmp_path / "without-timers"
    _remove_timers(source, str(without), flink.version)
    plan = statetool.purge(str(without), str(tmp_path / "live"), windows_without_timer=True)
    assert sum(row.removed_windows for row in plan.windows) > 4
    live = _expected(lambda function, key, end: end > _LIMIT)
    for snapshot in (without, tmp_path / "live"):
        assert _run(flink, snapshot, backend, len(live)) == live


def _remove_timers(source: str, target: str, version: str) -> None:
    """Write a copy in which windows before the limit have no timers, as if Flink had lost them."""
    inventory = Inventory(source)
    overdue = ExpiredFilter(ttl_ms={}, now_ms=0, timers_before_ms={"event": _ms(_LIMIT)}, empty=False, of_windows=True)
    changes = {
        name: OperatorChange(filter=overdue) for name, operator in inventory.operators.items() if operator.listed_keyed
    }
    write_composition(
        Composition(base=inventory, changes=changes), target, parse_release(version, default=3), LocalRunner()
    )


@pytest.mark.case("{written}")
@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("written", "backend"), [("rocksdb-native", "rocksdb"), ("hashmap-canonical", "hashmap")])
def test_windows_of_streams(flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    source = opened(case, expected, tmp_path)
    timers = expected["win-slide-aggregate"]["keyed_state"]["event_time_timers"]
    limit = sorted(timer["namespace"]["end"] for timer in timers)[len(timers) // 2]
    plan = statetool.purge(source, str(tmp_path / "sp"), windows_before_ms=limit)
    removed = {
        name: _remove_windows(operator["keyed_state"], limit)
        for name, operator in expected.items()
        if name.startswith("win-")
    }
    assert {row.operator: row.removed_windows for row in plan.windows if row.removed_windows} == {
        name: count for name, count in removed.items() if count
    }
    assert removed["win-slide-aggregate"] > 0
    assert {row.operator for row in plan.windows if row.left} == {"win-count"}
    assert {row.form for row in plan.states if row.removed_entries} or written in IN_PLACE
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


def _remove_windows(keyed: dict[str, Any], limit: int) -> int:
    """Remove windows from the expected content, and return their number."""
    timers = [timer for name in ("event_time_timers", "processing_time_timers") for timer in keyed[name]]
    late = {_window(t["key"], t["namespace"]) for t in timers if t["timestamp"] >= limit}

    def is_removed(key: Any, window: Any) -> bool:
        return isinstance(window, dict) and window["end"] <= limit and _window(key, window) not in late

    gone: set[Any] = set()
    for rows in (keyed["event_time_timers"], keyed["processing_time_timers"]):
        gone |= {_window(row["key"], row["namespace"]) for row in rows if is_removed(row["key"], row["namespace"])}
        rows[:] = [row for row in rows if not is_removed(row["key"], row["namespace"])]
    holders = None
    if "merging-window-set" in keyed["states"]:
        merging = keyed["states"]["merging-window-set"]["rows"]
        for row in merging:
            row["value"] = [pair for pair in row["value"] if not is_removed(row["key"], pair[0])]
        holders = {_window(row["key"], holder) for row in merging for _, holder in row["value"]}
        merging[:] = [row for row in merging if row["value"]]
    for name, state in keyed["states"].items():
        if name == "window-contents" and holders is not None:
            state["rows"] = [row for row in state["rows"] if _window(row["key"], row["namespace"]) in holders]
            continue
        windows = [row for row in state["rows"] if is_removed(row["key"], row.get("namespace"))]
        gone |= {_window(row["key"], row["namespace"]) for row in windows}
        state["rows"] = [row for row in state["rows"] if row not in windows]
    return len(gone)


def _window(key: Any, window: Any) -> Any:
    return (str(key), window["start"], window["end"]) if isinstance(window, dict) else (str(key), window)
