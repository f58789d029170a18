"""Messages that Pub/Sub's source has received and not acknowledged, in a savepoint of Flink 1.20.5 (``PubSubJob``)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.connectors.layouts.pubsub import read_acknowledge_ids
from statetool.errors import FormatError, StatetoolError
from tests.support.connectors.commands import run
from tests.support.corpora.archives import unpack
from tests.support.flink.built_job import PACKED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("built")) / "pubsub"


@pytest.fixture(scope="module")
def elements(folder: Path) -> list[bytes]:
    rows = statetool.load(str(folder), uids=["pubsub"])["pubsub"].to_arrow("_default_").to_pylist()
    return [row["value"] for row in rows]


def test_the_messages_are_those_of_the_job(folder: Path) -> None:
    (source,) = run("sources", "list", folder, "--uid", "pubsub")
    assert (source["connector"], source["held"], source["problems"]) == ("pubsub-source", 2, 0)
    rows = statetool.load(str(folder), uids=["pubsub"]).connector_rows("source_splits")
    assert [r.split_id for r in rows] == ["messages-0", "messages-1"]
    by_checkpoint = [json.loads(r.details)["message_ids"] for r in rows]
    assert [list(ids) for ids in by_checkpoint] == [["1"], ["1"]]
    found = [i for ids in by_checkpoint for i in ids["1"]]
    assert sorted(found) == json.loads((folder / "values.json").read_text("utf-8"))
    assert {f"{len(ids['1'])} unacknowledged message{'s' * (len(ids['1']) > 1)}" for ids in by_checkpoint} == {
        r.position for r in rows
    }


def test_a_checkpoint_without_messages_has_no_ids(elements: list[bytes]) -> None:
    head = elements[0][: elements[0].index(b"w\x04") - 4]
    empty = read_acknowledge_ids(head + b"\0\0\0\0w\x04\0\0\0\0x")
    assert (empty.messages, empty.message_ids) == (0, {1: ()})


@pytest.mark.parametrize("other", [b"\xac\xed\0\5t\0\1a", b"\xac\xed\0\5p"])
def test_other_objects_are_refused(other: bytes, elements: list[bytes]) -> None:
    with pytest.raises(FormatError, match="AcknowledgeIdsForCheckpoint with texts"):
        read_acknowledge_ids(other)
    with pytest.raises(FormatError, match="AcknowledgeIdsForCheckpoint with texts"):
        read_acknowledge_ids(elements[0].replace(b"checkpointId", b"checkpointIx"))


def test_states_of_other_functions_are_no_sources(tmp_path: Path) -> None:
    state = statetool.bootstrap_list_state("_default_", pa.table({"value": pa.array([b"1"])}), type="BINARY")
    writer = statetool.SavepointWriter.new().with_operator("function", state, parallelism=1)
    assert list(writer.write(str(tmp_path / "s")).connector_rows("sources")) == []


def test_no_truncation_is_read(elements: list[bytes]) -> None:
    for element in elements:
        for end in range(len(element)):
            with pytest.raises(StatetoolError):
                read_acknowledge_ids(element[:end])
        with pytest.raises(StatetoolError):
            read_acknowledge_ids(element + b"\0")


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(elements: list[bytes], data: st.DataObject) -> None:
    changed = bytearray(elements[0])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_acknowledge_ids(bytes(changed))
    except StatetoolError:
        pass
