"""Call a function for many items, in threads of this process."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from statetool.io.glibc import keep_freed_memory

T = TypeVar("T")
R = TypeVar("R")


def after_fork(reset: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one: what waits for threads of this process would wait forever there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


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
