"""Kernels for binary rows, arrays and maps of the table runtime (little-endian inside).

Arguments: ``data`` uint8[:] read-only; ``base``, ``limit`` int64[n], the first byte of the row or array that contains a value, and the
first byte after it; ``slot`` int64[n], the position of the value's slot, already checked to be inside; ``valid`` uint8[n], 0 for null. All
but the loaders return ``(code, index)``. Follows ``BinaryRowData`` and ``BinaryArrayData``; the reference is
:mod:`statetool.serializers.sql.binary_format`.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import (
    BAD_COUNT,
    BAD_DECIMAL,
    BAD_FLAG,
    BAD_INLINE,
    BAD_KIND,
    BAD_NANOS,
    BAD_PART,
    OK,
    OVERLAP,
)
from statetool.kernels.core.jit import jit
from statetool.kernels.values.decode_fixed import read_u4


@jit
def little_u4(data, p):
    """Return the unsigned 32-bit number at ``p`` (uint64) as int64."""
    return (
        np.int64(data[p])
        | np.int64(data[p + np.uint64(1)]) << 8
        | np.int64(data[p + np.uint64(2)]) << 16
        | np.int64(data[p + np.uint64(3)]) << 24
    )


@jit
def little_i4(data, p):
    """Return the signed 32-bit number at ``p`` (uint64) as int64."""
    v = little_u4(data, p)
    return v if v < 0x80000000 else v - 0x100000000


@jit
def little_i8(data, p):
    """Return the signed 64-bit number at ``p`` (uint64)."""
    return little_u4(data, p) | little_i4(data, p + np.uint64(4)) << 32


@jit
def row_heads(data, base, limit, fixed_size, kinds):
    """Check that the fixed-length part is complete, and read the row kind into ``kinds`` uint8[n]."""
    for i in range(base.shape[0]):
        if limit[i] - base[i] < fixed_size:
            return BAD_PART, i
        kind = data[np.uint64(base[i])]
        if kind > 3:
            return BAD_KIND, i
        kinds[i] = kind
    return OK, 0


@jit
def row_nulls(data, base, valid):
    """Read the null bits into ``valid`` uint8[fields, n]."""
    fields = valid.shape[0]
    for first in range(0, fields, 8):
        count = min(8, fields - first)
        for i in range(base.shape[0]):
            bits = data[np.uint64(base[i] + 1 + (first >> 3))]
            for k in range(count):
                valid[first + k, i] = 1 - ((bits >> np.uint8(k)) & np.uint8(1))


@jit
def load_little(data, slot, valid, size, out):
    """Load integers of ``size`` bytes (1, 2, 4 or 8), sign-extended; 0 for null."""
    n = slot.shape[0]
    if size == 8:
        for i in range(n):
            out[i] = little_i8(data, np.uint64(slot[i])) if valid[i] else 0
    elif size == 4:
        for i in range(n):
            out[i] = little_i4(data, np.uint64(slot[i])) if valid[i] else 0
    elif size == 2:
        for i in range(n):
            p = np.uint64(slot[i])
            v = np.int64(data[p]) | np.int64(data[p + np.uint64(1)]) << 8
            out[i] = (v if v < 0x8000 else v - 0x10000) if valid[i] else 0
    else:
        for i in range(n):
            w = np.int64(data[np.uint64(slot[i])])
            out[i] = (w if w < 0x80 else w - 0x100) if valid[i] else 0


@jit
def load_bools(data, slot, valid, out):
    """Load bytes that must be 0 or 1 into ``out`` uint8[n]."""
    for i in range(slot.shape[0]):
        flag = data[np.uint64(slot[i])] if valid[i] else np.uint8(0)
        if flag > 1:
            return BAD_FLAG, i
        out[i] = flag
    return OK, 0


@jit
def find_parts(data, base, limit, slot, valid, owner, left, inline, starts, sizes):
    """Find the bytes that slots refer to: in the slot itself if ``inline`` and marked so, otherwise at the stored offset.

    ``left`` int64[rows or arrays]: bytes that parts may still take (Flink stores them one after another); ``owner`` int64[n] is the
    array of each element, empty if value i belongs to row i. Null takes no bytes.
    """
    for i in range(slot.shape[0]):
        if not valid[i]:
            starts[i] = slot[i]
            sizes[i] = 0
            continue
        p = np.uint64(slot[i])
        mark = data[p + np.uint64(7)]
        if inline and mark >= 0x80:
            if mark > 0x87:
                return BAD_INLINE, i
            starts[i] = slot[i]
            sizes[i] = np.int64(mark) - 0x80
            continue
        size, offset = little_i4(data, p), little_i4(data, p + np.uint64(4))
        if size < 0 or offset < 0 or size > limit[i] - base[i] - offset:
            return BAD_PART, i
        o = owner[i] if owner.shape[0] else i
        left[o] -= size
        if left[o] < 0:
            return OVERLAP, i
        starts[i] = base[i] + offset
        sizes[i] = size
    return OK, 0


@jit
def find_instants(data, base, limit, slot, valid, millis, nanos):
    """Read timestamps of more than three digits: i64 millis in the variable-length part, i32 nano of milli in the slot."""
    for i in range(slot.shape[0]):
        millis[i] = 0
        nanos[i] = 0
        if not valid[i]:
            continue
        p = np.uint64(slot[i])
        nano, offset = little_i4(data, p), little_i4(data, p + np.uint64(4))
        if nano < 0 or nano > 999_999:
            return BAD_NANOS, i
        if offset < 0 or limit[i] - base[i] - offset < 8:
            return BAD_PART, i
        millis[i] = little_i8(data, np.uint64(base[i] + offset))
        nanos[i] = nano
    return OK, 0


@jit
def read_decimals(data, starts, sizes, valid, limit_high, limit_low, words):
    """Read big-endian two's complement into ``words`` int64[n, 2], low word first.

    Magnitudes must be below the limit (``limit_high`` int64, ``limit_low`` uint64).
    """
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(starts.shape[0]):
        words[i, 0] = 0
        words[i, 1] = 0
        if not valid[i]:
            continue
        n = sizes[i]
        if n < 1:
            return BAD_DECIMAL, i
        p = starts[i]
        negative = data[np.uint64(p)] >= 0x80
        low = ones if negative else np.uint64(0)
        high = low
        # All bytes before the last 16 must only repeat the sign.
        fill = np.uint8(0xFF) if negative else np.uint8(0)
        for k in range(p, p + n - 16):
            if data[np.uint64(k)] != fill:
                return BAD_DECIMAL, i
        if n > 16 and (data[np.uint64(p + n - 16)] >= 0x80) != negative:
            return BAD_DECIMAL, i
        for k in range(max(p, p + n - 16), p + n):
            high = high << np.uint64(8) | low >> np.uint64(56)
            low = low << np.uint64(8) | np.uint64(data[np.uint64(k)])
        words[i, 0] = np.int64(low)
        words[i, 1] = np.int64(high)
        if negative:
            high = ~high
            low = ~low
            if low == ones:
                low = np.uint64(0)
                high = high + np.uint64(1)
            else:
                low = low + np.uint64(1)
        if high > np.uint64(limit_high) or (high == np.uint64(limit_high) and low >= limit_low):
            return BAD_DECIMAL, i
    return OK, 0


@jit
def array_counts(data, base, limit, size, counts):
    """Read the number of elements, of ``size`` bytes each, of arrays."""
    for i in range(base.shape[0]):
        room = limit[i] - base[i]
        if room < 4:
            return BAD_PART, i
        n = little_i4(data, np.uint64(base[i]))
        if n < 0 or 4 + (n + 31) // 32 * 4 + n * size > room:
            return BAD_COUNT, i
        counts[i] = n
    return OK, 0


@jit
def array_elements(data, base, limit, counts, size, slot, valid, bases, limits, owner):
    """Find the slot, null flag and array of each element, in order."""
    o = 0
    for i in range(base.shape[0]):
        b = base[i]
        n = counts[i]
        first = b + 4 + (n + 31) // 32 * 4
        for k in range(n):
            slot[o] = first + k * size
            bits = data[np.uint64(b + 4 + (k >> 3))]
            valid[o] = 1 - ((bits >> np.uint8(k & 7)) & np.uint8(1))
            bases[o] = b
            limits[o] = limit[i]
            owner[o] = i
            o += 1


@jit
def map_parts(data, base, limit, middle):
    """Find the start of the array of values, after the i32 size and the array of keys."""
    for i in range(base.shape[0]):
        room = limit[i] - base[i] - 4
        if room < 0:
            return BAD_PART, i
        size = little_i4(data, np.uint64(base[i]))
        if size < 0 or size > room:
            return BAD_PART, i
        middle[i] = base[i] + 4 + size
    return OK, 0


@jit
def variant_parts(data, starts, sizes, valid, middle):
    """Find the start of values, after the i32 (big-endian) size and the metadata."""
    for i in range(starts.shape[0]):
        middle[i] = starts[i]
        if not valid[i]:
            continue
        if sizes[i] < 4:
            return BAD_PART, i
        n = read_u4(data, np.uint64(starts[i]))
        if n > sizes[i] - 4:
            return BAD_PART, i
        middle[i] = starts[i] + 4 + n
    return OK, 0
