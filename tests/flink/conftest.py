"""Flink machines, one for each release asked for, shared by all tests of a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from tests.flink.jars import DEFAULT_VERSIONS, FlinkUnavailableError, flink_jars, java_tool
from tests.flink.machine import FlinkMachine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that has the fixture ``flink`` once for each release."""
    if "flink" in metafunc.fixturenames:
        given = metafunc.config.getoption("--flink-versions")
        versions = [v.strip() for v in given.split(",")] if given else list(DEFAULT_VERSIONS)
        metafunc.parametrize("flink", versions, indirect=True, scope="session")


@contextlib.contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except FlinkUnavailableError as error:
        if os.environ.get("STATETOOL_REQUIRE_FLINK"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def newest_flink() -> str:
    """Return the newest release, its jars at hand; skips or fails like ``flink``."""
    with _needed():
        flink_jars(DEFAULT_VERSIONS[0])
        java_tool("javac")
    return DEFAULT_VERSIONS[0]


@pytest.fixture(scope="session")
def flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink of one release; skips where it cannot run, unless ``STATETOOL_REQUIRE_FLINK`` is set."""
    with _needed():
        machine = FlinkMachine(request.param, tmp_path_factory.mktemp(f"flink-{request.param}"))
    yield machine
    machine.close()
