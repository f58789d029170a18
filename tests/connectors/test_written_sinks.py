"""Sink states written by the connectors' own serializers are recognised, and have the contents that the writing program names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.cli.main import cli
from statetool.connectors import registry
from statetool.connectors.connector import SinkConnector
from statetool.connectors.layouts.starrocks import read_transactions
from statetool.connectors.model import as_plain
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE, sinks_in, without_committables
from statetool.connectors.wire import read_version, write_versioned
from statetool.errors import FormatError, StatetoolError, UnsupportedError
from tests.support.connectors.commands import run
from tests.support.connectors.committers import committer, global_committer, write_sink
from tests.support.connectors.layouts import framed, packed
from tests.support.connectors.written import PROGRAMS, run_program, written_states

STATES = [s for s in written_states() if s["role"] in ("writer", "committable", "transaction")]
SINKS = {c.name: c for c in registry.sink_connectors()}


def of(role: str, *names: str) -> list[Any]:
    chosen = [s for s in STATES if s["role"] == role and (not names or s["connector"] in names)]
    assert chosen
    return [pytest.param(s, id=f"{s['connector'] or 'empty'}-{len(s['data'])}") for s in chosen]


def reader(connector: SinkConnector, role: str) -> Any:
    return connector.read_writer if role == "writer" else connector.read_committable


def readings(state: dict[str, Any]) -> dict[str, Any]:
    """Return what each connector reads from a state that it knows the version of, by the connector's name."""
    found = {}
    for name, connector in SINKS.items():
        versions = connector.writer_versions if state["role"] == "writer" else connector.committable_versions
        if state["version"] in versions:
            try:
                found[name] = read_version(state["data"], state["version"], reader(connector, state["role"]), "it")
            except StatetoolError:
                continue
    return found


@pytest.mark.parametrize("state", [*of("writer"), *of("committable")])
def test_only_its_connector_reads_it(state: dict[str, Any]) -> None:
    found = readings(state)
    if state["connector"]:
        assert " or ".join(found) == state["connector"]
    for value in found.values():
        if isinstance(value, tuple):
            plain = as_plain([request.fields for request in value])
        else:
            plain = as_plain(value)
        if state["connector"] == "starrocks-sink" and state["role"] == "writer":
            plain = plain["label_generators"]
        assert plain == json.loads(json.dumps(state["expected"]))


@pytest.mark.parametrize("state", of("transaction"))
def test_loads_of_the_function_of_starrocks(state: dict[str, Any]) -> None:
    fields, loads = read_transactions(state["data"])
    expected = [(int(key), load) for key, of_key in state["expected"]["data"].items() for load in of_key]
    assert [(checkpoint, as_plain(load)) for checkpoint, load in loads] == expected
    assert fields == {"connector_version": "1.2.10", "label_generators": state["expected"]["labels"]}


@pytest.mark.parametrize("state", [*of("writer"), *of("committable")])
def test_no_truncation_is_read_as_a_whole_state(state: dict[str, Any]) -> None:
    names = {state["connector"]} if state["connector"] in SINKS else {"kinesis-streams-sink", "sqs-sink"}
    # JDBC writes its whole buffer: zeros follow.
    is_padded = state["connector"] == "jdbc-sink"
    data = state["data"].rstrip(b"\0") if is_padded else state["data"]
    for end in range(len(data)):
        assert not names & set(readings({**state, "data": data[:end]})), end
    assert not names & set(readings({**state, "data": state["data"] + (b"\1" if is_padded else data[:1])}))


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(data: st.DataObject) -> None:
    state = data.draw(st.sampled_from(STATES))
    changed = bytearray(state["data"])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    if state["role"] == "transaction":
        try:
            read_transactions(bytes(changed))
        except FormatError:
            pass
    else:
        readings({**state, "data": bytes(changed)})


def test_versions_that_are_not_known_stay_bytes() -> None:
    for connector in ("sqs-sink", "doris-sink", "starrocks-sink"):
        known = SINKS[connector]
        assert not {0, 3, 4} & (known.writer_versions | known.committable_versions)


