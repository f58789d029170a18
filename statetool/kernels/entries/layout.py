"""Layout of the values of lists and of the keys of timers in Flink's keyed state, which each reader and writer of entries uses.

list value   its elements with a comma between them; no list is empty
timer key    i8 time of firing with its sign bit flipped, so that bytes sort as times; key; namespace. A timer has no value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from statetool.kernels.rocksdb import DELIMITER

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from statetool.kernels.core.arrays import Bytes, Int64s

#: The byte between two elements of a list, in all backends: an element is added in RocksDB as an operand.
SEPARATOR: Final = DELIMITER
#: Size of the time at the start of a timer.
TIME_BYTES: Final = 8
_SIGN: Final = -(1 << 63)
Times = TypeVar("Times", int, "npt.NDArray[np.int64]")


def join_elements(elements: Iterable[bytes]) -> bytes:
    """Return the value of a list with these elements; no bytes if there are none."""
    return bytes((SEPARATOR,)).join(elements)


def flip_sign(times: Times) -> Times:
    """Return times as timers store them, or stored ones as times."""
    return times ^ _SIGN


def encode_time(time_ms: int) -> bytes:
    """Return the bytes at the start of a timer."""
    return flip_sign(time_ms).to_bytes(TIME_BYTES, "big", signed=True)


def decode_times(data: Bytes, timers: Int64s) -> Int64s:
    """Return the times of the timers that start at these positions."""
    import numpy as np  # reading metadata needs none

    raw = np.ascontiguousarray(data[timers[:, None] + np.arange(TIME_BYTES)])
    return flip_sign(raw.view(">i8").reshape(-1).astype(np.int64))
