"""Records in flight: whether the new job reads them, by the types that the code of both jobs names.

The buffers have no types. Those types of the old code that read all records of an exchange without a byte left over are the types that the exchange
can have; the same expressions in the new code, with the classes of the new jar, read them in the new job. Flink's deserializer does not compare
types: it fails, or takes the bytes of the next record for those of a field (``SpillingAdaptiveSpanningRecordDeserializer``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, Literal

from statetool.compatibility.classes.trial import NewClasses
from statetool.compatibility.declared_types import serializer_of
from statetool.errors import StatetoolError
from statetool.formats.channel_state import Channel, read_buffers, read_records
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.serializers.streaming import StreamElementSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import ClassSource, TypeContext
from statetool.types.flink_calls import FlinkCall, typing_calls
from statetool.types.java import PRIMITIVES
from statetool.types.type_information import TypeInformation

#: Tags of stream elements with a record (``StreamElementSerializer``).
_RECORDS: Final = (0, 1)
_BATCH_BYTES: Final = 1 << 20
#: Records and channels of an exchange that are read. An exchange with more is only known if its types are the same.
_MOST_RECORDS: Final = 10_000
_MOST_CHANNELS: Final = 64
_STREAMS: Final = ("org.apache.flink.streaming.api.datastream.", "org.apache.flink.streaming.api.environment.")
_SETTINGS: Final = (
    "org.apache.flink.api.common.ExecutionConfig",
    "org.apache.flink.api.common.serialization.SerializerConfig",
)
_ENVIRONMENT: Final = "StreamExecutionEnvironment"
#: Methods of the environment that take the type of the records from a value.
_OF_VALUES: Final = ("fromElements", "fromData", "fromCollection", "fromParallelCollection")

#: How the new job reads the records of an exchange: the same values, other ones, or bytes that are no records.
Reading = Literal["same", "other", "garbled"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """In-flight records of one side of an operator, and how the new job reads them; ``None`` if the code does not tell."""

    operator: OperatorInventory
    types: tuple[str, ...]
    reading: Reading | None


def has_same_streams(before: Iterable[FlinkCall], after: Iterable[FlinkCall]) -> bool:
    """Return True if the code of two jobs builds its streams by the same calls."""
    old, new = (
        [_stream_call(c) for c in calls if c.owner.startswith(_STREAMS) or c.use == "streams" or _is_setting(c)]
        for calls in (before, after)
    )
    return old == new


def has_same_types(old: TypeContext, new: TypeContext) -> bool:
    """Return True if the code of two jobs gives the records of all streams the same types, whatever the fields of their classes are."""
    if old.source is None or new.source is None:
        return False
    before, after = (
        typing_calls((*t.source.flink_calls(), *t.source.own_calls())) for t in (old, new) if t.source is not None
    )
    # A primitive is the result of a filter or the like.
    named, others = ({name for name in _types_of(t) if name not in PRIMITIVES} for t in (old, new))
    # The same types may change places between functions.
    functions, of_new = old.source.function_types(), new.source.function_types()
    kept = all(functions[name] == of_new[name] for name in functions.keys() & of_new.keys())
    return before == after and named == others and kept


def _is_setting(call: FlinkCall) -> bool:
    """Return True for a call that may give types other serializers: of Kryo, of Avro, or registered ones."""
    return call.owner.startswith(_SETTINGS) or any(
        a.startswith(("PipelineOptions.", '"pipeline.')) for a in call.arguments
    )


def _stream_call(call: FlinkCall) -> tuple[str, ...]:
    return (call.owner, call.name, call.place, *call.without_code().arguments)


def read_exchanges(operator: OperatorInventory, classes: NewClasses) -> Iterator[Exchange]:
    """Yield how the new job reads the in-flight records of an operator.

    Raises
    ------
    FormatError
        Data or a class file is damaged.
    """
    old, new = (replace(types, renewed=False, python=()) for types in (classes.old, classes.new))
    before, after = (_types_of(types) for types in (old, new))
    unnamed = _unnamed_types(before, old, new)
    channels = sorted(operator.channels, key=lambda c: (c.side, c.gate, c.subtask, c.channel))
    for _, group in groupby(channels, key=lambda c: (c.side, c.gate)):
        elements = _read_elements(list(group))
        if not elements.records:
            # Without records, there are only watermarks, or parts of one.
            yield Exchange(operator, (), None if elements.has_parts else "same")
            continue
        fitting = {
            name: found for name, kind in before.items() if (found := _decode_all(elements, kind, old)) is not None
        }
        readings = {_read_by_name(name, values, elements, before, after, old, new) for name, values in fitting.items()}
        if any(_decode_all(elements, kind, old) is not None for kind in unnamed):
            readings.add(None)
        yield Exchange(operator, tuple(fitting), readings.pop() if len(readings) == 1 else None)


def _types_of(types: TypeContext) -> Mapping[str, TypeInformation]:
    return {} if types.source is None else types.source.record_types(types.kryo)


def _unnamed_types(named: Mapping[str, TypeInformation], old: TypeContext, new: TypeContext) -> list[TypeInformation]:
    """Return the types of changed classes that no code names, and of which a stream may be made of values."""
    if old.source is None or new.source is None:
        return []
    if not any(c.owner.endswith(_ENVIRONMENT) and c.name in _OF_VALUES for c in old.source.flink_calls()):
        return []
    changed = [name for name in old.source.changed_classes(new.source) if name not in named]
    found = (old.type_information(name) for name in changed)
    return [kind for kind in found if kind is not None and kind.kind == "pojo" and kind.is_settled]


@dataclass(frozen=True, slots=True)
class _Elements:
    """Stream elements of an exchange.

    Attributes
    ----------
    records
        The bytes of those that have a record.
    has_parts
        Whether there are parts of elements before or after them.
    is_whole
        Whether these are all records.
    """

    records: list[bytes]
    has_parts: bool
    is_whole: bool


def _read_elements(channels: Sequence[Channel]) -> _Elements:
    records: list[bytes] = []
    has_parts = False
    for channel in channels[:_MOST_CHANNELS]:
        with channel.stream.open() as f:
            for read in read_records(read_buffers(f, channel), side=channel.side, batch_bytes=_BATCH_BYTES):
                has_parts = has_parts or bool(read.head or read.tail)
                records += (bytes(read.data[a:b]) for a, b in read.places if read.data[a] in _RECORDS)
                if len(records) > _MOST_RECORDS:
                    return _Elements(records[:_MOST_RECORDS], has_parts, is_whole=False)
    return _Elements(records, has_parts, is_whole=len(channels) <= _MOST_CHANNELS)


def _decode_all(elements: _Elements, kind: TypeInformation, types: TypeContext) -> list[Any] | None:
    """Return the values of all records, ``None`` if a type does not read them exactly."""
    serializer = serializer_of(kind, types)
    if serializer is None:
        return None
    element = _element(serializer)
    values: list[Any] = []
    for record in elements.records:
        decoded = _decode(element, record)
        if decoded is None:
            return None
        values += decoded
    return values


def _element(serializer: Serializer) -> Serializer:
    return StreamElementSerializer("", 1, 1, None, (serializer,))


def _decode(element: Serializer, data: bytes) -> tuple[Any] | None:
    """Return the value of an element, ``None`` if its bytes are not exactly one."""
    cursor = Cursor(data)
    try:
        value = element.decode(cursor)
    except StatetoolError:
        return None
    return (value,) if cursor.left == 0 else None


def _read_by_name(
    name: str,
    values: list[Any],
    elements: _Elements,
    before: Mapping[str, TypeInformation],
    after: Mapping[str, TypeInformation],
    old: TypeContext,
    new: TypeContext,
) -> Reading | None:
    """Return how the new job reads records of a type of the old code."""
    if name in after:
        return _read(values, elements, before[name], after[name], old, new)
    # The new code gives another type: one that it did not have before, if only that one reads the records.
    readings = {other: _read(values, elements, before[name], kind, old, new) for other, kind in after.items()}
    fitting = {other for other, reading in readings.items() if reading != "garbled"}
    if after and not fitting:
        return "garbled"
    if fitting & before.keys() or len({after[other] for other in fitting}) != 1:
        return None
    return readings[fitting.pop()]


def _read(
    values: list[Any],
    elements: _Elements,
    before: TypeInformation,
    after: TypeInformation,
    old: TypeContext,
    new: TypeContext,
) -> Reading | None:
    if before == after and old.kryo == new.kryo and has_same_classes(before, old.source, new.source):
        return "same"
    serializer = serializer_of(after, new)
    if serializer is None:
        return None
    element = _element(serializer)
    is_same = True
    for record, value in zip(elements.records, values, strict=True):
        decoded = _decode(element, record)
        if decoded is None:
            return "garbled"
        is_same = is_same and decoded[0] == value
    if is_same and not elements.is_whole:
        return None
    # The fields of a POJO are read in their order, and values are given to those of other names.
    return "same" if is_same and _field_names(before) == _field_names(after) else "other"


def _field_names(kind: TypeInformation) -> list[tuple[str, ...]]:
    return [tuple(name for name, _ in part.fields) for part in kind.walk() if part.kind == "pojo"]


def has_same_classes(kind: TypeInformation, old: ClassSource | None, new: ClassSource | None) -> bool:
    """Return True if both jars have the same classes for all parts of a type, and for their subclasses, or need none.

    Values of Kryo have classes that no type names.
    """
    if old is None or new is None or any(part.kind == "kryo" for part in kind.walk()):
        return False
    names = {part.java_class for part in kind.walk() if part.kind in ("pojo", "enum", "avro", "value", "copyable")}
    names |= {below for name in names for source in (old, new) for below in source.implementations(name)}
    return all(old.is_same(name, new) or not (old.has(name) or new.has(name)) for name in names)


__all__ = ["Exchange", "Reading", "has_same_classes", "has_same_streams", "has_same_types", "read_exchanges"]
