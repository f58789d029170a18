"""State of complex event processing: the shared buffer of events and the state of the NFA.

Layouts: section 6 of ``docs/internals/flink-serializers.md``. ``NodeId``: u8 0 null; 1 event id, string page. ``SharedBufferEdge``: node id, Dewey
number. ``SharedBufferNode``: i32 n, n times i32 reference count, edge. ``Lockable``: i32 reference count, element. ``NFAState``: partial,
then completed matches. Follows ``org.apache.flink.cep.nfa``, Flink 1.6 to 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import (
    Constant,
    Fixed,
    Flagged,
    Op,
    PerRecord,
    Repeated,
    Struct,
    Text,
    or_per_record,
)
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import full_name
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.typeutils.basic import read_string, write_string
from statetool.serializers.typeutils.collections import ListSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer, composite, sequence
from statetool.types import Field, ListType, LogicalType, Scalar, StructType

_I32, _I64, _TEXT = Scalar("int32"), Scalar("int64"), Scalar("string")
_EVENT_ID: Final = StructType.of(id=_I32, timestamp=_I64)


class PartsSerializer(CompositeSerializer):
    """Base of the small CEP structs: their fields and those of nested serializers."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.steps = tuple(f"part{i}" for i in range(len(self.nested)))


class NodeIdSerializer(PartsSerializer):
    """CEP ``NodeId``: u8 0 null; 1 event id, string page."""

    nullable = True

    @property
    def logical(self) -> LogicalType:
        return StructType.of(event_id=self.nested[0].logical, page=_TEXT)

    def decode(self, c: Cursor) -> tuple[Any, ...] | None:
        return (self.nested[0].decode(c), read_string(c)) if c.bool() else None

    def encode(self, out: Output, value: Any) -> None:
        out.bool(value is not None)
        if value is not None:
            event_id, page = sequence(value, "node id", 2)
            self.nested[0].encode(out, event_id)
            write_string(out, page)

    def program(self) -> Op:
        return Flagged(Struct(("event_id", "page"), (self.nested[0].program(), Text())), null_flag=0)


