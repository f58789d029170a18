"""The order of entries in canonical streams: by key group, state and the unsigned bytes of the key, as RocksDB has it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels.deal import count_order, key_heads, sort_segments

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
#: Counting needs a number for each pair of key group and state; where these are many more than entries, they are compared.
_MOST_PLACES: Final = 1 << 16


def order_of_groups(group: Int64s, state: Int64s) -> Int64s:
    """Return the order of entries by key group and state id; those of one state keep their order."""
    if not len(group):
        return np.empty(0, dtype=np.int64)
    base = int(group.min())
    states = int(state.max()) + 1
    places = (int(group.max()) - base + 1) * states
    major = (group - base) * states + state
    if places > _MOST_PLACES + 8 * len(group):
        return np.argsort(major, kind="stable").astype(np.int64)
    order = np.empty(len(group), dtype=np.int64)
    count_order(major, np.zeros(places + 1, dtype=np.int64), order)
    return order


def order_of_keys(data: Bytes, group: Int64s, state: Int64s, key: Int64s, key_end: Int64s) -> tuple[Int64s, int | None]:
    """Return the order of entries by key group, state id and key, and an entry whose key another one has too.

    Parameters
    ----------
    data
        uint8[:], in which ``key .. key_end`` (int64[n]) are the composite keys.
    """
    order = order_of_groups(group, state)
    head = np.empty(len(key), dtype=np.uint64)
    key_heads(data, key, key_end, head)
    major = group << 16 | state
    twin = int(sort_segments(data, major, head, key, key_end, order, np.empty_like(order)))
    return order, int(order[twin]) if twin >= 0 else None
