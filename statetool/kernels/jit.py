"""The one decorator of all kernels.

Kernels take and return numpy arrays and numbers, allocate outside their loops and raise nothing: they return
``(code, index)`` with a code of :mod:`statetool.kernels.codes` and the index of the value that it is about.
Compiled code is cached beside the package, or in the user's cache folder where that cannot be written, below a name made of the
sources of all kernels: a kernel has others compiled into it, and numba only looks at the file that it stands in. For a package in a
zip numba looks at the zip. Where there is no place at all, each process compiles for itself.
Without numba, or with ``STATETOOL_JIT=0``, the same code runs uncompiled.

Positions that index bytes in a loop are ``np.uint64``: numba then has no negative indexes to wrap, and the loop becomes
vector instructions.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, Final

_ONE_AT_A_TIME: Final = threading.RLock()


class Kernel:
    """A kernel that numba compiles when it is first called: importing kernels does not import numba."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The dispatcher of numba, or the function itself where there is no numba."""
        if os.environ.get("STATETOOL_JIT", "1") == "0" or importlib.util.find_spec("numba") is None:
            return self.function
        with _ONE_AT_A_TIME:  # numba is told its folder by a setting of the whole process
            return _dispatcher(self.function)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


def jit(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function."""
    return Kernel(function)


def _dispatcher(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba
    from numba.extending import typeof_impl

    # To numba, a kernel that another one calls is its dispatcher.
    typeof_impl.register(Kernel, lambda kernel, _: numba.types.Dispatcher(kernel.compiled))
    given = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _place(given) or given  # looked at here only, where the dispatcher is made
    fresh = numba.njit(nogil=True)
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba found no place for its cache: a wheel on sys.path, no home folder
        dispatcher = fresh(function)
    else:
        # For a zip numba does not look whether its place can be written, and fails at the first call.
        dispatcher = dispatcher if _writable(dispatcher.stats.cache_path) else fresh(function)
    finally:
        numba.config.CACHE_DIR = given
    compiled: Callable[..., Any] = dispatcher
    return compiled


@cache
def _place(given: str) -> str | None:
    """Return the folder for compiled code; ``None`` leaves it to numba."""
    here = Path(__file__).parent
    if not here.is_dir():
        return None
    digest = hashlib.sha256()
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"statetool-{digest.hexdigest()[:16]}"
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for base in (given,) if given else (str(here / "__pycache__"), user):
        folder = os.path.join(base, name)
        if _writable(folder):
            return folder
    return None


@cache
def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
