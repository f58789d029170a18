"""Flink machines, one per requested release, shared by all tests of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.flink import pairs
from tests.support.flink.corpus_cases import case_folder, case_folders
from tests.support.flink.machine import AVRO_RECORDS, JARRED, MESSAGES, FlinkMachine
from tests.support.flink.versions import flink_versions, release_of
from tests.support.flink.zoo_cases import sources_of
from tools.flink_jars import DEFAULT_VERSIONS, FlinkUnavailableError, flink_jars, java_tool
from tools.maven import maven_jars


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test with the fixture of a machine once per release; the quick run only uses the newest."""
    for machine in {"flink", "library_flink", "avro_records_flink", "jarred_flink", "zoo_flink"}.intersection(
        metafunc.fixturenames
    ):
        versions = flink_versions(metafunc, DEFAULT_VERSIONS)
        releases = [pytest.param(v, marks=pytest.mark.full if i else ()) for i, v in enumerate(versions)]
        metafunc.parametrize(machine, releases, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out combinations that do not exist, and those out of turn.

    The corpus does not have each kind of snapshot (marker ``case``) of each release, and what a parameter names may be newer than a release.
    """
    absent = {item for item in items if isinstance(item, pytest.Function) and not (_has_case(item) and _exists(item))}
    absent |= _out_of_turn([item for item in items if isinstance(item, pytest.Function) and item not in absent])
    if absent:
        config.hook.pytest_deselected(items=list(absent))
        items[:] = [item for item in items if item not in absent]


def _out_of_turn(items: list[pytest.Function]) -> set[pytest.Function]:
    """Return tests with the marker ``in_turn`` of all releases but one, for each combination of their other parameters.

    All pairs of two parameters run, and so do all pairs of a parameter and a release: each number in the marker shifts the releases by one.
    """
    releases: dict[tuple[str, ...], list[pytest.Function]] = {}
    numbers: dict[tuple[str, ...], dict[str, int]] = {}
    turns: dict[tuple[str, ...], int] = {}
    for item in items:
        if (marker := item.get_closest_marker("in_turn")) is None:
            continue
        test, turn = (str(item.path), item.originalname), sum(marker.args)
        combination = []
        for mark in item.iter_markers("parametrize"):
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            values = repr([item.callspec.params[name.strip()] for name in names])
            seen = numbers.setdefault((*test, *names), {})
            turn += seen.setdefault(values, len(seen))
            combination.append(values)
        releases.setdefault((*test, *combination), []).append(item)
        turns.setdefault((*test, *combination), turn)
    return {item for key, same in releases.items() for i, item in enumerate(same) if i != turns[key] % len(same)}


def _has_case(item: pytest.Function) -> bool:
    marker = item.get_closest_marker("case")
    if marker is None:
        return True
    name = marker.args[0].format(**item.callspec.params)
    return case_folder(str(item.callspec.params["flink"]), name) in case_folders()


def _exists(item: pytest.Function) -> bool:
    """Return whether the release has what the parameters name (marker ``since``)."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    version = params.get("flink", params.get("zoo_flink"))
    return version is None or all(release_of(str(version)) >= mark.args for mark in item.iter_markers("since"))


@contextlib.contextmanager
def _needed(config: pytest.Config) -> Iterator[None]:
    try:
        yield
    except FlinkUnavailableError as error:
        if config.getoption("--full"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def newest_flink(pytestconfig: pytest.Config) -> str:
    """Return the newest release after fetching its jars; skips or fails like ``flink``."""
    with _needed(pytestconfig):
        flink_jars(DEFAULT_VERSIONS[0])
        java_tool("javac")
    return DEFAULT_VERSIONS[0]


@pytest.fixture(scope="session")
def flinkx_clone(pytestconfig: pytest.Config) -> Path:
    """Return the clone of flink-scala-api (``--flinkx``)."""
    return Path(pytestconfig.getoption("--flinkx")).resolve()


@pytest.fixture(scope="session")
def state_processor(newest_flink: str) -> None:
    """Require the jar of the State Processor API (``--maven``)."""
    maven_jars(f"state-processor-{newest_flink}")


@pytest.fixture(scope="session")
def machines() -> Iterator[dict[str, FlinkMachine]]:
    """Machines by release, which run until the end.

    pytest ends a fixture with parameters when a test needs another parameter: each file would start a machine of each release, and a new
    machine takes some CPU seconds until its code is loaded and compiled.
    """
    started: dict[str, FlinkMachine] = {}
    yield started
    for machine in started.values():
        machine.close()


@pytest.fixture(scope="session")
def flink(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, machines: dict[str, FlinkMachine]
) -> FlinkMachine:
    """Run Flink of one release. If it cannot run, the quick run skips."""
    version: str = request.param
    if version not in machines:
        with _needed(request.config):
            machines[version] = FlinkMachine(version, tmp_path_factory.mktemp(f"flink-{version}"))
    return machines[version]


@pytest.fixture(scope="session")
def jarred_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink of one release with the classes of ``jarred``, which tests also read from class files."""
    with _needed(request.config):
        machine = FlinkMachine(request.param, tmp_path_factory.mktemp(f"jarred-{request.param}"), sources=(JARRED,))
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def zoo_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink of one release with the jobs of the zoo, also asynchronous ones."""
    with _needed(request.config):
        machine = FlinkMachine(
            request.param, tmp_path_factory.mktemp(f"zoo-{request.param}"), sources_of(request.param)
        )
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def message_flink(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run the last Flink 1.x, for which chill has serializers of Protobuf and Thrift (``--maven``)."""
    with _needed(pytestconfig):
        work = tmp_path_factory.mktemp("messages")
        machine = FlinkMachine(DEFAULT_VERSIONS[1], work, sources=(JARRED, MESSAGES), jars=maven_jars("messages"))
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def avro_records_flink(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlinkMachine]:
    """Run Flink of one release with flink-avro (``--maven``) and the classes of ``avro_records``."""
    with _needed(request.config):
        work = tmp_path_factory.mktemp(f"avro-records-{request.param}")
        jars = maven_jars(f"flink-avro-{request.param}")
        machine = FlinkMachine(request.param, work, sources=(JARRED, AVRO_RECORDS), jars=jars)
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def library_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink of one release with the jars of Avro, Protobuf and Thrift (``--maven``), and generated classes of all three."""
    work = tmp_path_factory.mktemp(f"avro-{request.param}")
    machine = pairs.machine(request.param, work, libraries=pairs.LIBRARIES)
    yield machine
    machine.close()
