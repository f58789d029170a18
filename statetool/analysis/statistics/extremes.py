"""The largest keys and values, collected while entries stream by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: Bytes to keep of the key of an extreme.
MOST_KEY_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, order=True)
class Extreme:
    """One of the largest items; of equal sizes, the one with the first key group and key counts as larger. ``key`` is the encoded key."""

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
        """Return the key group."""
        return -self.minus_group


def extreme(size: int, length: int, state: str | None, group: int, subtask: int, key: bytes) -> Extreme:
    """Return an extreme, with its key inverted for the order and cut to :data:`MOST_KEY_BYTES`."""
    inverted = bytes(255 - b for b in key[:64]) + b"\xff"
    return Extreme(size, -group, inverted, length, state, subtask, key[:MOST_KEY_BYTES])


def top(extremes: Iterable[Extreme], most: int) -> list[Extreme]:
    """Return the largest items, in descending order."""
    return sorted(extremes, reverse=True)[:most]
