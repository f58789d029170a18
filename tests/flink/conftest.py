"""Flink machines, one for each release asked for, shared by all tests of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.flink.jars import DEFAULT_VERSIONS, FlinkUnavailableError
from tests.flink.machine import FlinkMachine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that has the fixture ``flink`` once for each release."""
    if "flink" in metafunc.fixturenames:
        given = metafunc.config.getoption("--flink-versions")
        versions = [v.strip() for v in given.split(",")] if given else list(DEFAULT_VERSIONS)
        metafunc.parametrize("flink", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink of one release; skips where it cannot run, unless ``STATETOOL_REQUIRE_FLINK`` is set."""
    try:
        machine = FlinkMachine(request.param, tmp_path_factory.mktemp(f"flink-{request.param}"))
    except FlinkUnavailableError as error:
        if os.environ.get("STATETOOL_REQUIRE_FLINK"):
            raise
        pytest.skip(str(error))
    yield machine
    machine.close()
