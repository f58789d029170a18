"""Call a function for many items, in threads of this process."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
#: Results that may wait to be taken, for each thread.
_AHEAD: Final = 8
#: The largest block whose size moves the thresholds of glibc's ``malloc`` (``DEFAULT_MMAP_THRESHOLD_MAX``), with its header.
_LARGEST_BLOCK: Final = (32 << 20) - (64 << 10)


@cache
def keep_freed_memory() -> None:
    """Let arrays be made in memory that others gave back.

    glibc returns free memory to the system beyond twice the size of the largest block that was ever freed, and the next arrays fetch
    it anew, page by page. So one is allocated and freed here, without being touched.
    """
    bytes(_LARGEST_BLOCK)


def in_threads(function: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """Call a function for each item and yield the results in order; the first error ends it all.

    Parameters
    ----------
    threads
        How many, by default one a core. At most a few results for each thread wait, whatever the number of items.
    """
    keep_freed_memory()
    count = threads or os.cpu_count() or 1
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= _AHEAD * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
