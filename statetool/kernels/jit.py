"""The one decorator of all kernels.

Kernels take and return numpy arrays and numbers, allocate outside their loops and raise nothing: they return
``(code, index)`` with a code of :mod:`statetool.kernels.codes` and the index of the value that it is about.
Compiled code is cached beside the package, or in numba's cache folder of the user where that cannot be written.
Without numba, or with ``STATETOOL_JIT=0``, the same code runs uncompiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable
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
    compiled: Callable[[F], F] = numba.njit(cache=True, nogil=True)
    return compiled


jit: Callable[[Any], Any] = _decorator()
