"""Wait for what a server, another process or a thread will do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Seconds until a test stops waiting: more than anything takes on a busy machine, and less than the timeout of a test.
PATIENCE_S: Final = 1500


def eventually(
    check: Callable[[], T],
    *,
    within: float = PATIENCE_S,
    every: float = 0.05,
    retry: type[Exception] | tuple[type[Exception], ...] = (),
    describe: Callable[[], object] = str,
) -> T:
    """Call a check until its result is true, and return that result.

    Parameters
    ----------
    within
        Seconds after which the test fails.
    every
        Seconds between two calls.
    retry
        Errors of the check that mean "not yet".
    describe
        Function whose result explains the failure, such as the end of a log.
    """
    end = time.monotonic() + within
    while True:
        try:
            if found := check():
                return found
            error = None
        except retry as raised:
            error = raised
        assert time.monotonic() < end, f"waited {within} s: {error or describe()}"
        time.sleep(every)