def writer_of(connector: str) -> dict[str, Any]:
    return next(s for s in STATES if s["role"] == "writer" and s["connector"] == connector)


def test_buffered_requests_are_pending_and_can_be_dropped(tmp_path: Path) -> None:
    state = writer_of("http-sink")
    element = write_versioned(1, state["data"])
    path = write_sink(tmp_path / "s", WRITER_STATE, element, element)
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"], sink["open"]) == ("http-sink", "writer", 8, 0)
    assert json.loads(sink["writers"])[0]["buffered_requests"] == 4
    pending = run("sinks", "pending", path)
    assert {(p["status"], p["verdict"], p["is_decoded"]) for p in pending} == {("buffered", "will_send", True)}
    assert [json.loads(p["details"]) for p in pending] == state["expected"] * 2
    dropped = ["buffered-1", "buffered-4", "buffered-7"]
    lose = [word for name in dropped for word in ("--lose", name)]
    lost = run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", *lose)
    assert [r["name"] for r in lost] == dropped
    left = run("sinks", "pending", tmp_path / "t")
    expected = [e for n, e in enumerate(state["expected"] * 2) if f"buffered-{n}" not in dropped]
    assert [json.loads(p["details"]) for p in left] == expected


def test_requests_of_kinesis_or_sqs_are_shown_and_not_dropped(tmp_path: Path) -> None:
    state = writer_of("kinesis-streams-sink or sqs-sink")
    path = write_sink(tmp_path / "s", WRITER_STATE, write_versioned(1, state["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["pending"]) == ("unknown", 3)
    assert sink["note"] == "could be of kinesis-streams-sink or sqs-sink"
    assert [json.loads(p["details"]) for p in run("sinks", "pending", path)] == state["expected"]
    with pytest.raises(UnsupportedError, match="could be of kinesis-streams-sink or sqs-sink"):
        statetool.forget_transactions(str(path), str(tmp_path / "t"), "sink", ["buffered-0"], uids=["sink"])


def test_rows_of_clickhouse_can_be_dropped(tmp_path: Path) -> None:
    state = next(s for s in STATES if s["connector"] == "clickhouse-sink" and s["version"] == 2)
    path = write_sink(tmp_path / "s", WRITER_STATE, write_versioned(2, state["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["pending"], sink["open"]) == ("clickhouse-sink", 3, 0)
    pending = run("sinks", "pending", path)
    assert [json.loads(p["details"]) for p in pending] == json.loads(json.dumps(state["expected"]))
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", "buffered-0")
    left = run("sinks", "pending", tmp_path / "t")
    assert [json.loads(p["details"]) for p in left] == state["expected"][1:]
    newer = write_sink(tmp_path / "newer", WRITER_STATE, write_versioned(3, state["data"]))
    (unknown,) = run("sinks", "list", newer)
    assert (unknown["connector"], unknown["undecoded"]) == ("unknown", 1)


@pytest.mark.parametrize("release", ["3.1.0", "4.0.0"])
def test_operations_of_elasticsearch_can_be_dropped(release: str, tmp_path: Path) -> None:
    (state,) = (s for s in STATES if s["connector"] == "elasticsearch8-sink" and s["release"].startswith(release))
    path = write_sink(tmp_path / "s", WRITER_STATE, write_versioned(1, state["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["pending"], sink["undecoded"]) == ("elasticsearch8-sink", 5, 0)
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", "buffered-0", "--lose", "buffered-3")
    left = [json.loads(p["details"]) for p in run("sinks", "pending", tmp_path / "t")]
    assert left == [e for n, e in enumerate(state["expected"]) if n not in (0, 3)]
    assert [e["operation"] for e in left] == ["IndexOperation", "CreateOperation", "DeleteOperation"]


def test_messages_of_rocketmq_are_pending_and_can_be_forgotten(tmp_path: Path) -> None:
    states = [s for s in STATES if s["connector"] == "rocketmq-sink"]
    first, second = (s["data"] for s in states[:2])
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(first, second))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"], sink["undecoded"]) == ("rocketmq-sink", "committer", 2, 0)
    old, new = run("sinks", "pending", path, "--timeout", "1h")
    assert (old["name"], old["verdict"]) == (states[0]["expected"]["transaction_id"], "may_expire")
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", old["name"])
    assert [p["name"] for p in run("sinks", "pending", tmp_path / "t")] == [new["name"]]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (packed(b"\x13"), "type 19 of a value of ClickHouse is not known"),
        (packed(b"\x08", (4, 0)), "a number without bytes"),
        (packed(b"\x0e", (8, 0), (4, 1_000_000_000)), "1000000000 ns are not a part of a second"),
        (packed(*[packed(b"\x10", (4, 1))] * 40, b"\0"), "values are nested deeper than 32"),
    ],
)
def test_other_values_are_not_those_of_clickhouse(cell: bytes, message: str) -> None:
    data = packed((8, -1), (4, 1), (8, 5), (4, 2), (4, 1), b"\0\1a", cell)
    with pytest.raises(FormatError, match=message):
        read_version(data, 2, SINKS["clickhouse-sink"].read_writer, "it")


def test_files_of_delta_are_pending(tmp_path: Path) -> None:
    parted, _ = DELTA_FILES
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(parted["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"]) == ("delta-sink", "committer", 1)
    (file,) = run("sinks", "pending", path)
    assert (file["name"], json.loads(file["details"])) == ("part-0.snappy.parquet", parted["expected"])
    # A savepoint of version 1 has the same bytes.
    bucket = next(s for s in STATES if s["connector"] == "delta-sink" and s["role"] == "writer")
    for version in (1, 2):
        assert readings({**bucket, "version": version}).keys() == {"delta-sink"}


DELTA_FILES = [s for s in STATES if s["connector"] == "delta-sink" and s["role"] == "committable"]
PARTED, PLAIN = (s["data"] for s in DELTA_FILES)
#: Another file, of the same length.
OTHER = PLAIN.replace(b"part-0.snappy", b"part-1.snappy")
MAGIC = bytes.fromhex("1e765c80")


def delta_globals(*files: bytes) -> bytes:
    """Return the bytes of a global committable of Delta."""
    return packed(MAGIC, (4, len(files)), *(f[4:] for f in files))


def of_1_14(*committables: bytes) -> bytes:
    items = [framed(c) for c in committables]
    return write_versioned(1, packed(bytes.fromhex("b91f252c"), (4, 1), (4, len(items)), *items))


@pytest.mark.parametrize(
    ("state", "checkpoints"),
    [
        (global_committer(PLAIN, OTHER), [7, 7]),
        (global_committer(PLAIN, OTHER, restored=(1, [])), [7, 7]),
        (global_committer(OTHER, restored=(1, [delta_globals(PLAIN)])), [None, 7]),
        (of_1_14(delta_globals(PLAIN), delta_globals(OTHER)), [None, None]),
        (of_1_14(delta_globals(PLAIN, OTHER)), [None, None]),
    ],
    ids=["two", "two after a restore", "restored and new", "two by 1.14", "two together by 1.14"],
)
def test_files_of_the_global_committer_of_delta(tmp_path: Path, state: bytes, checkpoints: list[int | None]) -> None:
    path = write_sink(tmp_path / "s", COMMITTER_STATE, state)
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"], sink["undecoded"]) == (
        "delta-sink", "global-committer", 2, 0,
    )  # fmt: skip
    files = run("sinks", "pending", path)
    assert [(f["name"], f["status"], f["checkpoint_id"], f["verdict"]) for f in files] == [
        (f"part-{i}.snappy.parquet", "received", checkpoint, "will_commit") for i, checkpoint in enumerate(checkpoints)
    ]
    assert json.loads(files[0]["details"]) == DELTA_FILES[1]["expected"]
    (part,) = sinks_in(statetool.load(str(path), uids=["sink"])["sink"].inventory)
    same = without_committables(part, frozenset())[COMMITTER_STATE][0]
    assert same == tuple(e.data for e in part.data.elements(COMMITTER_STATE))
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", "part-0.snappy.parquet")
    (left,) = run("sinks", "pending", tmp_path / "t")
    assert (left["name"], left["checkpoint_id"]) == ("part-1.snappy.parquet", checkpoints[1])
    run("sinks", "forget", tmp_path / "t", tmp_path / "u", "--uid", "sink", "--lose", "part-1.snappy.parquet")
    assert run("sinks", "pending", tmp_path / "u") == []


def test_global_committables_of_the_serializer_of_delta(tmp_path: Path) -> None:
    (state,) = (s for s in written_states() if s["role"] == "global")
    sink = SINKS[state["connector"]]
    files = read_version(state["data"], state["version"], sink.split_global, "it")
    assert files == (PARTED, PLAIN)
    assert sink.join_global(state["version"], files) == state["data"] == delta_globals(PARTED, PLAIN)
    path = write_sink(tmp_path / "s", COMMITTER_STATE, of_1_14(state["data"]))
    assert [json.loads(f["details"]) for f in run("sinks", "pending", path)] == state["expected"]


def test_global_committables_of_other_sinks_stay_bytes(tmp_path: Path) -> None:
    state = global_committer(
        *(s["data"] for s in STATES if s["connector"] == "doris-sink" and s["role"] == "committable"),
        restored=(3, [b"files"]),
    )
    path = write_sink(tmp_path / "s", COMMITTER_STATE, state)
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["undecoded"]) == ("doris-sink", "global-committer", 1)
    rows = run("sinks", "pending", path, code=1)
    assert [r["verdict"] for r in rows if not r["is_decoded"]] == ["unknown"]
    decoded = next(r["name"] for r in rows if r["is_decoded"])
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", decoded)
    left = run("sinks", "pending", tmp_path / "t", code=1)
    assert [r["name"] for r in left] == [r["name"] for r in rows if r["name"] != decoded]


def test_a_global_committer_without_files_has_the_connector_of_its_writer(tmp_path: Path) -> None:
    writer = next(s["data"] for s in STATES if s["connector"] == "delta-sink" and s["role"] == "writer")
    states = {
        "out": (WRITER_STATE, write_versioned(1, writer)),
        "Sink out Global Committer": (COMMITTER_STATE, global_committer()),
    }
    base = statetool.SavepointWriter.new()
    for uid, (name, element) in states.items():
        base = base.with_operator(
            uid, statetool.bootstrap_list_state(name, pa.table({"value": [element]}), type="BINARY"), parallelism=1
        )
    path = base.write(str(tmp_path / "s")).path
    found = {s.role: (s.connector, s.pending) for s in statetool.load(path, uids=["out"]).connector_rows("sinks")}
    assert found == {"writer": ("delta-sink", 0), "global-committer": ("delta-sink", 0)}


def test_a_committable_of_delta_names_its_application() -> None:
    data = packed(MAGIC, "") + PLAIN[4 + 38 :]
    with pytest.raises(FormatError, match="expected the id of an application"):
        read_version(data, 1, SINKS["delta-sink"].read_committable, "it")


def test_actions_of_delta_are_pending_and_can_be_forgotten(tmp_path: Path) -> None:
    states = [s for s in STATES if s["connector"] == "delta-kernel-sink"]
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(states[1]["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"]) == ("delta-kernel-sink", "committer", 1)
    (commit,) = run("sinks", "pending", path)
    assert (commit["name"], json.loads(commit["details"])) == ("c3d4/12", states[1]["expected"])
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", "c3d4/12")
    assert run("sinks", "pending", tmp_path / "t") == []


def test_an_empty_buffer_has_nothing_pending(tmp_path: Path) -> None:
    path = write_sink(tmp_path / "s", WRITER_STATE, write_versioned(1, writer_of("")["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["pending"], sink["undecoded"]) == (0, 0)
    assert run("sinks", "pending", path) == []


def test_transactions_of_doris_have_commands_and_can_be_forgotten(tmp_path: Path) -> None:
    first, second = (s["data"] for s in STATES if s["connector"] == "doris-sink" and s["role"] == "committable")
    other = packed("10.0.0.2:8040", "shop", (8, 5))
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(first, other))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"], sink["oldest_checkpoint"]) == (
        "doris-sink",
        "committer",
        2,
        7,
    )
    (old, new) = run("sinks", "pending", path, "--timeout", "1h")
    assert (old["name"], old["verdict"], old["age_from"]) == ("shop/123456789012", "may_expire", "snapshot")
    assert old["commands"].split("\n")[0] == (
        "curl -X PUT --location-trusted -u USER:PASSWORD -H txn_id:123456789012 -H txn_operation:commit"
        " http://10.0.0.1:8040/api/shop/_stream_load_2pc"
    )
    printed = CliRunner().invoke(cli, ["sinks", "pending", str(path), "--commands"])
    assert "txn_operation:abort" in printed.stdout
    assert "Kafka" not in printed.stderr
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", old["name"])
    assert [p["name"] for p in run("sinks", "pending", tmp_path / "t")] == [new["name"]] == ["shop/5"]
    assert second != first


def test_loads_of_starrocks_have_their_age(tmp_path: Path) -> None:
    first, second = (s["data"] for s in STATES if s["connector"] == "starrocks-sink" and s["role"] == "committable")
    path = write_sink(tmp_path / "s", COMMITTER_STATE, committer(first, second))
    load, nothing = run("sinks", "pending", path, "--timeout", "1h", code=1)
    assert load["name"] == 'label-orders, label-Größe "x", {7:'
    assert (load["age_from"], load["verdict"], load["checkpoint_id"]) == ("start", "has_expired", 7)
    assert (nothing["name"], nothing["verdict"]) == ("(nothing) 2", "will_commit")
    run("sinks", "forget", path, tmp_path / "t", "--uid", "sink", "--lose", load["name"])
    assert [p["name"] for p in run("sinks", "pending", tmp_path / "t")] == ["(nothing) 2"]


def test_the_function_of_starrocks_stores_its_loads_by_checkpoint(tmp_path: Path) -> None:
    state = next(s for s in STATES if s["role"] == "transaction")
    path = write_sink(tmp_path / "s", "starrocks-sink-transaction", write_versioned(1, state["data"]))
    (sink,) = run("sinks", "list", path)
    assert (sink["connector"], sink["role"], sink["pending"], sink["oldest_checkpoint"]) == (
        "starrocks-sink-function", "sink", 3, 6,
    )  # fmt: skip
    pending = run("sinks", "pending", path, "--timeout", "100000d")  # they began in 2026
    assert [(p["name"], p["checkpoint_id"], p["age_from"]) for p in pending] == [
        ("label-orders", 6, "start"),
        ("label-lines", 6, "start"),
        ("(nothing) 3", 7, "start"),
    ]
    newer = write_sink(tmp_path / "newer", "starrocks-sink-transaction", write_versioned(2, b"{}"))
    (unread,) = run("sinks", "pending", newer, code=1)
    assert (unread["verdict"], unread["is_decoded"]) == ("unknown", False)


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"{",
        b"\xff",
        b"{}",
        b'{"data":[]}',
        b'{"data":{x:[]}}',
        b'{"data":{"x":[]}}',
        b'{"data":{1:[3]}}',
        b"[" * 9000,
    ],
)
def test_other_json_is_not_the_state_of_starrocks(raw: bytes) -> None:
    with pytest.raises(FormatError):
        read_transactions(raw)


@pytest.mark.full
@pytest.mark.usefixtures("connectors_by_maven")
@pytest.mark.parametrize("folder", PROGRAMS)
def test_the_connectors_write_what_is_packed(folder: str) -> None:
    packed_states = [{**s, "data": s["data"].hex()} for s in written_states()]
    for line in run_program(folder):
        assert json.loads(line) in packed_states
