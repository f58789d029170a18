"""Keys and accumulators of SQL: keys that lose or reorder columns, and rows of accumulators that are merged column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.types import arrow_type
from statetool.columns.values import decode_framed
from statetool.errors import EncodeError
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.row import KIND_FIELD
from statetool.types.options import ReadOptions

#: What becomes of two values of a column. A null counts as no value.
ColumnRule: TypeAlias = Literal["sum", "min", "max"]
#: Exact values: timestamps keep their nanoseconds.
EXACT_ROWS: Final = ReadOptions(nanos="always", decimals="string", ttl="raw")
#: Digits in which sums of decimals are computed, before they are stored in 38.
_WIDE: Final = 75


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """New keys that consist of columns of the old ones, by position.

    Attributes
    ----------
    key
        The serializer of the new keys.
    """

    columns: tuple[int, ...]
    key: Serializer

    def make(self, key: Serializer, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> pa.Array:
        """Return the new key of each old key."""
        kind = arrow_type(self.key.logical, EXACT_ROWS)
        decoded = decode_framed(key, data, start, end, EXACT_ROWS)
        arrays = [decoded.field(i).cast(kind.field(n).type) for n, i in enumerate(self.columns)]
        arrays += [pa.repeat("+I", len(decoded)).cast(f.type) for f in kind if f.name == KIND_FIELD]
        if not arrays:  # one group
            return pa.array([{}] * len(decoded), kind)
        return pa.StructArray.from_arrays(arrays, fields=list(kind))


@dataclass(frozen=True, slots=True)
class RowMerge:
    """Merge of the accumulators of two groups, with a rule per column. Other columns, such as the kind of the row, are equal in both."""

    rules: tuple[ColumnRule, ...]

    def merge(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """Return the merged rows of two arrays of rows.

        Raises
        ------
        EncodeError
            A sum overflows.
        """
        try:
            merged = [_RULES[rule](a.field(i), b.field(i)) for i, rule in enumerate(self.rules)]
        except pa.ArrowInvalid as error:
            raise EncodeError(
                f"the sum of two groups cannot be stored: {error}",
                hint="such a group starts empty if you erase it first",
            ) from error
        rest = [a.field(i) for i in range(len(self.rules), a.type.num_fields)]
        return pa.StructArray.from_arrays([*merged, *rest], fields=list(a.type))


def _add(a: pa.Array, b: pa.Array) -> pa.Array:
    kind = a.type
    if pa.types.is_decimal(kind):
        wide = pa.decimal256(_WIDE, kind.scale)
        total = pc.add_checked(a.cast(wide), b.cast(wide)).cast(kind)
    else:
        total = pc.add_checked(a, b)
    return pc.coalesce(total, a, b)


def _least(a: pa.Array, b: pa.Array) -> pa.Array:
    return _extreme(a, b, pc.less)


def _greatest(a: pa.Array, b: pa.Array) -> pa.Array:
    return _extreme(a, b, pc.greater)


def _extreme(a: pa.Array, b: pa.Array, comes_first: Any) -> pa.Array:
    """Return the value of each pair that comes first. Strings are compared by their UTF-8 bytes, as in Flink."""
    takes_b = comes_first(b, a)
    if pa.types.is_struct(a.type):
        raise EncodeError("rows cannot be compared")
    return pc.if_else(pc.or_kleene(pc.is_null(a), pc.fill_null(takes_b, False)), b, a)


_RULES: Final = {"sum": _add, "min": _least, "max": _greatest}
