"""Data blocks of new RocksDB table files, in which each key occurs once, with sequence number 0."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes
from statetool.kernels.rocksdb.blocks import put_u4, put_varint

#: Kind of an entry that is a value.
VALUE = 1


@jit
def encode_blocks(data, key, key_end, value_end, block_size, interval, final, restarts, out, block_end, block_entries):
    """Write data blocks of about ``block_size`` bytes, and leave out the entries of a last block that is not full.

    Parameters
    ----------
    data, key, key_end, value_end
        Entries in order, each value after its key.
    interval
        Number of entries from one restart point to the next.
    final
        1 if no entries follow: the last block is written too.
    restarts
        int64[entries], scratch.
    out
        uint8[:] out, with room for all keys and values, and 35 more bytes per entry.
    block_end, block_entries
        int64[entries] out: end of each block in ``out``, and the index of the entry after its last one.

    Returns
    -------
    int
        Number of blocks.
    """
    n = key.shape[0]
    o, start, first, count, blocks = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        size = key_end[i] - key[i]
        value_size = value_end[i] - key_end[i]
        shared = np.int64(0)
        if i > first and (i - first) % interval != 0:
            most = min(size, key_end[i - 1] - key[i - 1])
            while shared < most and data[key[i] + shared] == data[key[i - 1] + shared]:
                shared += 1
        if i > first and o - start + size - shared + value_size + 4 * count + 24 > block_size:
            for k in range(count):
                o = put_u4(restarts[k], out, o)
            o = put_u4(count, out, o)
            block_end[blocks] = o
            block_entries[blocks] = i
            blocks += 1
            start, first, count, shared = o, np.int64(i), np.int64(0), np.int64(0)
        if (i - first) % interval == 0:
            restarts[count] = o - start
            count += 1
        o = put_varint(shared, out, o)
        o = put_varint(size - shared + 8, out, o)
        o = put_varint(value_size, out, o)
        o = copy_bytes(data, key[i] + shared, size - shared, out, o)
        out[o] = VALUE
        for k in range(1, 8):
            out[o + k] = 0
        o = copy_bytes(data, key_end[i], value_size, out, o + 8)
    if final == 1 and n > first:
        for k in range(count):
            o = put_u4(restarts[k], out, o)
        o = put_u4(count, out, o)
        block_end[blocks] = o
        block_entries[blocks] = n
        blocks += 1
    return blocks
