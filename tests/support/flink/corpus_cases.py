"""The corpus's cases for a release, and the expected content of changed copies."""

from __future__ import annotations

import copy
import functools
import json
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

ARCHIVE: Final = HERE / "corpus" / "public-datastream.tar.xz"

#: Operators with each kind of state.
_SOME: Final = (
    "collections-by-string",
    "by-tuple",
    "with-ttl",
    "timers",
    "win-session-list",
    "op-lists",
    "keyed-broadcast",
)


@functools.cache
def case_folders() -> frozenset[str]:
    """Return the folders of all cases."""
    with tarfile.open(ARCHIVE) as tar:
        return frozenset(member.name.split("/")[1] for member in tar if member.name.endswith("/case.json"))


def case_folder(version: str, name: str) -> str:
    """Return the folder of a case (``rocksdb-canonical``, ...) written by a release."""
    return f"v{version.replace('.', '_')}-{name}"


def own_case(corpus: Path, flink: FlinkMachine, name: str) -> Path:
    """Return the case written by the current release; tests also request it with their marker ``case``."""
    return corpus / case_folder(flink.version, name)


def metadata_of(case: Path) -> Path:
    """Return the metadata file of a case."""
    return case / "snapshot" / str(json.loads((case / "case.json").read_text())["metadata"])


def expected_of(case: Path) -> dict[str, Any]:
    """Return the operators of ``expected.json``."""
    found: dict[str, Any] = json.loads((case / "expected.json").read_text())["operators"]
    return found


def some_of(expected: dict[str, Any]) -> dict[str, Any]:
    """Return operators with each kind of state, for restores after that of all operators: Flink does the same with files of all types of values."""
    return {name: expected[name] for name in _SOME}


def with_max_parallelism(expected: dict[str, Any], number: Callable[[int], int]) -> dict[str, Any]:
    """Return the expected content after each operator's max parallelism has changed."""
    changed = copy.deepcopy(expected)
    for operator in changed.values():
        operator["max_parallelism"] = number(operator["max_parallelism"])
    return changed


def keep_rows(expected: dict[str, Any], stays: Callable[[str, Any], bool]) -> int:
    """Remove the rows and timers of keys that do not stay from the expected content, and return their number."""
    removed = 0
    for name, operator in expected.items():
        keyed = operator.get("keyed_state")
        if not keyed:
            continue
        rows_of = [described["rows"] for described in keyed["states"].values()]
        for rows in (*rows_of, keyed["event_time_timers"], keyed["processing_time_timers"]):
            left = [row for row in rows if stays(name, row["key"])]
            removed += len(rows) - len(left)
            rows[:] = left
    return removed


def is_one_of(key: Any, keys: Collection[Any]) -> bool:
    return isinstance(key, str | int | float) and not isinstance(key, bool) and key in keys
