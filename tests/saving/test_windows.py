"""Windows are removed with contents, triggers, timers and entries of merged windows; windows that may fire stay."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError
from statetool.io.output import Output
from statetool.saving.streams import windows
from statetool.saving.streams.windows import Windows, WindowSet
from tests.support.snapshots import canonical
from tests.support.snapshots.build import LONG, list_of, tuple_of
from tests.support.snapshots.entries import damage
from tests.support.zoo import ZOO


def _time_window() -> bytes:
    out = Output()
    out.utf("org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot")
    out.i4(3)
    return bytes(out)


SESSION, TUMBLE = "win-session-list", "win-tumble-reduce"
TIME_WINDOW: Final = _time_window()
TIMERS: Final = "_timer_state/event_window-timers"
Row = dict[str, Any]


def rows(path: str, uid: str, table: str = "windows") -> list[Row]:
    found: list[Row] = statetool.load(path)[uid].to_arrow(table).to_pylist()
    return found


def as_texts(found: list[Row]) -> list[str]:
    return sorted(map(str, found))


@pytest.fixture(scope="module")
def limit() -> int:
    ends = sorted(row["window"]["end"] for row in rows(ZOO, SESSION))
    return int(ends[len(ends) // 2])


def check_windows(new: str, uid: str, stays: Any) -> None:
    """Check that exactly some windows are left, with their timers."""
    assert as_texts(rows(new, uid)) == as_texts([row for row in rows(ZOO, uid) if stays(row["window"])])
    timers = [row for row in rows(ZOO, uid, "timers") if stays(row["namespace"])]
    assert as_texts(rows(new, uid, "timers")) == as_texts(timers)


def test_windows_before_a_time_are_removed(tmp_path: Path, limit: int) -> None:
    new = str(tmp_path / "new")
    plan = statetool.purge(ZOO, new, windows_before_ms=limit)
    for uid in (SESSION, TUMBLE):
        check_windows(new, uid, lambda window: window["end"] > limit)
    assert not damage(tmp_path / "new")
    removed = {row.operator: (row.removed_windows, row.left) for row in plan.windows}
    assert removed == {
        SESSION: (3, ""),
        TUMBLE: (5, ""),
        "win-count": (0, "global windows and windows of counts have no end"),
    }
    assert {row.form for row in plan.states if row.removed_entries} == {"in place"}
    again = statetool.purge(new, str(tmp_path / "again"), windows_before_ms=limit)
    assert not again.changes


def test_a_timer_after_the_time_keeps_its_window(tmp_path: Path, limit: int) -> None:
    """Such as that of the allowed lateness: a late record would fire the window again."""
    late, uid = str(tmp_path / "late"), TUMBLE
    row = rows(ZOO, uid)[0]
    window = [row["window"]["start"], row["window"]["end"]]
    statetool.set_values(ZOO, late, uid, row["key"], add_timers=[("event", limit)], namespace=window)
    statetool.purge(late, str(tmp_path / "new"), windows_before_ms=limit, operators=[uid])
    assert rows(str(tmp_path / "new"), uid) == [row]
    assert len(rows(str(tmp_path / "new"), uid, "timers")) == 2


@pytest.mark.parametrize("verb", [statetool.erase, statetool.keep])
def test_a_condition_chooses_windows(tmp_path: Path, limit: int, verb: Any) -> None:
    new = str(tmp_path / "new")
    done = verb(ZOO, new, where=f'"window"."end" > {limit} AND key <> \'w9\'', allow_missing=True, operators=[SESSION])
    assert done.proof is not None
    keep = verb is statetool.keep
    check_windows(new, SESSION, lambda window: (window["end"] > limit) == keep)
    assert {row.state for row in done.plan.erased} == {TIMERS, "window-contents", "merging-window-set"}


def test_conditions_on_windows_that_cannot_be_evaluated(tmp_path: Path) -> None:
    def erase(where: str, uid: str) -> None:
        statetool.erase(ZOO, str(tmp_path / "new"), where=where, operators=[uid])

    with pytest.raises(OptionError, match="there is no column 'window-contents'"):
        erase('"window".start = 1 AND "window-contents" IS NULL', SESSION)
    with pytest.raises(OptionError, match="there is no column 'window_end'"):
        erase("window_end = 1", SESSION)
    with pytest.raises(OptionError, match="global windows and windows of counts have no end"):
        erase('"window".start = 1', "win-count")
    with pytest.raises(OptionError, match="the operator has no windows"):
        erase('"window".start = 1', "timers")


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _window(start: int, end: int) -> bytes:
    return _long(start) + _long(end)


def _sessions(folder: Path, timers: list[tuple[int, int]]) -> str:
    """Write merged windows of one key, each (start, end): under another one, without contents, and contents without a merged window."""
    pairs = [((0, 20), (0, 10)), ((100, 110), (100, 110)), ((200, 210), (200, 210))]
    states = [
        canonical.timers(TIMERS, LONG, TIME_WINDOW),
        canonical.keyed("window-contents", "value", LONG, TIME_WINDOW),
        canonical.keyed("count", "value", LONG, TIME_WINDOW),
        canonical.keyed("merging-window-set", "list", list_of(tuple_of(TIME_WINDOW, TIME_WINDOW))),
        canonical.keyed("plain", "value", LONG),
    ]
    key = _long(7)
    contents = [(0, 10), (100, 110), (500, 510)]
    merged = b",".join(_window(*now) + _window(*under) for now, under in pairs)
    entries = [
        (TIMERS, 0, (1 << 63 | end - 1).to_bytes(8, "big") + key + _window(start, end), b"") for start, end in timers
    ]
    entries += [("window-contents", 0, key + _window(*window), _long(1)) for window in contents]
    entries += [("count", 0, key + _window(*now), _long(1)) for now, _ in pairs]
    entries += [("merging-window-set", 0, key + b"\0", merged), ("plain", 0, key + b"\0", _long(1))]
    folder.mkdir()
    canonical.savepoint(folder, [canonical.Subtask(key=LONG, states=states, entries=entries)], max_parallelism=1)
    return str(folder)


def _left(path: str) -> dict[str, list[Any]]:
    """Return the windows of each state."""
    (operator,) = statetool.load(path).operators.values()
    left: dict[str, list[Any]] = defaultdict(list)
    for name in ("window-contents", "count", "merging-window-set"):
        for row in operator.to_arrow(name).to_pylist():
            if name == "merging-window-set":
                left[name] = (
                    [tuple(row["value"]["f0"].values())] + left[name]
                    if isinstance(row["value"], dict)
                    else [tuple(p["f0"].values()) for p in row["value"]]
                )
            else:
                left[name].append(tuple(row["namespace"].values()))
    return {name: sorted(found) for name, found in left.items()}


def test_sessions_without_timer_are_removed(tmp_path: Path) -> None:
    source = _sessions(tmp_path / "old", timers=[(0, 20)])
    plan = statetool.purge(source, str(tmp_path / "new"), windows_without_timer=True)
    (of_operator,) = plan.windows
    assert of_operator.removed_windows == 2
    assert _left(str(tmp_path / "new")) == {
        "window-contents": [(0, 10)],
        "count": [(0, 20)],
        "merging-window-set": [(0, 20)],
    }
    (operator,) = statetool.load(str(tmp_path / "new")).operators.values()
    assert operator.to_arrow("plain").num_rows == 1


def test_contents_of_no_merged_window_stay_if_a_time_is_given(tmp_path: Path) -> None:
    source = _sessions(tmp_path / "old", timers=[(0, 20), (100, 110), (200, 210)])
    statetool.purge(source, str(tmp_path / "new"), windows_before_ms=110)
    assert _left(str(tmp_path / "new")) == {
        "window-contents": [(500, 510)],
        "count": [(200, 210)],
        "merging-window-set": [(200, 210)],
    }


def test_windows_without_timer_service_stay(tmp_path: Path) -> None:
    states = [canonical.keyed("window-contents", "value", LONG, TIME_WINDOW)]
    entries = [("window-contents", 0, _long(7) + _window(0, 10), _long(1))]
    (tmp_path / "old").mkdir()
    subtask = canonical.Subtask(key=LONG, states=states, entries=entries)
    canonical.savepoint(tmp_path / "old", [subtask], max_parallelism=1)
    plan = statetool.purge(str(tmp_path / "old"), str(tmp_path / "new"), windows_without_timer=True)
    assert [row.left for row in plan.windows] == ["the snapshot has no timer service of its windows"]


def test_the_command_says_which_windows_are_left(tmp_path: Path) -> None:
    words = ["purge", ZOO, str(tmp_path / "new"), "--windows-before", str(1 << 60), "--dry-run"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    assert f"windows of {TUMBLE}: 5 windows removed" in done.stderr
    assert "windows of win-count: left: global windows" in done.stderr
    refused = CliRunner().invoke(cli, ["purge", ZOO, str(tmp_path / "new"), "--window-size", "15min"])
    assert "pass --windows-before" in refused.stderr


Interval = st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6))


@given(st.lists(Interval, max_size=30), st.lists(Interval, min_size=1, max_size=20), st.integers(1, 8))
def test_a_set_contains_what_one_of_its_windows_contains(
    present: list[tuple[int, int, int]], asked: list[tuple[int, int, int]], run: int
) -> None:
    data = np.arange(8, dtype=np.uint8)

    def as_windows(found: list[tuple[int, int, int]]) -> Windows:
        key, start, end = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return Windows(data, key, key + 1, start, end)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(windows, "_RUN", run)
        held = WindowSet()
        for at in range(0, len(present), 3):
            part = as_windows(present[at : at + 3])
            held.add(part.hashes, part.start, part.end)
        found = held.contain(as_windows(asked)).tolist()
    assert found == [any(k == key and s <= start and e >= end for k, s, e in present) for key, start, end in asked]
