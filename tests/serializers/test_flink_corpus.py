"""Serializer cases of Flink's migration tests, which are not part of this project (``pytest --shared=DIR``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checks.serializer_check import Case, check, find_cases

_MODULES = ("flink-core", "flink-runtime", "flink-streaming-java", "flink-scala", "flink-table-runtime",
            "flink-table-planner", "flink-gelly", "flink-gelly-examples", "flink-cep", "flink-connector-kafka",
            "flink-avro", "flink-hadoop-compatibility")  # fmt: skip


@pytest.fixture(scope="module")
def cases(migration_cases: Path) -> list[Case]:
    return list(find_cases(migration_cases))


@pytest.mark.parametrize("module", _MODULES)
def test_migration_cases(cases: list[Case], module: str) -> None:
    chosen = [case for case in cases if case.name.startswith(module + "/")]
    assert chosen
    assert {case.name: result.failures for case in chosen if (result := check(case)).failures} == {}
