"""Ahead-of-time compilation of kernels, for every combination of argument types that they are called with."""

from __future__ import annotations

import importlib
import re
import shutil
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from statetool.kernels.core import kept, numba_private
from statetool.kernels.core.jit import BEFORE_COMPILING, NOTHING, Kernel, allowance
from statetool.kernels.entries.heap import StatePrograms
from statetool.kernels.entries.key_search import KeySearch, StateRuns
from statetool.kernels.entries.walk import KeyGroups, Rows
from statetool.kernels.graphs.flat_program import Layout
from statetool.kernels.rocksdb.merge import BlockRuns, MergeScratch

_TUPLES: Final = {
    t.__name__: t for t in (BlockRuns, MergeScratch, KeyGroups, KeySearch, Layout, Rows, StatePrograms, StateRuns)
}
_WORDS: Final = re.compile(r"\w+\([^)]*\)|\S+")

#: Each line of ``signatures.txt`` is a kernel and its argument types. An array is written as the NumPy name of its element type, then ``:2`` if
#: it has two dimensions (``:3`` for three), ``:A`` if it may be non-contiguous, and ``r`` if it is read-only. The file is recorded from calls
#: (``python -m tests.support.kernel_signatures``).
SIGNATURES: Final = tuple((resources.files(__package__) / "signatures.txt").read_text("utf-8").splitlines())


def described(argument: Any) -> str:
    """Return the type of an argument in the notation of :data:`SIGNATURES`."""
    if isinstance(argument, np.ndarray):
        dimensions = "" if argument.ndim == 1 else f":{argument.ndim}"
        strided = "" if argument.flags.c_contiguous else ":A"
        return f"{argument.dtype.str[1:]}{dimensions}{strided}{'' if argument.flags.writeable else 'r'}"
    if isinstance(argument, tuple):
        return f"{type(argument).__name__}({' '.join(map(described, argument))})"
    return type(argument).__name__


def compile_all() -> None:
    """Compile all kernels, or load the code that is already cached."""
    import numba

    for kernel, arguments in map(_parsed, SIGNATURES):
        kernel.compiled.compile(tuple(numba.typeof(_example(a)) for a in arguments))  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def compile_together(names: tuple[str, ...]) -> None:
    """Compile the kernels that are about to be needed, shared among processes that start at the same time and cache code in one folder.

    Each process takes the next kernel that is neither cached nor claimed by another process. Does nothing if the code is
    already cached or cannot be, or compilation is off.

    Parameters
    ----------
    names
        Kernels that work on the bytes of files, slowest to compile first.
    """
    if not any(allowance(name) in (NOTHING, BEFORE_COMPILING) for name in names):
        return
    import numba

    for name in names:
        for kernel, arguments in map(_parsed, SIGNATURES):
            if kernel.name == name and arguments[0] == "u1r" and not any(a.endswith(":A") for a in arguments):
                dispatcher: Any = kernel.compiled
                types = tuple(numba.typeof(_example(a)) for a in arguments)
                if numba_private.is_left(dispatcher, types):
                    dispatcher.compile(types)


def _parsed(line: str) -> tuple[Kernel, list[str]]:
    """Return the kernel of a signature and its argument types."""
    name, *arguments = _WORDS.findall(line)
    module, _, function = name.rpartition(".")
    kernel: Any = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    assert isinstance(kernel, Kernel)
    return kernel, arguments


def ship(folder: str) -> str | None:
    """Copy the compiled code of these sources to a folder that :data:`~statetool.kernels.core.kept.VARIABLE` can name, and return its path.

    Cached code is readable by its owner only. The copy is readable by everyone who can read new files, because an image is often built by
    one user and run by another. Returns ``None`` if no code can be cached.
    """
    source = kept.target()
    if source is None:
        return None
    target = Path(folder) / kept.stamp()
    # Not as a tree: the folder of the cache is private, and other users read what is shipped.
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        shutil.copyfile(file, target / file.name)
    return str(target)


def _example(text: str) -> Any:
    """Return an example argument of the type that a text describes."""
    if text.endswith(")"):
        name, _, members = text.removesuffix(")").partition("(")
        return _TUPLES[name](*map(_example, members.split()))
    if text in ("int", "bool"):
        return {"int": 0, "bool": False}[text]
    if text == "uint64":
        return np.uint64(0)
    kind, *flags = text.removesuffix("r").split(":")
    array = np.empty([4] * next((int(flag) for flag in flags if flag.isdigit()), 1), dtype=kind)
    array = array[::2] if "A" in flags else array
    array.flags.writeable = not text.endswith("r")
    return array
