"""Merge of several sorted runs that keeps all entries of a key together, with one window of each run in memory.

The last key read from each run is known. Keys below the smallest of these are complete, so a batch takes their entries from all runs. If
there are none, that smallest key has more entries than a window, and the runs that end with it are read further. Windows of all runs that end
at nearly the same key are read together: otherwise every second batch would have only the few keys between their ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

Part = TypeVar("Part", covariant=True)


class Run(Protocol[Part]):
    """Entries of one state in key order, read window by window; entries read so far are taken up to a key."""

    @property
    def ended(self) -> bool:
        """Whether all entries have been read."""
        ...

    @property
    def is_low(self) -> bool:
        """Whether all or most of the entries read last have been taken."""
        ...

    @property
    def last(self) -> bytes:
        """The last key read; only used if not all entries have been taken."""
        ...

    def grow(self) -> None:
        """Read one more window after the remaining entries."""
        ...

    def below(self, bound: bytes | None) -> Sequence[Part]:
        """Take the entries with keys less than ``bound``, or all if it is ``None``."""
        ...


def complete_keys(runs: Sequence[Run[Part]]) -> Iterator[list[Part]]:
    """Yield parts of the runs in ascending key order; all entries of a key are in one list, which is not kept here."""
    return iter(lambda: _next_keys(runs), [])


def _next_keys(runs: Sequence[Run[Part]]) -> list[Part]:
    """Take the parts with the next complete keys; no parts at the end."""
    while True:
        for run in runs:
            if run.is_low and not run.ended:
                run.grow()
        unfinished = [(run.last, run) for run in runs if not run.ended]
        bound = min((last for last, _ in unfinished), default=None)
        parts = [part for run in runs for part in run.below(bound)]
        if parts or bound is None:
            return parts
        for last, run in unfinished:
            if last == bound:
                run.grow()
