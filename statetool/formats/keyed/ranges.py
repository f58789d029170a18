"""Where key groups lie in a stream, and how many are read at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """A non-empty key group: its number, and where its bytes are in the stream."""

    number: int
    offset: int
    size_bytes: int


def adjacent(groups: Sequence[KeyGroupRange]) -> Iterator[list[KeyGroupRange]]:
    """Cut key groups into runs that lie one after another, so that each is one read."""
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


def batches_of(pieces: Iterable[_Sized], *, limit: int = BATCH_BYTES) -> Iterator[list[_Sized]]:
    """Cut key groups, or what else has a size, into runs of about ``limit`` bytes; a larger one stands alone."""
    run: list[_Sized] = []
    size = 0
    for piece in pieces:
        if run and size + piece.size_bytes > limit:
            yield run
            run, size = [], 0
        run.append(piece)
        size += piece.size_bytes
    if run:
        yield run
