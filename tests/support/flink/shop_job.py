"""The shop of the demo and of the documentation: a job (``shop``) that reads two weeks of orders from a real Kafka.

``shop/events.txt`` is everything that happens. The job writes the same state on any day: its timers and windows follow the time of the
events, and so does the clock of its times to live.

``python -m tests.support.flink.shop_job`` takes both savepoints in Flink and replaces those of the demo.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from statetool.demo import NEXT_DAY, SAVEPOINT
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.servers.kafka_server import kafka_server
from tools.maven import maven_jars

FLINK: Final = "2.3.0"
_SHOP: Final = HERE / "support" / "flink" / "shop"
#: Topics with their partitions. All records of a customer are in one partition, so that their order is the same in each run.
_TOPICS: Final = {"orders": 3, "clicks": 2, "prices": 1}
_TOPIC_OF: Final = {
    "price": "prices",
    **dict.fromkeys(("view", "put", "drop", "coupon"), "clicks"),
    **dict.fromkeys(("joined", "order", "paid", "sent"), "orders"),
}
_CONFIG: Final = {
    # All state in one file.
    "execution.checkpointing.data-inline-threshold": "1 mb",
    "execution.checkpointing.snapshot-compression": "false",
}
#: By savepoint. Only the sink of the second day has transactions, which nobody has committed when the savepoint is complete.
_GUARANTEES: Final = ("AT_LEAST_ONCE", "EXACTLY_ONCE")
#: The records are months old, and the broker is not to delete them.
_FOREVER: Final = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**62)}
_PATIENT: Final[dict[str, Any]] = {"request_timeout_ms": 500_000, "bootstrap_timeout_ms": 500_000}


def days() -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yield the time of each savepoint, with the records before it as time and text."""
    records: list[tuple[int, str]] = []
    for line in (_SHOP / "events.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        time, event = line.split(" ", 1)
        time_ms = int(datetime.fromisoformat(time).replace(tzinfo=timezone.utc).timestamp()) * 1000
        if event == "--":
            yield time_ms, records
            records = []
        else:
            records.append((time_ms, event))


class Shop:
    """The job, in Flink and with a real Kafka. It gets the records of one day after another."""

    def __init__(self, machine: FlinkMachine, broker: str, work: Path) -> None:
        self._machine = machine
        self._broker = broker
        self._work = work
        self._days = zip(days(), _GUARANTEES, strict=True)
        _create_topics(broker)

    def skip_day(self) -> None:
        """Send the records of a day, which the job has read before the snapshot that it will be restored from."""
        (end_ms, records), _ = next(self._days)
        _produce(self._broker, end_ms, records)

    def run_day(self, snapshot: str | None = None) -> Path:
        """Run the job, from a snapshot or the beginning, until the end of the next day, and return a savepoint of then."""
        (end_ms, records), guarantee = next(self._days)
        _produce(self._broker, end_ms, records)
        request = {"class": "ShopJob", "servers": self._broker, "guarantee": guarantee, "end": end_ms}
        folder = str(self._work / f"savepoints-{end_ms}")
        more = {"backend": "shop.Clock", "config": _CONFIG, "snapshot": snapshot, "savepoint": folder}
        return Path(self._machine.call("class", **request, **more)["savepoint"])


@contextmanager
def open_shop(work: Path) -> Iterator[Shop]:
    """Start Kafka and Flink for the job."""
    with kafka_server(work / "kafka") as broker:
        machine = FlinkMachine(FLINK, work, (_SHOP,), jars=maven_jars(f"kafka-{FLINK}"))
        try:
            yield Shop(machine, broker, work)
        finally:
            machine.close()


def take_savepoints(work: Path) -> list[Path]:
    """Run the job until the end of each day, and return the savepoints that Flink takes there."""
    with open_shop(work) as shop:
        first = shop.run_day()
        return [first, shop.run_day(str(first))]


def _create_topics(broker: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker, **_PATIENT)) as admin:
        topics = {**_TOPICS, "invoices": 1}
        admin.create_topics([NewTopic(name, n, 1, topic_configs=_FOREVER) for name, n in topics.items()])


def _produce(broker: str, end_ms: int, records: list[tuple[int, str]]) -> None:
    """Send records to their partitions, and to each partition a last one that only has a time."""
    patience = {**_PATIENT, "max_block_ms": 600_000, "delivery_timeout_ms": 600_000}
    with closing(KafkaProducer(bootstrap_servers=broker, **patience)) as producer:
        for time_ms, text in records:
            kind, name, *_ = text.split()
            topic = _TOPIC_OF[kind]
            partition = ord(name[0]) % _TOPICS[topic]
            producer.send(topic, text.encode(), partition=partition, timestamp_ms=time_ms)
        for topic, partitions in _TOPICS.items():
            for partition in range(partitions):
                producer.send(topic, b"end of day", partition=partition, timestamp_ms=end_ms)
        producer.flush()


def main() -> None:
    """Replace the savepoints of the demo."""
    with tempfile.TemporaryDirectory() as work:
        for taken, bundled in zip(take_savepoints(Path(work)), (SAVEPOINT, NEXT_DAY), strict=True):
            shutil.rmtree(bundled, ignore_errors=True)
            shutil.copytree(taken, bundled)
            print(bundled, sum(f.stat().st_size for f in Path(bundled).rglob("*") if f.is_file()), "bytes")


if __name__ == "__main__":
    main()
