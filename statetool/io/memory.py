"""Make the C library keep the memory of freed arrays."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGEST_KEPT: Final = 32 << 20
_KEPT: Final = 256 << 20
_SPARED: Final = 64 << 20
_ARENAS: Final = 2


@cache
def keep_freed_memory() -> None:
    """Keep the memory of freed arrays of up to 32 MiB in the process, to be used again, instead of giving it back to the system.

    Reading makes and frees arrays of some MiB in a loop. By default glibc gives each back, and the system clears each page anew when
    it is touched next: a third of the time of a read. Up to 256 MiB are kept, and 64 of more. Threads that start later share two arenas:
    what one frees is there for the others, where each would have an own one that gives back 64 MiB at once. With other C libraries, and
    where the user has chosen (``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_TOP_PAD_``, ``MALLOC_ARENA_MAX``), nothing changes.
    """
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
