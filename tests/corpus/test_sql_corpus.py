"""The corpus's savepoints of SQL jobs and of sources: every entry, timer and coordinator state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.checks.corpus_check import Case, check_case, find_cases
from tests.support.corpora.sql_cases import SQL
from tests.support.quick import quick

SOURCES = [
    "datagen_rate_limited", "file_source_bounded", "file_source_continuous", "hybrid_first_source", "hybrid_second_source",
    "number_sequence",
]  # fmt: skip
INCREMENTAL = ["sql_group_agg_rocksdb_incremental"]


@pytest.mark.parametrize(
    "name", quick(SOURCES + SQL + INCREMENTAL, "file_source_bounded", "sql_join_types", "sql_group_agg_hashmap")
)
def test_every_entry_through_arrow(sql_corpus: Path, name: str) -> None:
    passed, line = check_case(Case(sql_corpus / name), [("arrow", None)])
    assert passed, line


@pytest.mark.full
@pytest.mark.parametrize("name", ["sql_dedup_topn", "sql_group_agg_ttl_retract"])
def test_every_entry_through_spark(sql_corpus: Path, name: str, spark: Any) -> None:
    passed, line = check_case(Case(sql_corpus / name), [("spark", spark)])
    assert passed, line


def test_no_canonical_case_is_left_out(sql_corpus: Path) -> None:
    assert {c.folder.name for c in find_cases(sql_corpus, {"canonical"})} == set(SOURCES + SQL)


def test_a_wrong_value_is_noticed(sql_corpus: Path) -> None:
    case = Case(sql_corpus / "sql_join_unique_keys")
    states = [o["keyed_state"]["states"] for o in case.expected["operators"].values() if "keyed_state" in o]
    states[0]["left-records"]["entries"][0]["value"][0]["fields"][1] += "x"
    passed, line = check_case(case, [("arrow", None)])
    assert not passed
    assert "left-records" in line
