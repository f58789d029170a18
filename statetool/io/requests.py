"""Requests to file systems on servers: small files and headers of large ones are fetched once, and many concurrently.

A request to an object store takes as long as reading megabytes. So a small file is fetched whole without first requesting its size, and the
reads of its header, index and entries share one response. Responses are kept for 60 seconds. A snapshot that is opened gets none that is older.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NewType

from statetool.errors import StatetoolError
from statetool.io.files import IN_FLIGHT, file_system, read_range, reading, size_of
from statetool.io.threads import after_fork

#: Bytes that all readers of a process request before they are needed.
AHEAD_BYTES: Final = 64 << 20
#: Bytes and age of responses that are kept.
_KEPT_BYTES: Final = 64 << 20
_KEPT_SECONDS: Final = 60.0
#: Files up to this size are fetched whole; longer ones in the required ranges.
WHOLE_BYTES: Final = 4 << 20
#: Expected bytes of requests in flight at the same time.
_MOST_BYTES: Final = _KEPT_BYTES // 2


def read_kept(wanted: Range) -> bytes:
    """Return a range of a file, or less of it if the file ends earlier; the response is kept.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    answer = REQUESTS.request(wanted)
    was_read = answer.was_read
    try:
        return answer.result()
    finally:
        if not was_read:
            REQUESTS.shrink()


#: Openings whose order is known. An older one requests again.
_MOST_OPENINGS: Final = 1000
#: Identity of one opening of a snapshot. Its readers get no response that was requested before.
Opening = NewType("Opening", bytes)


def new_opening() -> Opening:
    """Return an identity that no other process has."""
    return Opening(os.urandom(8))


class Range(NamedTuple):
    """A range of a file, and who reads it."""

    uri: str
    offset: int
    length: int
    opening: Opening


class RequestedRange:
    """A range of a remote file that is requested at construction, without waiting for the response.

    Clients without an event loop request it when :meth:`result` is called first.
    """

    __slots__ = ("_begun", "_data", "_error", "_fs", "_lock", "_range")

    def __init__(self, uri: str, offset: int, length: int) -> None:
        self._range = uri, offset, length
        self._data: bytes | None = None
        self._error: Exception | None = None
        self._begun: Future[bytes] | None = None
        self._fs: Any = None
        self._lock = threading.Lock()
        try:
            self._fs, path = file_system(uri)
            self._begun = self._fs.begin("_cat_file", path, start=offset, end=offset + length)
            if self._begun is not None:
                REQUESTS.count(1)
                self._begun.add_done_callback(lambda _: REQUESTS.count(-1))
        except StatetoolError as error:
            self._error = error

    def result(self) -> bytes:
        """Return the bytes; fewer if the file ends earlier.

        Raises
        ------
        SnapshotNotFoundError
            The file does not exist.
        StorageError
            The storage fails.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._data is None:
                try:
                    if self._begun is None:
                        self._data = read_range(*self._range)
                    else:
                        with reading(self._range[0]):
                            self._data = bytes(self._fs.result_of(self._begun))
                except StatetoolError as error:
                    self._error = error
                    raise
            return self._data

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the response; ``None`` if it has not arrived, or is an error."""
        if self._data is not None:
            return len(self._data)
        begun = self._begun
        arrived = begun is not None and begun.done() and not begun.cancelled() and begun.exception() is None
        return len(begun.result()) if begun is not None and arrived else None

    @property
    def was_read(self) -> bool:
        """Whether :meth:`result` has returned the bytes."""
        return self._data is not None

    @property
    def failed(self) -> bool:
        """Whether the response is an error."""
        begun = self._begun
        return self._error is not None or (
            begun is not None and begun.done() and (begun.cancelled() or begun.exception() is not None)
        )

    def cancel(self) -> None:
        """Give up the request if its response has not arrived."""
        if self._begun is not None:
            self._begun.cancel()


class _Kept(NamedTuple):
    """A response, when it was requested, and how many openings this process knew then."""

    response: RequestedRange
    since: float
    openings: int


