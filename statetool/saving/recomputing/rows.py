"""Rows of SQL with other columns, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.types import arrow_type
from statetool.kernels.core.arrays import Int64s
from statetool.saving.rekeying.rows import EXACT_ROWS
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.typeutils.row import KIND_FIELD
from statetool.sql_plans.ranks import SortedColumn

_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
#: Types whose order in Arrow is that in Flink.
_ORDERED: Final = frozenset({*_WHOLE, "DECIMAL", "CHAR", "VARCHAR", "BOOLEAN", "DATE"})


def select_columns(rows: pa.Array, columns: Sequence[int], row: Serializer) -> pa.Array:
    """Return rows with some columns of others, in the type of a serializer of rows. They keep their kind."""
    kind = arrow_type(row.logical, EXACT_ROWS)
    arrays = [rows.field(i).cast(kind.field(n).type) for n, i in enumerate(columns)]
    names = [field.name for field in rows.type]
    for field in kind:
        if field.name == KIND_FIELD:
            has_kind = KIND_FIELD in names
            kept = rows.field(names.index(KIND_FIELD)) if has_kind else pa.repeat("+I", len(rows))
            arrays.append(kept.cast(field.type))
    if not arrays:
        return pa.array([{}] * len(rows), kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def other_type(before: SqlType, after: SqlType) -> str:
    """Return why values of a column cannot become those of another type, empty if each keeps its value."""
    if before.nullable and not after.nullable:
        return "it becomes NOT NULL"
    kinds = [t.root for t in (before, after)]
    if set(kinds) <= set(_WHOLE) and _WHOLE.index(kinds[0]) <= _WHOLE.index(kinds[1]):
        return ""
    if kinds == ["VARCHAR", "VARCHAR"] and before.length <= after.length:
        return ""
    if kinds == ["DECIMAL", "DECIMAL"] and before.scale == after.scale and before.precision <= after.precision:
        return ""
    same = replace(before, nullable=True) == replace(after, nullable=True)
    return "" if same else f"its type was {before} and is {after}"


def is_ordered(kind: SqlType) -> bool:
    """Return True if the order of a type is known."""
    return kind.root in _ORDERED or (kind.root == "TIMESTAMP" and kind.precision <= 3)


def ranks_of(values: pa.Array, column: SortedColumn) -> Int64s:
    """Return int64[n]: numbers that have the order of a column, equal for equal values."""
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    ranks = ranks if column.ascending else -ranks
    end = len(values) + 1
    return np.where(is_null, end if column.nulls_last else -end, ranks)
