"""Messages that RabbitMQ's source has received and not acknowledged, in a savepoint of Flink 1.20.5 (``RabbitJob``)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.connectors.layouts.rabbitmq import read_messages
from statetool.errors import FormatError, StatetoolError
from tests.support.corpora.archives import unpack
from tests.support.flink.library_job import PACKED

STATE = "message-acknowledging-source-state"


@pytest.fixture(scope="module")
def element(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the element that the job has written."""
    folder = unpack(PACKED, tmp_path_factory.mktemp("libraries")) / "rabbitmq"
    (row,) = statetool.load(str(folder), uids=["rabbit"])["rabbit"].to_arrow(STATE).to_pylist()
    return bytes(row["value"])


def savepoint(folder: Path, *elements: bytes) -> statetool.Savepoint:
    values = pa.table({"value": pa.array(elements, pa.binary())})
    state = statetool.bootstrap_list_state(STATE, values, type="BINARY")
    return statetool.SavepointWriter.new().with_operator("rabbit", state, parallelism=1).write(str(folder))


def test_the_messages_are_those_of_the_job(element: bytes, tmp_path: Path) -> None:
    rows = savepoint(tmp_path / "s", element, element).connector_rows("source_splits")
    assert [(r.connector, r.split_id, r.position) for r in rows] == [
        ("rabbitmq-source", f"messages-{n}", "5 unacknowledged messages") for n in range(2)
    ]
    (ids,) = json.loads(rows[0].details)["message_ids"].values()
    assert sorted(ids) == [f"order-{n}" for n in range(5)]
    checks = savepoint(tmp_path / "t", element, element).connector_rows("source_checks")
    assert not any(c.is_problem for c in checks)


def test_ids_of_another_type_stay_bytes(element: bytes) -> None:
    changed = element.replace(b"\x08order-3", b"\x00\x00\x00\x00\x00\x00\x00\x00")
    (raw,) = read_messages(changed).message_ids.values()
    assert isinstance(raw, bytes)
    assert raw.endswith(b"\x08order-2")


@pytest.mark.parametrize("other", [b"\xac\xed\0\5t\0\1a", b"\xac\xed\0\5p"])
def test_other_objects_are_refused(other: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="has other objects than checkpoints"):
        savepoint(tmp_path / "s", other).connector_rows("source_splits")


def test_no_truncation_is_read(element: bytes) -> None:
    for end in range(len(element)):
        with pytest.raises(StatetoolError):
            read_messages(element[:end])
    with pytest.raises(StatetoolError):
        read_messages(element + b"\0")


@given(st.data())
def test_nothing_else_escapes_from_changed_bytes(element: bytes, data: st.DataObject) -> None:
    changed = bytearray(element)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_messages(bytes(changed))
    except StatetoolError:
        pass
