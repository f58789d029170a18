"""Sessions of the check: ``nox -s unit`` runs one, CI each on a machine of its own.

``.ci/run`` runs those without an environment of their own one after another, and a part of ``full`` and ``flink`` (``pytest --half``).
Sessions without an environment of their own use the one at hand: ``pip install -e '.[test,docs]'``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nox

AT_HAND = "none"
#: Three processes for two cores, because tests wait for Flink and Spark.
FULL = ("--full", "--maven", "-n", "3", "--no-loadscope-reorder")
#: Folders whose tests run kernels on bytes of all kinds.
KERNELS = ("columns", "entries", "formats", "kernels", "serializers")
#: Folders whose tests call the dependencies: Arrow, NumPy, numba, fsspec, codecs, click, rich, DuckDB, clients of Kafka and of databases.
DEPENDENCIES = (
    "cli", "columns", "connectors", "entries", "formats", "io", "reporting", "serializers", "tables", "types",
)  # fmt: skip


def interpreter(release: str) -> str | None:
    """Return the interpreter of a release of Python, on the path or installed by pyenv; None means the one that runs nox."""
    on_path = [
        found for found in [shutil.which(f"python{release}")] if found
    ]  # may be a shim of pyenv, which does not run
    installed = sorted(map(str, Path.home().glob(f".pyenv/versions/{release}.*/bin/python")))
    for python in on_path + installed:
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None


def folders(names: tuple[str, ...]) -> list[str]:
    return [f"tests/{name}" for name in names]


@nox.session(venv_backend=AT_HAND)
def fast(session: nox.Session) -> None:
    """Lint, and the tests that find most: under three minutes, before each commit. The other sessions cover it."""
    lint(session)
    parts = (
        "io", "kernels", "formats", "serializers", "entries", "java/hashing", "snapshot", "test_suite.py", "test_imports.py",
    )  # fmt: skip
    session.run("pytest", "-m", "not spark", *folders(parts))


@nox.session(venv_backend=AT_HAND)
def lint(session: nox.Session) -> None:
    """Style, formatting and types."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(venv_backend=AT_HAND)
def unit(session: nox.Session) -> None:
    """Tests without Spark and without Flink."""
    session.run("pytest", "-m", "not spark and not flink", *session.posargs)


@nox.session(venv_backend=AT_HAND)
def spark(session: nox.Session) -> None:
    """Tests with a local Spark session."""
    session.run("pytest", "-m", "spark and not flink", *session.posargs)


@nox.session(venv_backend=AT_HAND)
def flink(session: nox.Session) -> None:
    """Restores by real Flink."""
    session.run("pytest", *FULL, "-m", "flink", *(session.posargs or ["tests/flink"]))


@nox.session(venv_backend=AT_HAND)
def full(session: nox.Session) -> None:
    """Tests marked with ``full``: clusters, Spark Connect, an image of Spark, pages in a browser, examples, notebooks."""
    session.run(".ci/packages")
    session.run("python", "-m", "pip", "install", "-q", "pyspark[connect]>=4")
    tools = (f"--browser={shutil.which('chromium')}", f"--buildah={shutil.which('buildah')}")
    as_root = () if os.geteuid() == 0 else ("sudo", "-E")  # an image is built as root
    session.run(*as_root, str(shutil.which("pytest")), *FULL, *tools, "-m", "full and not flink", *session.posargs)


@nox.session(venv_backend=AT_HAND)
def package(session: nox.Session) -> None:
    """Contents of wheel and sdist, the wheel without extras, some tests of the sdist, and pip can resolve the extra ``test``."""
    session.run(".ci/package")


@nox.session(venv_backend=AT_HAND)
def docs(session: nox.Session) -> None:
    """The documentation as a site, without a dead link: ``nox -s docs -- DIR``. The examples of the command reference run."""
    # The hooks import tools. The notice is about the future of mkdocs.
    session.run(
        "mkdocs", "build", "--strict", "--site-dir", *(session.posargs or ["site"]),
        env={"PYTHONPATH": str(Path.cwd()), "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@nox.session(
    venv_backend="uv", python=interpreter("3.13")
)  # from 3.12 on, coverage costs half as much (sys.monitoring)
def uncompiled(session: nox.Session) -> None:
    """Tests with kernels as plain Python: errors that numba would hide show, and coverage sees kernels. The floor is in pyproject.toml."""
    session.install("-e", ".[test]")
    core = "sysmon" if session.python else "ctrace"
    session.run(
        "pytest", "--cov", "--cov-report=term", "-m", "not spark", *folders(KERNELS), *session.posargs,
        env={"STATETOOL_JIT": "0", "COVERAGE_CORE": core},
    )  # fmt: skip


@nox.session(venv_backend="uv", python=interpreter("3.11"))
def lowest(session: nox.Session) -> None:
    """Tests with the lowest versions of all dependencies, on the lowest Python: the floors in pyproject.toml are true."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    kernels = {"NUMBA_CACHE_DIR": f"{session.virtualenv.location}/numba"}  # compiled by another release of numba
    session.run("pytest", "-m", "not spark", *folders(DEPENDENCIES), *session.posargs, env=kernels)


@nox.session(venv_backend="uv")
def lakes(session: nox.Session) -> None:
    """Tables of Iceberg and Delta, each on the newest PySpark that it supports, and without Spark; DataFusion and Lance, which are large."""
    pytest = ("pytest", "-n", "0", "--full", "-m", "full")
    session.install("pyspark==4.1.*", "datafusion", "pylance", "pyiceberg[sql-sqlite]", "-e", ".[test,delta,iceberg]")
    session.run(
        *pytest, "--lakes", "tests/spark/test_lakes.py::TestIceberg", "tests/tables/test_export_lakes.py",
        "tests/test_journeys.py::test_checkpoints_are_added_to_lakes",
        "tests/tables/sql/test_engines.py::test_every_table_arrives_in_datafusion_and_lance",
    )  # fmt: skip
    session.install("pyspark==4.0.*")  # whose streams have no position
    session.run(*pytest, "tests/spark/test_follow.py")
    session.install("pyspark==4.2.*")
    session.run(*pytest, "--lakes", "tests/spark/test_lakes.py::TestDelta")
