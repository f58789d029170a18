"""State of operators of the DataStream runtime besides user values: stream elements, join buffers, transactions.

Layouts: section 6 of ``docs/internals/flink-serializers.md``. Follows ``StreamElementSerializer``, ``IntervalJoinOperator``'s
``BufferEntrySerializer`` and ``TwoPhaseCommitSinkFunction.StateSerializer``; CEP's ``SharedBuffer`` and ``NFAState``
types; the Kafka producer's transaction state; Gelly's value arrays; Scala's collections.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import (
    Constant,
    Fixed,
    Op,
    PerRecord,
    Repeated,
    StreamElement,
    Struct,
    or_per_record,
)
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.typeutils.basic import TYPES as BASIC
from statetool.serializers.typeutils.composite import (
    CompositeSerializer,
    after_flag,
    composite,
    inside,
    read_null,
    sequence,
)
from statetool.types import Field, ListType, LogicalType, Scalar, StructType

_I32, _I64, _TEXT, _BOOL = Scalar("int32"), Scalar("int64"), Scalar("string"), Scalar("bool")


ELEMENTS: Final = (
    "record", "record", "watermark", "latency_marker", "watermark_status", "record_attributes", "internal_watermark",
)  # fmt: skip
MARKER: Final = StructType.of(operator_id=_TEXT, subtask=_I32, idle=_BOOL, backlog=_BOOL)
_OPERATOR_ID_BYTES: Final = 16
_ACTIVE, _IDLE = 0, -1


class StreamElementSerializer(CompositeSerializer):
    """Struct of ``value`` and ``timestamp`` (millis), ``element`` (its kind), and ``marker`` (the fields of elements that are not records).

    u8 tag: 0 record: i64 timestamp, value; 1 record: value; 2 watermark: i64; 3 latency marker: i64 time, 16 bytes operator id,
    i32 subtask; 4 status: i32, 0 active, -1 idle; 5 (2.x) attributes: bool backlog; 6 (2.x) internal watermark: i32 subpartition
    (as ``subtask``), i64.
    """

    steps = ("value",)

    @property
    def logical(self) -> LogicalType:
        return StructType.of(value=self.nested[0].logical, timestamp=_I64, element=_TEXT, marker=MARKER)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        tag = c.u1()
        if tag >= len(ELEMENTS):
            raise c.fail(f"{tag} is not the tag of a stream element", pos=c.pos - 1)
        value: Any = None
        timestamp: int | None = None
        marker: tuple[Any, ...] | None = None
        match tag:
            case 0:
                timestamp = c.i8()
            case 2:
                timestamp = c.i8()
            case 3:
                timestamp = c.i8()
                marker = (c.take(_OPERATOR_ID_BYTES, "operator id").hex(), c.i4(), None, None)
            case 4:
                status = c.i4()
                if status not in (_ACTIVE, _IDLE):
                    raise c.fail(f"{status} is neither active (0) nor idle (-1)", pos=c.pos - 4)
                marker = (None, None, status == _IDLE, None)
            case 5:
                marker = (None, None, None, c.bool())
            case 6:
                marker = (None, c.i4(), None, None)
                timestamp = c.i8()
        if tag <= 1:
            with inside("value"):
                value = self.nested[0].decode(c)
        return value, timestamp, ELEMENTS[tag], marker

    def encode(self, out: Output, value: Any) -> None:
        inner, timestamp, element, marker = sequence(value, "stream element", 4)
        if element not in ELEMENTS:
            raise EncodeError(f"{element!r} is not a stream element ({', '.join(ELEMENTS[1:])})")
        tag = ELEMENTS.index(element) if element != "record" or timestamp is not None else 1
        operator_id, subtask, idle, backlog = sequence(marker or (None,) * 4, "marker", 4)
        out.u1(tag)
        try:
            match tag:
                case 0:
                    out.i8(timestamp)
                case 2:
                    out.i8(timestamp)
                case 3:
                    raw = bytes.fromhex(operator_id)
                    if len(raw) != _OPERATOR_ID_BYTES:
                        raise EncodeError(f"{operator_id!r} is not an operator id")
                    out.i8(timestamp)
                    out += raw
                    out.i4(subtask)
                case 4:
                    out.i4(_IDLE if idle else _ACTIVE)
                case 5:
                    out.bool(backlog)
                case 6:
                    out.i4(subtask)
                    out.i8(timestamp)
        except (TypeError, ValueError) as e:
            raise EncodeError(f"{value!r} lacks something of a {element}") from e
        if tag <= 1:
            with inside("value"):
                self.nested[0].encode(out, inner)

    def program(self) -> Op:
        return PerRecord(self.decode) if self.needs_frame else StreamElement(self.nested[0].program(), ELEMENTS)


class BufferEntrySerializer(CompositeSerializer):
    """Struct of ``element`` and ``has_been_joined``."""

    @property
    def logical(self) -> LogicalType:
        return StructType.of(has_been_joined=_BOOL, element=self.nested[0].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return c.bool(), self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        joined, element = sequence(value, "buffer entry", 2)
        out.bool(joined)
        self.nested[0].encode(out, element)

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
            element = self.nested[0]
            return [element.decode(c) if c.bool() else read_null(c, element) for _ in range(c.count("elements"))]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(value))
        with inside("element"):
            for item in value:
                present = item is not None or self.nested[0].none_is_value
                out.bool(present)
                if present:
                    self.nested[0].encode(out, item)

    def program(self) -> Op:
        return or_per_record(Repeated(after_flag(self.nested[0], 0)), self.decode)


# ---- without parts ------------------------------------------------------------------------------


def _struct(
    names: tuple[str, ...], kinds: str
) -> tuple[LogicalType, int, Op, Callable[[Cursor], Any], Callable[[Output, Any], None]]:
    """Return type, length, program, reader and writer of a struct of numbers: ``q`` i64, ``i`` i32, ``h`` i16."""
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


def _decode_nothing(c: Cursor) -> None:
    raise c.fail("a value of Scala's Nothing, which has none")


def _encode_nothing(out: Output, value: object) -> None:
    raise EncodeError(f"{value!r} in a type that has no values")


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


_STRING_VALUE: Final = next(t for t in BASIC if t.name == "StringValue")


def _decode_string_values(c: Cursor) -> list[str]:
    n = c.i4()
    inner = c.slice(c.i4(), "strings")
    if n < 0 or n > inner.left:
        raise c.fail(f"{n} strings in {inner.left} bytes")
    values = [_STRING_VALUE.decode(inner) for _ in range(n)]
    inner.expect_end("the last string")
    return values


def _encode_string_values(out: Output, value: Any) -> None:
    inner = Output()
    for item in value:
        _STRING_VALUE.encode(inner, item)
    out.i4(len(value))
    out.bytes4(inner)


_VALUE_ARRAYS: Final = ("ByteValue", "ShortValue", "IntValue", "LongValue", "FloatValue", "DoubleValue", "CharValue")

TYPES: Final = (
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
        none_is_value=True, op=Constant(1, 0), hash_code=lambda _: 0,
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

NOTHING: Final = SimpleType(
    name="Nothing", logical=Scalar("null"), length=-1, decode=_decode_nothing, encode=_encode_nothing
)
_SIMPLE: Final = simple_readers(TYPES)
#: Outer classes of the serializers; the producer for Kafka 0.11 had a separate one until Flink 1.11.
_PRODUCERS: Final = ("FlinkKafkaProducer$", "FlinkKafkaProducer011$")
OUTER: Final = {
    "TransactionState": _PRODUCERS,
    "ContextState": _PRODUCERS,
    "NextTransactionalIdHint": _PRODUCERS,
    "LongValueWithProperHashCode": ("LongValueWithProperHashCode$",),
}

SNAPSHOTS: Final = {
    **{
        outer + name: reader
        for name, reader in _SIMPLE.items()
        for outer in OUTER.get(name.partition("Serializer$")[0], ("",))
    },
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
    "TraversableSerializerSnapshot": composite(TraversableSerializer, outer_versions=(1, 2)),
    "NothingSerializerSnapshot": next(iter(simple_readers((NOTHING,)).values())),
    "TraversableSerializerConfigSnapshot": composite(TraversableSerializer, outer_versions=(1, 2)),
}
