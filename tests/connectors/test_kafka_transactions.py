"""Transactions compared with what Kafka says of them; ``tests/flink/test_kafka.py`` asks a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka.admin import TransactionDescription, TransactionState

import statetool
from statetool.connectors.outside import kafka_transactions
from statetool.connectors.outside.kafka_transactions import kafka_commit_rows
from statetool.errors import ConnectionFailedError, OptionError

#: State, epoch above that of the snapshot, version of transactions, and outcome if the writers' state is not in the snapshot.
STATES = [
    ("Ongoing", 0, 2, "will_commit"),
    ("Ongoing", 0, 1, "unknown"),
    ("Ongoing", 1, 2, "unknown"),
    ("PrepareCommit", 0, 2, "is_committed"),
    ("CompleteCommit", 0, 2, "is_committed"),
    ("CompleteCommit", 0, 1, "unknown"),
    ("CompleteCommit", 1, 2, "is_committed"),
    ("CompleteCommit", 2, 2, "unknown"),
    ("PrepareAbort", 1, 2, "will_drop"),
    ("PrepareEpochFence", 1, 2, "will_drop"),
    ("CompleteAbort", 0, 2, "will_drop"),
    ("CompleteAbort", 1, 0, "will_drop"),
    ("CompleteAbort", 2, 2, "unknown"),
    ("Empty", 0, 2, "unknown"),
    ("Empty", 1, 2, "unknown"),
    ("CompleteCommit", -1, 2, "unknown"),
    ("Unknown", 0, 2, "unknown"),
]


@pytest.fixture(scope="module")
def without_writers(connector_cases: Path, tmp_path_factory: pytest.TempPathFactory) -> statetool.Savepoint:
    """Return a savepoint of a committer alone: whether its transactional ids are reused (``POOLING``) is not stored."""
    base = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))
    writers = [r.operator for r in base.connector_rows("sinks") if r.role == "writer"]
    path = str(tmp_path_factory.mktemp("kafka") / "committer")
    statetool.drop(base, path, operators=writers)
    return statetool.load(path)


@pytest.mark.parametrize(("state", "later", "version", "outcome"), STATES)
def test_states_of_kafka(
    state: str,
    later: int,
    version: int,
    outcome: str,
    without_writers: statetool.Savepoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pending = {r.transactional_id: r for r in without_writers.connector_rows("transactions")}

    def describe(ids: list[str], *_: Any) -> tuple[int, dict[str, Any]]:
        assert ids == sorted(pending)
        return version, {
            name: TransactionDescription(
                coordinator_id=1,
                state=TransactionState(state),
                producer_id=r.producer_id,
                producer_epoch=r.epoch + later,
                transaction_timeout_ms=900_000,
                transaction_start_time_ms=1_700_000_000_000,
                topic_partitions=set(),
            )
            for name, r in pending.items()
        }

    monkeypatch.setattr(kafka_transactions, "_describe", describe)
    rows = without_writers.table_commits(kafka="broker:9092").to_pylist()
    assert [r["outcome"] for r in rows] == [outcome] * len(pending)
    assert {r["is_problem"] for r in rows} == {outcome in ("unknown", "will_drop")}
    if outcome == "will_commit":
        assert rows[0]["message"] == "Kafka aborts it if it is not committed until 2023-11-14 22:28:20 UTC"


def test_a_kafka_that_is_not_there_is_said(connector_cases: Path) -> None:
    savepoint = statetool.load(str(connector_cases / "v2_3_0-kafka-sink" / "snapshot"))
    settings = {"bootstrap_timeout_ms": 300, "request_timeout_ms": 300}
    with pytest.raises(ConnectionFailedError, match="did not return transactions"):
        savepoint.table_commits(kafka="127.0.0.1:1", kafka_settings=settings)
    with pytest.raises(OptionError, match="settings of kafka-python"):
        savepoint.table_commits(kafka="127.0.0.1:1", kafka_settings={"no_such": 1})


def test_other_sinks_and_options_are_refused(connector_cases: Path) -> None:
    savepoint = statetool.load(str(connector_cases / "v2_3_0-number-sequence" / "snapshot"))
    with pytest.raises(OptionError, match="no committer of Kafka"):
        kafka_commit_rows(savepoint.inventory.operators.values(), "broker:9092")
    with pytest.raises(OptionError, match="settings of Kafka need its brokers"):
        savepoint.table_commits(paimon="table", kafka_settings={"a": 1})
    with pytest.raises(OptionError, match="compared with one table, with Kafka or with a database"):
        savepoint.table_commits(paimon="table", kafka="broker:9092")
