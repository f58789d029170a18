"""Reads of all state, whose page shows their progress while it loads. They end if the browser stops loading it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, TypeVar

from statetool.analysis.statistics.statistics import Statistics, StatisticsRequest, statistics_of
from statetool.api.execution import Execution
from statetool.cli.explorer.layout import opening
from statetool.cli.explorer.opened import Snapshots
from statetool.errors import StatetoolError
from statetool.html.markup import Html, element, join
from statetool.reporting.report import sizes, times

T = TypeVar("T")
R = TypeVar("R")
#: Results that are kept for the next page of the same snapshot.
_MOST_KEPT: Final = 8
#: Reads at the same time. Others wait for their turn.
_MOST_READS: Final = 2
_STEP_S: Final = 0.5


class CancelledError(StatetoolError):
    """The browser has stopped loading the page."""


class _Read:
    """Statistics of a snapshot, in a thread."""

    def __init__(self, turns: threading.Semaphore, work: Callable[[_Read], Statistics]) -> None:
        self._turns = turns
        self._work = work
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self.ended = threading.Event()
        self.parts = self.done = 0
        self.result: Statistics | StatetoolError | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def cancel(self) -> None:
        """End the read after the parts that are being read."""
        self._cancelled.set()

    def each(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """Call a function for each item, and count them."""
        with self._lock:
            self.parts += len(items)

        def counted(item: T) -> R:
            if self._cancelled.is_set():
                raise CancelledError("cancelled")
            found = function(item)
            with self._lock:
                self.done += 1
            return found

        return Execution().map(counted, items)

    def _run(self) -> None:
        try:
            with self._turns:
                if not self._cancelled.is_set():
                    self.result = self._work(self)
        except StatetoolError as error:
            self.result = error
        except Exception as error:  # noqa: BLE001 - the page waits for a result
            self.result = StatetoolError(f"{type(error).__name__}: {error}")
        finally:
            self.ended.set()


class LongReads:
    """Reads, and the last results by checkpoint id and name of the snapshot."""

    def __init__(self) -> None:
        self._turns = threading.Semaphore(_MOST_READS)
        self._kept: OrderedDict[tuple[str, int], Statistics] = OrderedDict()
        self._lock = threading.Lock()

    def sizes_page(self, snapshots: Snapshots, name: str, crumbs: Sequence[Any]) -> Generator[str, None, None]:
        """Yield the parts of the page with the sizes of all states, keys and subtasks: first the progress, then the sections.

        Raises
        ------
        StatetoolError
            The snapshot cannot be opened.
        """
        savepoint = snapshots.open(name)
        place = name, savepoint.checkpoint_id
        operators = list(savepoint.inventory.operators.values())
        before, after = opening("Sizes", crumbs)

        def stream() -> Generator[str, None, None]:
            yield before
            with self._lock:
                known = self._kept.get(place)
            if known is None:
                read = _Read(self._turns, lambda own: statistics_of(operators, StatisticsRequest.of(), own.each))
                yield from _progress(read)
                if not isinstance(read.result, Statistics):
                    yield element("p", str(read.result or "cancelled"), class_="bad", role="alert") + after
                    return
                known = read.result
                with self._lock:
                    self._kept[place] = known
                    while len(self._kept) > _MOST_KEPT:
                        self._kept.popitem(last=False)
            yield _sections(known) + after

        return stream()


def _progress(read: _Read) -> Generator[str, None, None]:
    """Yield the progress of a read until it ends. If the generator is closed before, because nobody takes what it yields, the read is cancelled."""
    try:
        if read.ended.wait(_STEP_S):
            return
        yield '<section aria-label="progress"><p class="soft">Reading all entries. To cancel, stop loading this page.</p><ol class="progress">'
        started, shown = time.monotonic(), ""
        while not read.ended.wait(_STEP_S):
            # A page that nobody reads any more is noticed when something is sent.
            words = f"{read.done:,} of {read.parts:,} parts" if read.parts else "waiting for other reads"
            line = words if words != shown else ""
            shown = words
            seconds = int(time.monotonic() - started)
            yield element("li", f"{line} after {seconds} s") if line else "<!-- reading -->"
        yield "</ol></section>"
    finally:
        read.cancel()


def _sections(statistics: Statistics) -> Html:
    parts: list[Html] = []
    if statistics.unread:
        parts.append(element("p", "Not read: ", "; ".join(statistics.unread), class_="warn"))
    makers: tuple[tuple[str, Callable[[Statistics], Html]], ...] = (
        ("Key groups", sizes.key_groups),
        ("Subtasks", sizes.subtasks),
        ("Largest keys and values", sizes.largest),
        ("Distribution of sizes", sizes.distribution),
        ("Timers", times.timers),
    )
    for title, make in makers:
        if inner := make(statistics):
            parts.append(element("section", element("h2", title), inner))
    return join(parts or [element("p", "The snapshot has no keyed state.")])
