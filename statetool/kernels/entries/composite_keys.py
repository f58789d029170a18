"""Entries with whole keys: the key group before the key, as databases store them."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes


@jit
def join_keys(data, order, group, key, key_end, value, value_end, prefix, out, out_key, out_key_end, out_value_end):
    """Copy entries one after another, each as its key group (``prefix`` bytes, big-endian), its key and its value.

    Parameters
    ----------
    order
        int64[n]: the entries to copy.
    group, key, key_end, value, value_end
        Columns of the entries; ``key`` is the start of the key after its key group.
    out
        uint8[:] out, with room for all of them.
    out_key, out_key_end, out_value_end
        int64[n] out: ranges of key and value, which follow each other.
    """
    o = np.int64(0)
    for i in range(order.shape[0]):
        e = order[i]
        out_key[i] = o
        for k in range(prefix):
            out[o] = group[e] >> 8 * (prefix - 1 - k) & 0xFF
            o += 1
        o = copy_bytes(data, key[e], key_end[e] - key[e], out, o)
        out_key_end[i] = o
        o = copy_bytes(data, value[e], value_end[e] - value[e], out, o)
        out_value_end[i] = o
