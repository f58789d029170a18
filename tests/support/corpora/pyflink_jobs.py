"""Savepoints of PyFlink jobs with their declarations and expected values (``tests/flink/pyflink`` has the job)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import statetool

CODED: Final = (
    "process-2.3.0-hashmap",
    "process-2.3.0-rocksdb-native",
    "process-1.20.5-rocksdb",
    "process-1.17.2-hashmap",
)


#: As in the job's descriptors; those of single types come with the case.
STATES: Final = {
    "items": "ListState(STRING)",
    "sizes": "MapState(STRING, LONG)",
    "total": "LONG",
    "average": "TUPLE(LONG, LONG)",
    "ttl_value": "STRING",
    "ttl_items": "ListState(LONG)",
    "ttl_sizes": "MapState(LONG, STRING)",
    "count": "LONG",
    "seen": "LONG",
    "rules": "MapState(STRING, LONG)",
    "merging-window-set": "MapState(TIME_WINDOW, TIME_WINDOW)",
    "window-contents": "ListState(TUPLE(LONG, STRING))",
    "tumble-count-assigner": "LONG",
}


UIDS: Final = ("everything", "tumbling", "broadcast")


SESSIONS: Final = ("session", "merged", "counted")


KEYS: Final = ("pickled", "int", "long", "string", "tuple", "row", "boolean", "double", "date")


def told(jobs: Path, case: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((jobs / case / "expected.json").read_text())["expected"]
    return expected


def opened(jobs: Path, case: str, *, unsafe_pickle: bool = True) -> statetool.Savepoint:
    expected = told(jobs, case)
    uids = [*UIDS, *(SESSIONS if case in CODED else ()), *(f"key-{k}" for k in KEYS)]
    types = {f"everything.{name}": kind for name, kind in expected["types"].items()}
    return statetool.load(
        str(jobs / case / "savepoint"), uids=uids, python={**STATES, **types}, unsafe_pickle=unsafe_pickle
    )
