"""The export job as documented: ``spark-submit`` with the package as a zip, workers in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import statetool
from statetool.demo import SAVEPOINT

SPARK = Path(pyspark.__file__).parent
JOB = Path(statetool.__file__).parent / "spark" / "export_job.py"
STATES = ["total", "joined"]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as ``--py-files`` takes it."""
    root = Path(statetool.__file__).parent
    target = tmp_path_factory.mktemp("package") / "statetool.zip"
    with zipfile.ZipFile(target, "w") as z:
        for file in root.rglob("*.py"):
            z.write(file, Path("statetool") / file.relative_to(root))
    return target


def environment() -> dict[str, str]:
    """Where statetool is on nobody's path."""
    mine = ("PYTHONPATH", "SPARK_HOME", "MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
    kept = {k: v for k, v in os.environ.items() if k not in mine}
    return kept | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def submit(
    master: str, package: Path, folder: Path, *arguments: str, jit: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the job from a folder that has no package in it, beside a copy of the job file."""
    job = folder / "export_job.py"
    job.write_text(JOB.read_text())
    command = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", str(package)]
    for name, value in SETTINGS.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(job), *arguments]
    return subprocess.run(
        command,
        env=environment() | ({} if jit else {"STATETOOL_JIT": "0"}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@contextmanager
def daemon(folder: Path, name: str, said: str, *command: str) -> Iterator[str]:
    """Run a daemon of Spark; gives what the pattern ``said`` finds in its log."""
    log = folder / f"{name}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), *command],
            env=environment(), cwd=folder, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(said, log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield found[0]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def export(master: str, package: Path, folder: Path) -> None:
    """Run the documented command; every value must arrive."""
    target = folder / "rows"
    done = submit(
        master, package, folder, SAVEPOINT, "--operator", "collections-by-string", "--table", "keyed_state",
        "--states", ",".join(STATES), "--format", "parquet", "--output", str(target),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == f"13 rows in {target}"
    expected = statetool.load(SAVEPOINT)["collections-by-string"].to_arrow(states=STATES)
    assert sorted(map(repr, pq.read_table(target).to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_the_job_on_executors_of_their_own(package: Path, tmp_path: Path) -> None:
    export("local-cluster[2,1,1024]", package, tmp_path)


def test_the_job_on_a_standalone_cluster(package: Path, tmp_path: Path) -> None:
    deploy = "org.apache.spark.deploy"
    host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    work = ("--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
    with (
        daemon(tmp_path, "master", r"spark://127\.0\.0\.1:\d+", f"{deploy}.master.Master", *host) as master,
        daemon(tmp_path, "worker", "Successfully registered", f"{deploy}.worker.Worker", *host, *work, master),
    ):
        export(master, package, tmp_path)
    assert list((tmp_path / "work").glob("app-*/0")), "no executor ran on the cluster"


def test_the_job_here_with_an_error_of_its_tasks(package: Path, tmp_path: Path, corpus: Path) -> None:
    snapshot = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    arguments = ("--operator", "orders", "--states", "pet", "--output", str(tmp_path / "x"))
    done = submit("local[2]", package, tmp_path, snapshot, *arguments, jit=False)
    assert done.returncode == 3
    # spark-submit puts both outputs of the job on its own standard output.
    (error,) = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert re.search(r"Cat.*\[file .*/_metadata, offset \d+, operator orders, state pet, key group \d+\]", error)


@pytest.mark.parametrize("kind", ["wheel", "zip without a home"])
def test_kernels_run_where_compiled_code_cannot_be_kept(package: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / ("statetool-0.1-py3-none-any.whl" if kind == "wheel" else "statetool.zip")
    place.write_bytes(package.read_bytes())
    (tmp_path / "file").write_text("no folder")
    code = (
        "import numpy as np, statetool\n"
        "from statetool.kernels.walk import match_range\n"
        "print(statetool.__file__)\n"
        "found, a = np.zeros(1, np.uint8), np.arange(2)\n"
        "match_range(np.array([7], np.uint8), a[:1], a[1:], np.array([7], np.uint8), found)\n"
        "print(found)"
    )
    home = {"XDG_CACHE_HOME": str(tmp_path / "file" / "x"), "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment() | home,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    path, found = done.stdout.splitlines()
    assert path.startswith(str(place))
    assert found == "[1]"