@dataclass(slots=True)
class Requests:
    """Limits of all requests of a process, and the responses that it keeps, most recently used last.

    Responses are of the process, not of a snapshot: the checkpoints of a job share files, and so do the tasks of a Spark worker. To compare
    two incremental checkpoints takes 410 requests; responses per snapshot would take 560. A snapshot that is opened drops none of those that
    readers of other snapshots use, but gets none that is older, because files may have been replaced since. Unfinished requests are kept, too,
    so that no file is requested twice.
    """

    in_flight: int = 0
    #: Bytes that may still be requested before they are needed.
    ahead_bytes: int = AHEAD_BYTES
    kept: OrderedDict[tuple[str, int, int], _Kept] = field(default_factory=OrderedDict)
    #: How many openings this process knew when it met one, which counts.
    openings: OrderedDict[Opening, int] = field(default_factory=OrderedDict)
    met: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Of the numbers: it is taken when a response arrives, while a thread may hold the other one and wait for responses.
    numbers_lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Start again, in a new process."""
        self.in_flight, self.ahead_bytes, self.met = 0, AHEAD_BYTES, 0
        self.kept, self.openings = OrderedDict(), OrderedDict()
        self.lock, self.numbers_lock = threading.Lock(), threading.Lock()

    def count(self, change: int) -> None:
        """Change the number of requests in flight."""
        with self.numbers_lock:
            self.in_flight += change

    def reserve(self, size_bytes: int) -> bool:
        """Reserve bytes that are requested before they are needed, and return False if there are not enough."""
        with self.numbers_lock:
            if size_bytes > self.ahead_bytes:
                return False
            self.ahead_bytes -= size_bytes
            return True

    def release(self, size_bytes: int) -> None:
        """Return reserved bytes."""
        with self.numbers_lock:
            self.ahead_bytes += size_bytes

    def request(self, wanted: Range) -> RequestedRange:
        """Return the response for a range, which is requested unless it has been."""
        with self.lock:
            return self._known(wanted) or self._keep(wanted)

    def begin(self, wanted: Range) -> RequestedRange | None:
        """Return the response as :meth:`request` does, or ``None`` if it would have to be requested and many others are in flight."""
        with self.lock:
            return self._known(wanted) or (None if is_busy() else self._keep(wanted))

    def take(self, wanted: Range) -> RequestedRange | None:
        """Return the response for a range that was requested, and no longer keep it."""
        with self.lock:
            response = self._known(wanted)
            self.kept.pop(wanted[:3], None)
            return response

    def _known(self, wanted: Range) -> RequestedRange | None:
        oldest = self._number(wanted.opening)
        known = self.kept.get(wanted[:3])
        if known is None or known.openings < oldest or time.monotonic() - known.since > _KEPT_SECONDS:
            return None
        self.kept.move_to_end(wanted[:3])
        return known.response

    def _number(self, opening: Opening) -> int:
        """Return how many openings this process knew when it met this one."""
        if opening not in self.openings:
            self.met += 1
            self.openings[opening] = self.met
            if len(self.openings) > _MOST_OPENINGS:
                self.openings.popitem(last=False)
        return self.openings[opening]

    def _keep(self, wanted: Range) -> RequestedRange:
        place = wanted[:3]
        response = RequestedRange(*place)
        self.kept[place] = _Kept(response, time.monotonic(), self.met)
        self.kept.move_to_end(place)
        return response

    def shrink(self) -> None:
        """Drop failures, and what exceeds the bytes to keep: first responses that have been read, the least recently used ones first."""
        with self.lock:
            for place in [place for place, known in self.kept.items() if known.response.failed]:
                del self.kept[place]
            arrived = [(p, known.response) for p, known in self.kept.items() if known.response.size_bytes is not None]
            size = sum(response.size_bytes or 0 for _, response in arrived)
            for place, response in sorted(arrived, key=lambda known: not known[1].was_read):
                if size <= _KEPT_BYTES:
                    return
                del self.kept[place]
                size -= response.size_bytes or 0


REQUESTS: Final = Requests()
after_fork(REQUESTS.reset)


def is_busy() -> bool:
    """Return True if as many requests are in flight as should be."""
    return REQUESTS.in_flight >= IN_FLIGHT


def whole_file(uri: str, opening: Opening) -> Range:
    """Return the range of a small file, and the first bytes of a large one."""
    return Range(uri, 0, WHOLE_BYTES, opening)


def read_start(uri: str, opening: Opening) -> bytes:
    """Return the first ``WHOLE_BYTES`` bytes of a file, or all of it if it is shorter; errors as for :func:`read_kept`."""
    return read_kept(whole_file(uri, opening))


def whole_size(uri: str, opening: Opening) -> int:
    """Return the size of a remote file that is about to be read.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    size = len(read_start(uri, opening))
    return size if size < WHOLE_BYTES else size_of(uri)


def begin(ranges: Iterable[Range]) -> bool:
    """Request ranges without waiting for them, so that :func:`read_kept` has them, and return True if all of them have arrived.

    As long as many requests are in flight, no more are made.
    """
    answers = [REQUESTS.begin(wanted) for wanted in ranges]
    return all(answer is not None and answer.size_bytes is not None for answer in answers)


def take(wanted: Range) -> RequestedRange:
    """Return the response for a range, which is requested unless :func:`begin` has done so, and do not keep it."""
    return REQUESTS.take(wanted) or RequestedRange(wanted.uri, wanted.offset, wanted.length)


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
        waiting.append((size_bytes, REQUESTS.request(wanted)))
        size += size_bytes
    while waiting:
        _wait(waiting)
    REQUESTS.shrink()


def _wait(waiting: deque[tuple[int, RequestedRange]]) -> int:
    """Wait for the oldest response and return its expected size."""
    size_bytes, answer = waiting.popleft()
    with contextlib.suppress(Exception):
        answer.result()
    return size_bytes
