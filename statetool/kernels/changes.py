"""Kernels over the change sets of the changelog state backend.

A change set is: i4 number of groups; groups of i4 number of changes, i4 key group (-1: descriptions of states), changes of i4 length
and bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import OK, TRUNCATED
from statetool.kernels.decode_fixed import read_i4
from statetool.kernels.jit import jit
from statetool.kernels.walk import BAD_LENGTH, FULL

CHANGE_MESSAGES: Final = {
    TRUNCATED: "the file ends inside a change set",
    BAD_LENGTH: "a length or count in a change set that does not fit",
}


@jit
def index_changes(data, limit, whole, cursor, group, pos, stop):  # type: ignore[no-untyped-def]
    """Find the changes of one change set.

    Parameters
    ----------
    data
        uint8[:], of which ``limit`` bytes are there.
    whole
        Bytes up to the end of the file, counted as positions in ``data``.
    cursor
        int64[4], in and out: position, groups left (-1: before their count), changes left of the group, its key group.
    group, pos, stop
        int64[n] out: the key group of each change, and where its bytes are.

    Returns
    -------
    code, count
        ``OK`` at the end of the set; ``FULL`` when the outputs are full or ``data`` ends before the set does.
    """
    n = 0
    while True:
        p = cursor[0]
        if cursor[1] > 0 or cursor[2] > 0 or cursor[1] < 0:
            need = 8 if cursor[1] > 0 and cursor[2] == 0 else 4
            if p + need > whole:
                return TRUNCATED, n
            if p + need > limit:
                return FULL, n
        if cursor[1] < 0:
            count = read_i4(data, np.uint64(p))
            if count < 0:
                return BAD_LENGTH, n
            cursor[1] = count
            cursor[0] = p + 4
        elif cursor[2] > 0:
            if n == group.shape[0]:
                return FULL, n
            size = read_i4(data, np.uint64(p))
            if size < 1 or p + 4 + size > whole:
                return BAD_LENGTH, n
            if p + 4 + size > limit:
                return FULL, n
            group[n] = cursor[3]
            pos[n] = p + 4
            stop[n] = p + 4 + size
            n += 1
            cursor[2] -= 1
            cursor[0] = p + 4 + size
        elif cursor[1] > 0:
            count = read_i4(data, np.uint64(p))
            if count < 0:
                return BAD_LENGTH, n
            cursor[1] -= 1
            cursor[2] = count
            cursor[3] = read_i4(data, np.uint64(p + 4))
            cursor[0] = p + 8
        else:
            return OK, n
