"""Header of keyed state streams (``KeyedBackendSerializationProxy``), proxy versions 3 to 6.

i32 version, bool compression (4 and later), key serializer, i16 n, n state metadata entries. It is also the complete ``meta`` stream of
RocksDB snapshots. A state's id is its index.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from statetool.serializers.base import Serializer
from statetool.serializers.snapshot import SnapshotReader, write_proxied
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext

CURRENT_VERSION: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedHeader:
    """Metadata of a keyed stream; ``size_bytes`` is the start of its data"""

    version: int
    compressed: bool
    key: Serializer
    states: tuple[StateMetaInfo, ...]
    size_bytes: int


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
    states = tuple(_state(c, version, reader, read, states_left) for states_left in reversed(range(n)))
    return KeyedHeader(version=version, compressed=compressed, key=key.as_key(), states=states, size_bytes=c.pos)


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
