"""Arrow structs, lists and maps from the columns of their parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_arrow, bitmap, offsets_of
from statetool.columns.batch import Batch
from statetool.columns.types import arrow_type, member_arrays, member_fields
from statetool.kernels.core.arrays import Int64s
from statetool.types import LogicalType, StructType, VariantType


def assemble(
    b: Batch, logical: StructType, parts: list[pa.Array], n: int, valid: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return structs of ``parts``, with the companions of timestamps; null if not ``valid``."""
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    for field, array in zip(logical.fields, parts, strict=True):
        arrays += member_arrays(array, field.type, b.options)
        fields += member_fields(field.name, field.type, b.options)
    kind = arrow_type(logical, b.options) if isinstance(logical, VariantType) else pa.struct(fields)
    nulls = None if valid is None else bitmap(valid)
    return pa.StructArray.from_buffers(kind, n, [nulls], children=arrays)


def build_lists(b: Batch, elements: pa.Array, counts: Int64s, logical: LogicalType, pos: Int64s) -> pa.Array:
    """Return lists of ``counts`` elements each."""
    offsets = as_arrow(offsets_of(counts, pos))
    return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(logical, b.options))


def build_maps(
    b: Batch, keys: pa.Array, values: pa.Array, counts: Int64s, logical: LogicalType, pos: Int64s
) -> pa.Array:
    """Return maps of ``counts`` entries each."""
    kind = arrow_type(logical, b.options)
    entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    offsets = pa.py_buffer(offsets_of(counts, pos))
    return pa.Array.from_buffers(kind, len(counts), [None, offsets], children=[entries])
