"""The latest answer of something that is slow to read, such as the listing of a directory. It is read in a thread, and nobody waits for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from statetool.errors import StatetoolError

T = TypeVar("T")

#: Seconds for which an answer is used again.
FRESH_S: Final = 1.0
#: Seconds that a request waits for a new answer if there is an older one.
_WAIT_S: Final = 0.5


class Latest(Generic[T]):
    """An answer that is read again if it is older than a second.

    Only the first request waits until it has been read. Others get the last answer if reading takes long.

    Parameters
    ----------
    read
        Returns the answer, or raises an error.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._answers: list[T] = []
        self._error: StatetoolError | None = None
        self._at = -FRESH_S
        #: An answer counts if nothing was forgotten since its reading began.
        self._turn = 0
        self._reading: int | None = None

    def get(self) -> T:
        """Return the answer.

        Raises
        ------
        StatetoolError
            It could not be read, and there is no older one.
        """
        with self._changed:
            if time.monotonic() - self._at > FRESH_S and self._reading != self._turn:
                self._reading = self._turn
                threading.Thread(target=self._update, args=(self._turn,), daemon=True).start()
            if self._answers:
                self._changed.wait_for(lambda: self._reading is None, _WAIT_S)
            else:
                self._changed.wait_for(lambda: self._answers or self._reading is None)
            if not self._answers:
                assert self._error is not None
                raise self._error
            return self._answers[-1]

    @property
    def age_s(self) -> float:
        """Seconds since the last answer was read."""
        return time.monotonic() - self._at

    @property
    def problem(self) -> str:
        """Why the last reading failed; empty if it did not."""
        return "" if self._error is None else str(self._error)

    def forget(self) -> None:
        """Let the next request wait for a new answer."""
        with self._changed:
            self._answers, self._at = [], -FRESH_S
            self._turn += 1

    def _update(self, turn: int) -> None:
        while True:
            answers: list[T] = []
            error: StatetoolError | None = None
            try:
                answers.append(self._read())
            except StatetoolError as raised:
                error = raised
            except Exception as raised:  # noqa: BLE001 - a request waits for an answer or an error
                error = StatetoolError(f"{type(raised).__name__}: {raised}")
            with self._changed:
                if turn == self._turn:
                    self._error, self._reading = error, None
                    if answers:
                        self._answers, self._at = answers, time.monotonic()
                    self._changed.notify_all()
                    return
                if self._reading != turn:
                    return  # another thread reads it again
                turn = self._reading = self._turn
