"""Compressed operator state of Flink 1.18.0 and 1.18.1, whose offsets are wrong (FLINK-34063).

These releases compress each state as a separate stream, and take the offset of an element before the compressor has written the bytes of
the elements before it. So the elements of a 64 KiB chunk have one offset, Flink cannot restore them, and only their order says where each
starts. :func:`rewrite_stream` decodes them one after another. Later releases flush before each element, and compress all states as one
stream. Follows ``PartitionableListState.write`` and ``DefaultOperatorStateBackendSnapshotStrategy``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from statetool.errors import FormatError, StatetoolError
from statetool.formats.compression import STREAM_START, read_chunks
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.types.declared import TypeContext

#: The cause, for messages.
UNFLUSHED: Final = (
    "Flink 1.18.0 and 1.18.1 wrote wrong offsets of compressed lists (FLINK-34063), which Flink cannot restore"
)
_COMPRESSED: Final = 4


def may_be_unflushed(offsets: Mapping[str, tuple[int, ...]]) -> bool:
    """Return True if two elements of a state have the same offset, which a compressed stream must not have."""
    return any(len(set(of_state)) < len(of_state) for of_state in offsets.values())


def rewrite_stream(
    stream: Stream, header: OperatorHeader, offsets: Mapping[str, tuple[int, ...]], types: TypeContext
) -> tuple[Stream, dict[str, tuple[int, ...]]]:
    """Return the stream uncompressed and in memory, with the offset of each element.

    Raises
    ------
    FormatError, DecodeError
        The bytes of a state are not its elements one after another.
    """
    with stream.open() as f:
        raw = bytes(f.read_at(0, stream.size_bytes))
    metas = {m.name: m for m in read_operator_header(Cursor(raw), types, end=header.size_bytes).states}
    head = raw[:_COMPRESSED] + b"\0" + raw[_COMPRESSED + 1 : header.size_bytes]
    starts = sorted((min(of_state), name) for name, of_state in offsets.items() if of_state)
    ends = [start for start, _ in starts[1:]] + [len(raw)]
    out, found = bytearray(head), {}
    for (start, name), end in zip(starts, ends, strict=True):
        if end < len(raw) and raw.endswith(STREAM_START, start, end):
            end -= len(STREAM_START)
        region = memoryview(raw)[start:end]
        try:
            data = b"".join(chunk.data for chunk in read_chunks(region, base=stream.start + start))
            found[name] = tuple(len(out) + at for at in _starts(metas[name], data, len(offsets[name])))
        except StatetoolError as error:
            error.hint = error.hint or UNFLUSHED
            raise error.at(file=stream.file, state=name) from None
        out += data
    return replace(stream, start=0, size_bytes=len(out), inline=bytes(out)), found


def _starts(meta: StateMetaInfo, data: bytes, n: int) -> list[int]:
    """Return the start of each of a number of elements."""
    if meta.kind == "broadcast":
        return [0]
    c = Cursor(data)
    starts = []
    for _ in range(n):
        starts.append(c.pos)
        meta.value.skip(c)
    if c.pos != len(data):
        raise FormatError(f"{len(data) - c.pos} bytes follow {n} elements whose offsets are wrong")
    return starts
