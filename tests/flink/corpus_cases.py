"""The corpus's cases for a release, and what is expected of changed copies of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flink.machine import FlinkMachine


def own_case(corpus: Path, flink: FlinkMachine, name: str) -> Path:
    """Return the case (``rocksdb-canonical``, ...) that the release at hand wrote; skips where the corpus has none."""
    folder = corpus / f"v{flink.version.replace('.', '_')}-{name}"
    if not folder.exists():
        pytest.skip(f"the corpus has no {name} of Flink {flink.version}")
    return folder


def metadata_of(case: Path) -> Path:
    """Return the metadata file of a case."""
    return case / "snapshot" / str(json.loads((case / "case.json").read_text())["metadata"])


def expected_of(case: Path) -> dict[str, Any]:
    """Return the operators of ``expected.json``."""
    found: dict[str, Any] = json.loads((case / "expected.json").read_text())["operators"]
    return found


def with_max_parallelism(expected: dict[str, Any], number: Callable[[int], int]) -> dict[str, Any]:
    """Return what is expected after each operator's max parallelism has changed."""
    changed = copy.deepcopy(expected)
    for operator in changed.values():
        operator["max_parallelism"] = number(operator["max_parallelism"])
    return changed
