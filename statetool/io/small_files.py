"""Small files of remote file systems, and headers of large ones: each is fetched once, and many concurrently.

A request to an object store takes as long as reading megabytes. So a small file is fetched whole without first requesting its size, and the
reads of its header, index and entries share one response. Responses are kept for the duration of a query, and dropped
whenever a snapshot is opened (:func:`forget`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from statetool.io.files import IN_FLIGHT, RequestedRange, is_busy, size_of
from statetool.io.threads import after_fork

#: Files up to this size are fetched whole; longer ones in the required ranges.
WHOLE_BYTES: Final = 4 << 20
_KEPT_BYTES: Final = 64 << 20
_KEPT_SECONDS: Final = 60.0
#: Expected bytes of requests in flight at the same time.
_MOST_BYTES: Final = _KEPT_BYTES // 2

#: URI, offset and length.
Range: TypeAlias = tuple[str, int, int]


@dataclass(slots=True)
class _Answers:
    """Responses by range, most recently used last. Unfinished ones are included, so that no file is requested twice."""

    answers: OrderedDict[Range, tuple[float, RequestedRange]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: How often the responses were dropped.
    generation: int = 0

    def request(self, wanted: Range) -> RequestedRange:
        """Return the response for a range, which is requested unless it has been."""
        with self.lock:
            return self._known(wanted) or self._keep(wanted, RequestedRange(*wanted))

    def begin(self, wanted: Range) -> RequestedRange | None:
        """Return the response as :meth:`request` does, or ``None`` if it would have to be requested and many others are in flight."""
        with self.lock:
            return self._known(wanted) or (None if is_busy() else self._keep(wanted, RequestedRange(*wanted)))

    def take(self, wanted: Range) -> RequestedRange | None:
        """Return the response for a range that was requested, and no longer keep it."""
        with self.lock:
            answer = self._known(wanted)
            self.answers.pop(wanted, None)
            return answer

    def _known(self, wanted: Range) -> RequestedRange | None:
        since, answer = self.answers.get(wanted, (0.0, None))
        if answer is None or time.monotonic() - since > _KEPT_SECONDS:
            return None
        self.answers.move_to_end(wanted)
        return answer

    def _keep(self, wanted: Range, answer: RequestedRange) -> RequestedRange:
        self.answers[wanted] = time.monotonic(), answer
        self.answers.move_to_end(wanted)
        return answer

    def shrink(self) -> None:
        """Drop failures, and what exceeds the bytes to keep: first responses that have been read, the least recently used ones first."""
        with self.lock:
            for wanted in [wanted for wanted, (_, answer) in self.answers.items() if answer.failed]:
                del self.answers[wanted]
            arrived = [(wanted, a) for wanted, (_, a) in self.answers.items() if a.size_bytes is not None]
            size = sum(answer.size_bytes or 0 for _, answer in arrived)
            for wanted, answer in sorted(arrived, key=lambda known: not known[1].was_read):
                if size <= _KEPT_BYTES:
                    return
                del self.answers[wanted]
                size -= answer.size_bytes or 0

    def reset(self) -> None:
        """Start again in a new process."""
        self.answers, self.lock = OrderedDict(), threading.Lock()

    def clear(self) -> None:
        with self.lock:
            self.answers.clear()
            self.generation += 1


#: Of the process, not of a snapshot: the checkpoints of a job share files, and so do the tasks of a Spark worker. To compare two incremental
#: checkpoints takes 410 requests; responses per snapshot would take 560.
_ANSWERS: Final = _Answers()
after_fork(_ANSWERS.reset)


def forget() -> None:
    """Drop all responses: files may have been replaced since."""
    _ANSWERS.clear()


def generation() -> int:
    """Return a number that changes with each call of :func:`forget`, for those who keep what they have read."""
    return _ANSWERS.generation


def read_kept(uri: str, offset: int, length: int) -> bytes:
    """Return a range of a file, or less of it if the file ends earlier; the response is kept.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    answer = _ANSWERS.request((uri, offset, length))
    was_read = answer.was_read
    try:
        return answer.result()
    finally:
        if not was_read:
            _ANSWERS.shrink()


def read_start(uri: str) -> bytes:
    """Return the first ``WHOLE_BYTES`` bytes of a file, or all of it if it is shorter; errors as for :func:`read_kept`."""
    return read_kept(uri, 0, WHOLE_BYTES)


def whole_size(uri: str) -> int:
    """Return the size of a remote file that is about to be read.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    size = len(read_start(uri))
    return size if size < WHOLE_BYTES else size_of(uri)


def begin(ranges: Iterable[Range]) -> bool:
    """Request ranges without waiting for them, so that :func:`read_kept` has them, and return True if all of them have arrived.

    As long as many requests are in flight, no more are made.
    """
    answers = [_ANSWERS.begin(wanted) for wanted in ranges]
    return all(answer is not None and answer.size_bytes is not None for answer in answers)


def take(uri: str, offset: int, length: int) -> RequestedRange:
    """Return the response for a range, which is requested unless :func:`begin` has done so, and do not keep it."""
    return _ANSWERS.take((uri, offset, length)) or RequestedRange(uri, offset, length)


def prefetch(expected: Mapping[Range, int]) -> None:
    """Fetch ranges concurrently, so that :func:`read_kept` has them; it raises the errors.

    Parameters
    ----------
    expected
        The ranges, with the number of bytes expected in the response.
    """
    waiting: deque[tuple[int, RequestedRange]] = deque()
    size = 0
    for wanted, size_bytes in expected.items():
        while waiting and (len(waiting) >= IN_FLIGHT or size + size_bytes > _MOST_BYTES):
            size -= _wait(waiting)
        waiting.append((size_bytes, _ANSWERS.request(wanted)))
        size += size_bytes
    while waiting:
        _wait(waiting)
    _ANSWERS.shrink()


def _wait(waiting: deque[tuple[int, RequestedRange]]) -> int:
    """Wait for the oldest response and return its expected size."""
    size_bytes, answer = waiting.popleft()
    with contextlib.suppress(Exception):
        answer.result()
    return size_bytes
