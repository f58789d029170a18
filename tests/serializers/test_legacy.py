"""Snapshots of Flink 1.7 and older, composed by hand from their layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types import StructType
from tests.support.snapshots import beam
from tests.support.snapshots.canonical import encoded

TYPEUTILS: Final = "org.apache.flink.api.common.typeutils."
CEP: Final = "org.apache.flink.cep.nfa."


def java(name: str) -> bytes:
    """Return a serializer's Java stream after its proxy version."""
    inner, out = Output(), Output()
    write_java_stream(inner, beam.obj(name))
    out.i4(1)
    out.bytes4(inner)
    return bytes(out)


def config(name: str, payload: bytes, *, version: int = 1) -> bytes:
    """Return a snapshot of the old form after its proxy."""
    out = Output()
    out.i4(1)
    out.utf(name)
    out.i4(version)
    return bytes(out) + payload


def parameterless(name: str) -> bytes:
    out = Output()
    out.utf(name)
    return config(TYPEUTILS + "ParameterlessTypeSerializerConfig", bytes(out))


INT: Final = (java(TYPEUTILS + "base.IntSerializer"), parameterless(TYPEUTILS + "base.IntSerializer"))
TEXT: Final = (java(TYPEUTILS + "base.StringSerializer"), parameterless(TYPEUTILS + "base.StringSerializer"))


def resilient(*parts: tuple[bytes, bytes]) -> bytes:
    """Return a list of serializers and their snapshots, framed by offsets."""
    out, body = Output(), Output()
    out.i4(len(parts))
    for old, snapshot in parts:
        out.i4(len(body))
        out.i4(len(body) + len(old))
        body += old + snapshot
    out.bytes4(body)
    return bytes(out)


def pojo(*tables: Sequence[tuple[str, tuple[bytes, bytes]]], shift: int = 0) -> bytes:
    """Return the snapshot of a POJO: three tables of offsets, then one buffer to which all of them refer."""
    out, body = Output(), Output()
    out.utf("com.acme.Base")
    for entries in tables:
        out.i4(len(entries))
        for name, (old, snapshot) in entries:
            body.utf(name)
            out.i4(len(body) + shift)
            out.i4(len(body) + len(old) + shift)
            body += old + snapshot
    out.bytes4(body)
    return config("org.apache.flink.api.java.typeutils.runtime.PojoSerializer$PojoSerializerConfigSnapshot", bytes(out))


def read(raw: bytes) -> Serializer:
    c = Cursor(raw)
    serializer = snapshot_reader().proxied(c)
    c.expect_end("the snapshot")
    return serializer


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("unregistered", [False, True])
def test_the_tables_of_a_pojo_share_one_buffer(registered: bool, unregistered: bool) -> None:
    sub = (java("org.apache.flink.api.java.typeutils.runtime.PojoSerializer"), pojo([("more", TEXT)], [], []))
    raw = pojo(
        [("id", INT), ("name", TEXT)],
        [("com.acme.Known", sub)] if registered else [],
        [("com.acme.Met", sub)] if unregistered else [],
    )
    s = read(raw)
    assert s.proxy_bytes == raw
    assert isinstance(s.logical, StructType)
    names = [f.name for f in s.logical.fields]
    open_ = registered or unregistered
    assert names == ["id", "name", *(["more", "_class"] if open_ else [])]
    row: tuple[Any, ...] = (7, "x", None, "com.acme.Base") if open_ else (7, "x")
    assert s.decode(Cursor(encoded(s, row))) == row


def test_offsets_of_a_pojo_that_do_not_fit_are_damage() -> None:
    for shift in (-5, 3, 1000):
        with pytest.raises(FormatError, match="offset"):
            read(pojo([("id", INT)], [], [], shift=shift))
    whole = pojo([("id", INT), ("name", TEXT)], [], [])
    for at in range(len(whole)):
        for raw in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x21]) + whole[at + 1 :]):
            try:
                read(raw)
            except StatetoolError:
                continue


def test_serializers_of_patterns_are_known_by_their_class_alone() -> None:
    """By ``getCanonicalName`` or ``getName``: up to Flink 1.7 their parts were always the same."""
    node_id = ((3, 1000), "first")
    edge = (node_id, [1, 0])
    cases = {
        "sharedbuffer.EventId{}EventIdSerializer": (3, 1000),
        "DeweyNumber{}DeweyNumberSerializer": [1, 0],
        "sharedbuffer.NodeId{}NodeIdSerializer": node_id,
        "sharedbuffer.SharedBufferEdge{}SharedBufferEdgeSerializer": edge,
        "sharedbuffer.SharedBufferNode{}SharedBufferNodeSerializer": ([edge, edge],),
        "NFAStateSerializer": ([("end", node_id, [1], 5, None, (3, 1000))], []),
    }
    for name, value in cases.items():
        for separator in ".$":
            raw = parameterless(CEP + name.format(separator))
            s = read(raw)
            assert s.proxy_bytes == raw
            assert s.decode(Cursor(encoded(s, value))) == value
    with pytest.raises(UnknownSerializerError, match="NfaSerializer"):
        read(parameterless(CEP + "NfaSerializer"))


def test_a_lock_that_the_snapshot_does_not_tell_of_is_read() -> None:
    """Up to Flink 1.6 the snapshot of a lockable element was that of the element: only its Java stream shows the difference."""
    lock = (java(CEP + "sharedbuffer.Lockable$LockableTypeSerializer"), TEXT[1])
    s = read(config(TYPEUTILS + "base.MapSerializerConfigSnapshot", resilient(INT, lock)))
    assert s.type_name == "Map<Int, Lockable<String>>"
    assert s.decode(Cursor(b"\0\0\0\1" + b"\0\0\0\7" + b"\0" + b"\0\0\0\2" + b"\2x")) == [(7, (2, "x"))]
    plain = read(config(TYPEUTILS + "base.MapSerializerConfigSnapshot", resilient(INT, TEXT)))
    assert plain.type_name == "Map<Int, String>"


def test_a_state_of_a_whole_nfa_is_known_and_empty() -> None:
    """Operators register it to restore state of Flink 1.5; later releases never write a value."""
    inner = config(CEP + "SharedBuffer$SharedBufferSerializerConfigSnapshot", resilient(TEXT, TEXT, INT))
    buffer = (java(CEP + "SharedBuffer$SharedBufferSerializer"), inner)
    raw = config(CEP + "NFA$NFASerializerConfigSnapshot", resilient(TEXT, buffer))
    s = read(raw)
    assert s.proxy_bytes == raw
    assert s.type_name == "Nfa<String, Nfa<String, String, Int>>"
    assert not s.needs_frame
    with pytest.raises(FormatError, match=r"no release since Flink 1\.6"):
        s.decode(Cursor(b"\0\1"))


@pytest.mark.parametrize("producer", ["FlinkKafkaProducer", "FlinkKafkaProducer011"])
def test_both_kafka_producers_keep_the_same(producer: str) -> None:
    values = {"TransactionState": ("id", 5, 2), "ContextState": ["a", "b"], "NextTransactionalIdHint": (7, 3)}
    for name, value in values.items():
        out = Output()
        out.utf(f"org.apache.flink.streaming.connectors.kafka.{producer}${name}Serializer${name}SerializerSnapshot")
        out.i4(3)
        s = snapshot_reader().snapshot(Cursor(bytes(out)))
        assert s.decode(Cursor(encoded(s, value))) == value
