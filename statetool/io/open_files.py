"""Local files that stay open during a pass over a snapshot, so that what is read in several steps opens each file once.

A pass is a block of :func:`keeping_open`. All threads share its files. A bounded number of files that nobody reads stays open, and the end of
the last pass closes them. A file that was replaced, changed or deleted since it was opened is not shared.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from statetool.io.files import InputFile, local_path, stamp_of
from statetool.io.threads import after_fork

#: Maximum number of files that stay open although nobody reads them.
_MOST_IDLE: Final = 256
#: The same, as a fraction of the files that the system lets a process open.
_SHARE: Final = 4
#: Whether several threads can read one open file.
_SHAREABLE: Final = hasattr(os, "pread")


def _most_idle() -> int:
    """Return the number of files that may stay open in this process."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed != resource.RLIM_INFINITY:
            return min(_MOST_IDLE, allowed // _SHARE)
    return _MOST_IDLE


@dataclass(slots=True, eq=False)
class OpenFile:
    """An open file, with the number of its readers."""

    file: InputFile
    readers: int = 1


@dataclass(slots=True, eq=False)
class _Turn:
    """Lock of the threads that open one file, with their number."""

    threads: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass(slots=True)
class _OpenFiles:
    """Shared files of the process by URI. Those without readers are ``idle``, the least recently used first.

    The lock guards only these collections. Files are opened, examined and closed without it, because each takes a round trip on a slow mount.
    Threads that open the same file take turns, so that it is opened once. Readers may be closed by Python's garbage collector, in the middle
    of any other call of the same thread.
    """

    most_idle: int = field(default_factory=_most_idle)
    passes: int = 0
    shared: dict[str, OpenFile] = field(default_factory=dict)
    idle: OrderedDict[str, OpenFile] = field(default_factory=OrderedDict)
    turns: dict[str, _Turn] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def reset(self) -> None:
        """Start again in a new process."""
        self.passes, self.shared, self.idle, self.turns, self.lock = 0, {}, OrderedDict(), {}, threading.RLock()

    def begin_pass(self) -> None:
        with self.lock:
            self.passes += 1

    def end_pass(self) -> None:
        with self.lock:
            self.passes = max(0, self.passes - 1)  # the pass may have begun before this process was forked
            unneeded = self._shrink()
        _close_all(unneeded)

    def open(self, uri: str) -> OpenFile:
        known = self._share(uri)
        if known is not None:
            return known
        if not self.passes or not _SHAREABLE:
            return OpenFile(InputFile(uri))
        with self._turn(uri):
            known = self._share(uri)  # another thread may have opened it
            if known is not None:
                return known
            opened = OpenFile(InputFile(uri))
            with self.lock:
                if self.passes:
                    self.shared[uri] = opened
            return opened

    def _share(self, uri: str) -> OpenFile | None:
        """Return an open file for one more reader, ``None`` if the file is not open, or is not the one at its path any more."""
        with self.lock:
            known = self.shared.get(uri)
            if known is None:
                return None
            known.readers += 1
            self.idle.pop(uri, None)
            is_open = self.shared.get(uri) is known
        if is_open and self._is_current(known):
            return known
        with self.lock:
            if self.shared.get(uri) is known:
                del self.shared[uri]
        self.close(known)
        return None

    @contextmanager
    def _turn(self, uri: str) -> Iterator[None]:
        """Let one thread at a time open a file in this block."""
        with self.lock:
            turn = self.turns.setdefault(uri, _Turn())
            turn.threads += 1
        try:
            with turn.lock:
                yield
        finally:
            with self.lock:
                turn.threads -= 1
                if not turn.threads:
                    self.turns.pop(uri, None)

    def _is_current(self, known: OpenFile) -> bool:
        """Return True if a file is still the one at its path; if there is none, opening it raises the error."""
        try:
            return stamp_of(os.stat(local_path(known.file.uri))) == known.file.stamp
        except (OSError, ValueError):
            return False

    def close(self, opened: OpenFile) -> None:
        with self.lock:
            unneeded = self._release(opened)
        _close_all(unneeded)

    def _release(self, opened: OpenFile) -> list[OpenFile]:
        """Remove a reader of a file, and return the files to close."""
        opened.readers -= 1
        if opened.readers:
            return []
        uri = opened.file.uri
        if self.shared.get(uri) is not opened:
            return [opened]
        self.idle[uri] = opened
        return self._shrink()

    def _shrink(self) -> list[OpenFile]:
        """Forget idle files until there are few enough, and return them."""
        forgotten = []
        while len(self.idle) > (self.most_idle if self.passes else 0):
            uri, opened = self.idle.popitem(last=False)
            if self.shared.get(uri) is opened:
                del self.shared[uri]
            forgotten.append(opened)
        return forgotten


def _close_all(opened: list[OpenFile]) -> None:
    for unneeded in opened:
        unneeded.file.close()


_FILES: Final = _OpenFiles()
after_fork(_FILES.reset)


@contextmanager
def keeping_open() -> Iterator[None]:
    """Keep local files open that are read in this block, in any thread."""
    _FILES.begin_pass()
    try:
        yield
    finally:
        _FILES.end_pass()


def open_file(uri: str) -> OpenFile:
    """Open a local file, or share it if it is still open; :func:`close_file` must follow.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    """
    return _FILES.open(uri)


def close_file(opened: OpenFile) -> None:
    """Close a file, or leave it open for the rest of the pass."""
    _FILES.close(opened)
