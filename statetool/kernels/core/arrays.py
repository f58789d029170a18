"""Array types that kernels take and return."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def frozen(array: Bytes) -> Bytes:
    """Return a read-only view of bytes, like the bytes of files, so that kernels are compiled once for both."""
    array.flags.writeable = False
    return array
