"""Bring the entries of each key together from several sorted runs, with no more than a window of each run in memory.

Of each run the last key read is known. Keys below the least of these are complete, so a batch takes their entries from all runs. Where there
are none, that least key has more entries than a window, and the runs whose last key it is read on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

Part = TypeVar("Part", covariant=True)


class Run(Protocol[Part]):
    """The entries of one state in the order of their keys, read window by window; what was read is taken up to a key."""

    @property
    def ended(self) -> bool:
        """Whether all entries were read."""
        ...

    @property
    def empty(self) -> bool:
        """Whether all entries that were read have been taken."""
        ...

    @property
    def last(self) -> bytes:
        """The last key that has been read; asked for only where the run is not empty."""
        ...

    def grow(self) -> None:
        """Read one more window behind the entries that are left."""
        ...

    def below(self, bound: bytes | None) -> Sequence[Part]:
        """Take the entries whose keys are less than ``bound``, all where it is ``None``."""
        ...


def complete_keys(runs: Sequence[Run[Part]]) -> Iterator[list[Part]]:
    """Yield parts of the runs, in ascending order of keys; all entries of a key are in one list."""
    while True:
        for run in runs:
            if run.empty and not run.ended:
                run.grow()
        unfinished = [(run.last, run) for run in runs if not run.ended]
        bound = min((last for last, _ in unfinished), default=None)
        parts = [part for run in runs for part in run.below(bound)]
        if parts:
            yield parts
        elif bound is None:
            return
        else:
            for last, run in unfinished:
                if last == bound:
                    run.grow()
