"""A batch of bytes to decode: the context of the functions in :mod:`statetool.columns.families`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import spread_values
from statetool.errors import StatetoolError
from statetool.kernels.core.arrays import Bytes, Int64s, Mask
from statetool.kernels.values import program as ir
from statetool.types import LogicalType, StructType
from statetool.types.options import ReadOptions

#: Values, and the first byte after each of them.
Column = tuple[pa.Array, Int64s]


@dataclass(frozen=True, slots=True)
class Batch:
    """Bytes and the options of the read. ``decode`` decodes values of any program in a batch."""

    data: Bytes
    options: ReadOptions
    decode: Callable[[Batch, ir.Op, LogicalType, Int64s, Int64s], Column]

    def run(self, op: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
        """Decode values of any program."""
        return self.decode(self, op, logical, pos, end)

    def part(self, step: str, op: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s, valid: Mask | None) -> Column:
        """Decode a part of the values for which ``valid`` is set. The others are null and take no bytes."""
        try:
            if valid is None or valid.all():
                return self.run(op, logical, pos, end)
            present = np.flatnonzero(valid)
            array, moved = self.run(op, logical, pos[present], end[present])
        except StatetoolError as error:
            raise error.inside(step) from None
        after = pos.copy()
        after[present] = moved
        return spread_values(array, valid), after


def struct_of(logical: LogicalType) -> StructType:
    """Return a logical type, which must be a struct type."""
    assert isinstance(logical, StructType)
    return logical
