"""A job with a real Kafka: its offsets are set and its transactions compared, and a rewritten savepoint goes on exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

import statetool
from statetool.connectors.sinks import COMMITTER_STATE
from tests.support.connectors.commands import run
from tests.support.connectors.committers import committer
from tests.support.connectors.layouts import packed
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.patience import eventually
from tests.support.servers.kafka_server import kafka_server
from tools.maven import maven_jars

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
PARTITIONS = 3
RECORDS = 40
SOURCE = "orders"
COMMITTER = "Sink Committer: out"
#: How long clients wait, in milliseconds: the broker answers late on a busy machine.
PATIENT: dict[str, Any] = {"request_timeout_ms": 500_000, "bootstrap_timeout_ms": 500_000}
PATIENT_PRODUCER: dict[str, Any] = {**PATIENT, "max_block_ms": 600_000, "delivery_timeout_ms": 600_000}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="module", params=["2.3.0", "1.20.5"])
def kafka_flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    version = request.param
    job = HERE / "support" / "flink" / "kafka"
    machine = FlinkMachine(version, tmp_path_factory.mktemp("job"), (job,), jars=maven_jars(f"kafka-{version}"))
    yield machine
    machine.close()


def produce(broker: str, topic: str, first: int) -> None:
    """Send the next records to each partition: their partition and number."""
    with closing(KafkaProducer(bootstrap_servers=broker, **PATIENT_PRODUCER)) as producer:
        for partition in range(PARTITIONS):
            for n in range(first, first + RECORDS):
                producer.send(topic, f"{partition}:{n}".encode(), partition=partition)
        producer.flush()


def committed(broker: str, topic: str) -> Counter[str]:
    """Return all committed records of a topic. Open transactions hide what follows them."""
    found: Counter[str] = Counter()
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "group_id": None, **PATIENT}
    with closing(KafkaConsumer(bootstrap_servers=broker, **settings)) as consumer:
        partitions = [TopicPartition(topic, 0)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(p) < ends[p] for p in partitions):
            for batch in consumer.poll(1_000).values():
                found.update(record.value.decode() for record in batch)
    return found


def outcomes(broker: str, path: str, code: int) -> list[str]:
    found = run("sinks", "check", path, "--kafka", broker, code=code)
    return [r["outcome"] for r in found]


def test_a_rewritten_savepoint_goes_on_exactly(kafka_flink: FlinkMachine, broker: str, tmp_path: Path) -> None:
    release = kafka_flink.version.replace(".", "-")
    topic, out, prefix = f"in-{release}", f"out-{release}", f"job-{release}"
    with closing(KafkaAdminClient(bootstrap_servers=broker, **PATIENT)) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1), NewTopic(out, 1, 1)])
    produce(broker, topic, 0)

    def job(wanted: int, **more: Any) -> dict[str, Any]:
        request = {"servers": broker, "in": topic, "out": out, "prefix": prefix, "uid": SOURCE, "wanted": wanted}
        return kafka_flink.call("class", **{"class": "KafkaJob", **request, **more})

    taken = statetool.load(job(PARTITIONS * RECORDS, savepoint=str(tmp_path / "taken"))["savepoint"])
    taken = taken if SOURCE in taken else taken.with_uids([SOURCE, "seen", "out", COMMITTER])
    positions = {r.split_id: int(r.position) for r in taken.connector_rows("source_splits")}
    assert positions == {f"{topic}-{n}": RECORDS for n in range(PARTITIONS)}
    # The savepoint prepared transactions that nothing committed.
    pending = taken.connector_rows("transactions")
    assert pending
    assert outcomes(broker, taken.path, 0) == ["will_commit"] * len(pending)
    (first,) = taken.table_commits(kafka=broker).slice(0, 1).to_pylist()
    assert first["message"].startswith("Kafka aborts it if it is not committed until 2")

    rewritten = rewrite(taken, tmp_path, topic)
    produce(broker, topic, RECORDS)
    again = 15
    skipped = 5
    job(PARTITIONS * RECORDS + again - skipped, uid="renamed", snapshot=rewritten)
    expected = Counter(f"{p}:{n}" for p in range(PARTITIONS) for n in range(2 * RECORDS))
    expected.update(f"0:{n}" for n in range(RECORDS - again, RECORDS))
    expected.subtract(f"1:{n}" for n in range(RECORDS, RECORDS + skipped))
    assert committed(broker, out) == +expected
    assert outcomes(broker, taken.path, 0) == ["is_committed"] * len(pending)


def test_the_records_of_a_forgotten_transaction_are_lost_and_no_others(
    kafka_flink: FlinkMachine, broker: str, tmp_path: Path
) -> None:
    release = kafka_flink.version.replace(".", "-")
    topic, out, prefix = f"lose-in-{release}", f"lose-out-{release}", f"lose-job-{release}"
    with closing(KafkaAdminClient(bootstrap_servers=broker, **PATIENT)) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1), NewTopic(out, 1, 1)])
    produce(broker, topic, 0)
    request = {"class": "KafkaJob", "servers": broker, "in": topic, "out": out, "prefix": prefix, "uid": SOURCE}
    first = kafka_flink.call("class", **request, wanted=PARTITIONS * RECORDS, savepoint=str(tmp_path / "taken"))
    taken = statetool.load(first["savepoint"])
    taken = taken if SOURCE in taken else taken.with_uids([SOURCE, "seen", "out", COMMITTER])
    # Two subtasks read three partitions, so each has a transaction with the records of whole partitions.
    names = sorted(r.name for r in taken.connector_rows("transactions"))
    assert len(names) == 2
    statetool.drop_transactions(taken, str(tmp_path / "forgotten"), COMMITTER, names[:1])
    assert outcomes(broker, str(tmp_path / "forgotten"), 0) == ["will_commit"]
    # Nothing else ends it: a client with its transactional id aborts it, so that readers see what follows.
    with closing(KafkaProducer(bootstrap_servers=broker, transactional_id=names[0], **PATIENT_PRODUCER)) as producer:
        producer.init_transactions()
    produce(broker, topic, RECORDS)
    kafka_flink.call("class", **request, wanted=PARTITIONS * RECORDS, snapshot=str(tmp_path / "forgotten"))
    found = committed(broker, out)
    kept = {p for p in range(PARTITIONS) if f"{p}:0" in found}
    assert 0 < len(kept) < PARTITIONS
    expected = [f"{p}:{n}" for p in range(PARTITIONS) for n in range(0 if p in kept else RECORDS, 2 * RECORDS)]
    assert found == Counter(expected)


def rewrite(taken: statetool.Savepoint, tmp_path: Path, topic: str) -> str:
    """Set two positions, change the uid of the source, and give the operators another max parallelism."""
    moved = {f"{topic}:0": RECORDS - 15, f"{topic}:1": RECORDS + 5}
    statetool.edit_source(taken, str(tmp_path / "set"), SOURCE, positions=moved)
    statetool.change_uids(str(tmp_path / "set"), str(tmp_path / "uid"), {SOURCE: "renamed"}, uids=[SOURCE])
    statetool.rescale(str(tmp_path / "uid"), str(tmp_path / "rescaled"), 64)
    return str(tmp_path / "rescaled")


def test_transactions_that_kafka_ended_are_told(broker: str, tmp_path: Path) -> None:
    """The transactions are those of a client, and a committer's state is composed of them."""

    def begin(name: str, timeout_ms: int = 3_600_000) -> KafkaProducer:
        producer = KafkaProducer(
            bootstrap_servers=broker, transactional_id=name, transaction_timeout_ms=timeout_ms, **PATIENT_PRODUCER
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("ended", name.encode()).get(600)
        return producer

    names = ["aborted", "committed", "fenced", "open", "used-again", "timed-out"]
    producers = {name: begin(name) for name in names[:-1]}
    producers["timed-out"] = begin("timed-out", timeout_ms=15_000)  # long enough to write a record on a busy machine
    with closing(KafkaAdminClient(bootstrap_servers=broker, **PATIENT)) as admin:
        found = {name: admin.describe_transactions([name])[name] for name in names}
    handles = {name: (d.producer_id, d.producer_epoch) for name, d in found.items()}
    handles |= {"lost": (99, 0), "other-producer": (99, 0)}
    committables = [packed((2, epoch), (8, producer), name) for name, (producer, epoch) in handles.items()]
    values = pa.table({"value": [committer(*committables)]})
    path = tmp_path / "s"
    state = statetool.bootstrap_list_state(COMMITTER_STATE, values, type="BINARY")
    statetool.SavepointWriter.new(checkpoint_id=7).with_operator("sink", state, parallelism=1).write(str(path))

    producers["aborted"].abort_transaction()
    for name in ("committed", "used-again"):
        producers[name].commit_transaction()
    fencing = [begin(name) for name in ("fenced", "used-again", "other-producer")]
    fencing[0].commit_transaction()

    def outcomes() -> dict[str, str]:
        rows = run("sinks", "check", path, "--kafka", broker, "--kafka-setting", "client_id=check", code=1)
        return {r["name"]: r["outcome"] for r in rows}

    eventually(lambda: outcomes()["timed-out"] != "will_commit")  # Kafka aborts it by itself
    assert outcomes() == {
        "aborted": "will_drop",
        "committed": "is_committed",
        "fenced": "unknown",
        "open": "will_commit",
        "timed-out": "will_drop",
        "used-again": "unknown",
        "lost": "unknown",
        "other-producer": "unknown",
    }
    for producer in (*producers.values(), *fencing):
        producer.close(timeout=0)
