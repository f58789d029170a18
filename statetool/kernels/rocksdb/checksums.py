"""Checksums of RocksDB blocks: masked CRC-32C (the older default) and XXH3 (since RocksDB 8).

XXH3 is the 64-bit variant without a seed, with its default secret. Only the lower half of the result is stored.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels.core.jit import jit

CRC32C: Final = 1
XXH3: Final = 4

_MASK_DELTA: Final = np.uint64(0xA282EAD8)
_LAST_BYTE_PRIME: Final = np.uint64(0x6B9083D9)


def _crc_tables() -> npt.NDArray[np.uint64]:
    tables = np.zeros((8, 256), dtype=np.uint64)
    for i in range(256):
        crc = i
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        tables[0, i] = crc
    for t in range(1, 8):
        tables[t] = tables[t - 1] >> np.uint64(8) ^ tables[0][tables[t - 1] & np.uint64(0xFF)]
    return tables.reshape(-1)


_TABLES: Final = _crc_tables()
_SECRET: Final = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8"
        "fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb17"
        "0ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    ),
    dtype=np.uint8,
)
_P32_1: Final = np.uint64(0x9E3779B1)
_P32_2: Final = np.uint64(0x85EBCA77)
_P32_3: Final = np.uint64(0xC2B2AE3D)
_P64_1: Final = np.uint64(0x9E3779B185EBCA87)
_P64_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P64_3: Final = np.uint64(0x165667B19E3779F9)
_P64_4: Final = np.uint64(0x85EBCA77C2B2AE63)
_P64_5: Final = np.uint64(0x27D4EB2F165667C5)
_MX1: Final = np.uint64(0x165667919E3779F9)
_MX2: Final = np.uint64(0x9FB21C651E98DF25)
_LOW: Final = np.uint64(0xFFFFFFFF)
_ACCUMULATORS: Final = np.array([_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1], dtype=np.uint64)


@jit
def _u4(data, p):
    q = np.uint64(p)
    return (
        np.uint64(data[q])
        | np.uint64(data[q + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[q + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[q + np.uint64(3)]) << np.uint64(24)
    )


@jit
def _u8(data, p):
    q = np.uint64(p)
    return (
        np.uint64(data[q])
        | np.uint64(data[q + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[q + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[q + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[q + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[q + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[q + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[q + np.uint64(7)]) << np.uint64(56)
    )


@jit
def crc32c(data, start, end, tables):
    """Compute the CRC-32C of ``data[start:end]``, masked as RocksDB stores it; ``tables`` is uint64[8 * 256]."""
    crc = _LOW
    p = np.uint64(start)
    stop = np.uint64(end)
    byte = np.uint64(0xFF)
    while p + np.uint64(8) <= stop:
        v = _u8(data, p) ^ crc
        crc = (
            tables[np.uint64(1792) + (v & byte)]
            ^ tables[np.uint64(1536) + (v >> np.uint64(8) & byte)]
            ^ tables[np.uint64(1280) + (v >> np.uint64(16) & byte)]
            ^ tables[np.uint64(1024) + (v >> np.uint64(24) & byte)]
            ^ tables[np.uint64(768) + (v >> np.uint64(32) & byte)]
            ^ tables[np.uint64(512) + (v >> np.uint64(40) & byte)]
            ^ tables[np.uint64(256) + (v >> np.uint64(48) & byte)]
            ^ tables[v >> np.uint64(56)]
        )
        p += np.uint64(8)
    while p < stop:
        crc = crc >> np.uint64(8) ^ tables[(crc ^ np.uint64(data[p])) & byte]
        p += np.uint64(1)
    crc = crc ^ _LOW
    return ((crc >> np.uint64(15) | crc << np.uint64(17)) & _LOW) + _MASK_DELTA & _LOW


@jit
def _swap_bytes(v):
    r = np.uint64(0)
    for _ in range(8):
        r = r << np.uint64(8) | v & np.uint64(0xFF)
        v = v >> np.uint64(8)
    return r


@jit
def _fold(a, b):
    """Multiply to 128 bits and XOR the two halves."""
    half = np.uint64(32)
    a0, a1, b0, b1 = a & _LOW, a >> half, b & _LOW, b >> half
    low, mid1, mid2 = a0 * b0, a1 * b0, a0 * b1
    cross = (low >> half) + (mid1 & _LOW) + mid2
    high = (mid1 >> half) + (cross >> half) + a1 * b1
    return (cross << half | low & _LOW) ^ high


@jit
def _mix(data, p, secret, s):
    return _fold(_u8(data, p) ^ _u8(secret, s), _u8(data, p + 8) ^ _u8(secret, s + 8))


@jit
def _avalanche(h):
    h = (h ^ h >> np.uint64(37)) * _MX1
    return h ^ h >> np.uint64(32)


@jit
def _avalanche64(h):
    h = (h ^ h >> np.uint64(33)) * _P64_2
    h = (h ^ h >> np.uint64(29)) * _P64_3
    return h ^ h >> np.uint64(32)


@jit
def _xxh3_short(data, p, n, secret):
    if n == 0:
        return _avalanche64(_u8(secret, 56) ^ _u8(secret, 64))
    if n <= 3:
        first, middle, last = np.uint64(data[p]), np.uint64(data[p + (n >> 1)]), np.uint64(data[p + n - 1])
        joined = first << np.uint64(16) | middle << np.uint64(24) | last | np.uint64(n) << np.uint64(8)
        return _avalanche64(joined ^ _u4(secret, 0) ^ _u4(secret, 4))
    if n <= 8:
        h = (_u4(data, p) << np.uint64(32)) + _u4(data, p + n - 4) ^ _u8(secret, 8) ^ _u8(secret, 16)
        h ^= (h << np.uint64(49) | h >> np.uint64(15)) ^ (h << np.uint64(24) | h >> np.uint64(40))
        h *= _MX2
        h ^= (h >> np.uint64(35)) + np.uint64(n)
        h *= _MX2
        return h ^ h >> np.uint64(28)
    low = _u8(data, p) ^ _u8(secret, 24) ^ _u8(secret, 32)
    high = _u8(data, p + n - 8) ^ _u8(secret, 40) ^ _u8(secret, 48)
    return _avalanche(np.uint64(n) + _swap_bytes(low) + high + _fold(low, high))


@jit
def _xxh3_middle(data, p, n, secret):
    acc = np.uint64(n) * _P64_1
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            acc += _mix(data, p + 16 * i, secret, 32 * i)
            acc += _mix(data, p + n - 16 * (i + 1), secret, 32 * i + 16)
        return _avalanche(acc)
    for i in range(8):
        acc += _mix(data, p + 16 * i, secret, 16 * i)
    acc = _avalanche(acc)
    for i in range(8, n // 16):
        acc += _mix(data, p + 16 * i, secret, 16 * (i - 8) + 3)
    return _avalanche(acc + _mix(data, p + n - 16, secret, 119))


@jit
def _accumulate(acc, data, p, secret, s):
    for i in range(8):
        value = _u8(data, p + 8 * i)
        keyed = value ^ _u8(secret, s + 8 * i)
        acc[i ^ 1] += value
        acc[i] += (keyed & _LOW) * (keyed >> np.uint64(32))


@jit
def xxh3(data, start, end, secret, acc):
    """Compute the 64-bit XXH3 of ``data[start:end]``; ``acc`` uint64[8] is scratch space."""
    n = end - start
    if n <= 16:
        return _xxh3_short(data, start, n, secret)
    if n <= 240:
        return _xxh3_middle(data, start, n, secret)
    for i in range(8):
        acc[i] = _ACCUMULATORS[i]
    blocks = (n - 1) // 1024
    p = start
    for _ in range(blocks):
        for s in range(16):
            _accumulate(acc, data, p + 64 * s, secret, 8 * s)
        for i in range(8):
            acc[i] = (acc[i] ^ acc[i] >> np.uint64(47) ^ _u8(secret, 128 + 8 * i)) * _P32_1
        p += 1024
    for s in range((n - 1 - 1024 * blocks) // 64):
        _accumulate(acc, data, p + 64 * s, secret, 8 * s)
    _accumulate(acc, data, end - 64, secret, 121)
    h = np.uint64(n) * _P64_1
    for i in range(4):
        h += _fold(acc[2 * i] ^ _u8(secret, 11 + 16 * i), acc[2 * i + 1] ^ _u8(secret, 19 + 16 * i))
    return _avalanche(h)


@jit
def _of_block(data, start, end, kind, tables, secret, acc):
    """Compute the checksum of a block and its compression byte, which follows it at ``end``."""
    if kind == CRC32C:
        return crc32c(data, start, end + 1, tables)
    return (xxh3(data, start, end, secret, acc) ^ np.uint64(data[end]) * _LAST_BYTE_PRIME) & _LOW


@jit
def _seal(data, sizes, kind, tables, secret, acc):
    start = np.int64(0)
    for i in range(sizes.shape[0]):
        end = start + sizes[i]
        checksum = _of_block(data, start, end, kind, tables, secret, acc)
        for k in range(4):
            data[end + 1 + k] = checksum >> np.uint64(8 * k) & np.uint64(0xFF)
        start = end + 5


@jit
def _first_bad(data, starts, ends, kind, tables, secret, acc):
    for i in range(starts.shape[0]):
        if _of_block(data, starts[i], ends[i], kind, tables, secret, acc) & _LOW != _u4(data, ends[i] + 1):
            return i
    return -1


def first_bad_block(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], kind: int
) -> int:
    """Return the index of the first block with a wrong checksum, -1 if all are right.

    The bytes of each block (``starts`` to ``ends``) are followed by its compression byte and the checksum of both, u32 little-endian.
    ``kind`` is :data:`CRC32C` or :data:`XXH3`.
    """
    return int(_first_bad(data, starts, ends, kind, _TABLES, _SECRET, np.empty(8, dtype=np.uint64)))


def seal(blocks: bytes, sizes: list[int], kind: int) -> memoryview:
    """Return blocks with their checksums: each is followed by its compression byte and four bytes of room for the checksum.

    ``kind`` as for :func:`first_bad_block`.
    """
    data = np.frombuffer(bytearray(blocks), dtype=np.uint8)
    _seal(data, np.array(sizes, dtype=np.int64), kind, _TABLES, _SECRET, np.empty(8, dtype=np.uint64))
    return data.data


def checksum_of_block(block: bytes, kind: int) -> int:
    """Return the checksum of a block that is followed by its compression byte; ``kind`` as for :func:`first_bad_block`."""
    data = np.frombuffer(block, dtype=np.uint8)
    return int(_of_block(data, 0, len(data) - 1, kind, _TABLES, _SECRET, np.empty(8, dtype=np.uint64)))


def masked_crc32c(data: bytes) -> int:
    """Return the masked CRC-32C of bytes."""
    return int(crc32c(np.frombuffer(data, dtype=np.uint8), 0, len(data), _TABLES))
