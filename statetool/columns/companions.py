"""Companion columns: information that the columns of a table cannot hold themselves.

``x_scale`` has the scale of each ``BigDecimal`` in ``x``. It has the shape of ``x`` with ints in place of the decimals: an int, a list of
ints, a map of the same keys to ints, or a struct of the fields with decimals. For maps whose keys have decimals it is a list of structs of
``key`` and ``value``. ``x_present`` distinguishes a null stored in a state (``None`` of Scala) from an absent state.

Decoded columns hold both inside, as structs (:func:`statetool.columns.types.arrow_type`). Tables show them beside the column
(:func:`statetool.columns.types.table_column`).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import pyarrow as pa

from statetool.columns.types import BIG_DECIMAL, COMPANION, PRESENT, SCALE

#: Suffixes of the names of companions.
SUFFIXES: Final = (COMPANION, SCALE, PRESENT)


def state_of_companion(name: str, states: Container[str]) -> str | None:
    """Return the state whose companion may have this name."""
    return next((n for s in SUFFIXES if name.endswith(s) and (n := name.removesuffix(s)) in states), None)


def column_of_companion(name: str, schema: pa.Schema, *, known: bool) -> tuple[str, str, str] | None:
    """Return the column of a table whose companion has this name, the content of the companion, and the alternative content.

    Parameters
    ----------
    known
        Whether a table that was read has this companion. In a user's table, decimals may have other columns beside them.
    """
    for suffix, kept, instead in _KEPT:
        column = name.removesuffix(suffix)
        if name.endswith(suffix) and column in schema.names:
            kind = schema.field(column).type
            may_be = {
                COMPANION: pa.types.is_timestamp(kind),
                SCALE: shows_scales(kind) or (known and _has_decimals(kind)),
                PRESENT: known,
            }
            if may_be[suffix]:
                return column, kept, instead
    return None


def needs_companion(name: str, kind: pa.DataType) -> bool:
    """Return True if a column of a type needs a companion of this name: other decimals have the scale of their type."""
    return not name.endswith(SCALE) or shows_scales(kind)


_KEPT: Final = (
    (COMPANION, "its nanoseconds", "fill it with zeros"),
    (SCALE, "the scales of its BigDecimals", "fill it with nulls: as few digits as each number needs"),
    (PRESENT, "what tells its null values from absent states", "fill it with true or false"),
)


def shows_scales(kind: pa.DataType) -> bool:
    """Return True if a column has a decimal in the form in which tables show a ``BigDecimal``."""
    return bool(kind == BIG_DECIMAL) or any(map(shows_scales, _parts(kind)))


def _has_decimals(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind)) or any(map(_has_decimals, _parts(kind)))


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if is_list(kind) else []


def is_list(kind: pa.DataType) -> bool:
    """Return True for lists of any form."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
