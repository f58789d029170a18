"""Clusters of Flink for journeys, and the program ``flink`` that starts jobs in them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.journeys.steps import Steps
from tests.support.flink.machine import OPENS
from tests.support.flink.standalone.cluster import JOBS, StandaloneCluster
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool


@contextmanager
def running_cluster(steps: Steps, version: str) -> Iterator[StandaloneCluster]:
    """Run a cluster; the program ``flink`` starts jobs in it as ``bin/flink`` does."""
    with StandaloneCluster(version, steps.folder) as cluster:
        classes = os.pathsep.join(map(str, flink_jars(version)))
        command = [java_tool("java"), *OPENS, *SHORT_LIVED, "-cp", classes]
        steps.add_program(
            "flink", [*command, "org.apache.flink.client.cli.CliFrontend"], FLINK_CONF_DIR=str(cluster.work)
        )
        yield cluster


def wait_for_checkpoint(cluster: StandaloneCluster) -> None:
    """Wait for a checkpoint of the only job that runs."""

    def completed() -> bool:
        (job,) = (j["jid"] for j in cluster.call("/jobs/overview")["jobs"] if j["state"] == "RUNNING")
        return bool(cluster.history(job)["latest"]["completed"])

    cluster.wait("a checkpoint", completed)


def make_job_jar(folder: Path, version: str) -> str:
    """Write the jar of the jobs, compiled for a release, and return its name."""
    name = f"jobs-{version}.jar"
    classes = compiled(version, JOBS)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    return name
