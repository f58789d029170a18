"""A standalone Spark cluster on this machine, job submission, and a Spark Connect server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.support.patience import PATIENCE_S, eventually
from tests.support.spark.jvm import SHORT_LIVED, with_archive
from tools.packages import ROOT, SPARK, environment

HERE: Final = (str(SPARK / "bin" / "spark-class"),)
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}


def python_without_package(folder: Path) -> Path:
    """Return a Python that has the dependencies of statetool without statetool, however the tests have it."""
    python = folder / "python"
    packages = sysconfig.get_paths()["purelib"]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return python


def with_archives(settings: Mapping[str, str] = SETTINGS) -> dict[str, str]:
    """Return settings with which the JVMs of a driver and of executors on this machine map the archive of Spark's classes."""
    return {
        name: with_archive(value) if name.endswith(".extraJavaOptions") else value for name, value in settings.items()
    }


def submit(
    master: str,
    package: Path | None,
    folder: Path,
    *arguments: str,
    job: str | Path = "export.py",
    settings: Mapping[str, str] | None = None,
    archives: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a job of the package or another file, from a folder without the package that contains a copy of the job file."""
    file = shutil.copy(ROOT / "statetool" / "jobs" / job, folder)
    command = [str(SPARK / "bin" / "spark-submit"), "--master", master]
    command += [] if package is None else ["--py-files", str(package)]
    command += [] if archives is None else ["--archives", archives]
    for name, value in (with_archives() if settings is None else settings).items():
        command += ["--conf", f"{name}={value}"]
    return subprocess.run(
        [*command, str(file), *arguments],
        env=environment(**(variables or {})), cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@contextmanager
def daemon(
    folder: Path, name: str, pattern: str, *command: str, launcher: Sequence[str] = HERE, **more: str
) -> Iterator[str]:
    """Run a Spark daemon; yield the match of ``pattern`` in its log."""
    log = folder / f"{name}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*launcher, *command],
            env=environment(**more), cwd=folder, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:

        def look() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text()
            # Only whole lines: the end of another one may be missing, such as some digits of a port.
            return re.search(pattern, log.read_text(errors="replace").rpartition("\n")[0])

        match = eventually(look, describe=log.read_text)
        assert match is not None
        yield match[0]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE_S)


@contextmanager
def cluster(folder: Path, *, workers: int, cores: int, launcher: Sequence[str] = HERE, **more: str) -> Iterator[str]:
    """Run a master and workers, the latter by the launcher, with more variables; yield the master's URL."""
    deploy = "org.apache.spark.deploy"
    host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    work = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(folder / "work"))
    here = {"SPARK_DAEMON_JAVA_OPTS": with_archive(SHORT_LIVED), **more}
    with ExitStack() as running:
        url = r"spark://127\.0\.0\.1:\d+"
        master = running.enter_context(daemon(folder, "master", url, f"{deploy}.master.Master", *host, **here))
        command = (f"{deploy}.worker.Worker", *host, *work, master)
        for number in range(workers):
            name, pattern = f"worker-{number}", "Successfully registered"
            variables = here if launcher == HERE else more
            running.enter_context(daemon(folder, name, pattern, *command, launcher=launcher, **variables))
        yield master


@contextmanager
def connect_server(folder: Path, **more: str) -> Iterator[str]:
    """Run PySpark's Spark Connect server, whose Python has only the dependencies, with more variables; yield its URL."""
    main = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    command = ["org.apache.spark.deploy.SparkSubmit", *main]
    for name, value in {**with_archives(), "spark.connect.grpc.binding.port": "0"}.items():
        command += ["--conf", f"{name}={value}"]
    pattern = r"Connect server started at: \S*:\d+"
    python = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(python_without_package(folder)))
    with daemon(folder, "connect", pattern, *command, "spark-internal", **python, **more) as line:
        yield f"sc://127.0.0.1:{line.rpartition(':')[2]}"
