"""Merge of the sorted entries of RocksDB table files, straight from their blocks, and of merged entries into batches."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import compare, copy_bytes, word_at
from statetool.kernels.rocksdb import DELIMITER
from statetool.kernels.rocksdb.blocks import BAD_KIND, SHORT_KEY, entries_end, short_varint

DELETION: Final = 0
VALUE: Final = 1
MERGE: Final = 2
SINGLE_DELETION: Final = 7

#: Columns of ``cursors``, for the current entry of each run: its block, the positions after it and of the end of entries in that block, the
#: bytes of its key without tag, and the position of its value.
_BLOCK, _NEXT, _STOP, _SIZE, _VALUE = range(5)
CURSOR_FIELDS: Final = 5
#: Columns of ``heads``: the first eight bytes of the key as a number, and the tag.
_HEAD, _TAG = range(2)
HEAD_FIELDS: Final = 2


class BlockRuns(NamedTuple):
    """Blocks of sorted runs: int64[blocks] start and end of each in their buffer, and int64[runs + 1] the first block of each run."""

    starts: Int64s
    ends: Int64s
    edges: Int64s


class MergeScratch(NamedTuple):
    """Scratch: uint8[runs * width] the current keys, int64[runs, CURSOR_FIELDS], uint64[runs, HEAD_FIELDS], int64[runs] the runs in order."""

    keys: npt.NDArray[np.uint8]
    cursors: Int64s
    heads: npt.NDArray[np.uint64]
    order: Int64s

    @classmethod
    def of(cls, runs: int, width: int) -> MergeScratch:
        """Make room for a number of runs with keys of at most ``width`` bytes."""
        return cls(
            np.empty(runs * width, dtype=np.uint8),
            np.empty((runs, CURSOR_FIELDS), dtype=np.int64),
            np.empty((runs, HEAD_FIELDS), dtype=np.uint64),
            np.empty(runs, dtype=np.int64),
        )


@inlined
def _next_entry(data, starts, ends, last, b, p, stop, keys, own):
    """Read the entry at ``p`` of block ``b``, or the first one of a following block up to ``last``. Its key goes to ``own`` of ``keys``.

    Returns
    -------
    b, p, stop, size, value
        The block (after ``last`` at the end), the position after the entry, the end of entries in the block, the bytes of the key without
        tag (negative if it is too short), and the position of the value.
    """
    while p >= stop and b <= last:
        b += 1
        if b <= last:
            p = starts[b]
            stop = entries_end(data, p, ends[b])
    size, value = np.int64(0), np.int64(0)
    if b <= last:
        shared, p = short_varint(data, p, stop)
        fresh, p = short_varint(data, p, stop)
        length, p = short_varint(data, p, stop)
        size = shared + fresh - 8
        copy_bytes(data, p, fresh, keys, own + shared)
        value = p + fresh
        p = value + length
    return b, p, stop, size, value


@inlined
def _tag_at(keys, p):
    """Return the tag that follows a key."""
    tag = np.uint64(0)
    for k in range(8):
        tag |= np.uint64(keys[np.uint64(p + k)]) << np.uint64(8 * k)
    return tag


@inlined
def _head_of(keys, p, size):
    """Return the first eight bytes of a key as a number, with zeros after a shorter key, whose tag is shifted out."""
    head = np.uint64(0)
    if size >= 8:
        head = word_at(keys, np.uint64(p))
    elif size > 0:
        unused = np.uint64(64 - 8 * size)
        head = (word_at(keys, np.uint64(p)) >> unused) << unused
    return head


@inlined
def _is_inside(keys, own, size, high, with_high):
    """Return True if a key is not behind the range."""
    c = compare(keys, own, own + size, high, np.int64(0), np.int64(high.shape[0]))
    return c < 0 or (c == 0 and with_high == 1)


@inlined
def _is_before(keys, width, cursors, heads, a, b):
    """Return True if the current entry of run ``a`` comes before that of ``b``: a smaller key, or a newer entry of the same key."""
    before = heads[a, _HEAD] < heads[b, _HEAD]
    if heads[a, _HEAD] == heads[b, _HEAD]:
        at, other = a * width, b * width
        c = compare(keys, at, at + cursors[a, _SIZE], keys, other, other + cursors[b, _SIZE])
        before = c < 0 or (c == 0 and heads[a, _TAG] >= heads[b, _TAG])
    return before


@jit
def _reorder(order, live, keys, width, cursors, heads):
    """Move the first of ``live`` runs in ``order`` behind those whose current entries come before its own."""
    r = order[0]
    if live < 2 or not _is_before(keys, width, cursors, heads, order[1], r):
        return
    low, high = 2, live
    while low < high:
        middle = (low + high) // 2
        if _is_before(keys, width, cursors, heads, order[middle], r):
            low = middle + 1
        else:
            high = middle
    for i in range(1, low):
        order[i - 1] = order[i]
    order[low - 1] = r


@inlined
def _has_key(keys, at, key_size, out, key, size):
    """Return True if a run's current key is the ``size`` bytes at ``key`` of ``out``. The last bytes differ most between neighbours."""
    same = key_size == size
    k = size
    while same and k >= 8:
        k -= 8
        same = word_at(keys, np.uint64(at + k)) == word_at(out, np.uint64(key + k))
    while same and k > 0:
        k -= 1
        same = keys[np.uint64(at + k)] == out[np.uint64(key + k)]
    return same


