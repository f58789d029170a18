"""State of Flink's runtime: namespaces and windows, timers, values with TTL.

``TimeWindow`` i64 start, end; ``GlobalWindow`` and ``VoidNamespace`` a zero byte; ``CountWindow`` i64 id; timers i64 with its sign bit
flipped, key, namespace; TTL i64 last access in epoch millis, value; ``TtlAware`` has the bytes of the wrapped serializer (snapshot version
1: bool enabled and the wrapped snapshot).
"""

from __future__ import annotations

import copy
from typing import Any, Final

from statetool.errors import EncodeError, FormatError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.entries.layout import TIME_BYTES, flip_sign
from statetool.kernels.values.program import Constant, Fixed, Op, PerRecord, SignFlippedLong, Struct, Ttl
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.typeutils.composite import (
    CompositeSerializer,
    check_last,
    composite,
    inside,
    sequence,
    sum_of_lengths,
)
from statetool.types import LogicalType, Scalar, StructType, TtlType

WINDOW: Final = StructType.of(start=Scalar("int64"), end=Scalar("int64"))


def _read_window(c: Cursor) -> tuple[int, int]:
    return c.i8(), c.i8()


def _write_window(out: Output, value: Any) -> None:
    start, end = sequence(value, "window", 2)
    out.i8(start)
    out.i8(end)


def _read_zero(c: Cursor) -> None:
    if c.u1() != 0:
        raise c.fail("expected a zero byte", pos=c.pos - 1)


def _write_zero(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds one value")
    out.u1(0)


# getLength() of VoidNamespace reports 0, but one byte is written.
TIME_WINDOW: Final = SimpleType(
    name="TimeWindow", logical=WINDOW, length=16, decode=_read_window, encode=_write_window,
    op=Struct(("start", "end"), (Fixed("i64"), Fixed("i64"))),
)  # fmt: skip
VOID_NAMESPACE: Final = SimpleType(
    name="VoidNamespace", logical=Scalar("null"), length=0, size=1, op=Constant(1), nullable=True,
    decode=_read_zero, encode=_write_zero, hash_code=lambda _: 99,
)  # fmt: skip
GLOBAL_WINDOW: Final = SimpleType(
    name="GlobalWindow", logical=Scalar("null"), length=1, op=Constant(1), nullable=True,
    decode=_read_zero, encode=_write_zero, hash_code=lambda _: 0,
)  # fmt: skip
COUNT_WINDOW: Final = SimpleType(
    name="CountWindow", logical=Scalar("int64"), length=8, op=Fixed("i64"), decode=Cursor.i8, encode=Output.i8
)


class TimerSerializer(CompositeSerializer):
    """Struct of ``timestamp`` (epoch millis), ``key`` and ``namespace``."""

    arity = 2
    steps = ("key", "namespace")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.nested = (self.nested[0].as_key(), *self.nested[1:])
        if self.nested[0].length >= 0 and self.nested[1].length >= 0:
            self.length = TIME_BYTES + sum_of_lengths(self.nested)

    @property
    def logical(self) -> LogicalType:
        key, namespace = self.nested
        return StructType.of(timestamp=Scalar("int64"), key=key.logical, namespace=namespace.logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        values = [flip_sign(c.i8())]
        for step, part in self.children():
            with inside(step):
                check_last(c, part, last=step == "namespace")
                values.append(part.decode(c))
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        timestamp, *parts = sequence(value, "timer", 3)
        if not isinstance(timestamp, int):
            raise EncodeError(f"{timestamp!r} is not the timestamp of a timer")
        out.i8(flip_sign(timestamp))
        for (step, part), v in zip(self.children(), parts, strict=True):
            with inside(step):
                part.encode(out, v)

    def program(self) -> Op:
        key, namespace = self.nested
        if key.needs_frame:
            return PerRecord(self.decode)
        return Struct(("timestamp", *self.steps), (SignFlippedLong(), key.program(), namespace.program()))


class TtlSerializer(CompositeSerializer):
    """A value with the epoch millis of its last access."""

    arity = 2
    steps = ("last_access", "value")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.nested[0].logical != Scalar("int64"):
            raise FormatError(f"the last access of a TTL value is a {self.nested[0].type_name}, expected a Long")
        self.length = sum_of_lengths(self.nested)

    @property
    def value(self) -> Serializer:
        """The serializer of the user's value."""
        return self.nested[1]

    @property
    def logical(self) -> LogicalType:
        return TtlType(self.value.logical)

    @property
    def type_name(self) -> str:
        return f"Ttl<{self.value.type_name}>"

    def decode(self, c: Cursor) -> tuple[int, Any]:
        last_access = c.i8()
        with inside("value"):
            return last_access, self.value.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        last_access, user_value = sequence(value, "value with its last access", 2)
        out.i8(last_access)
        with inside("value"):
            self.value.encode(out, user_value)

    def program(self) -> Op:
        return Ttl(self.value.program())


class TtlAwareSerializer(Serializer):
    """``TtlAwareSerializer``: writes the bytes of the wrapped serializer."""

    def __init__(self, name: str, version: int, enabled: bool, wrapped: Serializer) -> None:
        super().__init__(name, version)
        self.enabled = enabled
        self.wrapped = wrapped
        self.length = wrapped.length
        self.nullable = wrapped.nullable

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        return (("wrapped", self.wrapped),)

    @property
    def replaceable(self) -> bool:
        return True

    def with_child(self, step: str, part: Serializer) -> Serializer:
        changed = copy.copy(self)
        changed.wrapped = part
        return changed

    @property
    def needs_frame(self) -> bool:
        return self.wrapped.needs_frame

    @property
    def type_name(self) -> str:
        return self.wrapped.type_name

    @property
    def logical(self) -> LogicalType:
        return self.wrapped.logical

    def decode(self, c: Cursor) -> Any:
        return self.wrapped.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.wrapped.encode(out, value)

    def hash_code(self, value: Any) -> int:
        return self.wrapped.hash_code(value)

    def program(self) -> Op:
        return self.wrapped.program()

    def write_payload(self, out: Output) -> None:
        out.bool(self.enabled)
        self.wrapped.write_snapshot(out)


def unwrap(serializer: Serializer) -> Serializer:
    """Return the serializer inside wrappers that add no bytes."""
    while isinstance(serializer, TtlAwareSerializer):
        serializer = serializer.wrapped
    return serializer


def _read_ttl_aware(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return TtlAwareSerializer(name, version, c.bool(), reader.snapshot(c))


def _window_names(spec: SimpleType) -> dict[str, SnapshotClass]:
    (reader,) = simple_readers((spec,)).values()
    return {f"{spec.name}$Serializer${spec.name}SerializerSnapshot": reader}


SNAPSHOTS: Final = {
    **_window_names(TIME_WINDOW),
    **_window_names(GLOBAL_WINDOW),
    **_window_names(COUNT_WINDOW),
    **simple_readers((VOID_NAMESPACE,)),
    "TimerSerializerSnapshot": composite(TimerSerializer, outer_versions=(1, 2)),
    "TimerSerializer$TimerSerializerConfigSnapshot": composite(TimerSerializer, outer_versions=(1, 2)),
    "TtlStateFactory$TtlSerializerSnapshot": composite(TtlSerializer, outer_versions=(1, 2)),
    # Up to Flink 1.7 this general class means TTL values, the only ones that used it.
    "CompositeSerializer$ConfigSnapshot": composite(TtlSerializer, outer_versions=(1, 2)),
    "TtlAwareSerializerSnapshot": SnapshotClass(_read_ttl_aware, (1,)),
}
