"""Failures of single file system calls during a write: errors and interrupts, before and after a call."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from statetool.io import files, targets

#: Error of the failing call, and whether the file system performed the call before it.
KINDS: Final = (("error", False), ("error", True), ("interrupt", False), ("interrupt", True))
_OS: Final = ("fsync", "link", "unlink", "scandir", "stat", "makedirs", "rmdir", "open")
_FILE: Final = ("write", "flush", "close")
_REMOTE: Final = ("exists", "ls", "makedirs", "rm_file", "size", "cat_file", "pipe_file", "open", "isdir", "rmdir")


class FailingIO:
    """Counter of the local and remote calls of :mod:`statetool.io.targets`. One of them fails.

    Parameters
    ----------
    point
        Number of the call that fails, from 1 on; 0 for none.
    """

    def __init__(self, point: int, kind: tuple[str, bool], patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.failed_call = ""
        self._point = point
        self._error, self._after = kind
        self._lock = threading.Lock()
        real_open, real_remote = open, files.file_system
        patch.setattr(targets, "os", _Proxy(os, self, _OS))
        patch.setattr(targets, "open", lambda *a: _Proxy(self.call("open", real_open, *a), self, _FILE), raising=False)

        def remote(uri: str) -> tuple[Any, str]:
            fs, path = real_remote(uri)
            return _Proxy(fs, self, _REMOTE), path

        patch.setattr(targets, "file_system", remote)

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Perform a call, or fail."""
        with self._lock:
            self.calls += 1
            fails = self.calls == self._point
        if not fails:
            return function(*arguments, **options)
        self.failed_call = f"{name} {arguments[0] if arguments else ''}"
        if self._after:
            function(*arguments, **options)
        if self._error == "interrupt":
            raise KeyboardInterrupt
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class _Proxy:
    def __init__(self, inner: Any, failing: FailingIO, names: tuple[str, ...]) -> None:
        self.__dict__.update(_inner=inner, _failing=failing, _names=names)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._names:
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            result = self._failing.call(name, value, *arguments, **options)
            return _Proxy(result, self._failing, _FILE) if name == "open" and hasattr(result, "write") else result

        return call

    def __enter__(self) -> Any:
        return self._inner.__enter__()

    def __exit__(self, *exc: object) -> Any:
        return self._inner.__exit__(*exc)
