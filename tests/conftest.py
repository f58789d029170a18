"""Fixtures of all tests: the unpacked corpora and one Spark session."""

from __future__ import annotations

import gc
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support.compile import compile_java, files_of, make_jar
from tests.support.corpora.archives import HERE, unpack
from tests.support.drawn import draw_no_constants
from tests.support.quick import LONG
from tests.support.spark.jvm import SHORT_LIVED, with_archive
from tests.support.spark.lakes import submit_options

# Tests read little data, but must exercise the code used for large data (for the other way see `nox -s uncompiled`, tests/kernels/test_jit.py).
os.environ.setdefault("STATETOOL_JIT", "1")
# All JVMs that tests start by Spark, also in other processes, such as those of examples and notebooks.
os.environ.setdefault("SPARK_SUBMIT_OPTS", with_archive(SHORT_LIVED))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVED)  # of the JVM that assembles the command of the other one

# Kernels compile at their first call and machines are busy, so the duration of an example is not meaningful.
SLOW: Final = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
settings.register_profile(
    "statetool", settings(deadline=None, suppress_health_check=SLOW, derandomize="CI" in os.environ)
)
settings.load_profile("statetool")
if "CI" in os.environ:
    draw_no_constants()

#: Fixtures with data that cannot be copied or is too large to download, and the option that gives its location. The options need an equals
#: sign: otherwise pytest takes the path for the location of the tests, and does not find this file.
GIVEN: Final = {
    "migration_savepoints": "--shared",
    "migration_cases": "--shared",
    "connector_migration": "--shared",
    "pyflink": "--pyflink",
    "browser": "--browser",
    "buildah": "--buildah",
    "flinkx_clone": "--flinkx",
    "avro_flink": "--maven",
    "avro_records_flink": "--maven",
    "state_processor": "--maven",
    "lombok_classes": "--maven",
    "kotlin_classes": "--maven",
    "commons_classes": "--maven",
    "connectors_by_maven": "--maven",
    "message_flink": "--maven",
    "lakes": "--lakes",
    "lake_libraries": "--lakes",
}
#: The order of files in the full run, the longest first: examples, restores in Flink, clusters and an image of Spark, notebooks.
LONGEST: Final = (
    "tests/test_readme.py", "tests/flink/test_native.py", "tests/flink/test_pairs.py", "tests/flink/test_native_verbs.py", "tests/flink/test_follow.py",
    "tests/spark/test_cluster.py", "tests/operations/cluster/", "tests/spark/test_image.py", "tests/spark/test_kills.py", "tests/test_notebooks.py",
    "tests/flink/", "tests/saving/test_failing_writes.py", "tests/saving/test_kills.py", "tests/analysis/comparison/test_forms.py", "tests/spark/",
    "tests/kernels/test_jit.py", "tests/saving/test_sequences.py",
)  # fmt: skip
LEFT_OUT: Final = pytest.StashKey[Counter[str]]()
#: The markers of each test in the files of this run, and the options that it needs.
COLLECTED: Final = pytest.StashKey[dict[str, frozenset[str]]]()
#: Whether a test failed.
FAILED: Final = pytest.StashKey[bool]()

