"""Memory allocation of glibc: keep the memory of freed arrays in the process. Other C libraries are left alone.

The settings of malloc belong to the whole process, so only statetool's own processes change them: the command line and the Spark tasks of
statetool. Any other program does it by calling :func:`keep_freed_memory`.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

from statetool.io.switches import is_plain

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGEST_KEPT: Final = 32 << 20
_KEPT: Final = 256 << 20
_SPARED: Final = 64 << 20
_ARENAS: Final = 2


#: Whether this process is statetool's own, or its program has called keep_freed_memory.
_may_keep = False


def claim_process() -> None:
    """Say that this process belongs to statetool: the next read or write calls :func:`keep_freed_memory`."""
    global _may_keep
    _may_keep = True


def keep_in_own_process() -> None:
    """Call :func:`keep_freed_memory` if this process belongs to statetool; otherwise nothing changes."""
    if _may_keep:
        keep_freed_memory()


@cache
def keep_freed_memory() -> None:
    """Keep the memory of freed arrays of up to 32 MiB in this process for reuse, instead of returning it to the system.

    This makes reads by the functions of statetool up to a third faster. It changes settings of glibc's malloc for the whole process, so
    statetool only does it unasked in the command line and in its Spark tasks. Call it before the first read.

    Reads allocate and free arrays of some MiB in a loop. By default glibc returns each to the system, which clears every page again at
    its next use: a fifth of the CPU time of a read. Up to 256 MiB are kept; above that, 64 MiB. Threads that start later share two arenas,
    so that one thread can reuse memory freed by another. Otherwise each thread would have a separate arena that returns 64 MiB at once.
    Nothing changes with other C libraries or ``STATETOOL_PLAIN=glibc``, or if the user has set ``MALLOC_TRIM_THRESHOLD_``,
    ``MALLOC_TOP_PAD_`` or ``MALLOC_ARENA_MAX``.

    Examples
    --------
    >>> import statetool
    >>> statetool.keep_freed_memory()
    """
    claim_process()
    if is_plain("glibc"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
    if "MALLOC_TOP_PAD_" not in os.environ:
        mallopt(_M_TOP_PAD, _SPARED)
    if "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, _ARENAS)


def return_freed_memory() -> None:
    """Return memory that :func:`keep_freed_memory` keeps to the system. Nothing happens with other C libraries, or if nothing is kept."""
    trim = None if is_plain("glibc") or not _may_keep else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
