"""The one decorator of all kernels.

Kernels take and return numpy arrays and numbers, allocate outside their loops and raise nothing: they return
``(code, index)`` with a code of :mod:`statetool.kernels.codes` and the index of the value that it is about.
Compiled code is cached beside the package, or in numba's cache folder of the user where that cannot be written (always, for a
package in a zip). Where there is no such place either, each process compiles for itself.
Without numba, or with ``STATETOOL_JIT=0``, the same code runs uncompiled.

Positions that index bytes in a loop are ``np.uint64``: numba then has no negative indexes to wrap, and the loop becomes
vector instructions.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _identity(function: F) -> F:
    return function


def _decorator() -> Callable[[F], F]:
    if os.environ.get("STATETOOL_JIT", "1") == "0":
        return _identity
    try:
        import numba
    except ImportError:
        return _identity
    fresh: Callable[[F], F] = numba.njit(nogil=True)

    def compiled(function: F) -> F:
        try:
            dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # numba found no place for its cache: a wheel on sys.path, no home folder
            return fresh(function)
        # For a zip numba does not look whether its place can be written, and fails at the first call.
        kept: F = dispatcher if _writable(dispatcher.stats.cache_path) else fresh(function)
        return kept

    return compiled


@cache
def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


jit: Callable[[Any], Any] = _decorator()
