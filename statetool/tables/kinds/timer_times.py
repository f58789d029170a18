"""The time of a timer as a SQL timestamp, in addition to the number that Flink stores."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_numpy
from statetool.types.logical import TimestampType

TIMER_TIME: Final = TimestampType("us", zoned=True, digits=6)
#: Epoch milliseconds of the years 1 to 9999. Numbers outside are not points in time, such as the maximum that marks the end of input.
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999


def times_of(timestamps: pa.Array) -> pa.Array:
    """Return the points in time of epoch milliseconds, null outside of the years 1 to 9999."""
    numbers = as_numpy(timestamps)
    far = (numbers < _FIRST_MS) | (numbers > _LAST_MS)
    micros = np.where(far, 0, numbers) * 1000
    return pa.array(micros, mask=far).cast(pa.timestamp("us", tz="UTC"))
