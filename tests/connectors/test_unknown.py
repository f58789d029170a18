"""State that no connector reads is reported as such, neither as "nothing found" nor as a count of 0."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE, sinks_in, without_committables
from statetool.connectors.wire import whole_versioned, write_versioned
from statetool.errors import UnsupportedError
from tests.support.connectors.commands import run
from tests.support.connectors.layouts import framed, packed


def written(path: Path, **states: list[bytes]) -> Path:
    """Write a savepoint with one operator that has list states of byte arrays."""
    bootstraps = [
        statetool.bootstrap_list_state(name, pa.table({"value": values}), type="BINARY")
        for name, values in states.items()
    ]
    statetool.SavepointWriter.new().with_operator("sink", *bootstraps, parallelism=1).write(str(path))
    return path


def kafka_transaction(name: str) -> bytes:
    return packed((2, 3), (8, 7), name)


def committables_of_1_14(*committables: bytes, version: int = 1) -> bytes:
    """Return the state of a committer as Flink 1.13 and 1.14 write it."""
    return write_versioned(
        1, packed(b"\xb9\x1f\x25\x2c", (4, version), (4, len(committables)), *map(framed, committables))
    )


def test_a_source_that_no_connector_reads_is_not_checked(connector_cases: Path) -> None:
    case = connector_cases / "v2_3_0-cep" / "snapshot"
    checks = run("sources", "check", case, code=1)
    assert [(c["operator"], c["check"], c["is_problem"]) for c in checks] == [("rows", "unknown", True)]
    assert "no connector reads these bytes" in checks[0]["message"]
    (source,) = run("sources", "list", case, code=0)
    assert source["problems"] == 1


@pytest.mark.parametrize(
    ("where", "what"), [("enumerator", "enumerator state of version"), ("split", "splits of version")]
)
def test_a_source_that_is_read_in_part_is_checked_in_part(connector_cases: Path, where: str, what: str) -> None:
    from dataclasses import replace

    from statetool.connectors.checks import check_source
    from statetool.connectors.sources import source_of

    savepoint = statetool.load(str(connector_cases / "v2_3_0-kafka-source-inconsistent" / "snapshot"))
    source = source_of(savepoint["orders"].inventory)
    assert source is not None
    held = source.state.held
    state = (
        replace(source.state, enumerator=None)
        if where == "enumerator"
        else replace(source.state, held=(replace(held[0], split=None), *held[1:]))
    )
    checks = check_source(replace(source, state=state))
    assert [c.message for c in checks if c.check == "unknown" and what in c.message]
    assert [c.split_id for c in checks if c.check == "held_twice"] == ["orders-1"]


def test_committables_of_an_unknown_connector_are_neither_none_nor_0(tmp_path: Path) -> None:
    path = written(tmp_path / "s", **{COMMITTER_STATE: [write_versioned(3, b"of a later release")]})
    (pending,) = run("sinks", "pending", path, code=1)
    assert (pending["status"], pending["verdict"], pending["is_decoded"]) == ("unknown", "unknown", False)
    (sink,) = run("sinks", "list", path, code=0)
    assert (sink["connector"], sink["role"], sink["pending"], sink["undecoded"]) == ("unknown", "committer", None, 1)
    words = CliRunner().invoke(cli, ["sinks", "pending", str(path)])
    assert "1 row not decoded" in words.stderr
    assert "nothing found" not in words.stderr


def test_an_operator_of_unknown_state_may_be_a_sink(connector_cases: Path, tmp_path: Path) -> None:
    whole = (connector_cases / "v2_3_0-two-phase-commit" / "snapshot" / "_metadata").read_bytes()
    known = b"TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
    (tmp_path / "_metadata").write_bytes(whole.replace(known, known[:-1] + b"T"))
    pending = run("sinks", "pending", tmp_path, code=1)
    assert [(r["operator"], r["is_decoded"]) for r in pending] == [("two-phase", False)]
    (sink,) = run("sinks", "list", tmp_path, code=0)
    assert sink["pending"] is None
    assert "two-phase" in {c["operator"] for c in run("sources", "check", tmp_path, code=1)}


def test_one_operator_can_keep_the_state_of_writer_and_committer(tmp_path: Path) -> None:
    """Flink 1.14 commits in the operator of the writer."""
    path = written(
        tmp_path / "s",
        **{
            WRITER_STATE: [write_versioned(1, packed("orders"))],
            COMMITTER_STATE: [committables_of_1_14(kafka_transaction("orders-0-1"), kafka_transaction("orders-0-2"))],
        },
    )
    sinks = run("sinks", "list", path, code=0)
    assert [(s["connector"], s["role"], s["pending"]) for s in sinks] == [
        ("kafka-sink", "writer", 0),
        ("kafka-sink", "committer", 2),
    ]
    savepoint = statetool.load(str(path)).with_uids(["sink"])
    transactions = savepoint["sink"].transactions().to_pylist()
    assert [(t["name"], t["status"], t["checkpoint_id"]) for t in transactions] == [
        ("orders-0-1", "received", None),
        ("orders-0-2", "received", None),
    ]
    assert [r["name"] for r in run("sinks", "pending", path, code=0)] == ["orders-0-1", "orders-0-2"]
    statetool.drop_transactions(savepoint, str(tmp_path / "fewer"), "sink", ["orders-0-1"])
    (left,) = run("sinks", "pending", tmp_path / "fewer", code=0)
    assert left["name"] == "orders-0-2"
    _, committer = sinks_in(savepoint["sink"].inventory)
    (same,) = without_committables(committer, frozenset())[COMMITTER_STATE][0]
    assert same == next(iter(committer.data.elements(COMMITTER_STATE))).data


def test_committables_of_1_14_without_a_connector_are_shown_one_by_one(tmp_path: Path) -> None:
    """As in the savepoint of Flink's test that migrates the first sinks to Sink V2: integers written by a serializer of version 0."""
    path = written(
        tmp_path / "s",
        **{
            WRITER_STATE: [write_versioned(0, packed((4, 1)))],
            COMMITTER_STATE: [committables_of_1_14(packed((4, 2)), version=0)],
        },
    )
    assert {r["is_decoded"] for r in run("sinks", "pending", path, code=1)} == {False}
    sinks = {s["role"]: s for s in run("sinks", "list", path, code=0)}
    assert {role: (s["connector"], s["pending"], s["undecoded"]) for role, s in sinks.items()} == {
        "writer": ("unknown", None, 1),
        "committer": ("unknown", 1, 1),
    }
    (transaction,) = statetool.load(str(path)).connector_rows("transactions")
    assert transaction.undecoded == packed((4, 2))


