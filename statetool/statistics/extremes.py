"""The largest of many, kept while they stream by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from statetool.kernels.arrays import Positions

#: Bytes of a key that are kept of the largest ones.
MOST_KEY_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, order=True)
class Extreme:
    """One of the largest; of two of one size the one whose key group and key come first is the larger. ``key`` is its encoded key."""

    size: int
    minus_group: int
    minus_key: bytes
    length: int
    state: str | None
    subtask: int
    key: bytes
    shown: str = ""

    @property
    def group(self) -> int:
        """The key group."""
        return -self.minus_group


def extreme(size: int, length: int, state: str | None, group: int, subtask: int, key: bytes) -> Extreme:
    """Return one of the largest."""
    inverted = bytes(255 - b for b in key[:64]) + b"\xff"
    return Extreme(size, -group, inverted, length, state, subtask, key[:MOST_KEY_BYTES])


def largest(sizes: Positions, most: int) -> Positions:
    """Return the indexes of the largest sizes, and of all that are as large as the least of them."""
    if len(sizes) <= most:
        return np.arange(len(sizes))
    least = np.partition(sizes, len(sizes) - most)[len(sizes) - most]
    found = np.flatnonzero(sizes >= least)
    return found if len(found) <= 4 * most else found[np.argsort(-sizes[found], kind="stable")[: 4 * most]]


def top(found: Iterable[Extreme], most: int) -> list[Extreme]:
    """Return the largest, largest first."""
    return sorted(found, reverse=True)[:most]
