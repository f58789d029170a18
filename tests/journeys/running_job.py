"""A wrong value in a running job is found and corrected, and the job counts on from it."""

from __future__ import annotations

import json
from typing import Final

from tests.journeys.flink import make_job_jar, running_cluster, wait_for_checkpoint
from tests.journeys.steps import Steps
from tools.flink_jars import DEFAULT_VERSIONS

PACKAGES: Final = ("statetool",)


def run(steps: Steps) -> None:
    """Start a job, and correct the count of a key."""
    version = DEFAULT_VERSIONS[0]
    with running_cluster(steps, version) as cluster:
        options = f"execution.checkpointing.interval=1s execution.checkpointing.dir={cluster.checkpoints.as_uri()}"
        job = f"-d -c jobs.CountingJob {make_job_jar(steps.folder, version)} orders run {options}"
        steps.run(f"flink run {job}")
        wait_for_checkpoint(cluster)
        steps.begin()
        url = f"flink://127.0.0.1:{cluster.port}/orders"
        steps.run(f"statetool head {url} counts keyed_state --keys '[7]'")
        savepoint = steps.run(f"statetool savepoint {url} --to file://$PWD/savepoints --stop").split()[-1]
        steps.run(f"statetool set {savepoint} corrected --uid counts --key 7 --set count=1000000000")
        steps.run(f"flink run -s file://$PWD/corrected {job}")
        wait_for_checkpoint(cluster)
        (row,) = json.loads(steps.run(f"statetool head {url} counts keyed_state --keys '[7]' --json"))
        assert row["count"] >= 1_000_000_000, row
