"""Edits of sources and sinks in real Flink: sources resume at the edited offset, and a sink commits exactly the remaining transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.connectors.layouts.files import PATHS, FilePath, FileSource, FileSplit
from statetool.connectors.model import Enumerator, KnownSplit
from statetool.connectors.sources import READER_STATE, coordinator_bytes
from statetool.connectors.wire import write_versioned
from statetool.errors import UnsupportedError
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.local import LocalRunner
from statetool.saving.versions import parse_release
from tests.support.flink import in_flight_cases
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def connected(flink: FlinkMachine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink with the jobs of this folder."""
    machine = FlinkMachine(
        flink.version, tmp_path_factory.mktemp(f"connected-{flink.version}"), in_flight_cases.SOURCES
    )
    yield machine
    machine.close()


def read(flink: FlinkMachine, source: str, uid: str, snapshot: Path, **more: Any) -> list[str]:
    answer = flink.call("class", **{"class": "ConnectorJob"}, source=source, uid=uid, snapshot=str(snapshot), **more)
    return sorted(answer["records"])


def case(flink: FlinkMachine, cases: Path, name: str, uid: str) -> statetool.Savepoint:
    """Return the savepoint of a case written by this release, with the uid of its source."""
    savepoint = statetool.load(str(cases / f"v{flink.version.replace('.', '_')}-{name}" / "snapshot"))
    return savepoint if uid in savepoint else savepoint.with_uids([uid])


def test_numbers_go_on_from_where_they_are_set(connected: FlinkMachine, connector_cases: Path, tmp_path: Path) -> None:
    base = case(connected, connector_cases, "data-generator", "generated")
    statetool.edit_source(
        base, str(tmp_path / "new"), "generated", positions={"1": 400}, remove=["2"], add={"3": "990..999"}
    )
    found = read(connected, "numbers", "generated", tmp_path / "new", last=999)
    assert found == sorted(map(str, [*range(400, 500), *range(990, 1000)]))


def test_a_hybrid_source_goes_on_in_its_second_one(
    connected: FlinkMachine, connector_cases: Path, tmp_path: Path
) -> None:
    base = case(connected, connector_cases, "hybrid-second", "hybrid")
    statetool.edit_source(base, str(tmp_path / "new"), "hybrid", positions={"2": 490, "1": 5})
    found = read(connected, "hybrid", "hybrid", tmp_path / "new", last=499, folder=str(tmp_path))
    assert found == sorted(map(str, [*range(490, 500), *range(5, 250)]))


def test_a_log_goes_on_from_its_offsets(connected: FlinkMachine, connector_cases: Path, tmp_path: Path) -> None:
    """The source is a test class with Kafka's state layout: offsets, words, and added and removed partitions are checked."""
    # The older release's savepoint has an enumerator of version 2, which an edit converts to the version that the source reads.
    base = case(connected, connector_cases, "kafka-source", "orders")
    splits = [f"{topic}-{n}" for topic in ("orders", "payments.eu-1") for n in range(5)]
    at: tuple[int | str, ...] = (10, "earliest", "committed", "latest", 17)
    statetool.edit_source(
        base,
        str(tmp_path / "new"),
        "orders",
        positions={
            **{f"orders:{n}": position for n, position in enumerate(at)},
            "payments.eu-1:0": 3,
            "payments.eu-1:1": 12,
            "payments.eu-1:4": "latest",
        },
        remove=["payments.eu-1-2", "payments.eu-1-3"],
        add={"orders:9": 18},
        upgrade_enumerator=True,
    )
    ends = dict.fromkeys([*splits, "orders-9"], 20)
    starts = {"orders-0": 10, "orders-1": 0, "orders-2": 5, "orders-4": 17, "orders-9": 18}
    starts |= {"payments.eu-1-0": 3, "payments.eu-1-1": 12}
    found = read(connected, "log", "orders", tmp_path / "new", ends=ends, parallelism=3)
    assert found == sorted(f"{split}@{n}" for split, start in starts.items() for n in range(start, 20))