def test_nothing_is_forgotten_where_the_connector_is_unknown(tmp_path: Path) -> None:
    path = written(tmp_path / "s", **{COMMITTER_STATE: [committables_of_1_14(packed((4, 2)), version=0)]})
    with pytest.raises((UnsupportedError, statetool.errors.UnknownNameError)):
        statetool.drop_transactions(str(path), str(tmp_path / "t"), "sink", ["(version 0)"], uids=["sink"])


def test_a_global_committer_of_another_version_is_not_read(tmp_path: Path) -> None:
    frame = write_versioned(1, packed(b"\xb9\x1f\x25\x2b", False))
    assert whole_versioned(frame, "it") == (1, b"\xb9\x1f\x25\x2b\0")
    path = written(tmp_path / "s", **{COMMITTER_STATE: [frame]})
    assert [r["verdict"] for r in run("sinks", "pending", path, code=1)] == ["unknown"]


def test_a_sink_without_elements_has_nothing_to_commit(tmp_path: Path) -> None:
    """Kafka's sink with at-least-once has an empty state, which does not name its connector."""
    (sink,) = run("sinks", "list", written(tmp_path / "sp", **{WRITER_STATE: []}))
    assert sink["note"].startswith("nothing to commit: its state is empty, as that of Kafka's sink with at-least-once")
