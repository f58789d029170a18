"""Small files of far away file systems: each is fetched whole, once, and several at a time.

Every request to an object store takes as long as reading megabytes, so a file of a few is cheaper to fetch than to ask about: nothing asks for
its size first, and what reads its header, its index and its entries one after the other shares one answer. Answers are kept for as long
as a query takes, and dropped whenever a snapshot is opened (:func:`forget`).
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

#: Files up to this size are fetched whole; of longer ones the ranges that are needed.
WHOLE_BYTES: Final = 4 << 20
_KEPT_BYTES: Final = 64 << 20
_KEPT_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Kept:
    """Answers by URI, the ones used last at the end; those on the way are there already, so that nobody asks twice."""

    answers: OrderedDict[str, tuple[float, Future[bytes]]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, uri: str) -> tuple[Future[bytes], bool]:
        """Return the answer for a file, and whether the caller has to fetch it."""
        now = time.monotonic()
        with self.lock:
            kept = self.answers.pop(uri, None)
            mine = kept is None or now - kept[0] > _KEPT_SECONDS
            since, answer = (now, Future[bytes]()) if kept is None or mine else kept
            self.answers[uri] = since, answer
            return answer, mine

    def shrink(self) -> None:
        """Drop what was used longest ago, and failures."""
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


_KEPT: Final = _Kept()


def forget() -> None:
    """Drop all answers: files may have been replaced since."""
    _KEPT.clear()


def read_start(uri: str) -> bytes:
    """Return the first ``WHOLE_BYTES`` bytes of a file, all of it where it has fewer.

    Raises
    ------
    SnapshotNotFoundError
        It is not there, or may not be read.
    """
    answer, mine = _KEPT.claim(uri)
    with reading(uri):
        if mine:
            _fetch({uri: answer})
        return answer.result()


def whole_size(uri: str) -> int:
    """Return the size of a far away file that is about to be read.

    Raises
    ------
    SnapshotNotFoundError
        It is not there, or may not be read.
    """
    size = len(read_start(uri))
    return size if size < WHOLE_BYTES else size_of(uri)


def prefetch(uris: Sequence[str]) -> None:
    """Fetch several files at the same time, so that :func:`read_start` has them; one that fails does so there."""
    different = list(dict.fromkeys(uris))
    most = _KEPT_BYTES // WHOLE_BYTES
    for first in range(0, len(different), most):
        claimed = [(uri, _KEPT.claim(uri)) for uri in different[first : first + most]]
        _fetch({uri: answer for uri, (answer, mine) in claimed if mine})


def _fetch(answers: Mapping[str, Future[bytes]]) -> None:
    """Answer for each file, with what went wrong where something did: others may wait for it."""
    by_system: dict[int, tuple[Any, dict[str, Future[bytes]]]] = {}
    for uri, answer in answers.items():
        try:
            fs, path = file_system(uri)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is asked for
            answer.set_exception(error)
        else:
            by_system.setdefault(id(fs), (fs, {}))[1][path] = answer
    for fs, some in by_system.values():
        n = len(some)
        found: Sequence[bytes | BaseException]
        try:
            found = fs.cat_ranges(list(some), [0] * n, [WHOLE_BYTES] * n, on_error="return")
        except BaseException as error:  # noqa: BLE001 - raised where the answers are asked for
            found = [error] * n
        for answer, one in zip(some.values(), found, strict=True):
            if isinstance(one, BaseException):
                answer.set_exception(one)
            else:
                answer.set_result(bytes(one))
    _KEPT.shrink()
