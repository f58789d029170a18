"""First requests of sources in object stores, made while earlier sources are read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from statetool.entries.form import EntryRequest, KeyGroupReader, size_of
from statetool.errors import StatetoolError
from statetool.io.files import IN_FLIGHT, is_local
from statetool.io.threads import in_threads

R = TypeVar("R")
#: Maximum number of sources whose first requests are made before they are read, and maximum of their stored bytes. Requests of as many small
#: files as are in flight arrive together, so the next ones are made together, too.
_MOST_SOURCES: Final = 2 * IN_FLIGHT
_MOST_BYTES: Final = 32 << 20


@runtime_checkable
class ReadsSource(Protocol):
    """A task that reads a source."""

    def reads(self) -> tuple[KeyGroupReader, EntryRequest] | None:
        """Return the source and the entries to read, ``None`` if it reads something else."""
        ...


class AheadOf:
    """First requests of tasks that are run about in order. Only for those that read sources in object stores."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._reads = {number: reads for number, item in enumerate(items) if (reads := _far_reads(item)) is not None}
        self._numbers = list(self._reads)
        #: Items of which all first requests were made.
        self._begun: set[int] = set()
        self._sizes: dict[int, int] = {}

    def begin_after(self, number: int) -> None:
        """Make first requests of the items after one. Errors are those of reading them."""
        size = 0
        first = bisect_right(self._numbers, number)
        for following in self._numbers[first : first + _MOST_SOURCES]:
            self._begin(following)
            size += self._size(following)
            if size > _MOST_BYTES:
                return

    def begin_from(self, number: int) -> None:
        """Make first requests of an item, all of which is about to be read, and of those after it."""
        self._begin(number)
        self.begin_after(number)

    def _begin(self, number: int) -> None:
        if number in self._reads and number not in self._begun:
            source, request = self._reads[number]
            with suppress(StatetoolError):
                if source.begin(request):
                    self._begun.add(number)

    def _size(self, number: int) -> int:
        if number not in self._sizes:
            self._sizes[number] = size_of(self._reads[number][0])
        return self._sizes[number]


def _far_reads(item: Any) -> tuple[KeyGroupReader, EntryRequest] | None:
    """Return what a task reads from an object store."""
    reads = item.reads() if isinstance(item, ReadsSource) else None
    return None if reads is None or is_local(reads[0].file) else reads


def one_after_another(items: Sequence[R]) -> Iterator[R]:
    """Yield tasks. When one is yielded, first requests of those that follow have been made."""
    ahead = AheadOf(items)
    for number, item in enumerate(items):
        ahead.begin_after(number)
        yield item


def in_threads_ahead(function: Callable[[Any], R], items: Sequence[Any], threads: int | None = None) -> Iterator[R]:
    """Call a function for each task as :func:`~statetool.io.threads.in_threads` does, and make first requests of each before it begins.

    The function reads all entries of the source of its task.
    """
    ahead = AheadOf(items)

    def call(number: int) -> R:
        ahead.begin_from(number)
        return function(items[number])

    return in_threads(call, range(len(items)), threads)
