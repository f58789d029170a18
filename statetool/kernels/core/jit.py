"""Decorator of all kernels, which also decides whether a call runs compiled.

Kernels take NumPy arrays and numbers, and return numbers. They raise nothing: they return ``(code, index)`` with a code of
:mod:`statetool.kernels.core.codes` and the index of the value that it refers to. They allocate no arrays, so that numba need not count
references to arrays, which would cost more than most of a kernel's work (:mod:`statetool.kernels.core.numba_private`).

Compiling a kernel takes 0.3 to 4 seconds. Running it uncompiled takes up to about a microsecond per element of its longest array. So a
kernel runs uncompiled while its calls are small and together take less time than compiling. If its compiled code is already cached
(:mod:`statetool.kernels.core.kept`), the kernel switches to it sooner. Both ways give the same results: they run the same code, with 64-bit
integers that wrap around. ``STATETOOL_JIT=0`` compiles nothing, and ``STATETOOL_JIT=1`` compiles everything at its first call. Without
numba nothing is compiled. With NumPy 1, where sums of two kinds of integers become floating-point, everything is compiled.

Positions that index bytes in a loop are ``np.uint64``: numba then has no negative indexes to wrap, and vectorizes the loop.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from statetool.kernels.core import kept, numba_private

_LOCK: Final = threading.RLock()
#: Kernels are named from here: ``entries.walk.match_range``.
_PACKAGE: Final = "statetool.kernels."


class InterpretBudget(NamedTuple):
    """Budget of a kernel for uncompiled calls: elements of the longest array of one call, CPU seconds of all calls together."""

    elements: float
    seconds: float


NOTHING: Final = InterpretBudget(-1, 0)
EVERYTHING: Final = InterpretBudget(float("inf"), float("inf"))
#: Budgets if code would have to be compiled; if it would only be loaded, and numba imported first; and if numba, the slowest part, is
#: imported.
BEFORE_COMPILING: Final = InterpretBudget(1 << 21, 0.5)
BEFORE_LOADING: Final = InterpretBudget(1 << 14, 0.05)
WITH_NUMBA: Final = InterpretBudget(1 << 11, 0.005)


def allowance(name: str) -> InterpretBudget:
    """Return the budget of a kernel for uncompiled calls in this process."""
    setting = os.environ.get("STATETOOL_JIT", "")
    if setting == "0" or importlib.util.find_spec("numba") is None:
        return EVERYTHING
    if setting == "1" or np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return NOTHING
    return BEFORE_LOADING if name in kept.names() else BEFORE_COMPILING


class Kernel:
    """A kernel that numba compiles once that pays off. Importing kernels does not import numba, nor does a small read."""

    def __init__(self, function: Callable[..., Any], *, inline: bool = False) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = f"{function.__module__.removeprefix(_PACKAGE)}.{function.__qualname__}"
        self.inline = inline
        self._run: Callable[..., Any] | None = None
        self._seconds = 0.0

    @cached_property
    def allowance(self) -> InterpretBudget:
        """Budget of this kernel for uncompiled calls."""
        return allowance(self.name)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The numba dispatcher."""
        with _LOCK:
            return _dispatcher(self)

    @cached_property
    def uncompiled(self) -> Callable[..., Any]:
        """The Python function itself, which also calls other kernels uncompiled."""
        with _LOCK:
            f: Any = self.function
            return FunctionType(f.__code__, _uncompiled_names(f.__globals__), f.__name__, f.__defaults__, f.__closure__)

    def __call__(self, *arguments: Any) -> Any:
        if self._run is not None:
            return self._run(*arguments)
        allowed = self.allowance
        elements, seconds = WITH_NUMBA if allowed is BEFORE_LOADING and "numba" in sys.modules else allowed
        if self._seconds <= seconds and max(map(_size, arguments), default=0) <= elements:
            return self._run_uncompiled(arguments)
        self._run = self.compiled
        return self._run(*arguments)

    def _run_uncompiled(self, arguments: tuple[Any, ...]) -> Any:
        start = time.thread_time()
        with np.errstate(all="ignore"):  # integers wrap around, as they do in compiled code
            result = self.uncompiled(*map(_as_compiled, arguments))
        self._seconds += time.thread_time() - start
        return tuple(map(_as_returned, result)) if isinstance(result, tuple) else _as_returned(result)


def jit(function: Callable[..., Any]) -> Kernel:
    """Turn a function into a kernel."""
    return Kernel(function)


def inlined(function: Callable[..., Any]) -> Kernel:
    """Turn a function into a kernel that is inlined into each calling kernel: a call would cost as much as copying all of its arguments."""
    return Kernel(function, inline=True)


def read_soon(data, p):
    """Prefetch ``data[p]``, where ``p`` may be outside the array; only compiled code does.

    This hides memory latency when accesses are far apart: the processor does not run the loads of a loop ahead far enough if the loop also
    stores.
    """


def _size(argument: Any) -> int:
    return argument.size if isinstance(argument, np.ndarray) else 0


def _as_compiled(argument: Any) -> Any:
    """Return an argument in the form that compiled code gets: Python integers become 64-bit integers."""
    return np.int64(argument) if type(argument) is int else argument


def _as_returned(result: Any) -> Any:
    """Return a result in the form that compiled code gives: a Python number."""
    return result.item() if isinstance(result, np.generic) else result


_namespaces: Final[dict[int, dict[str, Any]]] = {}


def _uncompiled_names(names: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module, with each kernel replaced by its uncompiled function."""
    namespace = _namespaces.get(id(names))
    if namespace is None:
        namespace = _namespaces[id(names)] = dict(names)
        namespace.update({name: value.uncompiled for name, value in names.items() if isinstance(value, Kernel)})
    return namespace


@cache
def _extend_numba() -> None:
    """Teach numba about kernels called by kernels, which are dispatchers to numba, and about :func:`read_soon`."""
    from numba import types
    from numba.extending import typeof_impl

    typeof_impl.register(Kernel, lambda other, _: types.Dispatcher(other.compiled))
    numba_private.compile_prefetch(read_soon)


def _dispatcher(kernel: Kernel) -> Callable[..., Any]:
    _extend_numba()
    return numba_private.make_dispatcher(kernel.function, kernel.name, inline=kernel.inline)
