"""Damaged bytes of connectors raise a ``StatetoolError`` or are not recognized: nothing else escapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statetool
from statetool.connectors import registry
from statetool.connectors.checks import check_source
from statetool.connectors.layouts.collector import read_collector
from statetool.connectors.model import SourceBytes
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE, sink_of
from statetool.connectors.sources import source_of
from statetool.connectors.wire import read_version, whole_versioned
from statetool.errors import FormatError, StatetoolError
from tests.support.snapshots import build, canonical


@pytest.fixture(scope="module")
def states(connector_cases: Path) -> list[tuple[Any, int, bytes]]:
    """Return the readers of splits, enumerators, writers and committables, with version and bytes of each."""
    readers: list[tuple[Any, int, bytes]] = []
    for path in sorted(connector_cases.glob("v2_3_0-*/snapshot")):
        for operator in statetool.load(str(path)).operators.values():
            source, sink = source_of(operator.inventory), sink_of(operator.inventory)
            if source is not None and source.given is not None and source.connector is not None:
                connector: Any = source.connector
                readers += ((connector.read_split, h.version, h.data) for h in source.given.held)
                assert source.given.enumerator is not None
                assert source.given.enumerator_version is not None
                readers.append((connector.read_enumerator, source.given.enumerator_version, source.given.enumerator))
            if sink is not None and sink.connector is not None and sink.state.role in ("writer", "committer"):
                state = WRITER_STATE if sink.state.role == "writer" else COMMITTER_STATE
                for _, value in sink.data.values(state):
                    version, raw = whole_versioned(value, "an element")
                    writer: Any = sink.connector
                    reader = writer.read_writer if state == WRITER_STATE else _collected
                    readers.append((reader, version, raw))
    assert len(readers) > 60
    return readers


def _collected(version: int, c: Any) -> Any:
    return read_collector(c.take(c.left))


def test_every_truncation_is_refused(states: list[tuple[Any, int, bytes]]) -> None:
    for read, version, data in states:
        for end in {*range(0, len(data), max(1, len(data) // 40))}:
            with pytest.raises(StatetoolError):
                read_version(data[:end], version, read, "bytes")


@settings(max_examples=300)
@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(states: list[tuple[Any, int, bytes]], data: st.DataObject) -> None:
    read, version, raw = data.draw(st.sampled_from(states))
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_version(bytes(changed), version, read, "bytes")
    except StatetoolError:
        pass


@settings(max_examples=200)
@given(st.integers(0, 9), st.integers(0, 9), st.binary(max_size=64))
def test_bytes_of_nobody_are_recognised_by_nobody_or_read_to_their_end(split: int, version: int, raw: bytes) -> None:
    for connector, state in registry.recognise(SourceBytes(held=(), enumerator_version=version, enumerator=raw)):
        assert version in connector.enumerator_versions
        assert state.enumerator is not None


@pytest.mark.parametrize(
    "state", ["SourceReaderState", "topic-partition-offset-states", "Kinesis-Stream-Shard-State", WRITER_STATE]
)
def test_a_state_of_the_users_that_is_called_as_those_of_a_connector_is_refused(tmp_path: Path, state: str) -> None:
    element = canonical.encoded(canonical.serializer(build.LONG), 7)
    states = {state: canonical.ListState(value=build.LONG, elements=[[element]])}
    canonical.savepoint(tmp_path, [canonical.Subtask(key=build.STRING, states=[])], operator_states=states)
    sp = statetool.load(str(tmp_path), uids=["op"])
    with pytest.raises(FormatError, match=r"operator state does not have the layout of .+"):
        sp.connector_rows("sinks" if state == WRITER_STATE else "sources")


def test_a_damaged_number_of_a_partition_is_a_gap_at_once(connector_cases: Path) -> None:
    (kafka,) = (
        source
        for operator in statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot")).operators.values()
        if (source := source_of(operator.inventory)) is not None
    )
    first, *others = kafka.state.held
    far = replace(first, split=replace(first.split, partition=(1 << 31) - 1))
    damaged = replace(kafka, state=replace(kafka.state, held=(far, *others)))
    (gap,) = (c for c in check_source(damaged) if c.check == "partition_missing")
    assert gap.message.endswith(", ...")


def test_an_offset_of_another_type_is_refused_before_it_is_shown(tmp_path: Path) -> None:
    kind = build.tuple_of(build.tuple_of(build.STRING, build.INT, build.INT), build.STRING)
    element = canonical.encoded(canonical.serializer(kind), (("topic", 0, 0), "soon"))
    states = {"topic-partition-offset-states": canonical.ListState(value=kind, elements=[[element]])}
    canonical.savepoint(tmp_path, [canonical.Subtask(key=build.STRING, states=[])], operator_states=states)
    with pytest.raises(FormatError, match="does not have the layout of flink-kafka-consumer"):
        statetool.load(str(tmp_path), uids=["op"]).connector_rows("source_splits")
