"""Timers of the RocksDB backend that were kept on the heap, and of Flink 1.5 and older: raw keyed state.

The stream has no header. At the offset of each key group (-1: it was not written)::

    F1 CD 85 9F, i4 version     absent up to Flink 1.3: what follows starts right away
    i4 services; for each:
        utf name
        key and namespace serializer    version 2 (1.8 and later): two snapshots; 1: a resilient list of 2; none: two Java objects
        i4 n, n event-time timers; i4 n, n processing-time timers: key, namespace, i8 timestamp

Timers become the entries that the same timers would be in managed state: sign-flipped timestamp, key, namespace, with an empty value,
in a state ``_timer_state/event_<service>`` or ``_timer_state/processing_<service>``.

Follows ``InternalTimerServiceSerializationProxy`` and ``InternalTimersSnapshotReaderWriters``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError
from statetool.formats.keyed.canonical import KeyGroupRange
from statetool.formats.keyed.entries import Int64s, RebuiltBatch
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMeta
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.io.java_stream import JavaObject, read_java_stream
from statetool.kernels.codes import MESSAGES, OK
from statetool.kernels.program import Fixed, Struct
from statetool.kernels.skip import compile_skip, element_positions
from statetool.kernels.timers import flip_timers
from statetool.serializers.base import Serializer
from statetool.serializers.runtime import TimerSerializer
from statetool.serializers.snapshot import read_resilient_list, read_snapshot, serializer_of_class

DOMAINS: Final = ("event", "processing")
_IDENTIFIER: Final = bytes.fromhex("f1cd859f")
_TIMESTAMP_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timers:
    """Timers of one service and domain: where each starts, and where the last one ends."""

    state: str
    timer: TimerSerializer
    starts: Int64s
    end: int


def read_raw_header(region: memoryview, *, base: int, key: Serializer | None) -> KeyedHeader | None:
    """Return the timer states of a key group as the header of a keyed stream, ``None`` where there is no timer service.

    Parameters
    ----------
    region
        All bytes of a key group.
    base
        Where it starts in the file, for messages.
    key
        Key serializer of the operator's managed state, which old snapshots are read with.

    Raises
    ------
    FormatError, UnknownSerializerError
        Not timers, or damaged.
    """
    found = _parse(region, base, key)
    states = tuple(
        StateMeta(name=t.state, backend_type=PRIORITY_QUEUE, options={}, serializers={"VALUE_SERIALIZER": t.timer})
        for t in found
    )
    if not found:
        return None
    return KeyedHeader(
        version=CURRENT_VERSION, compressed=False, key=found[0].timer.nested[0], states=states, size_bytes=0
    )


def is_versioned(region: memoryview) -> bool:
    """Tell whether raw keyed state says that it is timers; up to Flink 1.3 it does not, nor does an operator's own raw state."""
    return bytes(region[:4]) == _IDENTIFIER


def read_raw_timers(f: OpenStream, groups: Sequence[KeyGroupRange], header: KeyedHeader) -> Iterator[RebuiltBatch]:
    """Read the timers of some key groups, a batch for each.

    Parameters
    ----------
    header
        From :func:`read_raw_header`.

    Raises
    ------
    FormatError
        Damaged, or other services than in ``header``; with file, offset and key group.
    """
    ids = {m.name: i for i, m in enumerate(header.states)}
    for group in groups:
        region = f.read_at(group.offset, group.size_bytes)
        base = f.stream.start + group.offset
        try:
            found = _parse(region, base, header.key)
            if unknown := {t.state for t in found} - ids.keys():
                raise FormatError(f"timers {', '.join(sorted(unknown))}, which other key groups do not have").at(
                    offset=base
                )
            yield _batch(region, found, ids, group.number, f.stream.file)
        except StatetoolError as error:
            raise error.at(file=f.stream.file, key_group=group.number) from None