@inlined
def _finish(data, n, o, size, operands, out, key, key_end, value_end):
    """Write the value of the key at ``o`` of ``out``, if it has one: the operands from the oldest to the newest, joined by a delimiter.

    The range of the newest operand is ``key[n]``, ``key_end[n]``, and those of older ones follow.

    Returns
    -------
    entries written, position after them
    """
    if operands > 0:
        end = o + size
        for k in range(n + operands - 1, n, -1):
            end = copy_bytes(data, key[k], key_end[k] - key[k], out, end)
            out[end] = DELIMITER
            end += 1
        end = copy_bytes(data, key[n], key_end[n] - key[n], out, end)
        key[n], key_end[n], value_end[n] = o, o + size, end
        n += 1
        o = end
    return n, o


@jit
def _begin_runs(data, starts, ends, edges, low, high, behind, with_high, width, keys, cursors, heads, order):
    """Move each run to its first entry in the range, and put those that have one in order. Return code and their number (or the bad block)."""
    live = np.int64(0)
    for run in range(edges.shape[0] - 1):
        own, last = run * width, edges[run + 1] - 1
        b, p, stop = edges[run] - 1, np.int64(0), np.int64(0)
        size, value, is_before = np.int64(0), np.int64(0), True
        while is_before:
            b, p, stop, size, value = _next_entry(data, starts, ends, last, b, p, stop, keys, own)
            is_before = False
            if b <= last and size >= 0:
                c = compare(keys, own, own + size, low, np.int64(0), np.int64(low.shape[0]))
                is_before = c < 0 or (c == 0 and behind == 1)
        if size < 0:
            return SHORT_KEY, b
        if b < last or (b == last and _is_inside(keys, own, size, high, with_high)):
            cursors[run, _BLOCK], cursors[run, _NEXT], cursors[run, _STOP] = b, p, stop
            cursors[run, _SIZE], cursors[run, _VALUE] = size, value
            heads[run, _HEAD], heads[run, _TAG] = _head_of(keys, own, size), _tag_at(keys, own + size)
            for i in range(live, 0, -1):
                order[i] = order[i - 1]
            order[0] = run
            live += 1
            _reorder(order, live, keys, width, cursors, heads)
    return OK, live


