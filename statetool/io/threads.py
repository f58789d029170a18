"""Call a function for many items, in threads of this process."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeAlias, TypeVar

from statetool.io.glibc import keep_freed_memory

T = TypeVar("T")
R = TypeVar("R")
#: Calls a function for each item of a list, in threads or tasks, and returns the results in order.
Map: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


def after_fork(reset: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one: what waits for threads of this process would wait forever there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


def within(seconds: float, call: Callable[[], R]) -> R:
    """Return the result of a call that asks a server, or stop waiting for it.

    Timeouts of clients are those of single requests, or of single parts of an answer, which a server may send without an end.

    Raises
    ------
    TimeoutError
        There is no result yet. The call goes on in a thread that does not keep the process.
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
    keep_freed_memory()
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