def _parse(region: memoryview, base: int, key: Serializer | None) -> list[_Timers]:
    c = Cursor(region, base=base)
    version = 0
    if is_versioned(region):
        c.skip(4)
        version = c.i4()
        if version not in (1, 2):
            raise c.fail(f"timers of version {version}, expected 1 or 2", pos=c.pos - 4)
    found = []
    for _ in range(c.count("timer services", at_least=2)):
        service = c.utf()
        timer = _timer(c, version, key)
        for domain in DOMAINS:
            name = f"_timer_state/{domain}_{service}"
            try:
                found.append(_find(c, name, timer))
            except StatetoolError as error:
                raise error.at(state=name) from None
    c.expect_end("the timers of a key group")
    return found


def _timer(c: Cursor, version: int, key: Serializer | None) -> TimerSerializer:
    if version == 2:
        parts = (read_snapshot(c), read_snapshot(c))
    elif version == 1:
        listed = read_resilient_list(c)
        if len(listed) != 2:
            raise c.fail(f"{len(listed)} serializers of timers, expected those of key and namespace")
        parts = (listed[0], listed[1])
    else:
        parts = (_from_object(c, key), _from_object(c, None))
    return TimerSerializer("TimerSerializerSnapshot", 2, 2, None, parts)


def _from_object(c: Cursor, known: Serializer | None) -> Serializer:
    """Return the serializer that a Java object is: one without parameters, or the known one if it is of that class."""
    at = c.offset
    found = read_java_stream(c)
    if not isinstance(found, JavaObject):
        raise FormatError("expected a serializer as a Java object").at(offset=at)
    simple = serializer_of_class(found.cls.name)
    if simple is not None:
        return simple
    if known is not None and type(known).__name__ == found.cls.name.rpartition(".")[2]:
        return known
    raise UnknownSerializerError(f"timers written with a Java-serialized {found.cls.name}, which is not known").at(
        offset=at
    )


def _find(c: Cursor, name: str, timer: TimerSerializer) -> _Timers:
    n = c.count("timers", at_least=_TIMESTAMP_BYTES)
    for step, part in timer.children():
        if n and part.framed_only:
            raise UnknownSerializerError(
                f"the end of a {step} of {part.type_name} cannot be found in raw timers",
                hint="take a canonical savepoint of the job, in which every timer has a frame of its own",
            ).at(offset=c.offset, type_path=step)
    key, namespace = timer.nested
    prog = compile_skip(Struct(("key", "namespace", "timestamp"), (key.program(), namespace.program(), Fixed("i64"))))
    starts = np.empty(n, dtype=np.int64)
    if prog is None:
        for i in range(n):
            starts[i] = c.pos
            key.skip(c)
            namespace.skip(c)
            c.skip(_TIMESTAMP_BYTES)
        return _Timers(state=name, timer=timer, starts=starts, end=c.pos)
    pos, end, counts = (np.array([v], dtype=np.int64) for v in (c.pos, c.end, n))
    after = pos.copy()
    scratch = np.empty(n, dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    data = np.frombuffer(c.data, dtype=np.uint8)
    code, _ = element_positions(data, prog, none, pos, end, counts, starts, none, scratch, after)
    if code != OK:
        raise c.fail(f"timers: {MESSAGES[int(code)][0]}")
    c.pos = int(after[0])
    return _Timers(state=name, timer=timer, starts=starts, end=c.pos)


def _batch(region: memoryview, found: list[_Timers], ids: dict[str, int], key_group: int, file: str) -> RebuiltBatch:
    starts = np.concatenate([t.starts for t in found] or [np.empty(0, dtype=np.int64)])
    ends = np.concatenate([np.append(t.starts[1:], t.end) for t in found if len(t.starts)] or [starts])
    state = np.concatenate([np.full(len(t.starts), ids[t.state], dtype=np.int64) for t in found] or [starts])
    key_end = np.cumsum(ends - starts)
    key = key_end - (ends - starts)
    data = np.empty(int(key_end[-1]) if len(key_end) else 0, dtype=np.uint8)
    flip_timers(np.frombuffer(region, dtype=np.uint8), starts, ends, key, data)
    data.flags.writeable = False
    return RebuiltBatch(
        data=data, state=state, group=np.full(len(key), key_group, dtype=np.int64), key=key, key_end=key_end,
        value=key_end, value_end=key_end, regions=(), file=file,
    )  # fmt: skip
