"""Key groups: the assignment of keys to subtasks.

Follows ``KeyGroupRangeAssignment`` and ``MathUtils.murmurHash``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from statetool.errors import OptionError
from statetool.types.options import whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_PARALLELISM_LIMIT = 32768
Groups = TypeVar("Groups", int, "npt.NDArray[np.int64]")


def murmur(code: int) -> int:
    """Apply Murmur hashing to a Java hash code; the result is never negative."""
    code &= 0xFFFFFFFF
    code = code * 0xCC9E2D51 & 0xFFFFFFFF
    code = (code << 15 | code >> 17) & 0xFFFFFFFF
    code = code * 0x1B873593 & 0xFFFFFFFF
    code = (code << 13 | code >> 19) & 0xFFFFFFFF
    code = (code * 5 + 0xE6546B64) & 0xFFFFFFFF
    code ^= 4
    code ^= code >> 16
    code = code * 0x85EBCA6B & 0xFFFFFFFF
    code ^= code >> 13
    code = code * 0xC2B2AE35 & 0xFFFFFFFF
    code ^= code >> 16
    if code < 0x80000000:
        return code
    return 0 if code == 0x80000000 else 0x100000000 - code


def key_group_for(hash_code: int, max_parallelism: int) -> int:
    """Return the key group of a key with this Java hash code."""
    return murmur(hash_code) % max_parallelism


def prefix_size(max_parallelism: int) -> int:
    """Return the number of bytes of a key-group prefix: 1 for up to 128 key groups, otherwise 2."""
    return 1 if max_parallelism <= 128 else 2


def default_max_parallelism(parallelism: int) -> int:
    """Return the max parallelism that Flink assigns to an operator if the job sets none.

    Examples
    --------
    >>> default_max_parallelism(1), default_max_parallelism(100)
    (128, 256)
    """
    return min(max(1 << (parallelism + parallelism // 2 - 1).bit_length(), 128), MAX_PARALLELISM_LIMIT)


def range_for(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """Return the key groups of one subtask."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(start, end + 1)


def owner_of(key_group: Groups, parallelism: int, max_parallelism: int) -> Groups:
    """Return the subtask that owns a key group, or for an int64 array the owners of all its key groups."""
    return key_group * parallelism // max_parallelism


def check_max_parallelism(max_parallelism: int, parallelism: int = 1) -> int:
    """Return ``max_parallelism`` if Flink accepts it with this parallelism.

    Raises
    ------
    OptionError
        Outside of ``1 <= parallelism <= max_parallelism <= 32768``, or not whole numbers.
    """
    parallelism = whole_number("parallelism", parallelism)
    max_parallelism = whole_number("max_parallelism", max_parallelism)
    if not 1 <= parallelism <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise OptionError(
            f"max parallelism {max_parallelism} with parallelism {parallelism}",
            hint=f"Flink wants 1 <= parallelism <= max parallelism <= {MAX_PARALLELISM_LIMIT}",
        )
    return max_parallelism
