"""What operators of the DataStream runtime keep beside user values: stream elements, join buffers, transactions.

Layouts: section 6 of the serializer reference. Follows ``StreamElementSerializer``, ``IntervalJoinOperator``'s
``BufferEntrySerializer`` and ``TwoPhaseCommitSinkFunction.StateSerializer``; CEP's ``SharedBuffer`` and ``NFAState``
types; the Kafka producer's transaction state; Gelly's value arrays; Scala's collections.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.program import Fixed, Flagged, Op, Repeated, Struct, whole
from statetool.serializers.basic import TYPES as BASIC
from statetool.serializers.basic import read_string, write_string
from statetool.serializers.composite import CompositeSerializer, composite, inside
from statetool.serializers.simple import SimpleType, simple_readers
from statetool.types import Field, ListType, LogicalType, Scalar, StructType

_I32, _I64, _TEXT, _BOOL = Scalar("int32"), Scalar("int64"), Scalar("string"), Scalar("bool")


class StreamElementSerializer(CompositeSerializer):
    """Struct of ``tag``, ``value`` and ``timestamp``; tag 0 record with timestamp, 1 record, 2 watermark."""

    steps = ("value",)

    @property
    def logical(self) -> LogicalType:
        return StructType.of(value=self.nested[0].logical, timestamp=_I64, tag=Scalar("int8"))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        tag = c.u1()
        if tag == 0:
            timestamp = c.i8()
            return self.nested[0].decode(c), timestamp, 0
        if tag == 1:
            return self.nested[0].decode(c), None, 1
        if tag == 2:
            return None, c.i8(), 2
        raise UnsupportedError(
            f"stream element of tag {tag} (latency marker, status or attributes)", hint="read the state as bytes"
        ).at(offset=c.offset - 1)

    def encode(self, out: Output, value: Any) -> None:
        inner, timestamp, tag = value
        out.u1(tag)
        if tag in (0, 2):
            out.i8(timestamp)
        if tag in (0, 1):
            self.nested[0].encode(out, inner)


class BufferEntrySerializer(CompositeSerializer):
    """Struct of ``element`` and ``has_been_joined``."""

    @property
    def logical(self) -> LogicalType:
        return StructType.of(has_been_joined=_BOOL, element=self.nested[0].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return c.bool(), self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        out.bool(value[0])
        self.nested[0].encode(out, value[1])

    def program(self) -> Op:
        return Struct(("has_been_joined", "element"), (Fixed("bool"), self.nested[0].program()))


class TransactionsSerializer(CompositeSerializer):
    """State of ``TwoPhaseCommitSinkFunction``: pending transaction, transactions to commit, context."""

    arity = 2
    steps = ("transaction", "context")

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bool:
        return c.bool() if outer_version >= 4 else outer_version == 3

    def write_outer(self, out: Output) -> None:
        if self.outer_version >= 4:
            out.bool(self.outer)

    @property
    def _holder(self) -> StructType:
        return StructType.of(transaction=self.nested[0].logical, start_ms=_I64)

    @property
    def logical(self) -> LogicalType:
        return StructType.of(pending=self._holder, to_commit=ListType(self._holder), context=self.nested[1].logical)

    def _read_holder(self, c: Cursor) -> tuple[Any, int]:
        with inside("transaction"):
            return self.nested[0].decode(c), c.i8()

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        pending = self._read_holder(c) if not self.outer or c.bool() else None
        to_commit = [self._read_holder(c) for _ in range(c.count("transactions", at_least=8))]
        return pending, to_commit, self.nested[1].decode(c) if c.bool() else None

    def encode(self, out: Output, value: Any) -> None:
        pending, to_commit, context = value
        if self.outer:
            out.bool(pending is not None)
        elif pending is None:
            raise EncodeError("this version of the state has no null transaction")
        for i, holder in enumerate([pending, *to_commit]):
            if i == 1:
                out.i4(len(to_commit))
            if holder is not None:
                self.nested[0].encode(out, holder[0])
                out.i8(holder[1])
        if not to_commit:
            out.i4(0)
        out.bool(context is not None)
        if context is not None:
            self.nested[1].encode(out, context)


class PartsSerializer(CompositeSerializer):
    """Own columns and those of nested serializers; the base of the small CEP structs."""

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
            self.nested[0].encode(out, value[0])
            write_string(out, value[1])


class EdgeSerializer(PartsSerializer):
    """CEP ``SharedBufferEdge``: node id, Dewey number."""

    arity = 2

    @property
    def logical(self) -> LogicalType:
        return StructType.of(target=self.nested[0].logical, version=self.nested[1].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return self.nested[0].decode(c), self.nested[1].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.nested[0].encode(out, value[0])
        self.nested[1].encode(out, value[1])


class LockableSerializer(PartsSerializer):
    """CEP ``Lockable``: i32 reference count, element."""

    @property
    def logical(self) -> LogicalType:
        return StructType.of(ref_count=_I32, element=self.nested[0].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return c.i4(), self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        out.i4(value[0])
        self.nested[0].encode(out, value[1])

    def program(self) -> Op:
        return Struct(("ref_count", "element"), (Fixed("i32"), self.nested[0].program()))


class NodeSerializer(PartsSerializer):
    """CEP ``SharedBufferNode``: list of lockable edges (before Flink 1.13: of edges, written by a list serializer)."""

    @property
    def logical(self) -> LogicalType:
        if self._old:
            return StructType.of(edges=self.nested[0].logical)
        return StructType.of(edges=ListType(StructType.of(ref_count=_I32, element=self.nested[0].logical)))

    @property
    def _old(self) -> bool:
        return isinstance(self.nested[0].logical, ListType)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        if self._old:
            return (self.nested[0].decode(c),)
        return ([(c.i4(), self.nested[0].decode(c)) for _ in range(c.count("edges", at_least=4))],)

    def encode(self, out: Output, value: Any) -> None:
        if self._old:
            self.nested[0].encode(out, value[0])
            return
        out.i4(len(value[0]))
        for count, edge in value[0]:
            out.i4(count)
            self.nested[0].encode(out, edge)


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
        for matches in value:
            out.i4(len(matches))
            for state, previous, version, start, previous_ms, start_event in matches:
                write_string(out, state)
                node.encode(out, previous)
                dewey.encode(out, version)
                out.i8(start)
                if self.outer:
                    out.i8(previous_ms)
                out.bool(start_event is not None)
                if start_event is not None:
                    event.encode(out, start_event)


class TraversableSerializer(CompositeSerializer):
    """Scala collections: i32 n, n times bool present, element. Outer payload: Scala code of the builder."""

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> str:
        return c.utf()

    @staticmethod
    def legacy_outer(c: Cursor, name: str) -> str:
        return ""

    def write_outer(self, out: Output) -> None:
        out.utf(self.outer)

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> list[Any]:
        with inside("element"):
            return [self.nested[0].decode(c) if c.bool() else None for _ in range(c.count("elements"))]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(value))
        with inside("element"):
            for item in value:
                out.bool(item is not None)
                if item is not None:
                    self.nested[0].encode(out, item)

    def program(self) -> Op:
        return whole(Repeated(Flagged(self.nested[0].program(), null_flag=0)), self.decode)


# ---- without parts ------------------------------------------------------------------------------


def _struct(
    names: tuple[str, ...], kinds: str
) -> tuple[LogicalType, int, Op, Callable[[Cursor], Any], Callable[[Output, Any], None]]:
    """Fixed structs: ``q`` i64, ``i`` i32, ``h`` i16."""
    readers = {"q": Cursor.i8, "i": Cursor.i4, "h": Cursor.i2}
    writers = {"q": Output.i8, "i": Output.i4, "h": Output.i2}
    types = {"q": _I64, "i": _I32, "h": Scalar("int16")}
    ops: dict[str, Op] = {"q": Fixed("i64"), "i": Fixed("i32"), "h": Fixed("i16")}

    def decode(c: Cursor) -> tuple[int, ...]:
        return tuple(readers[k](c) for k in kinds)

    def encode(out: Output, value: Any) -> None:
        for k, v in zip(kinds, value, strict=True):
            writers[k](out, v)

    logical = StructType(tuple(Field(n, types[k]) for n, k in zip(names, kinds, strict=True)))
    length = sum({"q": 8, "i": 4, "h": 2}[k] for k in kinds)
    return logical, length, Struct(names, tuple(ops[k] for k in kinds)), decode, encode


def _fixed(name: str, names: tuple[str, ...], kinds: str, *, length: int | None = None) -> SimpleType:
    logical, size, op, decode, encode = _struct(names, kinds)
    return SimpleType(
        name=name, logical=logical, length=size if length is None else length, size=size, op=op, decode=decode,
        encode=encode,
    )  # fmt: skip


def _decode_dewey(c: Cursor) -> list[int]:
    return [c.i4() for _ in range(c.count("digits", at_least=4))]


def _encode_dewey(out: Output, value: Any) -> None:
    out.i4(len(value))
    for digit in value:
        out.i4(digit)


def _decode_transaction(c: Cursor) -> tuple[Any, ...]:
    return c.utf() if c.bool() else None, c.i8(), c.i2()


def _encode_transaction(out: Output, value: Any) -> None:
    out.bool(value[0] is not None)
    if value[0] is not None:
        out.utf(value[0])
    out.i8(value[1])
    out.i2(value[2])


def _decode_ids(c: Cursor) -> list[str]:
    return [c.utf() for _ in range(c.count("ids", at_least=2))]


def _encode_ids(out: Output, value: Any) -> None:
    out.i4(len(value))
    for item in value:
        out.utf(item)


def _decode_unit(c: Cursor) -> None:
    if c.u1() != 0:
        raise c.fail("expected the zero byte of a Unit", pos=c.pos - 1)


def _encode_unit(out: Output, value: object) -> None:
    out.u1(0)


def _value_array(element: SimpleType) -> SimpleType:
    name = element.name + "Array"

    def decode(c: Cursor) -> Any:
        n = c.count("array elements", at_least=element.length)
        return [element.decode(c) for _ in range(n)]

    def encode(out: Output, value: Any) -> None:
        out.i4(len(value))
        for item in value:
            element.encode(out, item)

    op = Repeated(element.op) if element.op is not None else None
    return SimpleType(name=name, logical=ListType(element.logical), length=-1, op=op, decode=decode, encode=encode)


def _decode_string_values(c: Cursor) -> list[str]:
    n = c.i4()
    inner = c.slice(c.i4(), "strings")
    string = next(t for t in BASIC if t.name == "StringValue")
    if n < 0 or n > inner.left:
        raise c.fail(f"{n} strings in {inner.left} bytes")
    values = [string.decode(inner) for _ in range(n)]
    inner.expect_end("the last string")
    return values


def _encode_string_values(out: Output, value: Any) -> None:
    string = next(t for t in BASIC if t.name == "StringValue")
    inner = Output()
    for item in value:
        string.encode(inner, item)
    out.i4(len(value))
    out.bytes4(inner)


_VALUE_ARRAYS: Final = ("ByteValue", "ShortValue", "IntValue", "LongValue", "FloatValue", "DoubleValue", "CharValue")

TYPES: Final = (
    _fixed("EventId", ("id", "timestamp"), "iq"),
    SimpleType(
        name="DeweyNumber", logical=ListType(_I32), length=-1, op=Repeated(Fixed("i32")),
        decode=_decode_dewey, encode=_encode_dewey,
    ),
    SimpleType(
        name="TransactionState", length=-1, decode=_decode_transaction, encode=_encode_transaction,
        logical=StructType.of(transactional_id=_TEXT, producer_id=_I64, epoch=Scalar("int16")),
    ),
    SimpleType(
        name="ContextState", length=-1, decode=_decode_ids, encode=_encode_ids, logical=ListType(_TEXT)
    ),
    _fixed("NextTransactionalIdHint", ("next_free_id", "last_parallelism"), "qi"),
    SimpleType(
        name="Unit", logical=Scalar("null"), length=1, decode=_decode_unit, encode=_encode_unit, nullable=True,
        hash_code=lambda _: 0,
    ),
    *(_value_array(t) for t in BASIC if t.name in _VALUE_ARRAYS),
    SimpleType(
        name="StringValueArray", logical=ListType(_TEXT), length=-1, decode=_decode_string_values,
        encode=_encode_string_values,
    ),
    SimpleType(
        name="NullValueArray", logical=_I32, length=4, op=Fixed("i32"), decode=Cursor.i4, encode=Output.i4
    ),
    SimpleType(
        name="LongValueWithProperHashCode", logical=_I64, length=8, op=Fixed("i64"), decode=Cursor.i8,
        encode=Output.i8,
    ),
)  # fmt: skip

_SIMPLE: Final = simple_readers(TYPES)
_OUTER: Final = {
    "EventId": "EventId$",
    "DeweyNumber": "DeweyNumber$",
    "TransactionState": "FlinkKafkaProducer$",
    "ContextState": "FlinkKafkaProducer$",
    "NextTransactionalIdHint": "FlinkKafkaProducer$",
    "LongValueWithProperHashCode": "LongValueWithProperHashCode$",
}

SNAPSHOTS: Final = {
    **{_OUTER.get(name.partition("Serializer$")[0], "") + name: reader for name, reader in _SIMPLE.items()},
    "StreamElementSerializer$StreamElementSerializerSnapshot": composite(
        StreamElementSerializer, outer_versions=(1, 2)
    ),
    "StreamElementSerializer$StreamElementSerializerConfigSnapshot": composite(
        StreamElementSerializer, outer_versions=(1, 2)
    ),
    "IntervalJoinOperator$BufferEntrySerializerSnapshot": composite(BufferEntrySerializer, outer_versions=(1, 2)),
    "IntervalJoinOperator$BufferSerializerConfigSnapshot": composite(BufferEntrySerializer, outer_versions=(1, 2)),
    "TwoPhaseCommitSinkFunction$StateSerializerSnapshot": composite(
        TransactionsSerializer, outer_versions=(1, 2, 3, 4)
    ),
    "TwoPhaseCommitSinkFunction$StateSerializerConfigSnapshot": composite(
        TransactionsSerializer, outer_versions=(1, 2, 3, 4)
    ),
    "NodeId$NodeIdSerializer$NodeIdSerializerSnapshot": composite(NodeIdSerializer),
    "SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot": composite(EdgeSerializer),
    "LockableTypeSerializerSnapshot": composite(LockableSerializer),
    "Lockable$LockableTypeSerializerSnapshot": composite(LockableSerializer),
    "SharedBufferNodeSerializerSnapshotV2": composite(NodeSerializer),
    "SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot": composite(NodeSerializer),
    "NFAStateSerializerSnapshot": composite(NfaStateSerializer, outer_versions=(1, 2)),
    "TraversableSerializerSnapshot": composite(TraversableSerializer, outer_versions=(1, 2)),
    "TraversableSerializerConfigSnapshot": composite(TraversableSerializer, outer_versions=(1, 2)),
}
