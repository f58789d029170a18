"""End offsets of partitions are requested from a broker with Kafka's protocol."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import ConnectionFailedError, OptionError
from tests.support.servers.kafka_broker import kafka_broker

ENDS = {"orders": {0: 1100, 1: 17, 2: 400, 4: 9}, "payments.eu-1": {0: 5000000100}}


def test_lag_behind_a_running_kafka(connector_cases: Path) -> None:
    case = connector_cases / "v2_3_0-kafka-source" / "snapshot"
    with kafka_broker(ENDS) as broker:
        ends = statetool.kafka_end_offsets(statetool.load(str(case))["orders"], broker)
        # Partition 4 waits in the enumerator, partition 3 does not exist any more.
        assert ends == {"orders:0": 1100, "orders:1": 17, "orders:2": 400, "payments.eu-1:0": 5000000100}
        call = ["sources", "lag", str(case), "--uid", "orders", "--bootstrap-servers", broker, "--output", "json"]
        done = CliRunner().invoke(cli, [*call, "--kafka", "retry_backoff_ms=50"])
        assert done.exit_code == 0, done.stderr
        lags = {r["split_id"]: (r["lag"], r["note"]) for r in json.loads(done.stdout)}
        assert lags["orders-0"] == (1100 - 1042, "")
        assert lags["orders-3"] == (None, "no end was given")
        refused = CliRunner().invoke(cli, [*call, "--kafka", "no_such=1"])
        assert refused.exit_code == 2
        assert "settings of kafka-python" in refused.stderr


def test_legacy_consumers_are_asked_for_and_others_refused(connector_cases: Path) -> None:
    case = statetool.load(str(connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot"))
    (label,) = (r.operator for r in case.connector_rows("sources") if r.connector == "flink-kafka-consumer")
    with kafka_broker(ENDS) as broker:
        assert statetool.kafka_end_offsets(case[label], broker)["orders:0"] == 1100
    other = statetool.load(str(connector_cases / "v2_3_0-number-sequence" / "snapshot"))
    label = other.connector_rows("sources")[0].operator
    with pytest.raises(OptionError, match="not Kafka's"):
        statetool.kafka_end_offsets(other[label], "127.0.0.1:1")


def test_a_broker_that_is_not_there_is_said(connector_cases: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    operator = statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot"))["orders"]
    with pytest.raises(ConnectionFailedError, match="did not return end offsets"):
        statetool.kafka_end_offsets(operator, address, bootstrap_timeout_ms=600, request_timeout_ms=600)


def test_ends_come_from_one_place(connector_cases: Path) -> None:
    case = str(connector_cases / "v2_3_0-kafka-source" / "snapshot")
    for more in ([], ["--ends", "x.csv", "--bootstrap-servers", "b:1"]):
        assert CliRunner().invoke(cli, ["sources", "lag", case, "--uid", "orders", *more]).exit_code == 2


def test_times_of_splits_are_compared_where_they_keep_one(connector_cases: Path) -> None:
    def split(release: str) -> dict[str | None, int | None]:
        rows = statetool.load(str(connector_cases / release / "snapshot")).connector_rows("source_splits")
        return {r.split_id: r.time_ms for r in rows}

    assert split("v2_3_0-mysql-cdc-binlog") == {"binlog-split": 1700000777000}
    assert split("v2_3_0-incremental-cdc-stream") == {"stream-split": 1700000777000}
    assert split("v2_3_0-kinesis-source")["shardId-000000000002"] == 1700000123456
    assert set(split("v2_3_0-kafka-source").values()) == {None}
    operator = statetool.load(str(connector_cases / "v2_3_0-kinesis-source" / "snapshot"))
    (label,) = (r.operator for r in operator.connector_rows("sources") if r.connector == "kinesis-source")
    lags = operator[label].lag({"shardId-000000000000": 5}).to_pylist()
    assert [r["time_spread_ms"] for r in lags] == [None, None, 0]
    # A sequence number is not an offset: nothing can be counted from it.
    assert (lags[0]["lag"], lags[0]["note"]) == (None, "its position is not an offset")
    with pytest.raises(OptionError, match="is not a valid offset"):
        operator[label].lag({"shardId-000000000000": str(10**55)})
