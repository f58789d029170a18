"""Pulsar's layouts, composed from the connector's sources: no bytes of a job are available for comparison."""

from __future__ import annotations

import pytest

from statetool.connectors import registry
from statetool.connectors.layouts.pulsar import PulsarSink, PulsarSource, PulsarSplit
from statetool.connectors.model import HeldSplit, SourceBytes
from statetool.connectors.wire import read_version
from statetool.io.output import Output

TOPIC = "persistent://public/default/orders"
NO_CURSOR = bytes.fromhex("aced000570")


def partition(version: int) -> Output:
    out = Output()
    out.utf(TOPIC)
    out.i4(3)
    if version > 0:
        out.i4(1)
    out.i4(0)
    out.i4(65535)
    if version == 1:
        out.i4(2)
    return out


@pytest.mark.parametrize(("version", "enumerator"), [(0, None), (0, 1), (1, 2), (2, 3)])
def test_splits_and_enumerators_of_each_version(version: int, enumerator: int | None) -> None:
    split = partition(version)
    split.bytes4(NO_CURSOR)
    split.bool(True)
    # Ledger 300, entry 7, and no index in a batch (-1).
    split.bytes4(bytes.fromhex("08ac021007") + b"\x20" + b"\xff" * 9 + b"\x01")
    split.bool(False)
    state = (1).to_bytes(4, "big") + bytes(partition(version))
    held = (HeldSplit(subtask=0, version=version, data=bytes(split)),)
    given = SourceBytes(held=held, enumerator_version=enumerator, enumerator=None if enumerator is None else state)
    ((connector, source),) = registry.recognise(given)
    assert connector.name == "pulsar-source"
    place = connector.place(source.held[0].split)
    assert (place.source, place.partition, place.position) == (TOPIC, 3, "after 300:7:-1")
    ranges = "0-65535" if version == 0 else "[0-65535]"
    assert source.held[0].split.split_id == f"{TOPIC}-partition-3|{ranges}"
    if enumerator is not None:
        assert source.enumerator is not None
        assert source.enumerator.splits[0].split.split_id == source.held[0].split.split_id


def test_committables() -> None:
    out = Output()
    out.i8(1)
    out.i8(7)
    out.utf(TOPIC)
    sink = PulsarSink()
    assert sink.pending(read_version(bytes(out), 1, sink.read_committable, "a committable")).name == f"(1,7) {TOPIC}"


def test_a_topic_without_partitions_and_a_message_id_of_another_kind() -> None:
    split = PulsarSplit(topic=TOPIC, partition=-1, ranges=((0, 9), (20, 30)), message_id=b"\x09")
    assert split.split_id == f"{TOPIC}|[0-9, 20-30]"
    assert PulsarSource().place(split).position == "after 09"


def test_the_oldest_enumerator_has_more_behind_its_partitions() -> None:
    split = partition(0)
    split.bytes4(NO_CURSOR)
    split.bool(False)
    split.bool(False)
    out = Output()
    for part in (1, bytes(partition(0)), 1, bytes(split), 1, 0, 1, bytes(split), 1, 0, 1):
        if isinstance(part, int):
            out.i4(part)
        else:
            out += part
    out.utf("id")
    out.bool(True)
    enumerator = read_version(bytes(out), 0, PulsarSource().read_enumerator, "enumerator state")
    assert [k.split.partition for k in enumerator.splits] == [3]
