"""A job of Flink 1.20 goes on in Flink 2.3, with fields whose serializers Flink 2 changed."""

from __future__ import annotations

import json
from typing import Final

from tests.journeys.flink import make_job_jar, running_cluster, wait_for_checkpoint
from tests.journeys.steps import Steps
from tools.flink_jars import DEFAULT_VERSIONS

PACKAGES: Final = ("statetool",)
_OPERATOR: Final = "orders keyed_state --keys '[7]' --json"


def run(steps: Steps) -> None:
    """Stop a job in one cluster, and start it in another one from the upgraded savepoint."""
    new_version, old_version = DEFAULT_VERSIONS
    old, new = make_job_jar(steps.folder, old_version), make_job_jar(steps.folder, new_version)
    with running_cluster(steps, old_version) as cluster:
        options = f"execution.checkpointing.interval=1s state.checkpoints.dir={cluster.checkpoints.as_uri()}"
        steps.run(f"flink run -d -c jobs.OrdersJob {old} orders {options}")
        wait_for_checkpoint(cluster)
        steps.begin()
        url = f"flink://127.0.0.1:{cluster.port}/orders"
        savepoint = steps.run(f"statetool savepoint {url} --to file://$PWD/savepoints --stop").split()[-1]
    (before,) = json.loads(steps.run(f"statetool head {savepoint} {_OPERATOR}"))
    jars = f"--jar-a {old} --jar-b {new} --flink 2.3"
    steps.run(f"statetool check {savepoint} {jars}", code=1)
    steps.run(f"statetool upgrade {savepoint} upgraded {jars} --dry-run")
    steps.run(f"statetool upgrade {savepoint} upgraded {jars}")
    with running_cluster(steps, new_version) as cluster:
        options = f"execution.checkpointing.interval=1s execution.checkpointing.dir={cluster.checkpoints.as_uri()}"
        steps.run(f"flink run -d -s file://$PWD/upgraded -c jobs.OrdersJob {new} orders {options}")
        wait_for_checkpoint(cluster)
        (after,) = json.loads(steps.run(f"statetool head flink://127.0.0.1:{cluster.port}/orders {_OPERATOR}"))
    old_order, new_order = before["order"], after["order"]
    assert new_order.pop("total") >= old_order.pop("total") > 0
    assert json.loads(old_order.pop("items")) == new_order.pop("items")  # Kryo's lists are shown as JSON
    assert after == before
