"""Flink's own migration cases, from the folder beside the project (they are not copied into it)."""

import pytest

from tests.corpora import unpack
from tests.serializer_check import Case, check, find_cases
from tests.serializers.golden import SHARED

_MODULES = ("flink-core", "flink-runtime", "flink-streaming-java", "flink-scala", "flink-table-runtime",
            "flink-table-planner", "flink-gelly", "flink-gelly-examples", "flink-cep", "flink-connector-kafka",
            "flink-avro", "flink-hadoop-compatibility")  # fmt: skip
pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="the shared corpus is not beside the project")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    return list(find_cases(unpack(SHARED, tmp_path_factory.mktemp("corpus")) / "serializers"))


@pytest.mark.parametrize("module", _MODULES)
def test_migration_cases(cases: list[Case], module: str) -> None:
    chosen = [case for case in cases if case.name.startswith(module + "/")]
    assert chosen
    assert {case.name: result.failures for case in chosen if (result := check(case)).failures} == {}
