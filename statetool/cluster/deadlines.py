"""The time that the servers of a command have for all their answers together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Waiting:
    """The seconds that were spent waiting for answers."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def left(self, deadline_s: float) -> float:
        """Return the seconds that remain of a deadline."""
        return deadline_s - self.seconds

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add the time of this block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - start


_of_command: Waiting | None = None


def waiting() -> Waiting:
    """Return the waiting time of the command that runs, or a new one in Python and in commands that go on until they are stopped."""
    return Waiting() if _of_command is None else _of_command


@contextmanager
def one_deadline() -> Iterator[None]:
    """Let all clients that are made in this block, in any thread, share their waiting time."""
    global _of_command
    before, _of_command = _of_command, Waiting()
    try:
        yield
    finally:
        _of_command = before
