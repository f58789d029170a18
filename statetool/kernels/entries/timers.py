"""Conversion of timers between the forms that they have in raw keyed state and in managed state."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes


@jit
def flip_timers(data, starts, ends, target, out):
    """Write each timer (key, namespace, i8 timestamp) as timestamp with its sign bit flipped, key, namespace.

    ``starts``, ``ends`` int64[n]: timers in ``data`` uint8[:]; ``target`` int64[n]: start of each in ``out`` uint8[:].
    """
    for i in range(starts.shape[0]):
        a, b, o = starts[i], ends[i] - 8, target[i]
        copy_bytes(data, b, 8, out, o)
        out[o] ^= 0x80
        copy_bytes(data, a, b - a, out, o + 8)


@jit
def unflip_timers(data, order, key, key_end, out):
    """Write timers of managed state one after another as in raw keyed state: the opposite of :func:`flip_timers`.

    ``order`` int64[n]: the timers to write; ``key``, ``key_end`` int64[]: timers in ``data`` uint8[:]; ``out`` uint8[:], of their total size.
    """
    o = np.int64(0)
    for i in range(order.shape[0]):
        a, b = key[order[i]], key_end[order[i]]
        o = copy_bytes(data, a + 8, b - a - 8, out, o)
        o = copy_bytes(data, a, np.int64(8), out, o)
        out[o - 8] ^= 0x80
