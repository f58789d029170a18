"""Durations, time zones and orderings of flink-scala-api. Their snapshots have no content.

``FiniteDuration``: i64 length, i32 index of the ``TimeUnit``. ``Duration``: i8 0 and a finite one, 1 undefined, 2 infinite, 3 negative
infinite, -1 null. ``ZoneId``: nullable string. ``ZoneOffset``: i32 seconds, null is -2147483648. ``OffsetDateTime`` and
``ZonedDateTime``: ``LocalDateTime``, then the offset or the zone; both are null together. Orderings of the standard library take no bytes.
Follows ``org.apache.flinkx.api.serializer``, flink-scala-api 2.0.0 to 2.2.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Constant, Text
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer, SimpleType
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.libraries.flinkx.case_class import NULL
from statetool.serializers.typeutils.basic import read_string, write_string
from statetool.serializers.typeutils.composite import sequence
from statetool.serializers.typeutils.temporal import TYPES as TEMPORAL
from statetool.types import LogicalType, Scalar, StructType

_UNITS: Final = ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
_LOCAL: Final = next(t for t in TEMPORAL if t.name == "LocalDateTime")
_FINITE: Final = StructType.of(length=Scalar("int64"), unit=Scalar("string"))
_KINDS: Final = ("finite", "undefined", "infinite", "negative infinite")
_ORDERINGS: Final = (
    "Unit DefaultBoolean DefaultByte DefaultChar DefaultShort DefaultInt DefaultLong DefaultFloat FloatIeee DefaultDouble DoubleIeee "
    "DefaultBigInt DefaultBigDecimal DefaultString"
)


def _read_finite(c: Cursor) -> tuple[int, str]:
    length, unit = c.i8(), c.i4()
    if not 0 <= unit < len(_UNITS):
        raise c.fail(f"{unit} is not one of the {len(_UNITS)} units of time", pos=c.pos - 4)
    return length, _UNITS[unit]


def _write_finite(out: Output, value: Any) -> None:
    length, unit = sequence(value, "FiniteDuration", 2)
    if unit not in _UNITS:
        raise EncodeError(f"{unit!r} is not a unit of time: {', '.join(_UNITS)}")
    out.i8(length)
    out.i4(_UNITS.index(unit))


def _read_duration(c: Cursor) -> tuple[str, int | None, str | None] | None:
    kind = c.i1()
    if kind == -1:
        return None
    if not 0 <= kind < len(_KINDS):
        raise c.fail(f"{kind} is not a kind of Duration", pos=c.pos - 1)
    return (_KINDS[kind], *(_read_finite(c) if kind == 0 else (None, None)))


def _write_duration(out: Output, value: Any) -> None:
    if value is None:
        out.i1(-1)
        return
    kind, length, unit = sequence(value, "Duration", 3)
    if kind not in _KINDS or (kind != _KINDS[0] and (length, unit) != (None, None)):
        raise EncodeError(
            f"{value!r} is not a Duration: its kind is one of {', '.join(_KINDS)}, only finite ones have a length"
        )
    out.i1(_KINDS.index(kind))
    if kind == _KINDS[0]:
        _write_finite(out, (length, unit))


def _read_offset(c: Cursor) -> int | None:
    seconds = c.i4()
    if seconds != NULL and abs(seconds) > 18 * 3600:
        raise c.fail(f"{seconds} seconds are not a ZoneOffset", pos=c.pos - 4)
    return None if seconds == NULL else seconds


def _write_offset(out: Output, seconds: int | None) -> None:
    out.i4(NULL if seconds is None else seconds)


def _read_local(part: Callable[[Cursor], Any], name: str) -> Callable[[Cursor], Any]:
    def read(c: Cursor) -> Any:
        start = c.pos
        local, zone = _LOCAL.decode(c), part(c)
        if (local is None) != (zone is None):
            raise c.fail(f"half a null {name}", pos=start)
        return None if local is None else (local, zone)

    return read


def _write_local(part: Callable[[Output, Any], None], name: str) -> Callable[[Output, Any], None]:
    def write(out: Output, value: Any) -> None:
        local, zone = (None, None) if value is None else sequence(value, name, 2)
        if (local is None) != (zone is None):
            raise EncodeError(f"half a null {name}")
        _LOCAL.encode(out, local)
        part(out, zone)

    return write


TYPES: Final = (
    SimpleType(name="FiniteDuration", logical=_FINITE, length=12, decode=_read_finite, encode=_write_finite),
    SimpleType(
        name="Duration", logical=StructType.of(kind=Scalar("string"), length=Scalar("int64"), unit=Scalar("string")),
        length=-1, nullable=True, decode=_read_duration, encode=_write_duration,
    ),
    SimpleType(
        name="ZoneId", logical=Scalar("string"), length=-1, nullable=True, op=Text(), decode=read_string,
        encode=write_string,
    ),
    SimpleType(
        name="ZoneOffset", logical=Scalar("int32"), length=4, nullable=True, decode=_read_offset,
        encode=_write_offset, hash_code=int,
    ),
    SimpleType(
        name="OffsetDateTime", logical=StructType.of(local=_LOCAL.logical, offset_seconds=Scalar("int32")),
        length=_LOCAL.length + 4, nullable=True, decode=_read_local(_read_offset, "OffsetDateTime"),
        encode=_write_local(_write_offset, "OffsetDateTime"),
    ),
    SimpleType(
        name="ZonedDateTime", logical=StructType.of(local=_LOCAL.logical, zone=Scalar("string")), length=-1,
        nullable=True, decode=_read_local(read_string, "ZonedDateTime"),
        encode=_write_local(write_string, "ZonedDateTime"),
    ),
)  # fmt: skip


def _nothing(c: Cursor) -> None:
    return None


def _write_nothing(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in the place of an ordering, which has no value")


def _ordering(name: str) -> SimpleType:
    return SimpleType(
        name=f"{name}Ordering", logical=Scalar("null"), length=0, nullable=True, none_is_value=True, op=Constant(0),
        decode=_nothing, encode=_write_nothing,
    )  # fmt: skip


class OrderingOfSerializer(Serializer):
    """The reverse of an ordering, or an ordering of options: the bytes of the ordering."""

    def __init__(self, name: str, version: int, ordering: Serializer) -> None:
        super().__init__(name, version)
        self.ordering = ordering
        self.length = ordering.length

    def children(self) -> tuple[tuple[str, Serializer], ...]:
        return (("ordering", self.ordering),)

    @property
    def logical(self) -> LogicalType:
        return self.ordering.logical

    def decode(self, c: Cursor) -> Any:
        return self.ordering.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.ordering.encode(out, value)

    def write_payload(self, out: Output) -> None:
        self.ordering.write_snapshot(out)


def _read_simple(spec: SimpleType) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        return SimpleSerializer(name, version, spec, None)

    return SnapshotClass(read, (3,))


def _read_ordering_of(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return OrderingOfSerializer(name, version, reader.snapshot(c))


SNAPSHOTS: Final = {
    **{f"{t.name}SerializerSnapshot": _read_simple(t) for t in TYPES},
    **{f"{n}OrderingSerializerSnapshot": _read_simple(_ordering(n)) for n in _ORDERINGS.split()},
    "ReverseOrderingSerializerSnapshot": SnapshotClass(_read_ordering_of, (1,)),
    "OptionOrderingSerializerSnapshot": SnapshotClass(_read_ordering_of, (1,)),
}