class EdgeSerializer(PartsSerializer):
    """CEP ``SharedBufferEdge``: node id, Dewey number."""

    arity = 2

    @property
    def logical(self) -> LogicalType:
        return StructType.of(target=self.nested[0].logical, version=self.nested[1].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return self.nested[0].decode(c), self.nested[1].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        for part, v in zip(self.nested, sequence(value, "edge", 2), strict=True):
            part.encode(out, v)

    def program(self) -> Op:
        return Struct(("target", "version"), tuple(s.program() for s in self.nested))


class LockableSerializer(PartsSerializer):
    """CEP ``Lockable``: i32 reference count, element."""

    @property
    def logical(self) -> LogicalType:
        return StructType.of(ref_count=_I32, element=self.nested[0].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return c.i4(), self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        count, element = sequence(value, "lockable value", 2)
        out.i4(count)
        self.nested[0].encode(out, element)

    def program(self) -> Op:
        return Struct(("ref_count", "element"), (Fixed("i32"), self.nested[0].program()))


class NodeSerializer(PartsSerializer):
    """CEP ``SharedBufferNode``: list of lockable edges (before Flink 1.13: a list of edges, written by a list serializer)."""

    @property
    def logical(self) -> LogicalType:
        if self._is_list:
            return StructType.of(edges=self.nested[0].logical)
        return StructType.of(edges=ListType(StructType.of(ref_count=_I32, element=self.nested[0].logical)))

    @property
    def _is_list(self) -> bool:
        return isinstance(self.nested[0].logical, ListType)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        if self._is_list:
            return (self.nested[0].decode(c),)
        return ([(c.i4(), self.nested[0].decode(c)) for _ in range(c.count("edges", at_least=4))],)

    def encode(self, out: Output, value: Any) -> None:
        (edges,) = sequence(value, "node", 1)
        if self._is_list:
            self.nested[0].encode(out, edges)
            return
        out.i4(len(sequence(edges, "list")))
        for item in edges:
            count, edge = sequence(item, "lockable edge", 2)
            out.i4(count)
            self.nested[0].encode(out, edge)

    def program(self) -> Op:
        part = self.nested[0].program()
        if self._is_list:
            return Struct(("edges",), (part,))
        edge = Struct(("ref_count", "element"), (Fixed("i32"), part))
        return or_per_record(Struct(("edges",), (Repeated(edge),)), self.decode)


class NfaStateSerializer(PartsSerializer):
    """CEP ``NFAState``: partial, then completed matches. Nested: Dewey number, node id, event id."""

    arity = 3

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bool:
        return c.bool() if outer_version >= 2 else False

    def write_outer(self, out: Output) -> None:
        if self.outer_version >= 2:
            out.bool(self.outer)

    @property
    def logical(self) -> LogicalType:
        dewey, node, event = (s.logical for s in self.nested)
        match = [
            Field("state", _TEXT),
            Field("previous", node),
            Field("version", dewey),
            Field("start_ms", _I64),
            Field("previous_ms", _I64),
            Field("start_event", event),
        ]
        matches = ListType(StructType(tuple(match)))
        return StructType.of(partial=matches, completed=matches)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return tuple([self._match(c) for _ in range(c.count("matches", at_least=12))] for _ in range(2))

    def _match(self, c: Cursor) -> tuple[Any, ...]:
        dewey, node, event = self.nested
        state, previous, version, start = read_string(c), node.decode(c), dewey.decode(c), c.i8()
        previous_ms = c.i8() if self.outer else None
        return state, previous, version, start, previous_ms, event.decode(c) if c.bool() else None

    def encode(self, out: Output, value: Any) -> None:
        dewey, node, event = self.nested
        for matches in sequence(value, "state of an NFA", 2):
            out.i4(len(sequence(matches, "list")))
            for match in matches:
                state, previous, version, start, previous_ms, start_event = sequence(match, "match", 6)
                write_string(out, state)
                node.encode(out, previous)
                dewey.encode(out, version)
                out.i8(start)
                if self.outer:
                    out.i8(previous_ms)
                out.bool(start_event is not None)
                if start_event is not None:
                    event.encode(out, start_event)

    def program(self) -> Op:
        dewey, node, event = (s.program() for s in self.nested)
        previous_ms = Fixed("i64") if self.outer else Constant(0)
        names = ("state", "previous", "version", "start_ms", "previous_ms", "start_event")
        match = Struct(names, (Text(), node, dewey, Fixed("i64"), previous_ms, Flagged(event, null_flag=0)))
        return or_per_record(Struct(("partial", "completed"), (Repeated(match), Repeated(match))), self.decode)


class NfaSerializer(PartsSerializer):
    """The complete NFA and its buffer in the form of Flink 1.5. Later operators still register a state of it but never write one."""

    arity = None

    @property
    def logical(self) -> LogicalType:
        return Scalar("null")

    @property
    def needs_frame(self) -> bool:
        return False

    def decode(self, c: Cursor) -> Any:
        raise c.fail("a whole NFA, which no release since Flink 1.6 has written")

    def encode(self, out: Output, value: Any) -> None:
        raise EncodeError("no release since Flink 1.6 writes a whole NFA")

    def program(self) -> Op:
        return PerRecord(self.decode)


def _decode_event_id(c: Cursor) -> tuple[int, int]:
    return c.i4(), c.i8()


def _encode_event_id(out: Output, value: Any) -> None:
    number, timestamp = sequence(value, "event id", 2)
    out.i4(number)
    out.i8(timestamp)


def _decode_dewey(c: Cursor) -> list[int]:
    return [c.i4() for _ in range(c.count("digits", at_least=4))]


def _encode_dewey(out: Output, value: Any) -> None:
    out.i4(len(sequence(value, "Dewey number")))
    for digit in value:
        out.i4(digit)


EVENT_ID: Final = SimpleType(
    name="EventId", logical=_EVENT_ID, length=12, decode=_decode_event_id, encode=_encode_event_id,
    op=Struct(("id", "timestamp"), (Fixed("i32"), Fixed("i64"))),
)  # fmt: skip
DEWEY: Final = SimpleType(
    name="DeweyNumber", logical=ListType(_I32), length=-1, op=Repeated(Fixed("i32")), decode=_decode_dewey,
    encode=_encode_dewey,
)  # fmt: skip
TYPES: Final = (EVENT_ID, DEWEY)


def _node_id(name: str, version: int) -> Serializer:
    return NodeIdSerializer(name, version, 1, None, (EVENT_ID.serializer(full_name("EventId$EventIdSerializer")),))


def _edge(name: str, version: int) -> Serializer:
    return EdgeSerializer(
        name,
        version,
        1,
        None,
        (_node_id(name, version), DEWEY.serializer(full_name("DeweyNumber$DeweyNumberSerializer"))),
    )


def _node(name: str, version: int) -> Serializer:
    return NodeSerializer(name, version, 1, None, (ListSerializer(name, version, 1, None, (_edge(name, version),)),))


def _nfa_state(name: str, version: int) -> Serializer:
    parts = (
        DEWEY.serializer(full_name("DeweyNumber$DeweyNumberSerializer")),
        _node_id(name, version),
        EVENT_ID.serializer(full_name("EventId$EventIdSerializer")),
    )
    return NfaStateSerializer(name, version, 1, False, parts)


#: Fixed types of the parts above; another one in their place means damage.
NODE_ID: Final = _node_id("", 1).logical
_EDGE: Final = _edge("", 1).logical
NODES: Final = tuple(StructType.of(edges=ListType(e)) for e in (_EDGE, StructType.of(ref_count=_I32, element=_EDGE)))
NFA_STATE: Final = _nfa_state("", 1).logical

#: Up to Flink 1.7 the snapshots of these contained only the serializer's class: their parts were always the same.
FIXED: Final[Mapping[str, Callable[[str, int], Serializer]]] = {
    "NodeId$NodeIdSerializer": _node_id,
    "SharedBufferEdge$SharedBufferEdgeSerializer": _edge,
    "SharedBufferNode$SharedBufferNodeSerializer": _node,
    "NFAStateSerializer": _nfa_state,
}


def lockable(element: Serializer) -> Serializer:
    """Return the serializer of lockable elements, whose snapshot up to Flink 1.6 was that of its elements."""
    serializer = LockableSerializer(element.snapshot_class, element.snapshot_version, 1, None, (element,))
    serializer.legacy_bytes, serializer.proxy_bytes = element.legacy_bytes, element.proxy_bytes
    return serializer


SNAPSHOTS: Final = {
    **{f"{t.name}${name}": reader for t in TYPES for name, reader in simple_readers((t,)).items()},
    "NodeId$NodeIdSerializer$NodeIdSerializerSnapshot": composite(NodeIdSerializer),
    "SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot": composite(EdgeSerializer),
    "LockableTypeSerializerSnapshot": composite(LockableSerializer),
    "Lockable$LockableTypeSerializerSnapshot": composite(LockableSerializer),
    "SharedBufferNodeSerializerSnapshotV2": composite(NodeSerializer),
    "SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot": composite(NodeSerializer),
    "NFAStateSerializerSnapshot": composite(NfaStateSerializer, outer_versions=(1, 2)),
    "NFA$MigratedNFASerializerSnapshot": composite(NfaSerializer, outer_versions=(1, 2)),
    "NFA$NFASerializerConfigSnapshot": composite(NfaSerializer, outer_versions=(1, 2)),
    "SharedBuffer$SharedBufferSerializerSnapshot": composite(NfaSerializer, outer_versions=(1, 2)),
    "SharedBuffer$SharedBufferSerializerConfigSnapshot": composite(NfaSerializer, outer_versions=(1, 2)),
}
