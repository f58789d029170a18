"""Limits of record batches, in rows and in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MAX_ROWS: Final = 65_536
MAX_BYTES: Final = 32 << 20


def row_runs(sizes: npt.NDArray[np.int64], *, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES) -> Iterator[slice]:
    """Cut rows into runs of at most ``max_rows`` rows and ``max_bytes`` bytes. A larger row forms a separate run.

    Parameters
    ----------
    sizes
        int64[n]: bytes of each row.
    """
    total = np.concatenate([[0], np.cumsum(sizes)])
    start, n = 0, len(sizes)
    while start < n:
        fitting = int(np.searchsorted(total, total[start] + max_bytes, side="right")) - 1
        stop = max(start + 1, min(fitting, start + max_rows, n))
        yield slice(start, stop)
        start = stop


def split_to_limits(
    batch: pa.RecordBatch, *, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES
) -> Iterator[pa.RecordBatch]:
    """Cut a record batch into batches within the limits. A larger row forms a separate batch."""
    if batch.num_rows <= max_rows and (batch.num_rows <= 1 or batch.nbytes <= max_bytes):
        yield batch
        return
    half = min(max_rows, (batch.num_rows + 1) // 2)
    for start in range(0, batch.num_rows, half):
        yield from split_to_limits(batch.slice(start, half), max_rows=max_rows, max_bytes=max_bytes)
