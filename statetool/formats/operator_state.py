"""Header of operator state streams (``OperatorBackendSerializationProxy``), proxy versions 2 to 6.

i32 version, bool compression (6), i16 n list states, i16 n broadcast states (3 and later). The data has no framing: the offsets in the
handle are the starts of elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.errors import UnsupportedError
from statetool.formats.compression import STREAM_START
from statetool.formats.keyed.subclasses import learn_states
from statetool.formats.metadata.handles import MODES
from statetool.formats.state_meta import (
    BROADCAST,
    OPERATOR,
    ReadSerializer,
    StateMetaInfo,
    newer_version,
    read_m5,
    read_m6,
    read_with_unknowns,
    write_meta_v6,
)
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.snapshot import SnapshotReader
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext

#: From this version on, the first element follows the header without a count.
_EXACT: Final = 3
_CURRENT: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorHeader:
    """Metadata of an operator state stream; ``size_bytes`` is the start of its data."""

    version: int
    compressed: bool
    states: tuple[StateMetaInfo, ...]
    size_bytes: int


def is_compressed(first: bytes | memoryview) -> bool:
    """Return True if elements are compressed, by the first five bytes of the header."""
    return int.from_bytes(first[:4], "big") >= _CURRENT and first[4:5] == b"\1"


def read_header_before(
    first: bytes | memoryview, types: TypeContext, *, base: int, others: tuple[tuple[bytes, int], ...] = ()
) -> OperatorHeader:
    """Read the header from the bytes before the first element; ``base`` is the start of the stream.

    Headers before Flink 1.5 are followed by a count, so their end is not known. If elements are compressed, the header is followed by the
    beginning of the compressed stream. ``others`` are headers (bytes and offset) of subtasks that know more subclasses.
    """
    end: int | None = len(first)
    if bytes(first[4:5]) == b"\1" and bytes(first).endswith(STREAM_START):
        end = len(first) - len(STREAM_START)
    exact = int.from_bytes(first[:4], "big") >= _EXACT
    header = read_operator_header(Cursor(first, base=base), types, end=end if exact else None)
    for raw, offset in others:
        learn_states(header.states, read_operator_header(Cursor(raw, base=offset), types, end=len(raw)).states)
    return header


def read_operator_header(c: Cursor, types: TypeContext, *, end: int | None = None) -> OperatorHeader:
    """Read the header; ``types`` and ``end`` as in :func:`statetool.formats.keyed.header.read_keyed_header`."""
    return read_with_unknowns(c, snapshot_reader(types), _parse, end=end)


def _parse(c: Cursor, reader: SnapshotReader, read: ReadSerializer) -> OperatorHeader:
    version = c.i4()
    if version == 1:
        raise UnsupportedError("operator state of proxy version 1 (Flink 1.2)").at(offset=c.offset - 4)
    if version > _CURRENT:
        raise newer_version(c, "operator state proxy", version, "2 to 6")
    if version < 2:
        raise c.fail(f"operator state proxy version {version} is not 1 to 6", pos=c.pos - 4)
    compressed = c.bool() if version >= 6 else False
    states = []
    for broadcast in (False, True) if version >= 3 else (False,):
        n = c.i2()
        if n < 0:
            raise c.fail(f"{n} operator states", pos=c.pos - 2)
        for states_left in reversed(range(n)):
            if version >= 5:
                states.append(read_m6(c, reader.types, read, states_left))
            elif version == 4:
                states.append(read_m5(c, reader))
            else:
                states.append(_read_old(c, reader, broadcast=broadcast))
    return OperatorHeader(version=version, compressed=compressed, states=tuple(states), size_bytes=c.pos)


def _read_old(c: Cursor, reader: SnapshotReader, *, broadcast: bool) -> StateMetaInfo:
    """Layout of Flink 1.3 to 1.5: name, mode, resilient list of one (list) or two (broadcast) serializers."""
    name = c.utf()
    mode = c.i1()
    if not 0 <= mode < len(MODES):
        raise c.fail(f"distribution mode {mode} of operator state {name!r}", pos=c.pos - 1)
    serializers = reader.resilient_list(c)
    if len(serializers) != 1 + broadcast:
        raise c.fail(f"{len(serializers)} serializers of operator state {name!r}, expected {1 + broadcast}")
    keys = ("KEY_SERIALIZER", "VALUE_SERIALIZER") if broadcast else ("VALUE_SERIALIZER",)
    return StateMetaInfo(
        name=name,
        backend_type=BROADCAST if broadcast else OPERATOR,
        options={"OPERATOR_STATE_DISTRIBUTION_MODE": MODES[mode]},
        serializers=dict(zip(keys, serializers, strict=True)),
    )


def write_operator_header(header: OperatorHeader, *, version: int) -> bytes:
    """Return the bytes of a header of version 5 (Flink 1.7 and later) or 6 (1.18 and later)."""
    out = Output()
    out.i4(version)
    if version >= 6:
        out.bool(header.compressed)
    for backend_type in (OPERATOR, BROADCAST):
        states = [s for s in header.states if s.backend_type == backend_type]
        out.i2(len(states))
        for state in states:
            write_meta_v6(out, state)
    return bytes(out)
