"""Make the C library keep the memory of freed arrays."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGEST_KEPT: Final = 32 << 20
_KEPT: Final = 256 << 20


@cache
def keep_freed_memory() -> None:
    """Keep the memory of freed arrays of up to 32 MiB in the process, to be used again, instead of giving it back to the system.

    Reading makes and frees arrays of some MiB in a loop. By default glibc gives each back, and the system clears each page anew when
    it is touched next: a third of the time of a read. Up to 256 MiB are kept. With other C libraries, and where the user has chosen
    (``MALLOC_TRIM_THRESHOLD_``), nothing changes.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