# By default, Python looks for cycles after every 700 new objects: that took a tenth of the time of many tests.
gc.set_threshold(100_000, 20, 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options that are only known at the start of a run."""
    parser.addoption("--full", action="store_true", help="run everything, the tests marked with full too")
    parser.addoption(
        "--half",
        action="store_true",
        help="leave out the longest tests, and half of the combinations of parameters of each other test that is not marked with whole",
    )
    parser.addoption("--shared", metavar="DIR", help="folder with Flink's migration cases (*.tar.xz)")
    parser.addoption(
        "--flink-versions",
        help="releases of Flink for tests/flink and tests/operations/cluster, e.g. 2.3.0,1.17.2 (see tools/flink_jars.py)",
    )
    parser.addoption("--browser", metavar="CHROMIUM", help="Chromium, for what pages look like in it")
    parser.addoption(
        "--buildah",
        metavar="BUILDAH",
        help="Buildah, for an image of Spark upon a base by debootstrap; as root, on Linux",
    )
    parser.addoption(
        "--maven",
        action="store_true",
        help="run Flink with flink-avro and the State Processor API, which Maven fetches",
    )
    parser.addoption(
        "--lakes",
        action="store_true",
        help="write tables of Iceberg (PySpark 4.1) or Delta (PySpark 4.2), whose jars Maven fetches",
    )
    parser.addoption(
        "--flinkx",
        metavar="CLONE",
        help="clone of flink-extended/flink-scala-api, which is compiled with jars that Maven fetches (with --maven)",
    )
    parser.addoption(
        "--kills", type=int, default=3, help="kills of each function that writes, in tests/saving/test_kills.py"
    )
    parser.addoption("--pyflink", metavar="PYTHON", help="Python that has apache-flink, for tests/flink/pyflink")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that were not requested; they are counted and named at the end, never skipped silently."""
    config.stash[COLLECTED] = {}
    reasons: dict[pytest.Item, str] = {}
    for item in items:
        if "tests/flink/" in item.nodeid:
            item.add_marker(pytest.mark.flink)
        if "spark" in getattr(item, "fixturenames", ()) or "tests/spark/" in item.nodeid:
            item.add_marker(pytest.mark.spark)
        given = [o for f, o in GIVEN.items() if f in getattr(item, "fixturenames", ())]
        if "--maven" in given:
            item.add_marker(pytest.mark.full)
        markers = {marker.name for marker in item.iter_markers()} & {"spark", "flink", "full"}
        config.stash[COLLECTED][item.nodeid] = frozenset(markers | set(given))
        needed = [o for o in given if not config.getoption(o)]
        if needed:
            reasons[item] = needed[0]
        elif item.get_closest_marker("full") and not config.getoption("--full"):
            reasons[item] = "--full"
    if config.getoption("--half"):
        left_out = _other_half([item for item in items if isinstance(item, pytest.Function) and item not in reasons])
        reasons |= dict.fromkeys(left_out, "--half")
    # With --no-loadscope-reorder, files are dealt in this order: one of these at the end would leave the other processes idle.
    items.sort(
        key=lambda item: next((i for i, file in enumerate(LONGEST) if item.nodeid.startswith(file)), len(LONGEST))
    )
    config.stash[LEFT_OUT] = Counter(reasons.values())
    if reasons:
        config.hook.pytest_deselected(items=list(reasons))
        items[:] = [item for item in items if item not in reasons]


def _other_half(items: list[pytest.Function]) -> list[pytest.Function]:
    """Return what ``--half`` leaves out: the longest tests, and combinations of parameters. Their hashes choose, each parameter evenly."""
    long = [item for item in items if item.nodeid.startswith(LONG)]
    tests: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if not (item.get_closest_marker("whole") or item.nodeid.startswith(LONG)):
            tests.setdefault((str(item.path), item.originalname), []).append(item)
    return long + [
        item
        for same in tests.values()
        for item in sorted(same, key=lambda item: zlib.crc32(item.nodeid.encode()))[(len(same) + 1) // 2 :]
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark failed tests."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Empty the folder of a passed test."""
    yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None and not item.stash.get(FAILED, False):
        with suppress(OSError):  # what cannot be removed, such as files of a read-only folder, stays
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the tests left out to the process that reports them; all workers collect the same."""
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        left: Counter[str] = session.config.stash.get(LEFT_OUT, Counter())
        workeroutput["left_out"] = dict(left)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the tests that a worker left out."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how to run the tests left out."""
    said = {
        "--full": "of the full run were left out: pytest --full",
        "--half": "that take long or have other combinations of parameters were left out: without --half",
        "--shared": "read Flink's migration cases and were left out: pytest --shared=DIR",
        "--browser": "look at pages in a browser and were left out: pytest --browser=CHROMIUM",
        "--buildah": "build an image of Spark and were left out: pytest --buildah=BUILDAH",
        "--maven": "run Flink with jars that Maven fetches and were left out: pytest --full --maven",
        "--lakes": "write tables of Delta and Iceberg and were left out: nox -s lakes (needs Maven)",
        "--flinkx": "restore jobs of flink-scala-api and were left out: pytest --full --maven --flinkx=CLONE",
        "--pyflink": "run PyFlink and were left out: pytest --pyflink=PYTHON",
    }
    left = config.stash.get(LEFT_OUT, Counter[str]())
    for option in sorted(left):
        terminalreporter.write_line(f"{left[option]:,} tests {said[option]}")


@pytest.fixture(autouse=True)
def nothing_stays_frozen() -> Iterator[None]:
    """Undo what tasks do to the garbage collector of their worker (``begin_task``): some tests run tasks in their own process."""
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def collected(pytestconfig: pytest.Config) -> dict[str, frozenset[str]]:
    """The markers of each test in the files of this run, also of those left out, and the options that it needs."""
    return pytestconfig.stash[COLLECTED]


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of PyFlink jobs (``tests/flink/pyflink/job``), one folder per case."""
    return unpack(HERE / "corpus" / "pyflink.tar.xz", tmp_path_factory.mktemp("pyflink"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints and checkpoints of DataStream jobs, one folder per case."""
    return unpack(HERE / "corpus" / "public-datastream.tar.xz", tmp_path_factory.mktemp("corpus")) / "public"


@pytest.fixture(scope="session")
def restores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots that Flink refuses, restores with losses, or wrote in an unusual form, one folder per case."""
    return unpack(HERE / "corpus" / "public-restores.tar.xz", tmp_path_factory.mktemp("restores")) / "public-restores"


@pytest.fixture(scope="session")
def public_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar of the classes of those jobs."""
    folder = tmp_path_factory.mktemp("public")
    source = HERE / "support" / "flink" / "java" / "corpus" / "PublicTypes.java"
    return make_jar(folder / "job.jar", files_of(compile_java([source], folder / "classes")))


@pytest.fixture(scope="session")
def sql_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of SQL jobs and of sources, one folder per case."""
    return unpack(HERE / "corpus" / "public-sql-sources.tar.xz", tmp_path_factory.mktemp("sql")) / "public"


@pytest.fixture(scope="session")
def connector_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of jobs with source and sink connectors, one folder per case."""
    return unpack(HERE / "corpus" / "connectors.tar.xz", tmp_path_factory.mktemp("connectors"))


@pytest.fixture(scope="session")
def rule_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints for rules of a restore, one folder per case (``tests/support/flink/rule_jobs.py``)."""
    return unpack(HERE / "corpus" / "rules.tar.xz", tmp_path_factory.mktemp("rules")) / "rules"


@pytest.fixture(scope="session")
def connectors_by_maven() -> None:
    """Allow a test to run connectors whose jars Maven fetches (``--maven``)."""


@pytest.fixture(scope="session")
def connector_migration(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots of the migration tests of Flink and of its connectors (``--shared``)."""
    return unpack_shared(pytestconfig, "public-connectors.tar.xz", tmp_path_factory) / "connectors" / "migration"


@pytest.fixture(scope="session")
def migration_savepoints(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of Flink's migration tests (``--shared``)."""
    return unpack_shared(pytestconfig, "flink-migration-savepoints.tar.xz", tmp_path_factory) / "savepoints"


@pytest.fixture(scope="session")
def migration_cases(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Serializer cases of Flink's migration tests (``--shared``)."""
    return unpack_shared(pytestconfig, "serializers.tar.xz", tmp_path_factory) / "serializers"


def unpack_shared(config: pytest.Config, name: str, folders: pytest.TempPathFactory) -> Path:
    """Unpack an archive of the folder that ``--shared`` names."""
    return unpack(Path(config.getoption("--shared")) / name, folders.mktemp("shared"))


@pytest.fixture(scope="session")
def lake_libraries() -> None:
    """Require ``deltalake`` and ``pyiceberg``, which write tables of Delta and Iceberg without Spark (``--lakes``)."""


@pytest.fixture(scope="session")
def lakes(spark: Any) -> None:
    """Require a session that can write tables of Delta and Iceberg (``--lakes``)."""


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local session for all tests."""
    from statetool.spark.session import local_session

    if pytestconfig.getoption("--lakes"):
        options = submit_options(tmp_path_factory.mktemp("lakes"))
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
    session = local_session(cores="2", name="statetool tests")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declarations of one test do not affect the next."""
    from statetool.java.declaring import classes as declarations

    monkeypatch.setattr(declarations, "DECLARED", declarations.DeclaredClasses())
