"""Where key groups lie in a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


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
