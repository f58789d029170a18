"""Columns of input tables with their companion columns, and key columns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_numpy, is_valid
from statetool.columns.coerce import coerce, with_companion
from statetool.columns.types import COMPANION, PRESENT, SCALE, has_scales
from statetool.columns.values import StateLayout
from statetool.errors import EncodeError, StatetoolError
from statetool.kernels.core.arrays import Mask
from statetool.saving.bootstrap.recipe import RowEncoder, StateColumn
from statetool.saving.bootstrap.scales import with_scales
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.row import KIND_FIELD, RowSerializer
from statetool.types import LogicalType, Scalar, StructType, TimestampType, TtlType


def column_of(
    batch: pa.RecordBatch, name: str, logical: LogicalType, recipe: RowEncoder | None = None, *, exact: bool = False
) -> pa.Array:
    """Return a column, with the nanoseconds or scales of its companion; state columns of ``recipe`` are not companions.

    Parameters
    ----------
    exact
        Refuse numbers whose scale differs from the one in the companion.
    """
    array = batch.column(name)
    if has_scales(logical):
        scales = _companion(batch, name + SCALE, recipe)
        return array if scales is None else _scale(array, scales, logical, name, exact=exact)
    if isinstance(logical, TtlType):
        logical = logical.value
    if isinstance(logical, TimestampType) and pa.types.is_timestamp(array.type):
        nanos = _companion(batch, name + COMPANION, recipe)
        return array if nanos is None else with_companion(array, nanos)
    return array


def _companion(batch: pa.RecordBatch, name: str, recipe: RowEncoder | None) -> pa.Array | None:
    """Return the companion column, if any; state columns of ``recipe`` are not companions."""
    if name not in batch.schema.names or (recipe is not None and any(s.column == name for s in recipe.states)):
        return None
    return batch.column(name)


def _scale(array: pa.Array, scales: pa.Array, logical: LogicalType, name: str, *, exact: bool) -> pa.Array:
    try:
        return with_scales(array, scales, logical, exact=exact)
    except StatetoolError as error:
        error.message = f"{error.message}, in columns {name!r} and {name + SCALE!r}"
        raise


def state_mask(
    batch: pa.RecordBatch,
    recipe: RowEncoder,
    state: StateColumn,
    shape: StateLayout,
    column: pa.Array,
    key_text: Callable[[int], str],
) -> Mask:
    """Return a mask of the rows that have a state: rows with a value, and rows whose companion marks a stored null.

    Raises
    ------
    EncodeError
        A null has no companion that says whether it is stored, or a state marked as absent has a value.
    """
    valid = is_valid(column)
    if not shape.holds_null or (state.last_access_ms is None and isinstance(shape.logical, TtlType)):
        return valid
    told = _companion(batch, state.column + PRESENT, recipe)
    if told is None:
        if state.tells_null and not valid.all():
            row = int(np.argmin(valid))
            raise EncodeError(
                f"a null in column {state.column!r} of the row with key {key_text(row)} is ambiguous: no state, or a state that holds null",
                hint=f"add a bool column {state.column + PRESENT!r}, as in op.keyed_state()",
            )
        return valid
    flags = coerce(told, Scalar("bool"))
    absent = as_numpy(flags, null=True) == 0
    if len(wrong := np.flatnonzero(valid & absent)):
        raise EncodeError(
            f"a value in column {state.column!r} of the row with key {key_text(int(wrong[0]))}, which has no state "
            f"as {state.column + PRESENT!r} says",
            hint="set both to the same value",
        )
    has_state: Mask = valid | (as_numpy(flags, null=False) == 1)
    return has_state


def key_array(batch: pa.RecordBatch, recipe: RowEncoder, logical: LogicalType) -> pa.Array:
    """Return the keys of rows; several columns form a struct."""
    if len(recipe.key) == 1:
        return column_of(batch, recipe.key[0], logical, recipe, exact=True)
    kinds = [field.type for field in logical.fields] if isinstance(logical, StructType) else []
    columns = [
        column_of(batch, name, kind, recipe, exact=True)
        for name, kind in zip_longest(recipe.key, kinds[: len(recipe.key)])
    ]
    return pa.StructArray.from_arrays(columns, names=[f"f{i}" for i in range(len(columns))])


def cell_text(array: pa.Array, row: int) -> str:
    """Return a cell of a table as text."""
    try:
        return str(array[row])
    except UnicodeDecodeError as error:
        return repr(error.object)
    except (ValueError, OverflowError):
        return f"a {array.type} outside the years 1 to 9999 of Python"


def row_of(key: Serializer, array: pa.Array) -> pa.Array:
    """Return keys as rows of one field if the key type is such a row, as PyFlink wraps all keys, ``None`` included."""
    if not isinstance(key, RowSerializer) or len(key.nested) != 1:
        return array
    if pa.types.is_struct(array.type) and len(array.type):
        own_name = array.type[0].name in (key.steps[0], "f0")
        # A struct with another name is the row too, unless it is the row's field.
        is_row = own_name or not isinstance(key.nested[0].logical, StructType)
        if is_row and (len(array.type) == 1 or array.type[len(array.type) - 1].name == KIND_FIELD):
            return array
    return pa.StructArray.from_arrays([array], names=list(key.steps))
