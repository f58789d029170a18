"""Everything with a session of Spark Connect, whose client has no JVM (``pip install -e '.[connect]'``).

The server's Python has only the dependencies of statetool, which gets there by the documented lines.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import statetool
from statetool.jobs.package import package
from tests.support.patience import PATIENCE_S
from tests.support.servers.cluster import connect_server
from tests.support.servers.connect_client import documented
from tests.support.snapshots.incremental import Job
from tests.support.spark.data_sources import data_sources
from tests.support.zoo import ZOO
from tools.packages import ROOT, environment

pytestmark = [pytest.mark.full, data_sources]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert importlib.util.find_spec("grpc"), "a client of Spark Connect needs: pip install -e '.[test,connect]'"
    with connect_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def run(*arguments: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment(**{"PYTHONPATH": path} | more), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``statetool.zip`` and checkpoints, in which clients run."""
    folder = tmp_path_factory.mktemp("client")
    package(folder / "statetool.zip")
    with Job(folder / "root") as job:
        job.put("a", 1, b"x")
        job.checkpoint()
    return folder


@pytest.fixture(scope="module")
def answers(server: str, corpus: Path, folder: Path) -> dict[str, Any]:
    """Output of a client."""
    damaged = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    paths = (ZOO, damaged, str(folder / "root"), str(folder / "corrected"))
    process = run("-m", "tests.support.servers.connect_client", server, *paths, folder=folder)
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-5000:]
    printed: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return printed


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    return statetool.load(ZOO)["timers"].to_arrow()


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("way", ["keyed_state", "by_tasks", "view", "source"])
def test_rows(answers: dict[str, Any], expected: pa.Table, way: str) -> None:
    assert "connect" in answers["session"]
    assert answers[way] == rows(expected)


def test_all_tables_are_views(answers: dict[str, Any]) -> None:
    assert len(answers["views"]) == 56


def test_answers(answers: dict[str, Any]) -> None:
    savepoint = statetool.load(ZOO)
    assert answers["verified"] is True
    assert answers["metadata"] == savepoint.to_arrow("states").num_rows
    assert answers["entries"] == sum(row.entries or 0 for row in savepoint.stats().rows("states"))


def test_what_is_written(answers: dict[str, Any], expected: pa.Table) -> None:
    added = pc.add(expected["registered"], 100).cast("int32")
    assert answers["written"] == rows(expected.set_column(1, "registered", added))
    assert answers["differences"] == [["timers", "registered", 0, 0, expected.num_rows]]
    assert answers["rescaled"] == 64


def test_errors_are_our_own(answers: dict[str, Any]) -> None:
    name, text = answers["error"]
    assert name == "UndescribedClassError"
    assert re.search(r"Cat.*\[file .*/_metadata, offset \d+, operator orders, state pet, key group \d+\]", text)


def test_a_server_without_the_package_is_named_with_the_line_that_helps(answers: dict[str, Any]) -> None:
    lines = documented("py").splitlines()[-2:]
    assert lines[0].startswith("spark.addArtifacts(")
    for name, text in [*answers["missing"], answers["missing in streams"]]:
        assert name == "MissingDependencyError"
        assert text.startswith("the Spark Connect server cannot import statetool (No module named 'statetool'). ")
        assert "; ".join(lines) in text
        assert "PYTHONPATH=statetool.zip" in text
        assert "\n" not in text


def test_a_stream_needs_the_package_on_the_path_of_the_server(folder: Path, tmp_path: Path) -> None:
    (variable,) = re.findall(r"^PYTHONPATH=\$PWD/(\S+) ", documented("shell"), re.MULTILINE)
    code = (
        "import sys\nfrom pyspark.sql import SparkSession\nimport statetool\n"
        "from tests.support.servers.connect_client import stream_of\n"
        "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
        "statetool.register(spark)\nprint(stream_of(spark, *sys.argv[2:]))"
    )
    with connect_server(tmp_path, PYTHONPATH=str(folder / variable)) as url:
        process = run("-c", code, url, str(folder / "root"), str(tmp_path / "offsets"), folder=folder)
    assert process.stdout.splitlines()[-1:] == [repr(["{'key': 1, 'a': b'x'}"])], process.stderr[-5000:]


def test_the_export_job_takes_the_package_along(server: str, folder: Path, expected: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "rows"
    arguments = (ZOO, "--uid", "timers", "--table", "keyed_state", "--output", str(target))
    path = str(folder / "statetool.zip")
    process = run("-m", "statetool.jobs.export", *arguments, folder=tmp_path, SPARK_REMOTE=server, PYTHONPATH=path)
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-5000:]
    assert process.stdout.splitlines()[-1] == f"{expected.num_rows} rows in {target}"
    assert rows(pq.read_table(target)) == rows(expected)
