"""Compressed operator state of Flink 1.18.0 and 1.18.1, whose offsets are wrong (FLINK-34063).

These releases compress each state as a separate stream, and take the offset of an element before the compressor has written the bytes of
the elements before it. So an element has the offset of the 64 KiB chunk in which it begins, Flink cannot restore it, and only the order of
the elements says where each starts. :func:`rewrite_stream` decodes them one after another. Later releases flush before each element, and
compress all states as one stream. Follows ``PartitionableListState.write`` and ``DefaultOperatorStateBackendSnapshotStrategy``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from typing import Final

from statetool.errors import FormatError, StatetoolError, UnsupportedError
from statetool.formats.compression import BLOCK_BYTES, STREAM_START, stream_chunks
from statetool.formats.operator_state import OperatorHeader, is_compressed, read_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.types.declared import TypeContext

#: The cause, for messages.
UNFLUSHED: Final = (
    "Flink 1.18.0 and 1.18.1 wrote wrong offsets of compressed lists (FLINK-34063), which Flink cannot restore"
)
#: Uncompressed bytes of one operator's state that are decoded in memory.
MOST_BYTES: Final = 1 << 30
_COMPRESSED: Final = 4
#: Least size of a full chunk: Snappy copies 64 bytes with 3.
_LEAST_CHUNK: Final = BLOCK_BYTES // 64 * 3
_READ_BYTES: Final = 1 << 18

Offsets = Mapping[str, tuple[int, ...]]


def may_be_unflushed(offsets: Offsets) -> bool:
    """Return True if offsets may be those of chunks: two are the same, or all of a state are at least a full chunk apart."""
    gaps = [b - a for of_state in offsets.values() for a, b in pairwise(sorted(of_state))]
    return 0 in gaps or (bool(gaps) and min(gaps) >= _LEAST_CHUNK)


def is_compressed_stream(stream: Stream) -> bool:
    """Return True if the elements of a stream are compressed. Reads its first bytes."""
    with stream.open() as f:
        return is_compressed(f.read_at(0, min(_COMPRESSED + 1, stream.size_bytes)))


def follows_chunks(stream: Stream, offsets: Offsets) -> bool:
    """Return True if the offsets of a compressed stream are those of chunks that were filled across elements.

    A right stream with the same form has only elements whose sizes are multiples of a chunk: :func:`rewrite_stream` tells it apart.
    """
    if any(len(set(of_state)) < len(of_state) for of_state in offsets.values()):
        return True
    regions = [(start, end, len(offsets[name])) for name, start, end in _regions(offsets, stream.size_bytes)]
    with stream.open() as f:
        for start, _, _ in regions[1:]:
            if bytes(f.read_at(start - len(STREAM_START), len(STREAM_START))) != STREAM_START:
                return False
        try:
            return all(_fills_chunks(f, start, end) for start, end, n in regions if n > 1)
        except FormatError:
            return False  # damage is reported where elements are read


def _regions(offsets: Offsets, size_bytes: int) -> list[tuple[str, int, int]]:
    """Return the states with elements, each with the start of its first one and that of the next state, in stream order."""
    starts = sorted((min(of_state), name) for name, of_state in offsets.items() if of_state)
    ends = [*(start for start, _ in starts[1:]), size_bytes]
    return [(name, start, end) for (start, name), end in zip(starts, ends, strict=True)]


def _fills_chunks(f: OpenStream, start: int, end: int) -> bool:
    """Return True if all chunks of a region but the last one are full."""
    is_last = False
    for chunk in stream_chunks(
        lambda at, n: f.read_at(start + at, n), end - start, base=f.stream.start + start, block=_READ_BYTES
    ):
        if is_last:
            return False
        is_last = len(chunk.data) < BLOCK_BYTES
    return True


def rewrite_stream(
    stream: Stream, header: OperatorHeader, offsets: Offsets, types: TypeContext, *, most_bytes: int = MOST_BYTES
) -> tuple[Stream, dict[str, tuple[int, ...]]] | None:
    """Return the stream uncompressed and in memory, with the offset of each element; ``None`` if the stored offsets are right.

    Raises
    ------
    FormatError, DecodeError
        The bytes of a state are not its elements one after another.
    UnsupportedError
        They take more memory than allowed.
    """
    out = BytesIO()
    regions: list[tuple[str, int, dict[int, int]]] = []
    with stream.open() as f:
        raw = bytes(f.read_at(0, header.size_bytes))
        out.write(raw[:_COMPRESSED] + b"\0" + raw[_COMPRESSED + 1 :])
        for name, start, end in _regions(offsets, stream.size_bytes):
            regions.append((name, out.tell(), _unpack(f, name, start, end, out, most_bytes)))
    data = out.getvalue()  # shares the bytes
    metas = {m.name: m for m in read_operator_header(Cursor(raw), types, end=header.size_bytes).states}
    found: dict[str, tuple[int, ...]] = {}
    ends = [*(base for _, base, _ in regions[1:]), len(data)]
    for (name, base, _), end in zip(regions, ends, strict=True):
        with _naming_state(stream, name):
            starts = _starts(metas[name], memoryview(data)[base:end], len(offsets[name]))
        found[name] = tuple(base + at for at in starts)
    if all([plain.get(at) for at in offsets[name]] == list(found[name]) for name, _, plain in regions):
        return None
    return replace(stream, start=0, size_bytes=len(data), inline=data), found


def _unpack(f: OpenStream, name: str, start: int, end: int, out: BytesIO, most_bytes: int) -> dict[int, int]:
    """Append the uncompressed bytes of a state, and return the offset of each of its chunks in them by that in the stream."""
    last = end - len(STREAM_START)
    if end < f.stream.size_bytes and last >= start and bytes(f.read_at(last, len(STREAM_START))) == STREAM_START:
        end = last
    plain: dict[int, int] = {}
    with _naming_state(f.stream, name):
        for chunk in stream_chunks(
            lambda at, n: f.read_at(start + at, n), end - start, base=f.stream.start + start, block=_READ_BYTES
        ):
            plain[start + chunk.start] = out.tell()
            out.write(chunk.data)
            _check_size(out.tell(), most_bytes)
    return plain


@contextlib.contextmanager
def _naming_state(stream: Stream, state: str) -> Iterator[None]:
    """Name the state, its file and the cause in errors."""
    try:
        yield
    except StatetoolError as error:
        error.hint = error.hint or UNFLUSHED
        raise error.at(file=stream.file, state=state) from None


def _check_size(size_bytes: int, most_bytes: int) -> None:
    if size_bytes > most_bytes:
        raise UnsupportedError(
            f"its compressed lists with wrong offsets (FLINK-34063) have more than {MOST_BYTES >> 30} GiB",
            hint="Flink cannot restore them: remove the operator with statetool drop SRC DST --uid UID, or use a checkpoint without compression",
        )


def _starts(meta: StateMetaInfo, data: memoryview, n: int) -> list[int]:
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
