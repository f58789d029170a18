"""Java's ``hashCode()`` for plain values, as signed 32-bit ints."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable


def to_int32(value: int) -> int:
    """Wrap to a signed 32-bit int, as Java arithmetic does."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def hash_long(value: int) -> int:
    """``Long.hashCode``; also for dates and times that hash their millis."""
    return to_int32((value & 0xFFFFFFFFFFFFFFFF) ^ ((value & 0xFFFFFFFFFFFFFFFF) >> 32))


def hash_bool(value: bool) -> int:
    """``Boolean.hashCode``."""
    return 1231 if value else 1237


def hash_float(value: float) -> int:
    """``Float.hashCode``; every NaN hashes as the canonical one."""
    return 0x7FC00000 if math.isnan(value) else int(struct.unpack(">i", struct.pack(">f", value))[0])


def hash_double(value: float) -> int:
    """``Double.hashCode``; every NaN hashes as the canonical one."""
    return hash_long(0x7FF8 << 48 if math.isnan(value) else int(struct.unpack(">q", struct.pack(">d", value))[0]))


def is_float32(value: float) -> bool:
    """Return True if a double is exactly a float (NaN included)."""
    try:
        return math.isnan(value) or struct.unpack(">f", struct.pack(">f", value))[0] == value
    except OverflowError:
        return False


def hash_string(value: str) -> int:
    """``String.hashCode``, over UTF-16 code units."""
    raw = value.encode("utf-16-be", "surrogatepass")
    h = 0
    for i in range(0, len(raw), 2):
        h = (31 * h + (raw[i] << 8 | raw[i + 1])) & 0xFFFFFFFF
    return to_int32(h)


def hash_big_integer(value: int) -> int:
    """``BigInteger.hashCode``, over the 32-bit words of the magnitude."""
    magnitude = abs(value)
    words = (magnitude.bit_length() + 31) // 32
    h = 0
    for i in range(words - 1, -1, -1):
        h = (31 * h + (magnitude >> (32 * i) & 0xFFFFFFFF)) & 0xFFFFFFFF
    return to_int32(-h if value < 0 else h)


def hash_big_decimal(unscaled: int, scale: int) -> int:
    """``BigDecimal.hashCode``: 1.0 and 1.00 differ."""
    if -(1 << 63) < unscaled < 1 << 63:
        magnitude = abs(unscaled)
        t = to_int32(31 * (magnitude >> 32) + (magnitude & 0xFFFFFFFF))
        return to_int32(31 * (-t if unscaled < 0 else t) + scale)
    return to_int32(31 * hash_big_integer(unscaled) + scale)


def hash_chain(hashes: Iterable[int], start: int) -> int:
    """Fold ``31 * h + hash`` over the parts, as lists (start 1) and records (start 0) do."""
    h = start
    for part in hashes:
        h = to_int32(31 * h + part)
    return h


def mix_word(h: int, word: int) -> int:
    """Return the Murmur3 state ``h`` after another 32-bit word."""
    k = word * 0xCC9E2D51 & 0xFFFFFFFF
    k = (k << 15 | k >> 17) & 0xFFFFFFFF
    h ^= k * 0x1B873593 & 0xFFFFFFFF
    h = (h << 13 | h >> 19) & 0xFFFFFFFF
    return (h * 5 + 0xE6546B64) & 0xFFFFFFFF


def finish_mix(h: int, length: int) -> int:
    """Return the Murmur3 hash of the state after the last word; ``length`` is mixed in."""
    h ^= length
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return to_int32(h ^ h >> 16)


def hash_binary(data: bytes) -> int:
    """Hash bytes like the table runtime (``MurmurHashUtil``, seed 42): 4-byte little-endian words, then single bytes.

    Binary rows consist of complete words (``hashByWords``); strings may end with single bytes, which are sign-extended.
    """
    h = 42
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        h = mix_word(h, int.from_bytes(data[i : i + 4], "little"))
    for b in data[whole:]:
        h = mix_word(h, (b - 256 if b > 127 else b) & 0xFFFFFFFF)
    return finish_mix(h, len(data))
