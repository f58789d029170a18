"""The corpus's canonical savepoints, every row; all of them through Arrow, some through Spark as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.corpus_check import Case, Checker, check_case, find_cases

CANONICAL = [
    f"v{version}-{backend}-canonical"
    for version in ("1_13_6", "1_15_4", "1_17_2", "1_20_5", "2_3_0")
    for backend in ("hashmap", "rocksdb")
]
COMPRESSED = ["v2_3_0-hashmap-canonical-compressed", "v2_3_0-rocksdb-canonical-compressed"]
ROCKSDB = [
    "v1_13_6-rocksdb-incremental",
    "v1_15_4-rocksdb-incremental",
    "v1_17_2-rocksdb-incremental",
    "v1_20_5-rocksdb-incremental",
    "v1_20_5-rocksdb-native",
    "v2_3_0-rocksdb-native",
    "v2_3_0-rocksdb-native-inline",
    "v2_3_0-rocksdb-incremental",
    "v2_3_0-rocksdb-incremental-inline",
    "v2_3_0-rocksdb-full",
    "v2_3_0-rocksdb-heap-timers",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-forst",
    "v2_3_0-unaligned-inline",
    "v2_3_0-forst-native",
]
CHANGELOG = ["v2_3_0-changelog-hashmap", "v2_3_0-changelog-rocksdb"]
HEAP = ["v2_3_0-finished", "v2_3_0-unaligned"]
OTHERS = ["v2_3_0-rocksdb-heap-timers-canonical"]


@pytest.mark.parametrize("name", CANONICAL + COMPRESSED + OTHERS)
def test_every_row_through_arrow(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


@pytest.mark.parametrize("name", ["v1_13_6-rocksdb-canonical", "v2_3_0-hashmap-canonical", COMPRESSED[1]])
def test_every_row_through_spark(corpus: Path, name: str, spark: Any) -> None:
    passed, line = check_case(Case(corpus / name), [("spark", spark)])
    assert passed, line


def test_no_canonical_case_is_left_out(corpus: Path) -> None:
    found = {c.folder.name for c in find_cases(corpus, {"canonical"})}
    assert found == set(CANONICAL + COMPRESSED + OTHERS)


@pytest.mark.parametrize(
    "name", ["v1_20_5-hashmap-checkpoint", "v2_3_0-hashmap-checkpoint", "v2_3_0-hashmap-checkpoint-compressed"]
)
def test_heap_checkpoints_but_for_kryo(corpus: Path, name: str) -> None:
    """Operators with a Kryo value are refused, because nothing tells where it ends; all others are compared."""
    checker = Checker(Case(corpus / name), None)
    checker.run()
    assert checker.rows > 1000
    assert {p.partition(":")[0] for p in checker.problems} <= {"composites-by-int", "orders"}
    assert all("layout of the heap backend" in p for p in checker.problems)


@pytest.mark.parametrize("name", CHANGELOG + HEAP)
def test_heap_snapshots_and_changelogs(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


@pytest.mark.parametrize("name", ROCKSDB)
def test_rocksdb_snapshots(corpus: Path, name: str) -> None:
    passed, line = check_case(Case(corpus / name), [("arrow", None)])
    assert passed, line


def test_no_rocksdb_case_is_left_out(corpus: Path) -> None:
    found = {c.folder.name for c in find_cases(corpus, None) if c.info["backend"] in ("rocksdb", "forst")}
    assert found == set(ROCKSDB + [n for n in CANONICAL + COMPRESSED + OTHERS if "rocksdb" in n]) | {
        "v2_3_0-changelog-rocksdb"
    }


def test_a_wrong_value_is_noticed(corpus: Path) -> None:
    case = Case(corpus / "v2_3_0-rocksdb-canonical")
    rows = case.expected["operators"]["timers"]["keyed_state"]["states"]["registered"]["rows"]
    rows[0]["value"] += 1
    passed, line = check_case(case, [("arrow", None)])
    assert not passed
    assert "registered" in line
