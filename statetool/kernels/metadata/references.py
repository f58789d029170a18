"""Kernels that find the files that ``_metadata`` refers to, without objects for handles.

They read what is common. A subtask with anything else (strings that are not ASCII, nested change logs, damage) is left to the parser of
objects, which then accepts it or names what is wrong. So these kernels need no messages, and may refuse more than that parser, never less.

A reading function returns ``(position, rows)``: the position after what it read, :data:`UNUSUAL` or :data:`FULL`, and the number of rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import jit

UNUSUAL: Final = -1
FULL: Final = -2
#: Columns of a row: kind, start of the path, start of its last part, end, start of the segment (or 0), size.
COLUMNS: Final = 6
ABSOLUTE: Final = 0
RELATIVE: Final = 1
SEGMENT: Final = 2
#: Added to the kind of a file of a change log.
LOG: Final = 4
_KEY_GROUPS: Final = 32768
_SLASH: Final = 0x2F


@jit
def _number(data, p, size):
    """Return the signed big-endian number of ``size`` bytes from ``p``, which exist."""
    value = np.uint64(0)
    for k in range(size):
        value = value << np.uint64(8) | np.uint64(data[np.uint64(p + k)])
    if size == 4:
        return np.int64(value) - ((np.int64(value) & 0x80000000) << 1)
    return np.int64(value)


@jit
def _after_text(data, p):
    """Return the position after a text in ASCII without NUL."""
    if p < 0 or p + 2 > data.shape[0]:
        return UNUSUAL
    end = p + 2 + _number(data, p, 2)
    if end > data.shape[0]:
        return UNUSUAL
    bad = np.uint8(0)
    for k in range(p + 2, end):
        b = data[np.uint64(k)]
        bad |= (b & np.uint8(0x80)) | np.uint8(b == 0)
    return UNUSUAL if bad != 0 else end


@jit
def _after_count(data, p, size):
    """Return the position after a count and that many items of ``size`` bytes."""
    if p < 0 or p + 4 > data.shape[0]:
        return UNUSUAL
    n = _number(data, p, 4)
    return UNUSUAL if n < 0 or n > (data.shape[0] - p - 4) // size else p + 4 + n * size


@jit
def _count(data, p):
    """Return a count of items of at least one byte, or -1."""
    if p < 0 or p + 4 > data.shape[0]:
        return np.int64(-1)
    n = _number(data, p, 4)
    return np.int64(-1) if n > data.shape[0] - p - 4 else n


@jit
def _after_flag(data, p):
    """Return the position after a boolean."""
    return UNUSUAL if p < 0 or p >= data.shape[0] or data[np.uint64(p)] > 1 else p + 1


@jit
def _after_bytes(data, p, size):
    """Return the position after ``size`` bytes."""
    return UNUSUAL if p < 0 or size > data.shape[0] - p else p + size


@jit
def _after_groups(data, p):
    """Return the position after a range of key groups."""
    if p < 0 or p + 8 > data.shape[0]:
        return UNUSUAL
    start, n = _number(data, p, 4), _number(data, p + 4, 4)
    return UNUSUAL if start < 0 or n < 0 or start + n > _KEY_GROUPS else p + 8


@jit
def _stream(data, p, log, rows, n):
    """Read a stream handle."""
    if p < 0 or p >= data.shape[0]:
        return np.int64(UNUSUAL), n
    tag = data[np.uint64(p)]
    p += 1
    if tag == 0 or tag == 16:
        return p, n
    if tag == 1:
        return np.int64(_after_count(data, _after_text(data, p), 1)), n
    kind = np.int64(ABSOLUTE)
    start = np.int64(0)
    path = p
    if tag == 2:
        path = p + 8
    elif tag == 6:
        kind = np.int64(RELATIVE)
    elif tag == 15:
        kind = np.int64(SEGMENT)
        path = p + 20
    else:
        return np.int64(UNUSUAL), n
    end = np.int64(_after_text(data, path))
    if end < 0:
        return end, n
    after = end
    if tag == 2:
        size = _number(data, p, 8)
    elif tag == 6:
        after = np.int64(_after_bytes(data, end, 8))
        if after < 0:
            return after, n
        size = _number(data, end, 8)
    else:
        start, size, scope = _number(data, p, 8), _number(data, p + 8, 8), _number(data, p + 16, 4)
        after = np.int64(_after_text(data, end))
        if after < 0 or scope < 0 or scope > 1:
            return np.int64(UNUSUAL), n
    if (start | size) >> 62 != 0:
        return np.int64(UNUSUAL), n
    if n >= rows.shape[0]:
        return np.int64(FULL), n
    name = end
    while name > path + 2 and data[np.uint64(name - 1)] != _SLASH:
        name -= 1
    rows[n, 0] = kind + log
    rows[n, 1] = path + 2
    rows[n, 2] = name
    rows[n, 3] = end
    rows[n, 4] = start
    rows[n, 5] = size
    return after, n + 1


@jit
def _streams(data, p, log, rows, n):
    """Read a count and that many stream handles: named ones, or those of a change log with their sequence numbers (``log`` not 0)."""
    count = _count(data, p)
    p = p + 4 if count >= 0 else np.int64(UNUSUAL)
    for _ in range(count):
        p, n = _stream(data, _after_bytes(data, p, 8) if log else _after_text(data, p), log, rows, n)
        if p < 0:
            break
    return p, n


@jit
def _plain_keyed(data, p, short, rows, n):
    """Read a keyed state handle that holds no others. ``short`` is 1 for the layout of Flink 1.14 and 1.15."""
    if p < 0 or p >= data.shape[0]:
        return np.int64(UNUSUAL), n
    tag = data[np.uint64(p)]
    p += 1
    if tag == 0:
        return p, n
    if tag == 3 or tag == 7 or tag == 12:
        after = _after_groups(data, p)
        p = _after_bytes(data, after, _number(data, p + 4, 4) * 8) if after >= 0 else np.int64(UNUSUAL)
        p, n = _stream(data, p, 0, rows, n)
        return np.int64(_after_text(data, p) if tag == 12 and p >= 0 else p), n
    if tag == 5 or tag == 11:
        p = _after_groups(data, _after_text(data, _after_bytes(data, p, 8)))
        if tag == 11:
            p = _after_bytes(data, p, 8)
        p, n = _stream(data, p, 0, rows, n)
        for _ in range(2):
            if p >= 0:
                p, n = _streams(data, p, 0, rows, n)
        return np.int64(_after_text(data, p) if tag == 11 and p >= 0 else p), n
    if tag == 9:
        p = _after_bytes(data, _after_groups(data, p), 16)
        count = _count(data, p)
        p = p + 4 if count >= 0 else np.int64(UNUSUAL)
        for _ in range(count):
            p = np.int64(_after_count(data, _after_bytes(data, p, 4), 1))
            if p < 0:
                break
        return np.int64(p if short == 1 else _after_text(data, p)), n
    if tag == 10 or tag == 13:
        p, n = _streams(data, _after_groups(data, p), LOG, rows, n)
        if p >= 0:
            p = np.int64(_after_bytes(data, p, 8))
            if tag == 13 or short == 0:
                p = np.int64(_after_text(data, _after_bytes(data, p, 8)))
            if tag == 13:
                p = np.int64(_after_text(data, p))
        return p, n
    return np.int64(UNUSUAL), n


@jit
def _keyed(data, p, short, rows, n):
    """Read a keyed state handle. A change log may hold those of :func:`_plain_keyed`."""
    if p < 0 or p >= data.shape[0]:
        return np.int64(UNUSUAL), n
    tag = data[np.uint64(p)]
    if tag != 8 and tag != 14:
        return _plain_keyed(data, p, short, rows, n)
    is_short = tag == 8 and short == 1
    p = np.int64(_after_groups(data, p + 1))
    if not is_short:
        p = np.int64(_after_bytes(data, p, 8))
    for _ in range(2):
        count = _count(data, p)
        if count < 0:
            return np.int64(UNUSUAL), n
        p += 4
        for _ in range(count):
            p, n = _plain_keyed(data, p, short, rows, n)
            if p < 0:
                return p, n
    if not is_short:
        p = np.int64(_after_bytes(data, p, 16 if tag == 14 else 8))
        p = np.int64(_after_text(data, p))
    return p, n


@jit
def _operator_handle(data, p, rows, n):
    """Read the flag of an operator state handle, and the handle."""
    if p < 0 or p + 4 > data.shape[0]:
        return np.int64(UNUSUAL), n
    flag = _number(data, p, 4)
    p += 4
    if flag == 0:
        return p, n
    if flag != 1 or p >= data.shape[0]:
        return np.int64(UNUSUAL), n
    tag = data[np.uint64(p)]
    if tag != 4 and tag != 17:
        return np.int64(UNUSUAL), n
    count = _count(data, p + 1)
    p = p + 5 if count >= 0 else np.int64(UNUSUAL)
    for _ in range(count):
        p = np.int64(_after_text(data, p))
        if p < 0 or p >= data.shape[0] or data[np.uint64(p)] > 2:
            return np.int64(UNUSUAL), n
        p = np.int64(_after_count(data, p + 1, 8))
    if tag == 17:
        p = np.int64(_after_flag(data, _after_text(data, _after_text(data, p))))
    return _stream(data, p, 0, rows, n)


@jit
def _channels(data, p, version, first_type, rows, n):
    """Read a count and that many channel state handles: of ``first_type``, or merged ones of the type that is 2 higher."""
    count = _count(data, p)
    p = p + 4 if count >= 0 else np.int64(UNUSUAL)
    for _ in range(count):
        merged = False
        if version >= 6:
            if p >= data.shape[0]:
                return np.int64(UNUSUAL), n
            merged = data[np.uint64(p)] == first_type + 2
            if not merged and data[np.uint64(p)] != first_type:
                return np.int64(UNUSUAL), n
            p += 1
        if merged:
            p, n = _stream(data, _after_bytes(data, p, 12), 0, rows, n)
            if p >= 0:
                p = np.int64(_after_count(data, p, 1))
        else:
            p = np.int64(_after_bytes(data, _after_count(data, _after_bytes(data, p, 12), 8), 8))
            p, n = _stream(data, p, 0, rows, n)
        if p < 0:
            break
    return p, n


@jit
def _subtask(data, p, version, short, parallelism, rows, n):
    """Read the state of a subtask, whose index exists."""
    index = _number(data, p, 4)
    finished = index < 0 and version >= 3
    if finished:
        index = -index - 1
    if index < 0 or index >= parallelism:
        return np.int64(UNUSUAL), n
    p += 4
    if not finished:
        if version == 2:
            if p + 12 > data.shape[0] or _number(data, p + 8, 4) != 0:
                return np.int64(UNUSUAL), n
            p += 12
        for _ in range(2):
            p, n = _operator_handle(data, p, rows, n)
            if p < 0:
                return p, n
        for _ in range(2):
            p, n = _keyed(data, p, short, rows, n)
            if p < 0:
                return p, n
        if version >= 3:
            for first_type in range(1, 3):
                p, n = _channels(data, p, version, first_type, rows, n)
                if p < 0:
                    return p, n
    if version >= 7:
        flagged = np.int64(_after_flag(data, p))
        if flagged >= 0 and data[np.uint64(p)] == 1:
            flagged = np.int64(_after_bytes(data, flagged, 8))
        p = flagged
    return p, n


@jit
def scan_subtasks(data, start, version, short, parallelism, indexes, rows):
    """Read the states of subtasks up to the first that is unusual, or whose rows have no room.

    Parameters
    ----------
    data
        uint8[:]: the metadata file.
    start
        Position of the first subtask.
    short
        1 for the layout of change logs of Flink 1.14 and 1.15, else 0.
    indexes
        int64[subtasks], out: their indexes.
    rows
        int64[:, COLUMNS], out: a row for each file that a handle refers to, in the order of the handles.

    Returns
    -------
    code (0, UNUSUAL or FULL), position of the next subtask, subtasks, rows
    """
    p = np.int64(start)
    n = np.int64(0)
    for i in range(indexes.shape[0]):
        if p + 4 > data.shape[0]:
            return UNUSUAL, p, i, n
        after, count = _subtask(data, p, version, short, parallelism, rows, n)
        if after < 0:
            return after, p, i, n
        index = _number(data, p, 4)
        indexes[i] = index if index >= 0 else -index - 1
        p, n = after, count
    return 0, p, indexes.shape[0], n