def test_a_log_goes_on_from_where_the_legacy_consumer_was(
    connected: FlinkMachine, connector_cases: Path, tmp_path: Path
) -> None:
    base = statetool.load(str(connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot")).with_uids(["orders"])
    statetool.convert_consumer(base, str(tmp_path / "new"), "orders", enumerator_version=3)
    positions = {r.split_id: r.position or r.marker for r in base.connector_rows("source_splits")}
    starts = {
        n: {"earliest": 0, "committed": 5}.get(at) if not at.isdigit() else int(at) for n, at in positions.items()
    }
    ends = {n: 7 if start is None else start + 3 for n, start in starts.items()}
    found = read(connected, "log", "orders", tmp_path / "new", ends=ends, parallelism=3)
    expected = {n: range(start, start + 3) for n, start in starts.items() if start is not None}
    assert found == sorted(f"{split}@{n}" for split, numbers in expected.items() for n in numbers)


def test_the_legacy_consumer_is_given_what_the_source_had(
    connected: FlinkMachine, connector_cases: Path, tmp_path: Path
) -> None:
    """The class is a test class with the name and fields of the consumer; its state is written by Flink's types."""
    old = statetool.load(str(connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot")).with_uids(["orders"])
    statetool.convert_consumer(old, str(tmp_path / "source"), "orders")
    source = statetool.load(str(tmp_path / "source")).with_uids(["orders"])
    if not connected.version.startswith("1."):
        source = case(connected, connector_cases, "kafka-source", "orders")
        with pytest.raises(UnsupportedError, match="Flink 2 has no FlinkKafkaConsumer"):
            statetool.convert_source(source, str(tmp_path / "back"), "orders")
        return
    statetool.edit_source(source, str(tmp_path / "set"), "orders", positions={"orders:0": 0, "payments.eu-1:2": 77})
    set_back = statetool.load(str(tmp_path / "set")).with_uids(["orders"])
    statetool.convert_source(set_back, str(tmp_path / "back"), "orders")
    request = {"class": "ConsumerJob", "uid": "orders", "snapshot": str(tmp_path / "back")}
    found = connected.call("class", **request)["records"]
    held = {r.split_id: json.loads(r.details)["offset"] for r in old.connector_rows("source_splits")}
    held |= {"orders-0": -1, "payments.eu-1-2": 76}
    # Union state: both subtasks get all of it.
    assert sorted(found) == sorted([f"{split}@{offset}" for split, offset in held.items()] * 2)


def file_split(path: Path, name: str) -> FileSplit:
    size = path.stat().st_size
    return FileSplit(
        split_id=name,
        path=FilePath(scheme="file", user_info=None, host=None, port=-1, path=str(path), query=None, fragment=None),
        offset=0,
        length=size,
        file_modification_time=0,
        file_size=size,
        hosts=(),
        reader_position=None,
    )


def test_files_are_read_on_from_where_they_are_set(connected: FlinkMachine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    splits = []
    for name in ("a", "b", "c", "d"):
        path = tmp_path / "in" / name
        path.write_text("".join(f"{name}{n}\n" for n in range(20)))
        splits.append(file_split(path, name))
    files = FileSource()
    readers = pa.table({"value": [write_versioned(1, files.write_split(1, s)) for s in splits[:2]]})
    state = statetool.bootstrap_list_state(READER_STATE, readers, type="BINARY")
    base = statetool.SavepointWriter.new().with_operator("files", state, parallelism=2).write(str(tmp_path / "empty"))
    waiting = tuple(KnownSplit(split=s, status="unassigned") for s in splits[2:])
    enumerator = files.write_enumerator(1, Enumerator(splits=waiting, facts={PATHS: []}))
    wanted = Composition(
        base=base.inventory, changes={"files": OperatorChange(coordinator=coordinator_bytes(1, enumerator))}
    )
    write_composition(wanted, str(tmp_path / "base"), parse_release(None, default=base.metadata_version), LocalRunner())
    opened = statetool.load(str(tmp_path / "base")).with_uids(["files"])
    statetool.edit_source(opened, str(tmp_path / "new"), "files", positions={"a": "+15", "c": "+3"}, remove=["d"])
    found = read(connected, "files", "files", tmp_path / "new", folder=str(tmp_path / "in"))
    starts = {"a": 15, "b": 0, "c": 3}
    assert found == sorted(f"{name}{n}" for name, start in starts.items() for n in range(start, 20))


def test_attributes_of_records_in_flight_are_those_that_the_source_said(connected: FlinkMachine) -> None:
    assert in_flight_cases.found(in_flight_cases.checkpoint(connected)) == in_flight_cases.ELEMENTS


def test_a_sink_of_files_commits_exactly_what_it_did_not_forget(connected: FlinkMachine, tmp_path: Path) -> None:
    def write(**more: Any) -> dict[str, Any]:
        folder = str(tmp_path / "out")
        return connected.call("class", **{"class": "ConnectorJob"}, source="none", folder=folder, **more)

    taken = write(savepoint=str(tmp_path / "savepoints"), awaited=[])["savepoint"]
    committer = "Sink Committer: out"
    savepoint = statetool.load(taken)
    savepoint = savepoint if committer in savepoint else savepoint.with_uids([committer])
    rows = [r for r in savepoint.connector_rows("transactions") if r.operator == committer]
    assert len(rows) == 4
    for row in rows:
        # The job that continued after the savepoint has committed them. This simulates that it failed before.
        if Path(row.file).exists():
            Path(row.file).rename(row.temporary_file)
        assert Path(row.temporary_file).exists()
    lost, kept = rows[:2], rows[2:]
    statetool.forget_transactions(savepoint, str(tmp_path / "new"), committer, [r.name for r in lost])
    write(snapshot=str(tmp_path / "new"), awaited=[r.file for r in kept])
    assert [Path(r.file).exists() for r in rows] == [False, False, True, True]
    assert [Path(r.temporary_file).exists() for r in rows] == [True, True, False, False]
