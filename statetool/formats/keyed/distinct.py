"""Tell keys apart: the same number for the same bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.entries import Int64s
from statetool.kernels.distinct import number_ranges


def distinct(data: npt.NDArray[np.uint8], start: Int64s, end: Int64s, group: Int64s) -> tuple[Int64s, Int64s]:
    """Number keys by their bytes and key group, as they are first seen.

    Parameters
    ----------
    start, end, group
        int64[n]: the bytes ``start .. end`` of each key in ``data``, and its key group.

    Returns
    -------
    ids, first
        int64[n], the number of each key, from 0 on; int64[k], the index of the first key of each number.
    """
    n = len(start)
    ids, first = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    table = np.full(1 << max(4, (2 * n).bit_length()), -1, dtype=np.int64)
    count = int(number_ranges(data, start, end, group, np.empty(n, dtype=np.uint64), table, ids, first))
    return ids, first[:count]
