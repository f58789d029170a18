"""Progress of long work, on a terminal's stderr.

Commands do not report progress: bytes read and written are counted anyway, and Spark knows its tasks. A command that has printed nothing
for two seconds gets a bar with an estimate of what is left, which goes away before anything is printed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from statetool.io.files import BYTES_READ, BYTES_WRITTEN

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds that a command may be silent.
SILENT: Final = 2.0
_REFRESH: Final = 0.25


class _Watcher:
    """A thread that shows how far the running command is."""

    def __init__(self, what: str) -> None:
        self.what = what
        #: Bytes that the command is to read and write, about.
        self.expected = 0
        self._before = _bytes_done()
        self._last_output = time.monotonic()
        self._bar: Progress | None = None
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self.hide()

    def hide(self) -> None:
        """Take the bar away, until the command has been silent for :data:`SILENT` seconds again."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            self._last_output = time.monotonic()

    def _watch(self) -> None:
        while not self._end.wait(_REFRESH):
            with self._lock:
                if time.monotonic() - self._last_output >= SILENT:
                    self._show()

    def _show(self) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.add_task(self.what, total=None)
            self._bar.start()
        done, total = _tasks_of_spark() or (_bytes_done() - self._before, self.expected)
        (task,) = self._bar.tasks
        # Reading twice or compression is not in the estimate: more than the total counts as the total.
        self._bar.update(task.id, completed=min(done, total), total=total or None)
        self._bar.refresh()


_running: _Watcher | None = None


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal's stderr how far the block is."""
    global _running
    if _running is not None or not sys.stderr.isatty():
        yield
        return
    _running = _Watcher(what)
    _running.start()
    try:
        yield
    finally:
        _running.stop()
        _running = None


def expect(size_bytes: Callable[[], int]) -> None:
    """Add an estimate of the bytes to be read and written; ``size_bytes`` is called only where progress is shown."""
    if _running is not None:
        _running.expected += size_bytes()


def hide_progress() -> None:
    """Take the bar away before something is printed."""
    if _running is not None:
        _running.hide()


def _bytes_done() -> int:
    return BYTES_READ.total + BYTES_WRITTEN.total


def _tasks_of_spark() -> tuple[int, int] | None:
    """Return how many tasks of the running stages are done, and of how many; ``None`` where Spark runs none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # asking for it otherwise makes one; Spark Connect has none
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    return (sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)) if stages else None


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Data goes to stdout meanwhile: rich must not redirect it to the bar's stderr.
    return Progress(
        *columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    )  # fmt: skip
