"""The corpus's cases for a release, and the expected content of changed copies."""

from __future__ import annotations

import copy
import functools
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

ARCHIVE: Final = HERE / "corpus" / "public-datastream.tar.xz"


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


def with_max_parallelism(expected: dict[str, Any], number: Callable[[int], int]) -> dict[str, Any]:
    """Return the expected content after each operator's max parallelism has changed."""
    changed = copy.deepcopy(expected)
    for operator in changed.values():
        operator["max_parallelism"] = number(operator["max_parallelism"])
    return changed
