"""Corpus cases written unchanged, through tables, and in native forms, read again; all by ``python -m tests.roundtrip_check``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checks import native_roundtrips
from tests.support.checks.corpus_check import Case
from tests.support.checks.native_roundtrips import EQUAL, FAILED, answers_of
from tests.support.checks.roundtrip_check import check_roundtrip
from tests.support.corpora.archives import HERE, unpack
from tests.support.quick import quick


@pytest.mark.parametrize(
    "name",
    quick(["v1_13_6-rocksdb-canonical", "v2_3_0-rocksdb-canonical-compressed"], "v2_3_0-rocksdb-canonical-compressed"),
)
def test_a_case_survives_the_round_trip(corpus: Path, name: str) -> None:
    problems, rows = check_roundtrip(Case(corpus / name), None)
    assert not problems
    assert rows > 1000


#: An archive without snapshots.
_PLANS = "sql-plans"
#: Corpora that are not packed here. The one of serializers has no snapshots: ``serializer_states`` writes some with its values.
_OTHERS = frozenset({"public-connectors", "serializers", "flink-migration-savepoints"})


@pytest.mark.parametrize(
    ("archive", "inside"),
    [
        ("backends", "2.3.0/sync"),
        ("backends", "2.3.0/async"),
        ("in-flight", ""),
        ("sql-operators", ""),
        ("pyflink", ""),
    ],
)
def test_a_snapshot_survives_each_native_form(archive: str, inside: str, tmp_path: Path) -> None:
    """Or is refused, as is in the table."""
    folder = unpack(HERE / "corpus" / f"{archive}.tar.xz", tmp_path) / inside
    known = {(r.backend, r.outcome, r.reason) for r in native_roundtrips.rows() if r.corpus == archive}
    found = {(r.backend, r.outcome, r.reason) for r in answers_of(min(folder.rglob("_metadata")))}
    assert found <= known


def test_each_corpus_survived_each_native_form() -> None:
    found = native_roundtrips.rows()
    packed = {path.name.removesuffix(".tar.xz") for path in (HERE / "corpus").glob("*.tar.xz")} - {_PLANS}
    assert packed | _OTHERS == {row.corpus for row in found}
    assert [row for row in found if row.outcome == FAILED] == []
    for backend in native_roundtrips.BACKENDS:
        assert sum(row.snapshots for row in found if (row.backend, row.outcome) == (backend, EQUAL)) > 150
