"""The time that the servers of a command have for all their answers together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class Waiting:
    """The time in which at least one answer was waited for. Requests that threads send at the same time are not added up."""

    def __init__(self) -> None:
        self._seconds = self._since = 0.0
        self._requests = 0
        self._lock = threading.Lock()

    def left(self, deadline_s: float) -> float:
        """Return the seconds that remain of a deadline."""
        with self._lock:
            return deadline_s - self._seconds - (time.monotonic() - self._since if self._requests else 0.0)

    def renew(self) -> None:
        """Start from zero."""
        with self._lock:
            self._seconds, self._since = 0.0, time.monotonic()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Wait for an answer in this block."""
        with self._lock:
            if not self._requests:
                self._since = time.monotonic()
            self._requests += 1
        try:
            yield
        finally:
            with self._lock:
                self._requests -= 1
                if not self._requests:
                    self._seconds += time.monotonic() - self._since


class CommandDeadline:
    """The waiting time of the command that runs, if one does."""

    def __init__(self) -> None:
        self.waiting: Waiting | None = None

    def replace(self, waiting: Waiting | None) -> Waiting | None:
        """Let clients share a waiting time from now on, and return the one before."""
        before, self.waiting = self.waiting, waiting
        return before


#: Of the process: a process runs one command, whose threads share it.
COMMAND: Final = CommandDeadline()


def waiting() -> Waiting:
    """Return the waiting time of the command that runs, or a new one in Python and in commands that go on until they are stopped."""
    return COMMAND.waiting or Waiting()


@contextmanager
def one_deadline() -> Iterator[None]:
    """Let all clients that are made in this block, in any thread, share their waiting time."""
    before = COMMAND.replace(Waiting())
    try:
        yield
    finally:
        COMMAND.replace(before)
