"""A process that runs functions which write snapshots, each in a process of its own, which it kills at a call of the file system.

Run as ``python -m tests.support.failures.kills FOLDER``. A line of its input is JSON: the name of a function, its target, and the number of
the call at which the process is killed, 0 for none. A line of its output is the number of calls, or ``killed``. Calls are those of
:mod:`statetool.io`: writes and reads, so that proofs are killed too.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from statetool.io import files, targets
from tests.support.failures.verbs import VERBS, put_state_into_files, split

_CALLS: Final = ("fsync", "link", "unlink", "scandir", "stat", "makedirs", "rmdir", "open", "pread", "preadv")


class _Counter:
    """Counter of calls; one of them kills this process."""

    def __init__(self, fatal: int) -> None:
        self.calls, self._fatal = 0, fatal
        self._lock = threading.Lock()

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self.calls += 1
                if self.calls == self._fatal:
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call


class _Os:
    """The module ``os``, with counted calls."""

    def __init__(self, counter: _Counter) -> None:
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        return self._counter.wrap(value) if name in _CALLS else value


def _run(name: str, folder: Path, target: str, fatal: int) -> int:
    """Run a function and return the number of its calls."""
    counter = _Counter(fatal)
    for module in (files, targets):
        vars(module).update(os=_Os(counter), open=counter.wrap(builtins.open))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        (split if name == "split" else VERBS[name])(target, folder, False)
    return counter.calls


def main() -> None:
    """Answer requests until the input ends."""
    folder = Path(sys.argv[1])
    with pytest.MonkeyPatch.context() as patch:
        put_state_into_files(patch)
        for line in sys.stdin:
            name, target, fatal = json.loads(line)
            if not fatal:
                # In this process, so that the next ones have loaded and compiled everything.
                print(_run(name, folder, target, 0), flush=True)
                continue
            pid = os.fork()
            if pid == 0:
                try:
                    _run(name, folder, target, fatal)
                finally:
                    os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            print("killed" if code == -signal.SIGKILL else "ended", flush=True)


if __name__ == "__main__":
    main()
