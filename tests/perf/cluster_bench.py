"""Duration of a job on a cluster that has not loaded the package: ``python -m tests.perf.cluster_bench [PATH --operator UID]``.

Starts a standalone master and two single-core workers without compiled kernels, and submits the export job with the package as a zip: 14
rows of the bundled savepoint twice, then the keyed state of PATH twice, then with compiled kernels shipped with the job (``--archives``).
Then both are repeated on nodes where ``statetool doctor --warm`` ran. Each is followed by a Spark job that only copies the written rows:
the cost of a submission on this machine without reading by statetool. The seconds are those of ``spark-submit`` including the start of its
JVM, and those of the slowest task.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from statetool.jobs.package import package
from tests.support.servers.cluster import SETTINGS, cluster, submit
from tests.support.zoo import ZOO

PLAIN_COPY: Final = Path(__file__).parent / "plain_copy.py"


def slowest_task(log: Path) -> float:
    """Return the seconds of the slowest task in a Spark event log, 0 if there is none: small tables are written by the driver."""
    times: list[float] = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            info = event["Task Info"]
            times.append((info["Finish Time"] - info["Launch Time"]) / 1000)
    return max(times, default=0.0)


class Bench:
    """A cluster, and the jobs submitted to it."""

    def __init__(self, folder: Path, master: str) -> None:
        self.folder = folder
        self.master = master
        self.package = folder / "statetool.zip"
        package(self.package)
        self.number = 0

    def run(self, what: str, path: str, operator: str, archive: Path | None = None) -> None:
        """Submit one job and print a line about it."""
        settings = dict(SETTINGS)
        if archive is not None:
            settings["spark.archives"] = f"{archive}#kernels"
            settings["spark.executorEnv.STATETOOL_KERNELS"] = "kernels"
            settings["spark.executorEnv.NUMBA_CACHE_DIR"] = str(self.folder / "no-numba")
        self._run(what, path, operator, settings, {})

    def run_warm(self, what: str, path: str, operator: str, java: str) -> None:
        """Submit one job with the nodes' caches configured as in ``docs/operations/clusters.md``; ``java`` are JVM options."""
        settings = dict(SETTINGS)
        settings["spark.executor.extraJavaOptions"] += f" {java}"
        settings["spark.python.daemon.module"] = "statetool.spark.daemon"
        self._run(what, path, operator, settings, {"SPARK_SUBMIT_OPTS": java})

    def _run(
        self, what: str, path: str, operator: str, settings: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        rows = self._submitted(what, settings, variables, "export.py", path, "--uid", operator, "--output")
        self._submitted("  Spark alone copies these rows", settings, variables, PLAIN_COPY, rows)

    def _submitted(
        self, what: str, settings: Mapping[str, str], variables: Mapping[str, str], job: str | Path, *arguments: str
    ) -> str:
        """Submit a job with the location of its rows as last argument, print a line about it, and return the location."""
        self.number += 1
        work = self.folder / f"job-{self.number}"
        (work / "events").mkdir(parents=True)
        settings = {
            **settings,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(work / "events"),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
        }
        target = str(work / "rows")
        start = time.perf_counter()
        done = submit(
            self.master, self.package, work, *arguments, target, job=job, settings=settings, variables=variables
        )
        seconds = time.perf_counter() - start
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
        (log,) = (work / "events").iterdir()
        rows = done.stdout.splitlines()[-1].split()[0]
        print(f"{what:<36} {rows:>9} rows {seconds:7.1f} s, slowest task {slowest_task(log):6.1f} s", flush=True)
        return target


def built(folder: Path) -> Path:
    """Build compiled kernels as documented, and pack them."""
    command = [sys.executable, "-m", "statetool", "kernels", "--build", str(folder / "kernels")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    packed = folder / "kernels.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for part in (folder / "kernels").iterdir():  # Spark refuses an archive with the entry "."
            archive.add(part, part.name)
    return packed


def warmed(folder: Path) -> str:
    """Create the caches of ``statetool doctor --warm`` on this machine, which hosts all nodes; return JVM options."""
    cache = folder / "cache"
    command = [sys.executable, "-m", "statetool", "doctor", "--warm"]
    variables = os.environ | {"XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": str(folder / "numba")}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables)
    (classes,) = cache.rglob("*.jsa")
    return f"-XX:SharedArchiveFile={classes} -Xlog:disable -Xlog:all=error:stderr"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.cluster_bench")
    parser.add_argument("path", nargs="?", help="a large snapshot, as tests.perf.read_bench reads")
    parser.add_argument("--operator", default="accounts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with cluster(folder, workers=2, cores=1, NUMBA_CACHE_DIR=str(folder / "numba")) as master:
            bench = Bench(folder, master)
            bench.run("small, nothing compiled", ZOO, "timers")
            bench.run("small, submitted again", ZOO, "timers")
            if given.path is not None:
                bench.run("large, nothing compiled", given.path, given.operator)
                bench.run("large, submitted again", given.path, given.operator)
                bench.run("large, compiled code shipped", given.path, given.operator, built(folder))
            java = warmed(folder)
            bench.run_warm("small, nodes warmed", ZOO, "timers", java)
            if given.path is not None:
                bench.run_warm("large, nodes warmed", given.path, given.operator, java)


if __name__ == "__main__":
    main()
