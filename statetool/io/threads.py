"""Call a function for many items, in threads of this process."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeAlias, TypeVar

from statetool.io.glibc import keep_in_own_process

T = TypeVar("T")
R = TypeVar("R")
#: Calls a function for each item of a list, in threads or tasks, and returns the results in order.
Map: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


def after_fork(reset: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one. The threads of this process do not exist there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


def call_with_timeout(seconds: float, call: Callable[[], R]) -> R:
    """Call a function that sends requests to a server, and return its result.

    Clients limit the time of one request, or of one read. A server that sends one byte at a time never exceeds such a limit.

    Raises
    ------
    TimeoutError
        The call did not return in time. It continues in a daemon thread, which does not prevent the process from ending.
    """
    result: Future[R] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised by result()
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return result.result(seconds)
    except FutureTimeoutError:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def in_threads(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None, *, ahead: int = 8
) -> Iterator[R]:
    """Call a function for each item and yield the results in order; the first error stops all calls.

    Parameters
    ----------
    threads
        Number of threads; one per core by default.
    ahead
        Maximum number of unread results per thread, whatever the number of items.
    """
    keep_in_own_process()
    count = threads or os.cpu_count() or 1
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= ahead * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
