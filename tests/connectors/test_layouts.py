"""Layouts that follow only the sources of connectors: no bytes of a job are available for comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool import flink
from statetool.connectors import registry
from statetool.connectors.layouts.iceberg_sink import Manifests, read_manifests
from statetool.connectors.layouts.jdbc import JdbcSink, JdbcWriter
from statetool.connectors.layouts.kafka import KafkaSource, KafkaSplit
from statetool.connectors.model import HeldSplit, SourceBytes
from statetool.connectors.wire import read_version
from statetool.errors import FormatError, UnsupportedError
from tests.support.connectors.layouts import NULL_STREAM, committed, framed, java_object, manifest, packed, recognised
from tests.support.connectors.xa_states import XA_JOB, transaction, write_jdbc_sink, xid

OFFSET = "org.apache.flink.connector.jdbc.core.datastream.source.split.CheckpointedOffset"
JOB, OPERATOR = "0" * 31 + "1", "f" * 32


def jdbc_split(name: str, offset: bytes = NULL_STREAM) -> bytes:
    return packed(name, "SELECT * FROM orders WHERE id BETWEEN ? AND ?", framed(NULL_STREAM), framed(offset))


def test_jdbc() -> None:
    read = jdbc_split("0000000001", java_object(OFFSET, {"offset": 12, "recordsAfterOffset": 0}))
    state = packed((4, 0), (4, 0), (4, 1), jdbc_split("0000000003"), framed(NULL_STREAM))
    connector, source = recognised(0, [read, jdbc_split("0000000002")], (0, state))
    assert connector.name == "jdbc-source"
    assert [connector.place(h.split).position for h in source.held] == ["12", None]
    assert connector.place(source.held[1].split).marker == "earliest"
    assert source.enumerator is not None
    assert [(k.split.split_id, k.status) for k in source.enumerator.splits] == [("0000000003", "unassigned")]


def test_jdbc_transactions_have_the_rest_of_a_buffer_behind_them() -> None:
    name, pending = committed(1, xid(1, 7) + bytes(5))
    shown = f"202:{XA_JOB.hex()}00000001{'00' * 14}:000000020000000000000007" + "00"
    assert (name, pending.name, pending.expires) == ("jdbc-sink", shown, True)


def test_jdbc_writers_keep_what_they_began_and_what_they_prepared() -> None:
    state = packed((4, 1), transaction(1, 8), (4, 2), transaction(1, 6, attempts=3), transaction(1, 7)) + bytes(9)
    sink = JdbcSink()
    writer = read_version(state, 2, sink.read_writer, "the state of a writer")
    assert [(t.subtask, t.checkpoint_id) for t in writer.hanging] == [(1, 8)]
    assert [(t.job_id, t.number_of_subtasks, t.checkpoint_id, t.attempts) for t in writer.prepared] == [
        (XA_JOB.hex(), 2, 6, 3),
        (XA_JOB.hex(), 2, 7, 0),
    ]
    assert read_version(bytes(10), 2, sink.read_writer, "the state of a writer") == JdbcWriter(hanging=(), prepared=())
    for damaged in (state[:-1] + b"\1", state[:50]):
        with pytest.raises(FormatError):
            read_version(damaged, 2, sink.read_writer, "the state of a writer")


def test_jdbc_transactions_are_not_forgotten_in_the_committer_alone(tmp_path: Path) -> None:
    """Its committer commits nothing on restore. Its writer does, from a separate list."""
    base = write_jdbc_sink(tmp_path / "base", hanging=[(1, 8)], prepared=[(1, 7)], committables=[(1, 7)])
    roles = {r.role: (r.connector, r.pending) for r in base.connector_rows("sinks")}
    assert roles == {"writer": ("jdbc-sink", 0), "committer": ("jdbc-sink", 1)}
    (row,) = base.connector_rows("transactions")
    assert (row.checkpoint_id, row.subtask) == (8, 1)
    with pytest.raises(UnsupportedError, match="its writer also stores and commits them"):
        statetool.forget_transactions(base, str(tmp_path / "new"), "Sink Committer: out", [row.name])
    assert not (tmp_path / "new").exists()


def kafka(topic: str, partition: int, offset: int) -> bytes:
    return KafkaSource().write_split(0, KafkaSplit(topic=topic, partition=partition, starting_offset=offset))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_kafka_of_several_clusters(version: int) -> None:
    splits = [
        packed("east", *(() if version == 1 else (False,)), (4, 0), kafka("orders", 0, 42)),
        packed("west", *(() if version == 1 else (True, (8, 99))), (4, 0), kafka("orders", 0, -2)),
    ]
    initializers = () if version == 1 else (True, framed(NULL_STREAM), False)
    cluster = packed("east", (4, 1), "orders", "east:9092", *initializers)
    inner = packed((4, 1), (4, 0), framed(kafka("orders", 0, 0)), (4, 0), True)
    state = packed((4, 1), "stream", (4, 1), cluster, (4, 3), (4, 1), "east", framed(inner))
    if version == 3:
        state += packed((4, 1), "west", (8, 99), framed(inner))
    else:
        # Stored among the others, until version 3.
        state = packed((4, 1), "stream", (4, 1), cluster, (4, 3), (4, 2), "east", framed(inner), "west", framed(inner))
    connector, source = recognised(min(version, 2), splits, (version, state))
    assert connector.name == "dynamic-kafka-source"
    assert [h.split.split_id for h in source.held] == ["east-orders-0", "west-orders-0"]
    places = [connector.place(h.split) for h in source.held]
    assert [(p.source, p.partition, p.position, p.marker) for p in places] == [
        ("east/orders", 0, "42", None),
        ("west/orders", 0, None, "earliest"),
    ]
    assert source.enumerator is not None
    assert [k.split.split_id for k in source.enumerator.splits] == ["east-orders-0", "west-orders-0"]
    assert source.enumerator.facts["streams"]["stream"]["east"]["bootstrap_servers"] == "east:9092"
    assert source.enumerator.facts["retained"] == (
        {"west": {"until_ms": 99, "initial_discovery_finished": True}} if version == 3 else {}
    )


def iceberg_split(version: int, file: int, record: int, *names: str) -> bytes:
    texts = [json.dumps({"data-file": {"file-path": n}, "start": 4, "length": 10, "delete-files": [{}]}) for n in names]
    tasks = [packed(t) if version == 2 else framed(t.encode()) for t in texts]
    return packed((4, file), (8, record), (4, len(tasks)), *tasks)


@pytest.mark.parametrize(("version", "enumerator"), [(2, 1), (3, 2)])
def test_iceberg(version: int, enumerator: int) -> None:
    position = packed(True, (4, 1), framed(packed(True, (8, 77), True, (8, 1000))))
    waiting = packed((4, version), (4, 1), framed(iceberg_split(version, 0, 0, "s3://c")), "UNASSIGNED")
    state = position + waiting + (packed((4, 2), (4, 5), (4, 6)) if enumerator == 2 else b"")
    connector, source = recognised(version, [iceberg_split(version, 1, 30, "s3://a", "s3://b")], (enumerator, state))
    assert connector.name == "iceberg-source"
    place = connector.place(source.held[0].split)
    assert (place.source, place.position) == ("s3://b", "file 1, record 30")
    assert source.held[0].split.split_id == (
        "IcebergSourceSplit{files=[SplitScanTask{file=s3://a, start=4, length=10}, SplitScanTask{file=s3://b, start=4, length=10}]}"
    )
    assert source.enumerator is not None
    assert [k.status for k in source.enumerator.splits] == ["unassigned"]
    assert (source.enumerator.facts["snapshot_id"], source.enumerator.facts["snapshot_timestamp_ms"]) == (77, 1000)


def test_a_split_of_iceberg_by_java_stays_bytes() -> None:
    data = java_object("org.apache.iceberg.flink.source.split.IcebergSourceSplit", {"recordOffset": 1})
    held = (HeldSplit(subtask=0, version=1, data=data),)
    assert (
        registry.recognise(SourceBytes(held=held, enumerator_version=1, enumerator=packed(False, (4, 1), (4, 0)))) == []
    )


def manifests(data: bytes, deletes: bytes = b"") -> bytes:
    return packed((4, 2), framed(packed(framed(data), framed(deletes), (4, 1), "s3://data-file")))


def test_manifests_of_iceberg() -> None:
    read = read_manifests(manifests(manifest("s3://m1", 5), manifest("s3://m2", 6)))
    assert read.data is not None
    assert read.deletes is not None
    assert (read.data["manifest_path"], read.deletes["added_rows_count"]) == ("s3://m1", 6)
    assert read.referenced_data_files == ("s3://data-file",)
    old = read_manifests(packed((4, 1), framed(manifest("s3://m1", 5))))
    assert old == Manifests(data=read.data)
    assert read_manifests(b"") == Manifests()


@pytest.mark.parametrize(
    ("version", "head", "several"),
    [(1, (), False), (1, ("db.t", "main", (4, 1), (4, 0), True, (4, 1), (4, 3)), False), (2, ("db.t", "main"), True)],
)
def test_iceberg_committables(version: int, head: tuple[Any, ...], several: bool) -> None:
    one = framed(manifests(manifest("s3://m1", 5)))
    name, pending = committed(version, packed(*head, JOB, OPERATOR, (8, 12), *(((4, 1),) if several else ()), one))
    assert name == ("dynamic-iceberg-sink" if head else "iceberg-sink")
    assert pending.name == f"{'db.t@main ' if head else ''}{JOB}/{OPERATOR}/12"
    assert (pending.file, pending.expires, pending.checkpoint_id) == ("s3://m1", False, 12)


def test_iceberg_before_sink_v2_is_shown_and_forgets(tmp_path: Any) -> None:
    raw = manifests(manifest("s3://m1", 5))
    rows = pa.table({"value": pa.array([[(1, raw), (2, b"")]], pa.map_(pa.int64(), pa.binary()))})
    state = statetool.bootstrap_list_state("iceberg-files-committer-state", rows, type=flink.map_of("BIGINT", "BINARY"))
    jobs = statetool.bootstrap_list_state("iceberg-flink-job-id", pa.table({"value": [JOB]}), type="STRING")
    writer = statetool.SavepointWriter.new().with_operator("committer", state, jobs, parallelism=1)
    base = writer.with_checkpoint_id(2).write(str(tmp_path / "base")).with_uids(["committer"])
    transactions = base.connector_rows("transactions")
    assert [(r.connector, r.name, r.checkpoint_id, r.file) for r in transactions] == [
        ("iceberg-files-committer", f"{JOB}//1", 1, "s3://m1"),
        ("iceberg-files-committer", f"{JOB}//2", 2, None),
    ]
    statetool.forget_transactions(base, str(tmp_path / "new"), "committer", [f"{JOB}//1"])
    left = statetool.load(str(tmp_path / "new")).with_uids(["committer"]).connector_rows("transactions")
    assert [r.checkpoint_id for r in left] == [2]


def test_none_of_these_is_changed() -> None:
    names = ("jdbc-source", "dynamic-kafka-source", "iceberg-source", "pulsar-source")
    for connector in map(registry.split_connector, names):
        with pytest.raises(statetool.errors.UnsupportedError, match="can only show them"):
            connector.at(None, "0")
