"""Search in the sorted keys of RocksDB table files."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import compare


@jit
def first_not_before(keys, key, key_end, wanted, behind):
    """Return the number of ascending keys before ``wanted`` uint8[:]; with ``behind`` 1, keys equal to it also count."""
    low = np.int64(0)
    high = np.int64(key.shape[0])
    while low < high:
        middle = (low + high) // 2
        c = compare(keys, key[middle], key_end[middle], wanted, np.int64(0), np.int64(wanted.shape[0]))
        if c < 0 or (c == 0 and behind == 1):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def first_unordered(keys, key, key_end, tag):
    """Return the first entry that does not sort after the one before it, -1 if there is none. Of one key, the largest tag comes first."""
    for i in range(1, key.shape[0]):
        c = compare(keys, key[i - 1], key_end[i - 1], keys, key[i], key_end[i])
        if c > 0 or (c == 0 and tag[i] >= tag[i - 1]):
            return np.int64(i)
    return np.int64(-1)


@jit
def mark_blocks(block_keys, block, block_end, keys, key, key_end, marked):
    """Mark the blocks that may contain keys starting with one of several prefixes.

    Parameters
    ----------
    block_keys, block, block_end
        For each block, its last key or a key that sorts after it, ascending.
    keys, key, key_end
        The prefixes, in any order.
    marked
        uint8[blocks], out: 1 if a block is needed.
    """
    n = block.shape[0]
    for i in range(key.shape[0]):
        low = np.int64(0)
        high = np.int64(n)
        while low < high:
            middle = (low + high) // 2
            if compare(block_keys, block[middle], block_end[middle], keys, key[i], key_end[i]) < 0:
                low = middle + 1
            else:
                high = middle
        size = key_end[i] - key[i]
        while low < n:
            marked[low] = 1
            # The next block can contain more keys of the prefix only if this one ends with a key of the same prefix.
            end = min(block_end[low], block[low] + size)
            if compare(block_keys, block[low], end, keys, key[i], key_end[i]) != 0:
                break
            low += 1
    return OK, 0
