"""A real Kafka broker on loopback, from jars that Maven fetches: one node that is broker and controller (KRaft)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from tests.support.patience import eventually
from tests.support.servers.ports import free_ports
from tools.flink_jars import SHORT_LIVED, java_tool
from tools.maven import maven_jars

_CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"
_SETTINGS: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
transaction.max.timeout.ms=3600000
broker.session.timeout.ms=600000
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
"""


@contextmanager
def kafka_server(folder: Path) -> Iterator[str]:
    """Run a broker and yield its address."""
    folder.mkdir(parents=True, exist_ok=True)
    broker, controller = free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(broker=broker, controller=controller, folder=folder))
    path = os.pathsep.join(map(str, maven_jars("kafka-broker")))
    java = [java_tool("java"), "-Xmx300m", *SHORT_LIVED, "-cp", path]
    formatted = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)]
    subprocess.run(formatted, check=True, capture_output=True)
    log = folder / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=out, stderr=out)
        try:
            address = f"127.0.0.1:{broker}"
            _await_answer(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait()


def _await_answer(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, f"Kafka ended: {log.read_text()[-3000:]}"
        with closing(KafkaAdminClient(bootstrap_servers=address, bootstrap_timeout_ms=2_000)) as admin:
            admin.describe_cluster()
        return True

    eventually(answers, retry=KafkaError)
