"""Kernels that write sorted entries as canonical key groups (:mod:`statetool.kernels.walk` draws the layout)."""

from __future__ import annotations

import numpy as np

from statetool.kernels.jit import jit


@jit
def equal_to_next(data, key, key_end, state, group):  # type: ignore[no-untyped-def]
    """Return the index of the first entry whose next one has the same state, key group and key; -1 where there is none."""
    for i in range(key.shape[0] - 1):
        if state[i] != state[i + 1] or group[i] != group[i + 1] or key_end[i] - key[i] != key_end[i + 1] - key[i + 1]:
            continue
        same = True
        for k in range(key_end[i] - key[i]):
            if data[key[i] + k] != data[key[i + 1] + k]:
                same = False
                break
        if same:
            return i
    return -1


@jit
def _store_i4(v, out, o):  # type: ignore[no-untyped-def]
    out[o] = (v >> 24) & 0xFF
    out[o + 1] = (v >> 16) & 0xFF
    out[o + 2] = (v >> 8) & 0xFF
    out[o + 3] = v & 0xFF


@jit
def _copy(data, start, size, out, o):  # type: ignore[no-untyped-def]
    p = np.uint64(start)
    to = np.uint64(o)
    for k in range(np.uint64(size)):
        out[to + np.uint64(k)] = data[p + np.uint64(k)]


@jit
def pack_records(keys, key, key_end, values, value, value_end, state, begins, ends, group_ends, pos, out):  # type: ignore[no-untyped-def]
    """Write entries at ``pos`` int64[n] of ``out``.

    ``begins``, ``ends`` and ``group_ends`` uint8[n] mark the first and last entry of a state in a key group, and the last one of
    a key group. Keys include their key-group prefix.
    """
    for i in range(state.shape[0]):
        o = pos[i]
        if begins[i]:
            out[o] = (state[i] >> 8) & 0xFF
            out[o + 1] = state[i] & 0xFF
            o += 2
        size = key_end[i] - key[i]
        _store_i4(size, out, o)
        _copy(keys, key[i], size, out, o + 4)
        if ends[i]:
            out[o + 4] |= 0x80
        o += 4 + size
        size = value_end[i] - value[i]
        _store_i4(size, out, o)
        _copy(values, value[i], size, out, o + 4)
        if group_ends[i]:
            out[o + 4 + size] = 0xFF
            out[o + 5 + size] = 0xFF
