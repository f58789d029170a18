"""Corpus cases written unchanged and through tables, read again; all canonical ones by ``python -m tests.roundtrip_check``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checks.corpus_check import Case
from tests.support.checks.roundtrip_check import check_roundtrip
from tests.support.quick import quick


@pytest.mark.parametrize(
    "name",
    quick(["v1_13_6-rocksdb-canonical", "v2_3_0-rocksdb-canonical-compressed"], "v2_3_0-rocksdb-canonical-compressed"),
)
def test_a_case_survives_the_round_trip(corpus: Path, name: str) -> None:
    problems, rows = check_roundtrip(Case(corpus / name), None)
    assert not problems
    assert rows > 1000
