"""Window operators of Flink continue from a snapshot of the corpus: the fired contents must be the stored elements plus later ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.flink.judge import Expected
from tests.support.flink.machine import FlinkMachine

_WINDOWS: Final[dict[str, dict[str, Any]]] = {
    "win-tumble-reduce": {"assigner": "tumbling", "size_ms": 10_000, "function": "reduce"},
    "win-slide-aggregate": {"assigner": "sliding", "size_ms": 12_000, "slide_ms": 4_000, "function": "aggregate"},
    "win-session-list": {"assigner": "session", "size_ms": 6_000, "function": "list"},
    "win-session-reduce": {"assigner": "session", "size_ms": 4_500, "function": "reduce"},
}
_AMOUNT: Final = 1_000


def wrongly_continued(flink: FlinkMachine, snapshot: Path, expected: Expected, *, backend: str) -> list[str]:
    """Send one more element into one window of each operator, let all windows fire, and return the differences."""
    wanted: Counter[str] = Counter()
    operators = []
    assert expected.keys() & _WINDOWS.keys(), "no window operator that is known here"
    for uid, described in _WINDOWS.items():
        if uid not in expected:
            continue
        fired, element = _continue(described, expected[uid]["keyed_state"])
        wanted.update(_text(uid, *row) for row in fired)
        operators.append(
            {"uid": uid, "max_parallelism": expected[uid]["max_parallelism"], "elements": [element], **described}
        )
    answer = flink.call("windows", snapshot=str(snapshot), operators=operators, backend=backend)
    found = Counter(_text(r["operator"], r["key"], r["namespace"], r["value"]) for r in answer["fired"])
    return [f"unexpected {r}" for r in found - wanted] + [f"missing {r}" for r in wanted - found]


def _text(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True)


def _continue(described: Mapping[str, Any], keyed: Mapping[str, Any]) -> tuple[list[tuple[Any, Any, Any]], list[Any]]:
    """Return the expected results (key, window, contents), and an element for a window of the first key."""
    merged = {
        _text(row["key"], stored): window
        for row in keyed["states"].get("merging-window-set", {"rows": ()})["rows"]
        for window, stored in row["value"]
    }
    rows = keyed["states"]["window-contents"]["rows"]
    first = rows[0]
    element = [first["key"], _AMOUNT, first["namespace"]["start"]]
    fired = []
    for row in rows:
        key, window, value = row["key"], row["namespace"], row["value"]
        if key == element[0] and window["start"] <= element[2] < window["end"]:
            value = _added(described["function"], value, element)
        fired.append((key, merged.get(_text(key, window), window), value))
    # A sliding window of the element without earlier contents.
    for start in _starts(described, element[2]):
        window = {"start": start, "end": start + described["size_ms"]}
        if not any(row["key"] == element[0] and row["namespace"] == window for row in rows):
            fired.append((element[0], window, [1, _AMOUNT]))
    return fired, element


def _starts(described: Mapping[str, Any], time_ms: int) -> list[int]:
    if described["assigner"] != "sliding":
        return []
    last = time_ms - time_ms % described["slide_ms"]
    return list(range(last, time_ms - described["size_ms"], -described["slide_ms"]))


def _added(function: str, value: Any, element: list[Any]) -> Any:
    if function == "aggregate":
        return [value[0] + 1, value[1] + element[1]]
    if function == "reduce":
        return [value[0], value[1] + element[1], max(value[2], element[2])]
    return [*value, element]
