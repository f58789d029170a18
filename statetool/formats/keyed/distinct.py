"""Numbering of keys by their bytes, and comparison of two sides by the ids of their entries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.distinct import HEAD, number_ranges

Hashes = npt.NDArray[np.uint64]


def distinct(data: npt.NDArray[np.uint8], start: Int64s, end: Int64s, group: Int64s) -> tuple[Int64s, Int64s]:
    """Number distinct keys by their bytes and key group, in order of first appearance.

    Parameters
    ----------
    start, end, group
        int64[n]: the bytes ``start .. end`` of each key in ``data``, and its key group.

    Returns
    -------
    ids, first
        int64[n], the number of each key, starting at 0; int64[k], the index of the first key with each number.
    """
    n = len(start)
    ids, first = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    table = np.empty(1 << max(4, (2 * n).bit_length()), dtype=np.int64)
    count = int(number_ranges(data, start, end, group, np.empty(HEAD * n, dtype=np.uint64), table, ids, first))
    return ids, first[:count]


def changed_ids(old: tuple[Hashes, Hashes], new: tuple[Hashes, Hashes]) -> Hashes:
    """Return the ids, ascending, whose entries differ between the two sides.

    Parameters
    ----------
    old, new
        uint64[n] each: the id of each entry (several may share one) and a hash of its bytes, in any order.
    """
    (a, sum_a), (b, sum_b) = _hash_sums(*old), _hash_sums(*new)
    common, at_a, at_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    same = common[sum_a[at_a] == sum_b[at_b]]
    return np.setdiff1d(np.union1d(a, b), same, assume_unique=True)


def _hash_sums(ids: Hashes, contents: Hashes) -> tuple[Hashes, Hashes]:
    """Return the distinct ids, ascending, and the sum of the hashes of each."""
    order = np.argsort(ids, kind="stable")
    ids, contents = ids[order], contents[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(ids)), dtype=np.bool_), ids[1:] != ids[:-1]]))
    return ids[first], np.add.reduceat(contents, first) if len(first) else contents


def mix_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Combine two hashes into one."""
    product: Hashes = (first ^ (second >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + second
    return product ^ (product >> np.uint64(32))
