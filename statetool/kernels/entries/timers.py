"""Conversion of timers in raw keyed state to the form that they have in managed state."""

from __future__ import annotations

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
