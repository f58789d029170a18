"""Kernels that find paths of ``_metadata`` in a listing, as rows of :mod:`statetool.kernels.metadata.references`."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.metadata.references import RELATIVE

#: Index of a file that a path does not have.
NOT_FOUND: Final = -1


@jit
def number_directories(data, rows, directories, out):
    """Assign a number to the directory of each path, in order of first appearance.

    Parameters
    ----------
    directories
        int64[most], out: the first row of each directory.
    out
        int64[rows], out: the number; -1 for a path whose last part needs care (empty, or made of dots), or if there are more directories
        than room.

    Returns
    -------
    the number of directories
    """
    count = np.int64(0)
    last = np.int64(0)
    for i in range(rows.shape[0]):
        size = rows[i, 2] - rows[i, 1]
        found = np.int64(-1)
        dots = np.int64(0)
        for k in range(rows[i, 2], rows[i, 3]):
            dots += np.int64(data[np.uint64(k)] == 0x2E)
        if dots < rows[i, 3] - rows[i, 2]:
            for k in range(count):
                d = (last + k) % count
                o = directories[d]
                same = rows[o, 2] - rows[o, 1] == size and (rows[o, 0] & 3 == RELATIVE) == (rows[i, 0] & 3 == RELATIVE)
                at = np.int64(0)
                while same and at < size:
                    same = data[np.uint64(rows[o, 1] + at)] == data[np.uint64(rows[i, 1] + at)]
                    at += 1
                if same:
                    found = d
                    break
            if found < 0 and count < directories.shape[0]:
                found = count
                directories[count] = i
                count += 1
        if found >= 0:
            last = found
        out[i] = found
    return count


@jit
def _hash(h, data, start, end):
    """Continue a hash (FNV-1a) over bytes."""
    for k in range(start, end):
        h = (h ^ np.uint64(data[np.uint64(k)])) * np.uint64(1099511628211)
    return h


@jit
def _slot(h, table):
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (h ^ (h >> np.uint64(32))) & np.uint64(table.shape[0] - 1)


@jit
def fill_table(names, name, table):
    """Build a hash table of texts.

    Parameters
    ----------
    names, name
        uint8[:] and int64[n + 1]: text i is ``names[name[i]:name[i + 1]]``.
    table
        int64[2**m] of -1, larger than n: out.
    """
    for i in range(name.shape[0] - 1):
        slot = _slot(_hash(np.uint64(14695981039346656037), names, name[i], name[i + 1]), table)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(table.shape[0] - 1)
        table[slot] = i


@jit
def find_texts(data, rows, directory, texts, text, names, name, table, out):
    """Find texts made of the text of a directory and the last part of a path in a table.

    Parameters
    ----------
    directory
        int64[rows]: number of the directory's text; -1 to find nothing.
    texts, text
        The texts of the directories, like ``names`` and ``name`` of :func:`fill_table`. An empty one finds nothing.
    out
        int64[rows]: the index of the text in the table. Only rows with :data:`NOT_FOUND` are looked up.
    """
    for i in range(rows.shape[0]):
        d = directory[i]
        if d < 0 or out[i] >= 0 or text[d] == text[d + 1]:
            continue
        before, size = text[d + 1] - text[d], rows[i, 3] - rows[i, 2]
        h = _hash(np.uint64(14695981039346656037), texts, text[d], text[d + 1])
        slot = _slot(_hash(h, data, rows[i, 2], rows[i, 3]), table)
        while table[slot] >= 0:
            o = table[slot]
            start = name[o]
            same = name[o + 1] - start == before + size
            k = size - 1
            while same and k >= 0:
                same = names[np.uint64(start + before + k)] == data[np.uint64(rows[i, 2] + k)]
                k -= 1
            k = np.int64(0)
            while same and k < before:
                same = names[np.uint64(start + k)] == texts[np.uint64(text[d] + k)]
                k += 1
            if same:
                out[i] = o
                break
            slot = (slot + np.uint64(1)) & np.uint64(table.shape[0] - 1)
