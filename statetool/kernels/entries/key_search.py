"""Kernels that find where the entries of canonical key groups begin, and those of a few keys, without collecting the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import compare
from statetool.kernels.entries.walk import FULL, GROUP, POSITION, STATE, close_state, measure_entry, open_group, put_row

#: Slots of the cursor that :func:`index_entries` has in addition: entries before the next one whose start is kept, number of entries of the
#: wanted keys.
UNTIL_START, FOUND = range(3, 5)


class StateRuns(NamedTuple):
    """Entries of the same state that follow each other: int64[m] each, state id, 1 if the keys ascend, number, the first and the last key."""

    state: Int64s
    ordered: Int64s
    entries: Int64s
    first: Int64s
    first_end: Int64s
    last: Int64s
    last_end: Int64s


class KeySearch(NamedTuple):
    """Wanted keys: uint8[] with all of them, int64[k + 1] where each begins, and int64[states], the bytes before the key in the entries of each
    state, -1 for states without wanted entries."""

    keys: Bytes
    bounds: Int64s
    shifts: Int64s


@inlined
def _has_wanted_key(data, start, end, search):
    """Return True if the bytes from ``start`` on begin with a wanted key. Its last byte is compared first, because most keys differ there."""
    for k in range(search.bounds.shape[0] - 1):
        first, stop = search.bounds[k], search.bounds[k + 1]
        size = stop - first
        if start + size > end or (size > 0 and data[np.uint64(start + size - 1)] != search.keys[np.uint64(stop - 1)]):
            continue
        i = np.int64(0)
        while i < size and data[np.uint64(start + i)] == search.keys[np.uint64(first + i)]:
            i += 1
        if i == size:
            return True
    return False


@inlined
def _put_run(runs, n, state, ordered, entries, first, first_end, last, last_end):
    """Write run ``n`` of ``runs`` and return the index of the next."""
    runs.state[n] = state
    runs.ordered[n] = ordered
    runs.entries[n] = entries
    runs.first[n] = first
    runs.first_end[n] = first_end
    runs.last[n] = last
    runs.last_end[n] = last_end
    return n + 1


@jit
def index_entries(data, limit, groups, prefix, states, cursor, search, stride, starts, runs, rows):
    """Find where entries begin, whether the keys of each state ascend, and the entries of some keys: as :func:`walk`, without other rows.

    The cursor is int64[5]. ``search`` is a :class:`KeySearch`, others are as in :func:`~statetool.kernels.entries.walk.walk`. Out:

    * ``starts`` int64[m]: the start of every ``stride``-th entry of each state. m is at least the number of those that fit before ``limit``.
    * ``runs``: :class:`StateRuns`. Keys start after the prefix.
    * ``rows``: :class:`~statetool.kernels.entries.walk.Rows` that begin with a wanted key; not empty if keys are wanted.

    Returns code, number of ``runs``, and position as ``walk`` does. ``FULL`` also means that ``rows`` are full.
    """
    n = m = found = 0
    cursor[FOUND] = 0
    most = rows.state.shape[0] if search.bounds.shape[0] > 1 else -1
    while cursor[GROUP] < groups.starts.shape[0]:
        if cursor[POSITION] < 0:
            code, p = open_group(data, limit, groups, states, cursor)
            if code != OK:
                return code, n, p
        end, number, state = groups.ends[cursor[GROUP]], groups.numbers[cursor[GROUP]], cursor[STATE]
        p, last, until = cursor[POSITION], False, cursor[UNTIL_START]
        if n == runs.state.shape[0]:
            return np.int64(FULL), n, p
        shift = search.shifts[state] if most >= 0 else np.int64(-1)
        entries, first, first_end, key, key_end, ordered = 0, p, p, p, p, 1
        code = np.int64(OK)
        while not last:
            if found == most:
                code = np.int64(FULL)
                break
            at = p
            code, p, stop, last = measure_entry(data, at, limit, end, number, prefix)
            if code != OK:
                break
            start = at + 4 + prefix
            if entries == 0:
                first, first_end = start, stop
            elif compare(data, key, key_end, data, start, stop) > 0:
                ordered = 0
            if until == 0:
                starts[m] = at
                m += 1
                until = stride
            until, entries = until - 1, entries + 1
            if shift >= 0 and _has_wanted_key(data, start + shift, stop, search):
                found = put_row(rows, found, state, number, start, stop, stop + 4, p)
            key, key_end = start, stop
            cursor[POSITION] = p
        cursor[UNTIL_START], cursor[FOUND] = until, found
        if entries > 0:
            n = _put_run(runs, n, state, ordered, entries, first, first_end, key, key_end)
        if code != OK:
            return code, n, p
        code, p = close_state(data, groups, states, cursor)
        if code != OK:
            return code, n, p
        cursor[UNTIL_START] = 0
    return np.int64(OK), n, np.int64(0)


@jit
def match_keys(data, state, start, end, search, out):
    """Set ``out`` uint8[n] to 1 for entries that begin with a wanted key of a :class:`KeySearch`; ``start .. end`` are their keys."""
    for i in range(start.shape[0]):
        shift = search.shifts[state[i]]
        if shift >= 0 and _has_wanted_key(data, start[i] + shift, end[i], search):
            out[i] = 1
