"""Progress of long commands, on a terminal's stderr.

Commands do not report progress. Progress follows from the counters of bytes read and written, and from Spark's tasks. After two seconds
without output a command gets a bar with an estimate of the remaining time, which disappears before anything is printed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds without output before the bar appears.
SILENT: Final = 2.0
_REFRESH: Final = 0.25


class _Watcher:
    """A thread that shows the progress of the running command."""

    def __init__(self, what: str) -> None:
        self.what = what
        #: Approximate number of bytes that the command will read and write.
        self.expected = 0
        self._before = _bytes_done()
        self._last_output = time.monotonic()
        self._bar: Progress | None = None
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._paused = False
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self.hide()

    def hide(self) -> None:
        """Hide the bar until the command has printed nothing for :data:`SILENT` seconds again."""
        with self._lock:
            self._hide()

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._last_output = time.monotonic()

    def pause(self, paused: bool) -> None:
        """Hide the bar and do not show it, or allow it again after some silence."""
        with self._lock:
            self._hide()
            self._paused = paused

    def _watch(self) -> None:
        while not self._end.wait(_REFRESH):
            with self._lock:
                if not self._paused and time.monotonic() - self._last_output >= SILENT:
                    self._show()

    def _show(self) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.add_task(self.what, total=None)
            self._bar.start()
        done, total = _tasks_of_spark() or (_bytes_done() - self._before, self.expected)
        (task,) = self._bar.tasks
        # The estimate does not cover repeated reads or compression, so a count above the total is shown as the total.
        self._bar.update(task.id, completed=min(done, total), total=total or None)
        self._bar.refresh()


class _Command:
    """The command of this process, with the thread that shows its progress."""

    def __init__(self) -> None:
        self.watcher: _Watcher | None = None

    def watch(self, what: str) -> None:
        self.watcher = _Watcher(what)
        self.watcher.start()

    def end(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()
        self.watcher = None


_COMMAND: Final = _Command()


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show the progress of the block on a terminal's stderr."""
    if _COMMAND.watcher is not None or not sys.stderr.isatty():
        yield
        return
    _COMMAND.watch(what)
    try:
        yield
    finally:
        _COMMAND.end()


@contextmanager
def no_progress() -> Iterator[None]:
    """Show no progress in the block: the command waits for a user or serves others, and the bar would overwrite what is typed."""
    watcher = _COMMAND.watcher
    if watcher is None:
        yield
        return
    watcher.pause(True)
    try:
        yield
    finally:
        watcher.pause(False)


def expect(size_bytes: Callable[[], int]) -> None:
    """Add an estimate of the bytes to be read and written. ``size_bytes`` is called only if progress is shown."""
    if _COMMAND.watcher is not None:
        _COMMAND.watcher.expected += size_bytes()


def hide_progress() -> None:
    """Hide the bar before something is printed."""
    if _COMMAND.watcher is not None:
        _COMMAND.watcher.hide()


def _bytes_done() -> int:
    from statetool.io.files import BYTES_READ, BYTES_WRITTEN

    return BYTES_READ.total + BYTES_WRITTEN.total


def _tasks_of_spark() -> tuple[int, int] | None:
    """Return the numbers of finished and of all tasks of the running stages, ``None`` if Spark runs no stages."""
    if "pyspark" not in sys.modules:
        return None
    from statetool.spark.private import running_context

    context = running_context()  # Spark Connect has none
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    return (sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)) if stages else None


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Data goes to stdout at the same time: rich must not redirect it to the bar's stderr.
    return Progress(
        *columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    )  # fmt: skip
