"""Check in-flight data of unaligned checkpoints: every buffer named by a handle must be inside its stream.

A stream is i4 version 0 and buffers, each i4 length and bytes; the offsets of a handle point to the lengths. A merged handle has its
offsets in a blob: i4 n, n times i4 gate, i4 channel, i8 size, i4 k, k times i8 offset.
Follows ``ChannelStateSerializerImpl``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from statetool.analysis.verification.problems import Problem, problem_of
from statetool.errors import FormatError, StatetoolError, several
from statetool.formats.metadata import SubtaskState
from statetool.formats.metadata.handles import AnyChannelHandle, MergedChannelHandle, StreamHandle
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor

_VERSION_BYTES = 4
_LENGTH_BYTES = 4


def offsets_of(handle: AnyChannelHandle) -> list[int]:
    """Return the start offsets of the buffers of all channels of a handle.

    Raises
    ------
    FormatError
        The blob of a merged handle is damaged.
    """
    if not isinstance(handle, MergedChannelHandle):
        return list(handle.offsets)
    c = Cursor(handle.channels)
    offsets: list[int] = []
    for _ in range(c.count("channels", at_least=20)):
        c.i4(), c.i4(), c.i8()
        offsets += [c.i8() for _ in range(c.count("offsets", at_least=8))]
    c.expect_end("the offsets of merged channels")
    return offsets


def check_channels(
    subtask: SubtaskState, resolve: Callable[[StreamHandle], Stream | None], operator: str
) -> Iterator[Problem]:
    """Yield the problems of a subtask's channel state."""
    for handle in (*subtask.input_channels, *subtask.output_channels):
        stream = None
        try:
            stream = resolve(handle.stream)
            offsets = offsets_of(handle)
            if stream is not None:
                with stream.open() as f:
                    _check_buffers(f, offsets)
        except StatetoolError as error:
            file = stream.file if stream is not None else None
            yield problem_of(error, operator=operator, subtask=subtask.index, file=file)


def _check_buffers(f: OpenStream, offsets: list[int]) -> None:
    stream = f.stream
    version = int.from_bytes(f.read_at(0, _VERSION_BYTES), "big")
    if version != 0:
        raise FormatError(f"channel state of version {version}, expected 0").at(offset=stream.start)
    for offset in offsets:
        length = int.from_bytes(f.read_at(offset, _LENGTH_BYTES), "big", signed=True)
        if not 0 <= length <= stream.size_bytes - offset - _LENGTH_BYTES:
            raise FormatError(
                f"a buffer of {several(length, 'byte')} in channel state of {several(stream.size_bytes, 'byte')}"
            ).at(offset=stream.start + offset)