@jit
def _merge_begun(
    data, starts, ends, edges, high, with_high, width, keys, cursors, heads, order, live, out, key, key_end, value_end
):
    """Do what :func:`merge_blocks` does with ``live`` runs, which have begun. (A run's state is in variables while its entries come first.)"""
    n, o = np.int64(0), np.int64(0)
    # The key at ``o``, how many values or operands of it have been found, and whether older entries count.
    size, operands, is_open = np.int64(-1), np.int64(0), False
    while live > 0:
        r = np.uint64(order[0])
        own, last = np.int64(r) * width, edges[r + np.uint64(1)] - 1
        b, p, stop = cursors[r, _BLOCK], cursors[r, _NEXT], cursors[r, _STOP]
        key_size, value, tag = cursors[r, _SIZE], cursors[r, _VALUE], heads[r, _TAG]
        rival = heads[np.uint64(order[1]), _HEAD] if live > 1 else heads[r, _HEAD]
        head, stays, has_ended = np.uint64(0), True, False
        while stays:
            if size < 0 or not _has_key(keys, own, key_size, out, o, size):
                n, o = _finish(data, n, o, size, operands, out, key, key_end, value_end)
                size, operands, is_open = key_size, np.int64(0), True
                copy_bytes(keys, own, size, out, o)
            if is_open:
                kind = tag & np.uint64(0xFF)
                if kind == np.uint64(VALUE) or kind == np.uint64(MERGE):
                    # At least as many entries were read, so there is room behind the results.
                    key[n + operands], key_end[n + operands] = value, p
                    operands += 1
                elif kind != np.uint64(DELETION) and kind != np.uint64(SINGLE_DELETION):
                    return BAD_KIND, b, o
                is_open = bool(kind == np.uint64(MERGE))
            b, p, stop, key_size, value = _next_entry(data, starts, ends, last, b, p, stop, keys, own)
            if key_size < 0:
                return SHORT_KEY, b, o
            has_ended = b > last or (b == last and not _is_inside(keys, own, key_size, high, with_high))
            head, tag = _head_of(keys, own, key_size), _tag_at(keys, own + key_size)
            stays = not has_ended and (head < rival or live == 1)
        if has_ended:
            live -= 1
            for i in range(live):
                order[i] = order[i + 1]
        else:
            cursors[r, _BLOCK], cursors[r, _NEXT], cursors[r, _STOP] = b, p, stop
            cursors[r, _SIZE], cursors[r, _VALUE] = key_size, value
            heads[r, _HEAD], heads[r, _TAG] = head, tag
            _reorder(order, live, keys, width, cursors, heads)
    n, o = _finish(data, n, o, size, operands, out, key, key_end, value_end)
    return OK, n, o


@jit
def merge_blocks(data, runs, low, high, behind, with_high, width, scratch, out, key, key_end, value_end):
    """Write the entries that remain after newer ones have replaced older ones, one after another: key, value, key, value.

    The newest entries of a key decide: a value; nothing if it was deleted; or merge operands down to such a base, joined by commas from the
    oldest to the newest.

    Parameters
    ----------
    data, runs
        Blocks that :func:`~statetool.kernels.rocksdb.blocks.measure_blocks` has accepted. Only the last block of a run may have keys from ``high``
        on.
    low, high, behind, with_high
        uint8[:], uint8[:], int, int: keys from ``low`` (with ``behind`` 1: after it) to ``high`` (with ``with_high`` 1: inclusive).
    width, scratch
        Bytes of the longest key with its tag, at least 16, and room for such keys.
    out
        uint8[:] out, with room for all keys, values, and one more byte per entry.
    key, key_end, value_end
        int64[entries] out: range of each key in ``out``, and the end of its value, which follows it.

    Returns
    -------
    code, entries (for a bad entry: its block), bytes of ``out``
    """
    starts, ends, edges = runs
    keys, cursors, heads, order = scratch
    code, live = _begin_runs(
        data, starts, ends, edges, low, high, behind, with_high, width, keys, cursors, heads, order
    )  # fmt: skip
    if code != OK:
        return code, live, np.int64(0)
    return _merge_begun(
        data, starts, ends, edges, high, with_high, width, keys, cursors, heads, order, live, out, key, key_end, value_end
    )  # fmt: skip


@jit
def place_entries(data, key, key_end, value_end, prefix, shift, out_group, out_key, out_key_end, out_value_end):
    """Move the positions of entries by ``shift``. ``out_key`` is behind the first ``prefix`` bytes, whose number goes to ``out_group``."""
    for i in range(key.shape[0]):
        p = key[i]
        group = np.int64(0)
        for k in range(min(prefix, key_end[i] - p)):
            group = group << 8 | np.int64(data[np.uint64(p + k)])
        out_group[i] = group
        out_key[i] = p + shift + prefix
        out_key_end[i] = key_end[i] + shift
        out_value_end[i] = value_end[i] + shift
