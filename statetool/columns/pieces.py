"""Measured values of a column, and the code that writes them into one buffer. :mod:`statetool.columns.encode` builds them from a program.

A piece has the size in bytes of each of its values before any is written. A composed piece adds up the sizes of its parts. All arrays
have one element per row. ``pos`` is the start of each value in ``out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import is_valid
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.values import encode as kernel

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Piece(Protocol):
    """Measured values. ``sizes`` has the bytes of each, ``fill`` writes them."""

    sizes: Int64s

    def fill(self, out: Bytes, pos: Int64s) -> None:
        """Write each value at its position."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded values one after another. Value i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def value(self, i: int) -> bytes:
        """Return the bytes of one value."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()


def pack(piece: Piece) -> Encoded:
    """Write all values of a piece one after another."""
    offsets = np.zeros(len(piece.sizes) + 1, dtype=np.int64)
    np.cumsum(piece.sizes, out=offsets[1:])
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    piece.fill(out, offsets[:-1])
    return Encoded(out, offsets)


class Ranges:
    """Values that are ranges of existing bytes."""

    def __init__(self, data: Bytes, start: Int64s, sizes: Int64s) -> None:
        self.data, self.start, self.sizes = data, start, sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        copy_ranges(self.data, self.start, self.sizes, out, pos)


class Integers:
    """Big-endian integers of one size."""

    def __init__(self, values: Int64s, size: int) -> None:
        self.values, self.size = values, size
        self.sizes = np.full(len(values), size, dtype=np.int64)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.values, self.size, out, pos)


class Chain:
    """Pieces one after another in each value."""

    def __init__(self, pieces: Sequence[Piece], n: int) -> None:
        self.pieces = pieces
        self.sizes = np.zeros(n, dtype=np.int64)
        for piece in pieces:
            self.sizes += piece.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        at = pos.copy()
        for piece in self.pieces:
            piece.fill(out, at)
            at += piece.sizes


class Constant:
    """Values of one byte, repeated ``size`` times."""

    def __init__(self, n: int, size: int, byte: int) -> None:
        self.byte = byte
        self.sizes = np.full(n, size, dtype=np.int64)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        if self.byte and len(pos):
            for k in range(int(self.sizes[0])):
                out[pos + k] = self.byte


class Text:
    """Strings as ``StringValue`` writes them: a varint of the UTF-16 units plus ``extra``, and the units as varints."""

    def __init__(self, array: pa.Array, extra: int) -> None:
        self.extra = extra
        self.data, self.start, self.end = ranges_of(array)
        valid = is_valid(array).astype(np.uint8)
        self.units, self.sizes = np.empty(len(array), dtype=np.int64), np.empty(len(array), dtype=np.int64)
        kernel.measure_text(self.data, self.start, self.end, valid, extra, self.units, self.sizes)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_text(self.data, self.start, self.end, self.units, self.sizes, self.extra, out, pos)


class Counted(Ranges):
    """Byte arrays after an i32 length."""

    def __init__(self, array: pa.Array) -> None:
        data, start, end = ranges_of(array)
        super().__init__(data, start, end - start + 4)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.sizes - 4, 4, out, pos)
        copy_ranges(self.data, self.start, self.sizes - 4, out, pos + 4)


class Flagged:
    """A flag, followed by the value if it is valid, otherwise by ``padding`` zero bytes."""

    def __init__(self, valid: Mask, value: Piece, flags: tuple[int, int], padding: int) -> None:
        self.present, self.value = np.flatnonzero(valid), value
        self.flags = np.where(valid, flags[0], flags[1]).astype(np.int64)
        self.sizes = np.full(len(valid), 1 + padding, dtype=np.int64)
        self.sizes[self.present] = 1 + value.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.flags, 1, out, pos)
        self.value.fill(out, pos[self.present] + 1)


class Sparse:
    """Values of the rows where ``valid`` is set. The others take no bytes."""

    def __init__(self, valid: Mask, value: Piece) -> None:
        self.present, self.value = np.flatnonzero(valid), value
        self.sizes = np.zeros(len(valid), dtype=np.int64)
        self.sizes[self.present] = value.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        self.value.fill(out, pos[self.present])


class Choice:
    """One of two pieces for each row, after a flag."""

    def __init__(self, is_left: Mask, left: Piece, right: Piece) -> None:
        self.flags = is_left.astype(np.int64)
        self.left, self.right = Sparse(is_left, left), Sparse(~is_left, right)
        self.sizes = 1 + self.left.sizes + self.right.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.flags, 1, out, pos)
        self.left.fill(out, pos + 1)
        self.right.fill(out, pos + 1)


class Elements:
    """A count, followed by that many elements."""

    def __init__(self, counts: Int64s, element: Piece) -> None:
        self.counts, self.element = counts, element
        # Bytes of all elements before each one, and before each list.
        self.before = np.cumsum(element.sizes) - element.sizes
        ends = np.concatenate([[0], np.cumsum(element.sizes)])[np.concatenate([[0], np.cumsum(counts)])]
        self.first = ends[:-1]
        self.sizes = 4 + np.diff(ends)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.counts, 4, out, pos)
        self.element.fill(out, np.repeat(pos + 4 - self.first, self.counts) + self.before)


class Joined:
    """Elements of lists joined by commas, as canonical savepoints store list state. No list is empty."""

    def __init__(self, elements: Encoded, counts: Int64s) -> None:
        self.elements, self.counts = elements, counts
        self.edges = np.concatenate([[0], np.cumsum(counts)])
        self.sizes = np.diff(elements.offsets[self.edges]) + counts - 1

    def fill(self, out: Bytes, pos: Int64s) -> None:
        offsets = self.elements.offsets
        index = np.arange(len(self.elements)) - np.repeat(self.edges[:-1], self.counts)
        at = np.repeat(pos - offsets[self.edges[:-1]], self.counts) + offsets[:-1] + index
        copy_ranges(self.elements.data, offsets[:-1], np.diff(offsets), out, at)
        out[at[index > 0] - 1] = SEPARATOR


class Markers:
    """Lengths after ambiguous keys: little-endian base 256, at least one byte."""

    def __init__(self, lengths: Int64s) -> None:
        self.lengths = lengths
        self.sizes = np.ones(len(lengths), dtype=np.int64)
        for k in range(1, 4):
            self.sizes += lengths >= 1 << 8 * k

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_markers(self.lengths, self.sizes, out, pos)


class Masked:
    """A bit mask of absent values, and the present values."""

    def __init__(self, flags: Mask, parts: Sequence[Sparse]) -> None:
        n, bits = flags.shape
        self.mask = np.packbits(flags, axis=1) if bits else np.zeros((n, 0), dtype=np.uint8)
        self.parts = Chain(parts, n)
        self.sizes = self.mask.shape[1] + self.parts.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        width = self.mask.shape[1]
        for k in range(width):
            out[pos + k] = self.mask[:, k]
        self.parts.fill(out, pos + width)


def ranges_of(array: pa.Array) -> tuple[Bytes, Int64s, Int64s]:
    """Return the bytes of a binary or string array, with start and end of each value (int64[n])."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    kind = np.int64 if wide else np.int32
    if offsets is None or not len(array):
        return np.empty(0, dtype=np.uint8), np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.int64)
    edges = np.frombuffer(offsets, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return raw, edges[:-1], edges[1:]
