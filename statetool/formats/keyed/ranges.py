"""Locations of key groups in a stream, and their grouping into reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from statetool.errors import FormatError
from statetool.formats.stream import Stream

BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """A non-empty key group: its number, and the range of its bytes in the stream."""

    number: int
    offset: int
    size_bytes: int


def offset_ranges(start: int, offsets: Sequence[int], stream: Stream, *, nothing: int) -> list[KeyGroupRange]:
    """Return the ranges of the key groups that have an offset, in the order of the stream.

    Parameters
    ----------
    start
        The key group of the first offset.
    nothing
        The offset that means "empty": 0 in managed state, whose streams begin with a header, -1 in raw state.

    Raises
    ------
    FormatError
        An offset is outside the stream, or occurs twice.
    """
    placed = sorted((o, number) for number, o in enumerate(offsets, start) if (o > 0 if nothing == 0 else o != nothing))
    edges = [*(o for o, _ in placed), stream.size_bytes]
    if placed and not 0 <= edges[0] <= edges[-2] <= stream.size_bytes:
        raise FormatError(
            f"offsets of key groups from {edges[0]} to {edges[-2]}, outside of the {stream.size_bytes} bytes of the stream"
        ).at(file=stream.file)
    ranges = [KeyGroupRange(n, o, end - o) for (o, n), end in zip(placed, edges[1:], strict=True)]
    if any(a == b for a, b in pairwise(edges[:-1])):
        raise FormatError("two key groups start at the same offset").at(file=stream.file)
    return ranges


def adjacent(groups: Sequence[KeyGroupRange]) -> Iterator[list[KeyGroupRange]]:
    """Group adjacent key groups into runs. Each run is one read."""
    run: list[KeyGroupRange] = []
    for group in groups:
        if run and run[-1].offset + run[-1].size_bytes != group.offset:
            yield run
            run = []
        run.append(group)
    if run:
        yield run


class _HasSize(Protocol):
    @property
    def size_bytes(self) -> int: ...


_Sized = TypeVar("_Sized", bound=_HasSize)


def batches_of(items: Iterable[_Sized], *, limit: int = BATCH_BYTES) -> Iterator[list[_Sized]]:
    """Group key groups, or other items with a size, into runs of about ``limit`` bytes; a larger item forms a run alone."""
    run: list[_Sized] = []
    size = 0
    for item in items:
        if run and size + item.size_bytes > limit:
            yield run
            run, size = [], 0
        run.append(item)
        size += item.size_bytes
    if run:
        yield run


def even_batches_of(items: Sequence[_Sized], *, limit: int) -> Iterator[list[_Sized]]:
    """Group items with a size like :func:`batches_of`, but into runs of similar size, without a small remainder at the end."""
    left = sum(item.size_bytes for item in items)
    even = left / max(1, -(-left // limit))
    run: list[_Sized] = []
    size = 0
    for item in items:
        if run and (size + item.size_bytes / 2 > even or size + item.size_bytes > limit):
            yield run
            left -= size
            even = left / max(1, -(-left // limit))
            run, size = [], 0
        run.append(item)
        size += item.size_bytes
    if run:
        yield run
