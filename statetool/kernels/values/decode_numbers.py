"""Kernels for ``BigInteger`` and ``BigDecimal`` of up to 8 bytes; longer ones are marked for decoding with Python's integers.

Arguments as in :mod:`statetool.kernels.values.decode_fixed`. Follows ``BigIntSerializer`` and ``BigDecSerializer``.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import BAD_BIG_NUMBER, OK, TRUNCATED
from statetool.kernels.core.jit import jit
from statetool.kernels.values.decode_fixed import read_u4


@jit
def big_integers(data, pos, end, out, valid, wide, after):
    """Read BigIntegers into ``out`` int64[n]; ``wide`` uint8[n] marks those longer than 8 bytes (``out`` is left unset)."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + 4 > end[i]:
            return TRUNCATED, i
        n = read_u4(data, np.uint64(p))
        p += 4
        wide[i] = 0
        valid[i] = 1
        if n < 4:
            valid[i] = 1 if n > 0 else 0
            out[i] = 10 if n == 3 else (1 if n == 2 else 0)
            after[i] = p
            continue
        n -= 4
        if n == 0 or n > end[i] - p:
            return BAD_BIG_NUMBER, i
        after[i] = p + n
        if n > 8:
            wide[i] = 1
            continue
        v = np.int64(0) if data[p] < 0x80 else np.int64(-1)
        for k in range(n):
            v = (v << 8) | np.int64(data[p + k])
        out[i] = v
    return OK, 0


@jit
def scale_decimals(unscaled, scales, target, powers, low, high, valid, wide):
    """Rescale 64-bit unscaled values to scale ``target`` as 128-bit two's complement (``low``, ``high`` int64[n]).

    ``powers`` uint64[20] are powers of ten. Values with a scale outside ``target - 18 .. target`` are marked ``wide``.
    """
    for i in range(unscaled.shape[0]):
        if valid[i] == 0 or wide[i] == 1:
            continue
        up = target - scales[i]
        if up < 0 or up > 18 or unscaled[i] == np.int64(-9223372036854775808):
            wide[i] = 1
            continue
        negative = unscaled[i] < 0
        a = np.uint64(-unscaled[i] if negative else unscaled[i])
        b = powers[up]
        mask = np.uint64(0xFFFFFFFF)
        s = np.uint64(32)
        a0, a1, b0, b1 = a & mask, a >> s, b & mask, b >> s
        p00, p01, p10 = a0 * b0, a0 * b1, a1 * b0
        mid = (p00 >> s) + (p01 & mask) + (p10 & mask)
        lo = (p00 & mask) | (mid << s)
        hi = a1 * b1 + (p01 >> s) + (p10 >> s) + (mid >> s)
        if negative:
            hi = ~hi
            lo = ~lo
            if lo == np.uint64(0xFFFFFFFFFFFFFFFF):
                lo = np.uint64(0)
                hi += np.uint64(1)
            else:
                lo += np.uint64(1)
        low[i] = np.int64(lo)
        high[i] = np.int64(hi)
    return OK, 0
