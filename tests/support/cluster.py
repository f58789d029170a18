"""A standalone Spark cluster on this machine, job submission, ways to ship the package, and a Spark Connect server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

import pyspark

import statetool

SPARK: Final = Path(pyspark.__file__).parent
HERE: Final = (str(SPARK / "bin" / "spark-class"),)
ROOT: Final = Path(statetool.__file__).parents[1]
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def built_wheel(folder: Path) -> Path:
    """Build the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    (built,) = folder.glob("statetool-*.whl")
    return built


def wheel(folder: Path) -> Path:
    """Build the wheel and rename it for ``--py-files``, because Spark does not put ``.whl`` files on the path."""
    built = built_wheel(folder)
    return built.rename(built.with_suffix(".zip"))


def packed_environment(folder: Path) -> Path:
    """Pack a virtual environment with statetool and its dependencies except PySpark, and a copy of this Python.

    In a tar, Spark 4.3 refuses links that lead outside, and does not keep files executable; in a zip it does.
    """
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(venv)], check=True)
    place = Path(sysconfig.get_path("purelib", "venv", {"base": str(venv)})).relative_to(venv)
    packed = folder / "environment.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(_needed("statetool") - {"pyspark", "py4j"}):
            for file in metadata.files(name) or []:
                if ".." not in file.parts and not {"tests", "include", "__pycache__"} & set(file.parts):
                    archive.write(file.locate(), place / file)
        for module in (ROOT / "statetool").rglob("*"):
            if module.is_file() and "__pycache__" not in module.parts:
                archive.write(module, place / module.relative_to(ROOT))
        for part in venv.rglob("*"):
            if part.is_file() and "lib64" not in part.parts:  # a link to lib
                archive.write(part, part.relative_to(venv))
    return packed


def _needed(name: str) -> set[str]:
    """Return the names of an installed distribution and its dependencies; statetool's come from its own list."""
    if name == "statetool":
        text = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]
        requirements = re.findall(r'^ +"([\w-]+)', text, re.MULTILINE)
        return {distribution for requirement in requirements for distribution in _needed(requirement)}
    try:
        requirements = [r for r in metadata.requires(name) or [] if "extra ==" not in r]
    except metadata.PackageNotFoundError:
        return set()  # for another Python or system
    return {name}.union(*(_needed(re.split(r"[^\w.-]", r)[0]) for r in requirements))


def environment(**more: str) -> dict[str, str]:
    """Return the environment variables without those that put statetool on a path."""
    left_out = ("PYTHONPATH", "SPARK_HOME", "MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "STATETOOL_JIT")
    inherited = {k: v for k, v in os.environ.items() if k not in left_out}
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return inherited | python | {"SPARK_LOCAL_IP": "127.0.0.1"} | more


def submit(
    master: str,
    package: Path | None,
    folder: Path,
    *arguments: str,
    job: str | Path = "export.py",
    settings: Mapping[str, str] = SETTINGS,
    archives: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a job of the package or another file, from a folder without the package that contains a copy of the job file."""
    file = shutil.copy(ROOT / "statetool" / "jobs" / job, folder)
    command = [str(SPARK / "bin" / "spark-submit"), "--master", master]
    command += [] if package is None else ["--py-files", str(package)]
    command += [] if archives is None else ["--archives", archives]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    return subprocess.run(
        [*command, str(file), *arguments],
        env=environment(**(variables or {})), cwd=folder, capture_output=True, text=True, timeout=600, check=False,
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
        deadline = time.monotonic() + 240  # a JVM on a busy machine
        while (match := re.search(pattern, log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield match[0]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(120)


@contextmanager
def cluster(folder: Path, *, workers: int, cores: int, launcher: Sequence[str] = HERE, **more: str) -> Iterator[str]:
    """Run a master and workers, the latter by the launcher, with more variables; yield the master's URL."""
    deploy = "org.apache.spark.deploy"
    host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    work = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(folder / "work"))
    with ExitStack() as running:
        url = r"spark://127\.0\.0\.1:\d+"
        master = running.enter_context(daemon(folder, "master", url, f"{deploy}.master.Master", *host, **more))
        command = (f"{deploy}.worker.Worker", *host, *work, master)
        for number in range(workers):
            name, pattern = f"worker-{number}", "Successfully registered"
            running.enter_context(daemon(folder, name, pattern, *command, launcher=launcher, **more))
        yield master


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Run PySpark's Spark Connect server, whose workers have statetool; yield its URL."""
    main = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    command = ["org.apache.spark.deploy.SparkSubmit", *main]
    for name, value in {**SETTINGS, "spark.connect.grpc.binding.port": "0"}.items():
        command += ["--conf", f"{name}={value}"]
    pattern = r"Connect server started at: \S*:\d+"
    with daemon(folder, "connect", pattern, *command, "spark-internal", PYTHONPATH=str(ROOT)) as line:
        yield f"sc://127.0.0.1:{line.rpartition(':')[2]}"
