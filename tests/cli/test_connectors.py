"""Commands for sources and sinks."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli


def run(*args: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(map(str, args)))
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def rows(*args: str | Path, code: int = 0) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(run(*args, "--output", "json", code=code).stdout)
    return records


def kafka(cases: Path, name: str = "v2_3_0-kafka-source") -> Path:
    return cases / name / "snapshot"


def test_positions_come_from_a_file(connector_cases: Path, tmp_path: Path) -> None:
    (tmp_path / "by-partition.csv").write_text("topic,partition,offset\norders,0,7\npayments.eu-1,2,8\n")
    (tmp_path / "by-split.csv").write_text("split,position\norders-1,9\n")
    run(
        "sources",
        "set",
        kafka(connector_cases),
        tmp_path / "a",
        "--uid",
        "orders",
        "--offsets",
        tmp_path / "by-partition.csv",
    )
    run("sources", "set", tmp_path / "a", tmp_path / "b", "--uid", "orders", "--offsets", tmp_path / "by-split.csv")
    positions = {r["split_id"]: r["position"] for r in rows("sources", "show", tmp_path / "b")}
    assert (positions["orders-0"], positions["payments.eu-1-2"], positions["orders-1"]) == ("7", "8", "9")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    call = (
        "sources",
        "set",
        kafka(connector_cases),
        tmp_path / "c",
        "--uid",
        "orders",
        "--offsets",
        tmp_path / "other.csv",
    )
    assert "a table with the columns a, b" in run(*call, code=2).stderr


def test_splits_are_added_and_removed(connector_cases: Path, tmp_path: Path) -> None:
    run("sources", "add", kafka(connector_cases), tmp_path / "a", "--uid", "orders", "orders:8=0")
    changes = rows(
        "sources", "remove", tmp_path / "a", tmp_path / "b", "--uid", "orders", "orders:8", "orders-0", "--dry-run"
    )
    assert {(c["split_id"], c["place"], c["change"]) for c in changes} == {
        (split, place, "removed") for split in ("orders-8", "orders-0") for place in ("reader", "enumerator")
    }
    assert not (tmp_path / "b").exists()


def test_a_source_in_disorder_is_told_by_the_exit_code(connector_cases: Path) -> None:
    checks = rows("sources", "check", kafka(connector_cases, "v2_3_0-kafka-source-inconsistent"), code=1)
    assert {(c["check"], c["split_id"]) for c in checks if c["is_problem"]} == {
        ("assigned_held_by_none", "orders-2"),
        ("held_twice", "orders-1"),
        ("unknown_to_enumerator", "orders-9"),
        ("held_but_unassigned", "orders-3"),
    }
    assert [
        r["problems"] for r in rows("sources", "list", kafka(connector_cases, "v2_3_0-kafka-source-inconsistent"))
    ] == [4]
    run("sources", "check", kafka(connector_cases))


def test_the_enumerator_is_shown_for_one_operator(connector_cases: Path) -> None:
    splits = rows("sources", "show", kafka(connector_cases), "--enumerator", "--uid", "orders")
    assert [r["split_id"] for r in splits if r["status"] == "unassigned"] == ["orders-4", "payments.eu-1-4"]
    assert "no operator 'order'" in run("sources", "show", kafka(connector_cases), "--uid", "order", code=2).stderr


def test_what_expires_is_told(connector_cases: Path) -> None:
    case = kafka(connector_cases, "v1_20_5-flink-kafka-producer")
    now = {r["status"]: r["verdict"] for r in rows("sinks", "pending", case, "--timeout", "1s", code=1)}
    assert now == {"open": "will_abort", "pre_committed": "has_expired"}
    later = {r["verdict"] for r in rows("sinks", "pending", case, "--timeout", "100000d")}
    assert later == {"will_abort", "will_commit"}
    unsaid = rows("sinks", "pending", kafka(connector_cases, "v2_3_0-kafka-sink"), "--timeout", "100000d")
    assert {(r["verdict"], r["age_from"]) for r in unsaid} == {("may_expire", "snapshot")}
    files = rows("sinks", "pending", kafka(connector_cases, "v2_3_0-file-sink-row"), "--timeout", "1s")
    assert {r["verdict"] for r in files} == {"will_commit", "will_continue", "will_remove"}
    words = run("sinks", "pending", kafka(connector_cases, "v2_3_0-kafka-sink"), "--commands")
    assert (
        "kafka-transactions.sh --bootstrap-server BROKERS describe --transactional-id orders-out-0-1\n" in words.stdout
    )
    assert words.stdout.count(" list\n") == 1
    aborts = [line for line in words.stdout.splitlines() if " abort " in line]
    assert len(aborts) == 4
    assert all("--producer-id " in line and "None" not in line for line in aborts)
    # The coordinator epoch, which each of these commands needs, is printed once per partition.
    assert words.stdout.count(" describe-producers --topic TOPIC --partition PARTITION\n") == 1
    assert "Kafka's tools can only abort" in words.stderr


#: Commands of ``org.apache.kafka.tools.TransactionsCommand`` (Kafka 4.1 to 4.3), each with its required arguments.
KAFKA_TRANSACTIONS: dict[str, set[str]] = {
    "list": set(),
    "describe": {"--transactional-id"},
    "describe-producers": {"--topic", "--partition"},
    # The last three are for brokers before 3.0, and accepted by all versions.
    "abort": {"--topic", "--partition", "--producer-id", "--producer-epoch", "--coordinator-epoch"},
    "forceTerminateTransaction": {"--transactionalId"},
}


def test_commands_are_those_that_the_tool_of_kafka_has(connector_cases: Path) -> None:
    for name in ("v2_3_0-kafka-sink", "v1_20_5-flink-kafka-producer"):
        printed = run("sinks", "pending", kafka(connector_cases, name), "--commands").stdout.splitlines()
        words = [shlex.split(line) for line in printed if line.startswith("kafka-transactions.sh ")]
        # Options of the tool itself precede its command.
        assert {tuple(w[:3]) for w in words} == {("kafka-transactions.sh", "--bootstrap-server", "BROKERS")}
        options = {w[3]: {option for option in w[4:] if option.startswith("--")} for w in words}
        assert options == KAFKA_TRANSACTIONS


def test_what_is_lost_is_named(connector_cases: Path, tmp_path: Path) -> None:
    case = kafka(connector_cases, "v2_3_0-kafka-sink")
    call = ("sinks", "forget", case, tmp_path / "new", "--uid", "Sink Committer: out")
    assert "Missing option '--lose'" in run(*call, code=2).stderr
    lost = rows(*call, "--lose", "orders-out-0-2", "--lose", "orders-out-1-1")
    assert [r["name"] for r in lost] == ["orders-out-0-2", "orders-out-1-1"]
    (committer,) = (r for r in rows("sinks", "list", tmp_path / "new") if r["role"] == "committer")
    assert committer["pending"] == 2


def test_lag_is_what_is_not_read_yet(connector_cases: Path, tmp_path: Path) -> None:
    ends = tmp_path / "ends.csv"
    ends.write_text("topic,partition,offset\norders,0,2000\norders,1,20\norders,2,300\norders,3,9\n")
    lags = {r["split_id"]: r for r in rows("sources", "lag", kafka(connector_cases), "--ends", ends)}
    assert {n: r["lag"] for n, r in lags.items() if r["end"] is not None} == {
        "orders-0": 958,
        "orders-1": 3,
        "orders-2": -77,
        "orders-3": None,
    }
    assert lags["orders-0"]["spread"] == 958 + 77
    assert "the log was truncated" in lags["orders-2"]["note"]
    assert lags["orders-3"]["note"] == "earliest"
    assert lags["payments.eu-1-0"]["note"] == "no end was given"
    words = run("sources", "lag", kafka(connector_cases), "--ends", ends)
    assert "total lag 884 in 3 splits, -77 to 958 per split" in words.stderr
    op = statetool.load(str(kafka(connector_cases)))["orders"]
    table = pa.table({"topic": ["orders"], "partition": [0], "offset": [2000]})
    (row,) = (r for r in op.lag(table).to_pylist() if r["lag"] is not None)
    assert row["lag"] == 958
    ends.write_text("split,position\nnone-0,1\n")
    assert (
        "no end offset matches a split" in run("sources", "lag", kafka(connector_cases), "--ends", ends, code=2).stderr
    )


def test_options_that_would_do_nothing_are_refused(connector_cases: Path, tmp_path: Path) -> None:
    ends = tmp_path / "ends.csv"
    ends.write_text("topic,partition,offset\norders,0,2000\n")
    words = run("sources", "lag", kafka(connector_cases), "--ends", ends, "--kafka", "a=b", code=2)
    assert "--kafka cannot be used with --ends" in words.stderr
