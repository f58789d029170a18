"""Small files of remote file systems: each is fetched whole, once, and several concurrently.

A request to an object store takes as long as reading megabytes. So a small file is fetched without first requesting its size, and the
reads of its header, index and entries share one response. Responses are kept for the duration of a query, and dropped
whenever a snapshot is opened (:func:`forget`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from statetool.io.files import file_system, reading, size_of

#: Files up to this size are fetched whole; longer ones in the required ranges.
WHOLE_BYTES: Final = 4 << 20
_KEPT_BYTES: Final = 64 << 20
_KEPT_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Answers:
    """Responses by URI, most recently used last. Unfinished ones are included, so that no file is requested twice."""

    answers: OrderedDict[str, tuple[float, Future[bytes]]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, uri: str) -> tuple[Future[bytes], bool]:
        """Return the response for a file, and whether the caller has to fetch it."""
        now = time.monotonic()
        with self.lock:
            earlier = self.answers.pop(uri, None)
            to_fetch = earlier is None or now - earlier[0] > _KEPT_SECONDS
            since, answer = (now, Future[bytes]()) if earlier is None or to_fetch else earlier
            self.answers[uri] = since, answer
            return answer, to_fetch

    def shrink(self) -> None:
        """Drop failures, and the least recently used responses."""
        with self.lock:
            size = 0
            for uri, (_, answer) in reversed(list(self.answers.items())):
                if answer.done():
                    size += WHOLE_BYTES if answer.exception() is not None else len(answer.result())
                    if size > _KEPT_BYTES or answer.exception() is not None:
                        del self.answers[uri]

    def clear(self) -> None:
        with self.lock:
            self.answers.clear()


#: Of the process, not of a snapshot: the checkpoints of a job share files, and so do the tasks of a Spark worker. To compare two incremental
#: checkpoints takes 410 requests; responses per snapshot would take 560.
_ANSWERS: Final = _Answers()


def forget() -> None:
    """Drop all responses: files may have been replaced since."""
    _ANSWERS.clear()


def read_start(uri: str) -> bytes:
    """Return the first ``WHOLE_BYTES`` bytes of a file, or all of it if it is shorter.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    answer, to_fetch = _ANSWERS.claim(uri)
    with reading(uri):
        if to_fetch:
            _fetch({uri: answer})
        return answer.result()


def whole_size(uri: str) -> int:
    """Return the size of a remote file that is about to be read.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or cannot be read for lack of permission.
    """
    size = len(read_start(uri))
    return size if size < WHOLE_BYTES else size_of(uri)


def prefetch(uris: Sequence[str]) -> None:
    """Fetch several files concurrently, so that :func:`read_start` has them; it raises the errors."""
    unique = list(dict.fromkeys(uris))
    most = _KEPT_BYTES // WHOLE_BYTES
    for first in range(0, len(unique), most):
        claimed = [(uri, _ANSWERS.claim(uri)) for uri in unique[first : first + most]]
        _fetch({uri: answer for uri, (answer, to_fetch) in claimed if to_fetch})


def _fetch(answers: Mapping[str, Future[bytes]]) -> None:
    """Fetch files and set their responses, also on errors: other threads may wait for them."""
    by_system: dict[Any, dict[str, Future[bytes]]] = {}
    for uri, answer in answers.items():
        try:
            fs, path = file_system(uri)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is asked for
            answer.set_exception(error)
        else:
            by_system.setdefault(fs, {})[path] = answer
    for fs, by_path in by_system.items():
        n = len(by_path)
        results: Sequence[bytes | BaseException]
        try:
            results = fs.cat_ranges(list(by_path), [0] * n, [WHOLE_BYTES] * n, on_error="return")
        except BaseException as error:  # noqa: BLE001 - raised where the answers are asked for
            results = [error] * n
        for answer, result in zip(by_path.values(), results, strict=True):
            if isinstance(result, BaseException):
                answer.set_exception(result)
            else:
                answer.set_result(bytes(result))
    _ANSWERS.shrink()
