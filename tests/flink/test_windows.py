"""Obsolete windows are removed, and real jobs go on: windows that stay fire once with the right contents, the others never."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.sql import Input, Query, Row, run_query

pytestmark = pytest.mark.full
_START: Final = datetime(2024, 1, 1)
_SIZE, _SLIDE, _GAP = timedelta(minutes=15), timedelta(minutes=5), timedelta(minutes=4)
#: No window fires in the first job.
_LAG: Final = timedelta(hours=2)
_WINDOW: Final = "SELECT '{name}', k, window_end, SUM(v) FROM TABLE({name}(TABLE t, DESCRIPTOR(ts), {sizes})) GROUP BY k, window_start, window_end"
_GROUPS: Final = "SELECT 'group {name}', k, {name}_END(ts, {sizes}), SUM(v) FROM t GROUP BY k, {name}(ts, {sizes})"
_FUNCTIONS: Final = (
    (_WINDOW, "TUMBLE", "INTERVAL '15' MINUTES"),
    (_WINDOW, "HOP", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_WINDOW, "CUMULATE", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_GROUPS, "TUMBLE", "INTERVAL '15' MINUTES"),
    (_GROUPS, "HOP", "INTERVAL '5' MINUTES, INTERVAL '15' MINUTES"),
    (_GROUPS, "SESSION", "INTERVAL '4' MINUTES"),
)
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
#: Key and minute of each record; the value is a power of two, so that sums tell which records a window has.
_RECORDS: Final = (
    ("a", 1),
    ("a", 3),
    ("b", 2),
    ("a", 21),
    ("a", 24),
    ("b", 26),
    ("c", 44),
    ("a", 46),
    ("a", 61),
    ("c", 70),
)
_END: Final = _START + timedelta(hours=12)


def _rows() -> list[Row]:
    return [["INSERT", (_START + timedelta(minutes=m)).isoformat(), key, 1 << i] for i, (key, m) in enumerate(_RECORDS)]


def _windows() -> dict[tuple[str, str, str], int]:
    """Return the sum of each window by its kind, key and end."""
    sums: dict[tuple[str, str, str], int] = {}

    def add(name: str, key: str, end: datetime, value: int) -> None:
        sums[name, key, end.isoformat()] = sums.get((name, key, end.isoformat()), 0) + value

    sessions: dict[str, list[tuple[datetime, int]]] = {}
    for i, (key, minute) in enumerate(_RECORDS):
        time = _START + timedelta(minutes=minute)
        tumble = _START + _SIZE * (minute // 15 + 1)
        slice_end = _START + _SLIDE * (minute // 5 + 1)
        for form in ("", "group "):
            add(f"{form}TUMBLE", key, tumble, 1 << i)
            for n in range(3):
                add(f"{form}HOP", key, slice_end + n * _SLIDE, 1 << i)
        end = slice_end
        while end <= tumble:
            add("CUMULATE", key, end, 1 << i)
            end += _SLIDE
        own = sessions.setdefault(key, [])
        if own and time < own[-1][0]:
            own[-1] = time + _GAP, own[-1][1] + (1 << i)
        else:
            own.append((time + _GAP, 1 << i))
    for key, found in sessions.items():
        for end, total in found:
            add("group SESSION", key, end, total)
    return sums


def _fired(answer: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    rows = [r["$row"] for r in answer["results"]]
    assert len({tuple(r[:3]) for r in rows}) == len(rows)
    return {(name, key, datetime.fromisoformat(end).isoformat()): total for name, key, end, total in rows}


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_windows_of_sql(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    answer = run_query(flink, _QUERY, {"t": _rows()}, results=0, savepoint=tmp_path / "sp", backend=backend)
    limit = _START + timedelta(minutes=45)
    plan = statetool.purge(
        answer["savepoint"],
        str(tmp_path / "new"),
        windows_before_ms=int(limit.replace(tzinfo=timezone.utc).timestamp() * 1000),
        window_size_ms=int(_SIZE.total_seconds() * 1000),
    )
    print(plan.windows)
    every = _windows()
    last = [["INSERT", _END.isoformat(), "z", 0]]
    whole = run_query(
        flink, _QUERY, {"t": last}, results=len(every), snapshot=Path(answer["savepoint"]), backend=backend
    )
    assert _fired(whole) == every
    left = run_query(flink, _QUERY, {"t": last}, results=0, snapshot=tmp_path / "new", backend=backend)
    print(sorted(_fired(left).items()), sorted(every.items()))
    raise AssertionError
