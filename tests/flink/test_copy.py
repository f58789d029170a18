"""Copies of moved checkpoints of all kinds restore in Flink with every value; the moved checkpoints themselves cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import statetool
from tests.support.flink import judge
from tests.support.flink.corpus_cases import metadata_of, own_case
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError

pytestmark = pytest.mark.full

KINDS = (
    ("rocksdb-incremental", "rocksdb"),
    ("file-merging-rocksdb", "rocksdb"),
    ("file-merging-hashmap", "hashmap"),
    ("changelog-rocksdb", "rocksdb"),
    ("changelog-materialized", "hashmap"),
    ("changelog-hashmap", "hashmap"),
    ("hashmap-checkpoint", "hashmap"),
)


def checkpoint_of(corpus: Path, flink: FlinkMachine, kind: str) -> tuple[Path, Path]:
    case = own_case(corpus, flink, kind)
    return case, metadata_of(case).parent


@pytest.mark.case("{kind}")
@pytest.mark.parametrize(("kind", "backend"), KINDS)
def test_a_copied_checkpoint_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, kind: str, backend: str
) -> None:
    case, source = checkpoint_of(corpus, flink, kind)
    expected = json.loads((case / "expected.json").read_text())["operators"]
    target = tmp_path / "copy"
    statetool.copy(str(source), str(target))
    requests = judge.requests_for(target, expected)
    answer = judge.restore(flink, target, requests, backend=backend)
    assert judge.differences(answer, expected) == []


@pytest.mark.case("rocksdb-incremental")
def test_the_moved_checkpoint_itself_does_not_restore(flink: FlinkMachine, corpus: Path, tmp_path: Path) -> None:
    case, source = checkpoint_of(corpus, flink, "rocksdb-incremental")
    expected = json.loads((case / "expected.json").read_text())["operators"]
    shutil.copytree(source.parent, tmp_path / "moved")
    with pytest.raises(FlinkRefusedError):
        judge.restore(flink, tmp_path / "moved" / source.name, judge.requests_for(source, expected), backend="rocksdb")
