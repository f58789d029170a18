"""Conversion between NumPy arrays and Arrow arrays, and parts of Arrow arrays.

``pa.array``, ``to_numpy`` and ``np.asarray`` do the same, but import pandas, which takes every process as long as reading a small
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.errors import DecodeError
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries.rows import MAX_OFFSET, add_offsets

Mask = npt.NDArray[np.bool_]


def as_arrow(values: npt.NDArray[Any], mask: Mask | None = None) -> pa.Array:
    """Convert numbers or booleans to Arrow like ``pa.array``. Only booleans are copied.

    Parameters
    ----------
    values
        [n], any type of numbers that NumPy and Arrow share, or bool.
    mask
        bool[n]: True for nulls.
    """
    validity = None if mask is None else pa.py_buffer(_bits(~mask))
    data = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(data)])


def as_binary(values: Sequence[bytes | memoryview]) -> pa.BinaryArray:
    """Convert bytes, also those of an array (``ndarray.data``), to Arrow like ``pa.array``.

    Raises
    ------
    OverflowError
        They are 2 GiB or more in total.
    """
    ends = np.cumsum([memoryview(v).nbytes for v in values], dtype=np.int64)
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} bytes in one array")
    offsets = np.concatenate([np.zeros(1, dtype=np.int32), ends.astype(np.int32)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def as_numpy(array: pa.Array | pa.ChunkedArray, *, null: int | None = None) -> npt.NDArray[Any]:
    """Convert numbers or booleans to a read-only NumPy array, with ``null`` for nulls. Copies only booleans, chunks and arrays with nulls.

    Raises
    ------
    ValueError
        The array has nulls and ``null`` is not given, or the type is another.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind, buffer, end = array.type, array.buffers()[1], array.offset + len(array)
    if array.null_count and null is None:
        raise ValueError(f"{array.null_count} nulls")
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(buffer or b"", dtype=np.uint8)
        values = np.unpackbits(bits, count=end, bitorder="little")[array.offset :].view(np.bool_)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
        values = np.frombuffer(buffer or b"", dtype=f"{letter}{kind.bit_width // 8}", count=end)[array.offset :]
    else:
        raise ValueError(f"no numbers: {kind}")
    if array.null_count:
        values = np.where(is_valid(array), values, values.dtype.type(null))
    values.flags.writeable = False
    return values


def is_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that are not null: bool[n]."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return as_numpy(array.is_valid())


def _bits(values: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def bitmap(valid: npt.NDArray[Any]) -> pa.Buffer | None:
    """Return the Arrow validity bitmap, ``None`` if all are valid."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid.astype(np.bool_), bitorder="little"))


def offsets_of(sizes: Int64s, pos: Int64s) -> npt.NDArray[np.int32]:
    """Return Arrow offsets int32[n + 1] for values of ``sizes`` int64[n]. ``pos`` is used for errors."""
    offsets = np.empty(len(sizes) + 1, dtype=np.int32)
    if add_offsets(sizes, offsets) > MAX_OFFSET:
        raise DecodeError("more than 2 GiB in one column of a batch", hint="read with smaller batches").at(
            offset=int(pos[0])
        )
    return offsets


def spread_values(array: pa.Array, valid: npt.NDArray[Any]) -> pa.Array:
    """Put the values of ``array`` at the positions set in ``valid``, and nulls elsewhere."""
    if len(array) == len(valid):
        return array
    places = np.cumsum(valid.astype(np.int64)) - 1
    return array.take(as_arrow(places, mask=~valid.astype(np.bool_)))


def null_where(array: pa.Array, mask: Mask) -> pa.Array:
    """Return an array with nulls at the positions set in ``mask``."""
    if not mask.any():
        return array
    return array.take(as_arrow(np.arange(len(array)), mask=mask))


def from_buffer(kind: pa.DataType, values: npt.NDArray[Any], valid: Bytes) -> pa.Array:
    """Return numbers of any type that has one buffer, null where not ``valid``."""
    return pa.Array.from_buffers(kind, len(valid), [bitmap(valid), pa.py_buffer(values)])
