"""Columns of stream elements: records, watermarks, latency markers and other events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow, null_where
from statetool.columns.batch import Batch, Column, struct_of
from statetool.columns.families.assembly import assemble
from statetool.columns.families.leaves import load_ints
from statetool.kernels.core.arrays import Int64s, Mask
from statetool.kernels.core.codes import BAD_FLAG, BAD_TAG, TRUNCATED, refuse
from statetool.kernels.values import program as ir
from statetool.types import StructType


def decode_stream_elements(b: Batch, op: ir.StreamElement, logical: StructType, pos: Int64s, end: Int64s) -> Column:
    raw, body = load_ints(b, 1, pos, end)
    tag = raw & 0xFF
    refuse(tag >= len(op.names), BAD_TAG, pos)

    def numbers(size: int, mask: Mask, at: Int64s) -> tuple[Int64s, Int64s]:
        """Load numbers if ``mask`` is set. The others are 0 and take no bytes."""
        present = np.flatnonzero(mask)
        out, after = np.zeros_like(at), at.copy()
        out[present], after[present] = load_ints(b, size, at[present], end[present])
        return out, after

    latency, status, attributes, internal = (tag == k for k in (3, 4, 5, 6))
    at = body
    subpartition, at = numbers(4, internal, at)
    timed = (tag == 0) | (tag == 2) | latency | internal
    timestamp, at = numbers(8, timed, at)
    ids, at = at, at + 16 * latency
    refuse(at > end, TRUNCATED, pos)
    subtask, at = numbers(4, latency, at)
    idle, at = numbers(4, status, at)
    refuse(status & (idle != 0) & (idle != -1), BAD_TAG, pos)
    backlog, at = numbers(1, attributes, at)
    refuse(attributes & (backlog != 0) & (backlog != 1), BAD_FLAG, pos)
    value, after = b.part("value", op.value, logical.fields[0].type, at, end, tag <= 1)
    names = pa.array(op.names, type=pa.string()).take(as_arrow(tag))
    hexes = [
        b.data[i : i + 16].tobytes().hex() if has_id else None
        for i, has_id in zip(ids.tolist(), latency.tolist(), strict=True)
    ]
    marker = [
        pa.array(hexes, type=pa.string()),
        as_arrow((subtask + subpartition).astype(np.int32), mask=~(latency | internal)),
        as_arrow(idle != 0, mask=~status),
        as_arrow(backlog != 0, mask=~attributes),
    ]
    marker_type = logical.fields[3].type
    markers = null_where(assemble(b, struct_of(marker_type), marker, len(pos)), tag <= 2)
    parts = [null_where(value, tag > 1), as_arrow(timestamp, mask=~timed), names, markers]
    return assemble(b, logical, parts, len(pos)), after
