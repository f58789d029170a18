"""First requests of sources in object stores, made while earlier sources are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from statetool.entries.form import EntryRequest, KeyGroupReader, size_of
from statetool.errors import StatetoolError
from statetool.io.files import is_local
from statetool.io.threads import in_threads

R = TypeVar("R")
#: Maximum number of sources whose first requests are made before they are read, and maximum of their stored bytes.
_MOST_SOURCES: Final = 32
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
        self._items = items
        #: Whether all first requests of an item were made.
        self._begun = [False] * len(items)

    def begin_after(self, number: int) -> None:
        """Make first requests of the items after one. Errors are those of reading them."""
        size = 0
        for following in range(number + 1, min(number + 1 + _MOST_SOURCES, len(self._items))):
            item = self._items[following]
            reads = item.reads() if isinstance(item, ReadsSource) else None
            if reads is None or is_local(reads[0].file):
                continue
            size += size_of(reads[0])
            if not self._begun[following]:
                with suppress(StatetoolError):
                    self._begun[following] = reads[0].begin(reads[1])
            if size > _MOST_BYTES:
                return


def one_after_another(items: Sequence[R]) -> Iterator[R]:
    """Yield tasks. When one is yielded, first requests of those that follow have been made."""
    ahead = AheadOf(items)
    for number, item in enumerate(items):
        ahead.begin_after(number)
        yield item


def in_threads_ahead(function: Callable[[Any], R], items: Sequence[Any], threads: int | None = None) -> Iterator[R]:
    """Call a function for each task as :func:`~statetool.io.threads.in_threads` does, and make first requests of those that follow."""
    ahead = AheadOf(items)

    def call(number: int) -> R:
        ahead.begin_after(number)
        return function(items[number])

    return in_threads(call, range(len(items)), threads)
