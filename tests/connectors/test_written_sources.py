"""States of sources written by the connectors' own serializers are recognised, and have the contents that the writing program names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.connectors import registry
from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import HeldSplit, SourceBytes, as_plain
from statetool.connectors.sources import READER_STATE
from statetool.connectors.wire import read_version, write_versioned
from statetool.errors import FormatError, StatetoolError
from tests.support.connectors.written import written_states

STATES = [s for s in written_states() if s["role"] in ("split", "enumerator")]
SPLITS = [s for s in STATES if s["role"] == "split"]
ENUMERATORS = [s for s in STATES if s["role"] == "enumerator"]
#: Connectors and releases with the same layout of chunks, which only the enumerator distinguishes.
SAME_CHUNKS = {("mysql-cdc-source", "2.1.1"), ("incremental-cdc-source", "2.3.0")}


def identify(state: dict[str, Any]) -> str:
    return f"{state['connector']}-{state['release']}-{state['role']}-{len(state['data'])}"


def read(state: dict[str, Any], data: bytes) -> Any:
    connector = registry.split_connector(state["connector"])
    reader = connector.read_split if state["role"] == "split" else connector.read_enumerator
    return read_version(data, state["version"], reader, "it")


def shown(connector: SplitConnector, split: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {**as_plain(connector.place(split)), **as_plain(split), "split_id": split.split_id}
    return fields


def recognised(state: dict[str, Any]) -> tuple[SplitConnector, Any]:
    """Return the one connector that reads a source with this state alone, or with the enumerator of its release."""
    is_split = state["role"] == "split"
    held = (HeldSplit(subtask=0, version=state["version"], data=state["data"]),) if is_split else ()
    enumerator = None if is_split else state
    if is_split and (state["connector"], state["release"]) in SAME_CHUNKS:
        assert {c.name for c, _ in registry.recognise(SourceBytes(held=held))} >= {state["connector"]}
        enumerator = next(e for e in ENUMERATORS if all(e[n] == state[n] for n in ("connector", "release")))
    more = {} if enumerator is None else {"enumerator_version": enumerator["version"], "enumerator": enumerator["data"]}
    ((connector, found),) = registry.recognise(SourceBytes(held=held, **more))
    return connector, found


@pytest.mark.parametrize("state", SPLITS, ids=identify)
def test_a_split_is_recognised_and_has_its_contents(state: dict[str, Any]) -> None:
    connector, found = recognised(state)
    assert connector.name == state["connector"]
    fields = shown(connector, found.held[0].split)
    if connector.name == "dynamodb-streams-source" and fields["position"] is not None:
        fields["position"] = fields["position"].removeprefix("after=")
    assert {name: fields.get(name) for name in state["expected"]} == state["expected"]


@pytest.mark.parametrize("state", ENUMERATORS, ids=identify)
def test_an_enumerator_has_its_contents(state: dict[str, Any]) -> None:
    enumerator = read(state, state["data"])
    fields = as_plain(enumerator.facts)
    fields["splits"] = [[k.split.split_id, k.status] for k in enumerator.splits]
    fields["statuses"] = [k.status for k in enumerator.splits]
    assert {name: fields.get(name) for name in state["expected"]} == state["expected"]
    if enumerator.splits:
        assert recognised(state)[0].name == state["connector"]


@pytest.mark.parametrize("state", STATES, ids=identify)
def test_no_truncation_is_read_as_a_whole_state(state: dict[str, Any]) -> None:
    data = state["data"]
    ends = set(range(0, len(data), max(1, len(data) // 150)))
    if "is_increase" in state["expected"]:
        # Without its last byte, the split of RocketMQ is one of the release before.
        ends.discard(len(data) - 1)
    for end in ends:
        with pytest.raises(StatetoolError):
            read(state, data[:end])
    # One byte more makes the stream split of MySQL CDC 2.2.0 one of 2.2.1.
    with pytest.raises(StatetoolError):
        read(state, data + b"\0\0")


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(data: st.DataObject) -> None:
    state = data.draw(st.sampled_from(STATES))
    changed = bytearray(state["data"])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(state, bytes(changed))
    except StatetoolError:
        pass


OFFSETS = [s for s in written_states() if s["role"] == "element"]


@pytest.mark.parametrize("version", [1, 9])
@pytest.mark.parametrize("state", [s for s in SPLITS if s["connector"] == "paimon-source"], ids=identify)
def test_other_versions_of_paimons_splits_are_refused_by_name(state: dict[str, Any], version: int) -> None:
    magic = (-2394839472490812314).to_bytes(8, "big", signed=True)
    at = state["data"].index(magic) + len(magic)
    changed = state["data"][:at] + version.to_bytes(4, "big") + state["data"][at + 4 :]
    with pytest.raises(FormatError, match=f"version {version} of a split of a table of Paimon is not supported"):
        read(state, changed)


def debezium(folder: Path, *offsets: bytes) -> statetool.Savepoint:
    values = pa.table({"value": pa.array(offsets, pa.binary())})
    history = pa.table({"value": ["engine", "{}"]})
    states = [
        statetool.bootstrap_union_state("offset-states", values, type="BINARY"),
        statetool.bootstrap_union_state("history-records-states", history, type="STRING"),
    ]
    return statetool.SavepointWriter.new().with_operator("cdc", *states, parallelism=1).write(str(folder))


def test_offsets_of_debezium(tmp_path: Path) -> None:
    savepoint = debezium(tmp_path / "s", *(s["data"] for s in OFFSETS))
    rows = savepoint.connector_rows("source_splits")
    assert {r.connector for r in savepoint.connector_rows("sources")} == {"debezium-source-function"}
    for row, state in zip(rows, OFFSETS, strict=True):
        assert {name: getattr(row, name) for name in state["expected"]} == state["expected"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"sourcePartition":{},"sourceOffset":1}', b"\xff"])
def test_other_bytes_are_not_offsets_of_debezium(raw: bytes, tmp_path: Path) -> None:
    savepoint = debezium(tmp_path / "s", raw)
    with pytest.raises(FormatError, match="an offset of Debezium"):
        savepoint.connector_rows("source_splits")


@pytest.mark.parametrize("name", ["rocketmq-source", "fluss-source"])
def test_lag_of_sources_whose_positions_are_offsets(name: str, tmp_path: Path) -> None:
    state = next(s for s in SPLITS if s["connector"] == name and (s["expected"]["position"] or "").isdigit())
    values = pa.table({"value": [write_versioned(state["version"], state["data"])]})
    reader = statetool.bootstrap_list_state(READER_STATE, values, type="BINARY")
    written = statetool.SavepointWriter.new().with_operator("source", reader, parallelism=1).write(str(tmp_path / "s"))
    (row,) = written["source"].source_splits().to_pylist()
    (lag,) = written["source"].lag({row["split_id"]: int(row["position"]) + 5}).to_pylist()
    assert (row["connector"], row["position"], lag["lag"]) == (name, state["expected"]["position"], 5)


def test_splits_and_positions_of_these_sources_are_only_shown() -> None:
    for name in ("mongodb-source", "pulsar-source", "dynamodb-streams-source", "rocketmq-source", "fluss-source"):
        connector = registry.split_connector(name)
        state = next(s for s in SPLITS if s["connector"] == name)
        with pytest.raises(StatetoolError, match="cannot be changed"):
            connector.at(read(state, state["data"]), "0")
