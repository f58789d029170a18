"""NumPy's arrays as Arrow's.

``pa.array`` does it too, but imports pandas, whatever it gets: as long as reading a small table takes, in every process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]


def as_arrow(values: npt.NDArray[Any], mask: Mask | None = None) -> pa.Array:
    """Return numbers or booleans, as ``pa.array`` would; nothing is copied but booleans.

    Parameters
    ----------
    values
        [n], any type of numbers that both know, or bool.
    mask
        bool[n]: which are null.
    """
    validity = None if mask is None else pa.py_buffer(_bits(~mask))
    data = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(data)])


def is_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Tell which values are there: bool[n]."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return np.asarray(array.is_valid())


def _bits(values: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")
