"""Jobs as documented: ``spark-submit`` with the package as a zip, a wheel or an environment, and workers in separate processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import statetool
from statetool.jobs.package import package as packed
from tests.support.servers.cluster import cluster, python_without_package, submit, with_archives
from tests.support.snapshots.incremental import Job
from tests.support.spark.data_sources import data_sources
from tests.support.zoo import ZOO
from tools.packages import build_zip, environment, pack_environment

pytestmark = pytest.mark.full

STATES = ["total", "joined"]
#: A job does not begin, and end, before both workers have an executor.
_BOTH_WORKERS = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in the form for ``--py-files``."""
    target = tmp_path_factory.mktemp("package") / "statetool.zip"
    packed(target)
    return target


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yield the URL of a master with two single-core workers, and the work folder of executors."""
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder, workers=2, cores=1) as master:
        yield master, folder / "work"


def export(master: str, package: Path | None, folder: Path, archives: str | None = None, **python: str) -> None:
    """Run the documented command in tasks, whatever the size of the table; every value must arrive."""
    target = folder / "rows"
    in_tasks = with_archives() | _BOTH_WORKERS | {"spark.statetool.localBytes": "0"}
    process = submit(
        master, package, folder, ZOO, "--uid", "collections-by-string", "--table", "keyed_state",
        "--states", ",".join(STATES), "--format", "parquet", "--output", str(target),
        archives=archives, variables=python, settings=in_tasks,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]
    assert process.stdout.splitlines()[-1] == f"13 rows in {target}"
    expected = statetool.load(ZOO)["collections-by-string"].to_arrow(states=STATES)
    assert sorted(map(repr, pq.read_table(target).to_pylist())) == sorted(map(repr, expected.to_pylist()))


def executors(work: Path) -> set[Path]:
    """Return the folders of the first executor on each worker.

    The master may replace an executor that ends before it knows that its job has.
    """
    return set(work.glob("app-*/[01]"))


def test_the_job_on_executors_of_their_own(package: Path, tmp_path: Path) -> None:
    export("local-cluster[2,1,1024]", package, tmp_path)


@pytest.mark.parametrize("way", ["zip", "wheel"])
def test_the_package_is_shipped_to_a_cluster(
    running: tuple[str, Path], package: Path, tmp_path: Path, way: str
) -> None:
    master, work = running
    before = executors(work)
    export(master, package if way == "zip" else build_zip(tmp_path), tmp_path)
    assert len(executors(work) - before) == 2, "not both workers ran"


def test_an_environment_is_shipped_to_a_cluster(running: tuple[str, Path], tmp_path: Path) -> None:
    master, work = running
    before = executors(work)
    archive = pack_environment(tmp_path)
    here = tmp_path / "here"
    shutil.unpack_archive(archive, here)
    (here / "bin" / "python").chmod(0o755)
    python = {"PYSPARK_DRIVER_PYTHON": str(here / "bin" / "python"), "PYSPARK_PYTHON": "./environment/bin/python"}
    export(master, None, tmp_path, archives=f"{archive}#environment", **python)
    ran = executors(work) - before
    assert len(ran) == 2
    for folder in ran:
        assert (folder / "environment" / "bin" / "python").exists()


def test_commands_are_jobs(running: tuple[str, Path], package: Path, tmp_path: Path) -> None:
    master, _ = running
    process = submit(master, package, tmp_path, "stats", ZOO, "--table", "states", "--json", job="run.py")
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]
    (line,) = [line for line in process.stdout.splitlines() if line.startswith("[{")]
    states = json.loads(line)
    assert {(row["state"], row["entries"]) for row in states} == {
        (row.state, row.entries) for row in statetool.load(ZOO).stats().rows("states")
    }


def test_a_snapshot_is_rescaled_and_compared_by_jobs(package: Path, tmp_path: Path) -> None:
    target = tmp_path / "rescaled"
    arguments = ("rescale", ZOO, str(target), "--uid", "timers=64")
    process = submit("local-cluster[2,1,1024]", package, tmp_path, *arguments, job="run.py")
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]
    assert statetool.load(str(target))["timers"].max_parallelism == 64
    process = submit("local-cluster[2,1,1024]", package, tmp_path, "diff", ZOO, str(target), job="run.py")
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]  # no value differs
    assert "max parallelism after: 64" in process.stdout


def test_the_job_here_with_an_error_of_its_tasks(package: Path, tmp_path: Path, corpus: Path) -> None:
    snapshot = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    arguments = ("--uid", "orders", "--states", "pet", "--output", str(tmp_path / "x"))
    process = submit("local[2]", package, tmp_path, snapshot, *arguments)
    assert process.returncode == 3
    # spark-submit merges both outputs of the job into its standard output.
    (error,) = [line for line in process.stdout.splitlines() if line.startswith("error: ")]
    assert re.search(r"Cat.*\[file .*/_metadata, offset \d+, operator orders, state pet, key group \d+\]", error)


@data_sources
def test_a_stream_needs_the_package_in_the_zip_only(package: Path, tmp_path: Path) -> None:
    """Spark passes ``--py-files`` to tasks, and not to the process beside the driver that plans a stream."""
    with Job(tmp_path / "root") as job:
        job.put("a", 1, b"x")
        job.checkpoint()
        truth = dict(job.truth["a"])
    arguments = ("--uid", "op", "--target", str(tmp_path / "lake"), "--offsets", str(tmp_path / "offsets"))
    more = ("--once", "--option", "uids=op")
    python = str(python_without_package(tmp_path))
    process = submit(
        "local[2]", package, tmp_path, str(tmp_path / "root"), *arguments, *more,
        job="follow.py", variables={"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]
    rows = [row for file in sorted((tmp_path / "lake").rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert {row["key"]: row["a"] for row in rows} == truth


@pytest.mark.parametrize("kind", ["wheel", "zip without a home"])
def test_kernels_run_where_compiled_code_cannot_be_kept(package: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / ("statetool-0.1-py3-none-any.whl" if kind == "wheel" else "statetool.zip")
    place.write_bytes(package.read_bytes())
    (tmp_path / "file").write_text("no folder")
    code = (
        "import numpy as np, statetool\n"
        "from statetool.kernels.entries.walk import match_range\n"
        "print(statetool.__file__)\n"
        "matches, a = np.zeros(1, np.uint8), np.arange(2)\n"
        "match_range(np.array([7], np.uint8), a[:1], a[1:], np.array([7], np.uint8), matches)\n"
        "print(matches)"
    )
    home = {"XDG_CACHE_HOME": str(tmp_path / "file" / "x"), "PYTHONPATH": str(place)}
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(**home, STATETOOL_JIT="1", TMPDIR=str(tmp_path / "file")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    path, matches = process.stdout.splitlines()
    assert path.startswith(str(place))
    assert matches == "[1]"
