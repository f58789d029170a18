"""Raw keyed state with timers: those that the RocksDB backend kept on the heap, and those of Flink 1.5 and older.

The stream has no header. At the offset of each key group (-1: not written)::

    F1 CD 85 9F, i4 version     absent up to Flink 1.3
    i4 services; for each:
        utf name
        key and namespace serializer    version 2 (1.8 and later): two snapshots; 1: a resilient list of 2; none: two Java objects
        i4 n, n event-time timers; i4 n, n processing-time timers: key, namespace, i8 timestamp

Timers become the same entries as in managed state: sign-flipped timestamp, key, namespace, with an empty value, in a state
``_timer_state/event_<service>`` or ``_timer_state/processing_<service>``.

Follows ``InternalTimerServiceSerializationProxy`` and ``InternalTimersSnapshotReaderWriters``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import known_name
from statetool.serializers.core.snapshot import SnapshotReader
from statetool.serializers.runtime import TimerSerializer
from statetool.serializers.simple_types import serializer_of_class
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext

T = TypeVar("T")
DOMAINS: Final = ("event", "processing")
TIMESTAMP_BYTES: Final = 8
IDENTIFIER: Final = bytes.fromhex("f1cd859f")
#: Bytes at the start of a key group by which :func:`is_versioned` knows timers.
MARK_BYTES: Final = len(IDENTIFIER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTimers(Generic[T]):
    """Timers of one service and time domain in one key group; ``result`` is the return value of ``find``."""

    state: str
    timer: TimerSerializer
    result: T


def read_raw_header(region: memoryview, types: TypeContext, *, base: int, key: Serializer | None) -> KeyedHeader | None:
    """Return the timer states of a key group as the header of a keyed stream; ``None`` if there is no timer service.

    Parameters
    ----------
    region
        All bytes of a key group.
    types
        Type information from outside the region.
    base
        Offset of the region in the file, for messages.
    key
        Key serializer of the operator's managed state, needed for old snapshots.

    Raises
    ------
    FormatError, UnknownSerializerError
        Not timers, or damaged.
    """
    services = parse_raw_timers(region, types, base=base, key=key, find=_skip)
    states = tuple(
        StateMetaInfo(name=t.state, backend_type=PRIORITY_QUEUE, options={}, serializers={"VALUE_SERIALIZER": t.timer})
        for t in services
    )
    if not services:
        return None
    return KeyedHeader(
        version=CURRENT_VERSION, compressed=False, key=services[0].timer.nested[0], states=states, size_bytes=0
    )


def is_versioned(region: memoryview) -> bool:
    """Return True if raw keyed state starts like timers do. Timers up to Flink 1.3 do not, nor does raw state of user operators."""
    return bytes(region[:MARK_BYTES]) == IDENTIFIER


def parse_raw_timers(
    region: memoryview,
    types: TypeContext,
    *,
    base: int,
    key: Serializer | None,
    find: Callable[[Cursor, TimerSerializer, int], T],
) -> list[RawTimers[T]]:
    """Parse the timers of a key group.

    Parameters
    ----------
    region, types, base, key
        As for :func:`read_raw_header`.
    find
        Skips a number of timers, and returns the result to store for them.
    """
    c = Cursor(region, base=base)
    reader = snapshot_reader(types)
    version = 0
    if is_versioned(region):
        c.skip(4)
        version = c.i4()
        if version not in (1, 2):
            raise c.fail(f"timers of version {version}, expected 1 or 2", pos=c.pos - 4)
    timers = []
    for _ in range(c.count("timer services", at_least=2)):
        service = c.utf()
        timer = _timer_serializer(c, reader, version, key)
        for domain in DOMAINS:
            name = f"_timer_state/{domain}_{service}"
            try:
                n = c.count("timers", at_least=TIMESTAMP_BYTES)
                _check_nested(c, timer, n)
                timers.append(RawTimers(state=name, timer=timer, result=find(c, timer, n)))
            except StatetoolError as error:
                raise error.at(state=name) from None
    c.expect_end("the timers of a key group")
    return timers


def _timer_serializer(c: Cursor, reader: SnapshotReader, version: int, key: Serializer | None) -> TimerSerializer:
    if version == 2:
        pair = (reader.snapshot(c), reader.snapshot(c))
    elif version == 1:
        listed = reader.resilient_list(c)
        if len(listed) != 2:
            raise c.fail(f"{len(listed)} serializers of timers, expected those of key and namespace")
        pair = (listed[0], listed[1])
    else:
        pair = (_from_object(c, key), _from_object(c, None))
    # In the form of Flink 1.8 and later, so that the timers can be written as managed ones.
    return TimerSerializer("org.apache.flink.streaming.api.operators.TimerSerializerSnapshot", 3, 2, None, pair)


def _from_object(c: Cursor, known: Serializer | None) -> Serializer:
    """Return the serializer of a Java object: one without parameters, or the known one if it has the object's class."""
    at = c.offset
    value = read_java_stream(c)
    if not isinstance(value, JavaObject):
        raise FormatError("expected a serializer as a Java object").at(offset=at)
    simple = serializer_of_class(value.cls.name)
    if simple is not None:
        return simple
    if known is not None and type(known).__name__ == known_name(value.cls.name):
        return known
    raise UnknownSerializerError(f"timers written with a Java-serialized {value.cls.name}, which is not known").at(
        offset=at
    )


def _skip(c: Cursor, timer: TimerSerializer, n: int) -> None:
    key, namespace = timer.nested
    for _ in range(n):
        key.skip(c)
        namespace.skip(c)
        c.skip(TIMESTAMP_BYTES)


def _check_nested(c: Cursor, timer: TimerSerializer, n: int) -> None:
    for step, nested in timer.children():
        if n and nested.needs_frame:
            raise UnknownSerializerError(
                f"the end of a {step} of {nested.type_name} cannot be found in raw timers",
                hint="take a canonical savepoint of the job, in which every timer has its own frame",
            ).at(offset=c.offset, type_path=step)
