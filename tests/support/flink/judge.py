"""Restore of a snapshot in Flink, and comparison of everything it found with the expected content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import statetool
from tests.support.checks.corpus_check import Checker
from tests.support.expected.kryo import without_kryo
from tests.support.expected.scalars import same
from tests.support.flink.declare import operator_request
from tests.support.flink.machine import FlinkMachine

Expected = Mapping[str, Mapping[str, Any]]


def stateful(expected: Expected) -> dict[str, Mapping[str, Any]]:
    """Return the stateful operators from expectations in the form of the corpora's ``expected.json``."""
    return {n: o for n, o in expected.items() if o.get("keyed_state") or o.get("operator_state")}


def requests_for(snapshot: Path, expected: Expected) -> list[dict[str, Any]]:
    """Return requests for all stateful operators, with types taken from the snapshot's serializers."""
    by_id = {o.state.operator_id: o for o in statetool.load(str(snapshot))._inventory.operators.values()}
    return [
        operator_request(by_id[o["operator_id"]], name, None if o.get("no_uid") else name)
        for name, o in stateful(expected).items()
    ]


def restore(
    flink: FlinkMachine,
    snapshot: Path,
    operators: list[dict[str, Any]],
    *,
    backend: str,
    parallelism: int = 2,
    savepoint: Path | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Restore operators in a real job; return the state found by each subtask, the fired timers, and the new savepoint's path.

    Operators of the snapshot that are not among ``operators`` (sources and stateless ones) are left out, as with
    ``--allowNonRestoredState``.

    Raises
    ------
    FlinkRefusedError
        Flink did not restore it.
    """
    return flink.call(
        "restore",
        snapshot=str(snapshot),
        operators=operators,
        backend=backend,
        parallelism=parallelism,
        savepoint=None if savepoint is None else str(savepoint),
        allow_non_restored=True,
        **more,
    )


def differences(answer: Mapping[str, Any], expected: Expected) -> list[str]:
    """Compare every key, value, timer (registered and fired) and operator-state row; return the differences."""
    problems = []
    for name, wanted in stateful(expected).items():
        subtasks = [s for s in answer["opened"] if s["operator"] == name]
        if not subtasks:
            problems.append(f"{name}: not restored")
            continue
        keyed = wanted.get("keyed_state")
        if keyed:
            for state, described in keyed["states"].items():
                found = [row for s in subtasks for row in s["states"].get(state, ())]
                problems += _rows(f"{name}.{state}", found, described["rows"])
            for domain in ("event", "processing"):
                rows = [r for s in subtasks for r in s[f"{domain}_time_timers"]]
                problems += _same_rows(f"{name} {domain} timers", rows, keyed[f"{domain}_time_timers"])
            fired = [f for f in answer["fired"] if f["operator"] == name and f["domain"] == "event"]
            fired = [{k: f[k] for k in ("key", "namespace", "timestamp")} for f in fired]
            problems += _same_rows(f"{name} fired timers", fired, keyed["event_time_timers"])
        for state, described in (wanted.get("operator_state") or {}).items():
            parts = [s["operator_states"][state] for s in subtasks]
            if described["mode"] == "list":
                parts = [[row for p in parts for row in p]]
            for part in parts:
                problems += _same_rows(f"{name}.{state}", part, described["rows"])
    return problems


def normal(value: Any) -> Any:
    """Sort maps and sets of an answer like ``expected.json``."""
    if isinstance(value, list):
        return [normal(v) for v in value]
    if isinstance(value, dict):
        if set(value) == {"$map"}:
            return sorted(normal(value["$map"]), key=lambda row: _text(row[0]))
        if set(value) == {"$set"}:
            return {"$set": sorted(normal(value["$set"]), key=_text)}
        return {k: normal(v) for k, v in value.items()}
    return value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _ordered(what: str, value: Any) -> Any:
    """Sort collections that both sides have in no fixed order, or in different orders."""
    return sorted(value, key=_text) if what.endswith(".merging-window-set") and isinstance(value, list) else value


def _rows(what: str, found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> list[str]:
    problems = []
    left: dict[str, Any] = {}
    for row in found:
        place = _text([normal(row["key"]), row.get("namespace")])
        if place in left:
            problems.append(f"{what}: {place} twice")
        left[place] = _ordered(what, normal(row["value"]))
    right = {_text([normal(r["key"]), r.get("namespace")]): _ordered(what, normal(r["value"])) for r in expected}
    for place in sorted(left.keys() | right.keys()):
        if place not in left or place not in right:
            problems.append(f"{what}: {place} is {'missing' if place in right else 'unexpected'}")
        elif not same(left[place], right[place]):
            problems.append(f"{what}: {place} is {_text(left[place])}, expected {_text(right[place])}"[:600])
    return problems


def _same_rows(what: str, found: Iterable[Any], expected: Iterable[Any]) -> list[str]:
    left, right = (Counter(_text(normal(r)) for r in rows) for rows in (found, expected))
    return [f"{what}: {n} x {r} is unexpected"[:600] for r, n in (left - right).items()] + [
        f"{what}: {n} x {r} is missing"[:600] for r, n in (right - left).items()
    ]


def read_back(snapshot: Path, expected: Expected, *, parallelism: int) -> list[str]:
    """Compare statetool's reading of the savepoint that Flink took after the restore; return the differences."""
    case = type("Case", (), {"metadata": snapshot, "expected": {"operators": {}}})
    checker = Checker(case, None)  # type: ignore[arg-type]
    # Kryo's values are compared by content, and the checker modifies its copy.
    own: dict[str, Any] = json.loads(json.dumps(stateful(expected)), object_hook=without_kryo)
    by_id = {op.operator_id: op for op in checker.savepoint.operators.values()}
    for name, wanted in own.items():
        if wanted.get("no_uid"):
            # Found by its hash, written under the id that Flink generates for this job.
            continue
        operator = by_id.get(wanted["operator_id"])
        if operator is None:
            checker.problems.append(f"{name}: operator is missing")
            continue
        if (operator.parallelism, operator.max_parallelism) != (parallelism, wanted["max_parallelism"]):
            checker.problems.append(f"{name}: parallelism {operator.parallelism} of {operator.max_parallelism}")
        checker.operator(operator, wanted)
    return checker.problems
