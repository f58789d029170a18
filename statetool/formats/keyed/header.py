"""Header of keyed state streams (``KeyedBackendSerializationProxy``), proxy versions 3 to 6.

i32 version, bool compression (4 and later), key serializer, i16 n, n state metadata entries. It is also the complete ``meta`` stream of
RocksDB snapshots. A state's id is its index. Timers may have two ids: after a switch of the timer service, RocksDB's backend writes those
of its database and those of the heap under one name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from statetool.errors import UnsupportedError
from statetool.formats.keyed.projections import with_projections
from statetool.formats.state_meta import (
    ReadSerializer,
    StateMetaInfo,
    newer_version,
    read_m3,
    read_m5,
    read_m6,
    read_with_unknowns,
    write_meta_v6,
)
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotReader, write_proxied
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext

CURRENT_VERSION: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedHeader:
    """Metadata of a keyed stream; ``size_bytes`` is the start of its data.

    Attributes
    ----------
    states
        The states, each name once.
    stored_ids
        The index in ``states`` of each stored state id; ``None`` if they are equal, because no name is stored twice.
    """

    version: int
    compressed: bool
    key: Serializer
    states: tuple[StateMetaInfo, ...]
    size_bytes: int
    stored_ids: tuple[int, ...] | None = None

    def as_stored(self) -> KeyedHeader:
        """Return the header with a state per stored id, so that a name may occur twice."""
        if self.stored_ids is None:
            return self
        return replace(self, states=tuple(self.states[i] for i in self.stored_ids), stored_ids=None)


def read_keyed_header(c: Cursor, types: TypeContext, *, end: int | None = None) -> KeyedHeader:
    """Read the header.

    Parameters
    ----------
    types
        Type information from outside the header.
    end
        Position right after the header if known (the first key group's offset): it is checked, and makes the other states readable if a
        serializer class is unknown.

    Raises
    ------
    FormatError, UnknownSerializerError, UnsupportedError
    """
    return read_with_unknowns(c, snapshot_reader(types), _parse, end=end)


def _parse(c: Cursor, reader: SnapshotReader, read: ReadSerializer) -> KeyedHeader:
    version = c.i4()
    if not 3 <= version <= CURRENT_VERSION:
        if version in (1, 2):
            raise UnsupportedError(
                f"keyed state of proxy version {version} (Flink 1.2)", hint="migrate it through Flink 1.3"
            ).at(offset=c.offset - 4)
        if version > CURRENT_VERSION:
            raise newer_version(c, "keyed state proxy", version, "3 to 6")
        raise c.fail(f"keyed state proxy version {version} is not 3 to 6", pos=c.pos - 4)
    compressed = c.bool() if version >= 4 else False
    if version == CURRENT_VERSION:
        key = read(c, 0, 0)
    else:
        serializers = reader.resilient_list(c)
        if len(serializers) != 1:
            raise c.fail(f"{len(serializers)} key serializers, expected 1")
        key = serializers[0]
    n = c.i2()
    if n < 0:
        raise c.fail(f"{n} states", pos=c.pos - 2)
    states: dict[str, StateMetaInfo] = {}
    stored: dict[str, memoryview | bytes] = {}
    names = []
    for states_left in reversed(range(n)):
        start = c.pos
        meta = _state(c, version, reader, read, states_left)
        raw = c.data[start : c.pos]
        if meta.name in states and (meta.kind != "timers" or raw != stored[meta.name]):
            raise c.fail(f"two different states with the name {meta.name!r}", pos=start)
        states.setdefault(meta.name, meta)
        stored[meta.name] = raw
        names.append(meta.name)
    places = {name: i for i, name in enumerate(states)}
    return KeyedHeader(
        version=version,
        compressed=compressed,
        key=key.as_key(),
        states=tuple(states.values()),
        size_bytes=c.pos,
        stored_ids=tuple(places[name] for name in names) if len(places) < n else None,
    )


def _state(c: Cursor, version: int, reader: SnapshotReader, read: ReadSerializer, states_left: int) -> StateMetaInfo:
    if version == CURRENT_VERSION:
        return with_projections(read_m6(c, reader.types, read, states_left))
    return read_m5(c, reader) if version == 5 else read_m3(c, reader)


def write_keyed_header(header: KeyedHeader) -> bytes:
    """Return the bytes of a header of the current version."""
    out = Output()
    out.i4(CURRENT_VERSION)
    out.bool(header.compressed)
    write_proxied(out, header.key)
    out.i2(len(header.states))
    for state in header.states:
        write_meta_v6(out, state)
    return bytes(out)
