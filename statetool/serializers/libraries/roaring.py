"""Bitmaps of 32-bit ints in the portable form of RoaringBitmap, which is little-endian.

::

    i32 cookie: 12346 and i32 number of containers, or 12347 | (containers - 1) << 16 and a bit per container: has runs
    for each container: u16 high half of its values, u16 cardinality - 1
    i32 offset of each container (only without runs, or from 4 containers on)
    containers: u16 n and n times u16 start, u16 length - 1 (runs); up to 4,096 values u16 each; otherwise 8,192 bytes of bits

Follows the RoaringBitmap format specification, which ``Bitmap.toBytes`` of Flink 2.3 uses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Final

from statetool.errors import DecodeError, EncodeError

_PLAIN: Final = 12346
_WITH_RUNS: Final = 12347
_MOST_IN_LIST: Final = 4096
_BITS_BYTES: Final = 8192
_OFFSETS_FROM: Final = 4


def bitmap_ints(raw: bytes) -> list[int]:
    """Return the ints of a bitmap, signed, in the order of their unsigned values.

    Raises
    ------
    DecodeError
        Not the portable form of a bitmap.
    """
    try:
        return _read(raw)
    except (struct.error, IndexError) as e:
        raise DecodeError(f"a bitmap that is cut off: {e}") from e


def _read(raw: bytes) -> list[int]:
    (cookie,) = struct.unpack_from("<I", raw, 0)
    at = 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        n = (cookie >> 16) + 1
        runs = raw[at : at + (n + 7) // 8]
        at += len(runs)
    elif cookie == _PLAIN:
        (n,) = struct.unpack_from("<I", raw, at)
        at += 4
    else:
        raise DecodeError(f"{cookie} is not the cookie of a bitmap")
    if n > 1 << 16:
        raise DecodeError(f"{n} containers in a bitmap")
    heads = struct.unpack_from(f"<{2 * n}H", raw, at)
    at += 4 * n
    if not runs or n >= _OFFSETS_FROM:
        at += 4 * n
    ints: list[int] = []
    for i in range(n):
        high, cardinality = heads[2 * i] << 16, heads[2 * i + 1] + 1
        if runs and runs[i >> 3] >> (i & 7) & 1:
            (count,) = struct.unpack_from("<H", raw, at)
            pairs = struct.unpack_from(f"<{2 * count}H", raw, at + 2)
            at += 2 + 4 * count
            low = [v for s, extra in zip(pairs[::2], pairs[1::2], strict=True) for v in range(s, s + extra + 1)]
        elif cardinality <= _MOST_IN_LIST:
            low = list(struct.unpack_from(f"<{cardinality}H", raw, at))
            at += 2 * cardinality
        else:
            if len(raw) - at < _BITS_BYTES:
                raise DecodeError("a bitmap that is cut off")
            bits = int.from_bytes(raw[at : at + _BITS_BYTES], "little")
            low = [v for v in range(1 << 16) if bits >> v & 1]
            at += _BITS_BYTES
        if len(low) != cardinality or any(a >= b for a, b in pairwise(low)) or low[-1] > 0xFFFF:
            raise DecodeError(f"a container of a bitmap that is not {cardinality} ascending values")
        ints += [v - (1 << 32) if v >= 1 << 31 else v for v in (high | x for x in low)]
    if at != len(raw):
        raise DecodeError(f"{len(raw) - at} bytes follow a bitmap")
    return ints


def bitmap_bytes(ints: Iterable[int]) -> bytes:
    """Return the portable form of a set of signed 32-bit ints, without runs.

    Raises
    ------
    EncodeError
        A number is not a 32-bit int.
    """
    containers: dict[int, list[int]] = {}
    for v in sorted({_to_unsigned(v) for v in ints}):
        containers.setdefault(v >> 16, []).append(v & 0xFFFF)
    bodies = [_container(low) for low in containers.values()]
    head = struct.pack("<II", _PLAIN, len(containers))
    heads = b"".join(struct.pack("<HH", high, len(low) - 1) for high, low in containers.items())
    first = len(head) + len(heads) + 4 * len(bodies)
    starts = accumulate((len(b) for b in bodies[:-1]), initial=first)
    return head + heads + b"".join(struct.pack("<I", s) for s in starts if bodies) + b"".join(bodies)


def _to_unsigned(value: int) -> int:
    if not -(1 << 31) <= value < 1 << 31:
        raise EncodeError(f"{value} in a bitmap of 32-bit ints")
    return value & 0xFFFFFFFF


def _container(low: list[int]) -> bytes:
    if len(low) <= _MOST_IN_LIST:
        return struct.pack(f"<{len(low)}H", *low)
    bits = bytearray(_BITS_BYTES)
    for v in low:
        bits[v >> 3] |= 1 << (v & 7)
    return bytes(bits)
