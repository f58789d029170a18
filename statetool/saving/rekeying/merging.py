"""Values of several old keys under one new key: merged by a SQL expression, or the newest of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import as_arrow
from statetool.columns.encode import measure
from statetool.columns.pieces import Encoded, pack
from statetool.columns.types import table_column
from statetool.columns.values import StateLayout, decode_framed, map_values
from statetool.errors import EncodeError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.deal import mark_equal
from statetool.saving.rekeying.expressions import evaluate
from statetool.saving.rekeying.rows import EXACT_ROWS, RowMerge
from statetool.types import LogicalType, TtlType
from statetool.types.options import ReadOptions

#: How expressions see values.
OPTIONS: Final = ReadOptions(decimals="plain", ttl="raw")


def value_type(meta: StateMetaInfo) -> LogicalType:
    """Return the type of the values of a state, without their last access."""
    logical = StateLayout(meta).element.logical
    return logical.value if isinstance(logical, TtlType) else logical


def columns_of(meta: StateMetaInfo, *names: str) -> pa.Schema:
    """Return the columns that expressions see, each with a value of a state."""
    column = table_column(value_type(meta), OPTIONS)
    return pa.schema([field for name in names for field in column.fields(name)])


def merge_values(meta: StateMetaInfo, entries: EntryBatch, edges: Int64s, rule: str | RowMerge) -> Encoded:
    """Merge values by an expression of the columns ``a`` and ``b``, or by the rules of their columns. The last access is the latest one.

    Neighbours are merged, then the results, as Flink merges windows: the expression has to be associative, as its functions are.

    Parameters
    ----------
    edges
        int64[n + 1]: the entries ``edges[i] .. edges[i + 1]`` become one.

    Raises
    ------
    OptionError, EncodeError
        The expression cannot be evaluated, or its result does not fit the type of the state.
    """
    element = StateLayout(meta).element
    options = EXACT_ROWS if isinstance(rule, RowMerge) else OPTIONS
    stamps, merged = _parts(meta, _decode(meta, entries, options))
    runs = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    while len(runs) >= len(edges):
        is_left = (np.arange(len(runs)) - np.searchsorted(runs, runs)) % 2 == 0
        left = np.flatnonzero(is_left & (np.append(runs[1:], -1) == runs))
        pairs = merged.take(as_arrow(left)), merged.take(as_arrow(left + 1))
        fresh = rule.merge(*pairs) if isinstance(rule, RowMerge) else _evaluate(meta, *pairs, rule)
        source = np.arange(len(merged))
        source[left] = len(merged) + np.arange(len(left))
        merged = pa.concat_arrays([merged, fresh.cast(merged.type)]).take(as_arrow(source[is_left]))
        runs = runs[is_left]
    if stamps is not None:
        latest = pa.array(np.maximum.reduceat(stamps, edges[:-1]))
        merged = pa.StructArray.from_arrays([latest, merged], names=["last_access", "value"])
    return pack(measure(element, merged))


def _evaluate(meta: StateMetaInfo, a: pa.Array, b: pa.Array, sql: str) -> pa.Array:
    """Return the results of an expression, encoded and decoded again, so that the next step sees exactly what the state would hold."""
    encoded = pack(measure(_value_serializer(meta), evaluate(_table(meta, a=a, b=b), sql)))
    ends = encoded.offsets
    return decode_framed(_value_serializer(meta), encoded.data, ends[:-1], ends[1:], OPTIONS)


def newest_of(
    meta: StateMetaInfo, entries: EntryBatch, edges: Int64s, sql: str | None
) -> tuple[Int64s, tuple[int, int] | None]:
    """Return the newest entry of each run, and two entries of a run of which neither is newer, ``None`` if there are none."""
    stamps, values = _parts(meta, _decode(meta, entries))
    order: Any = stamps if sql is None else _ranks(meta, values, sql)
    if order is None:
        return edges[:-1], (int(edges[0]), int(edges[0]) + 1)
    runs, first = np.repeat(np.arange(len(edges) - 1), np.diff(edges)), edges[:-1]
    newest = np.flatnonzero(order == np.maximum.reduceat(order, first)[runs])
    # Newest values of one run follow each other: a different one than the one before makes a tie.
    same = np.zeros(len(newest), dtype=np.bool_)
    zeros = np.zeros(len(newest), dtype=np.int64)
    mark_equal(entries.data, runs[newest], zeros, entries.value[newest], entries.value_end[newest], same)
    ties = np.flatnonzero((np.diff(runs[newest]) == 0) & ~same[1:])
    chosen = newest[np.searchsorted(runs[newest], np.arange(len(edges) - 1))]
    if len(ties):
        return chosen, (int(newest[ties[0]]), int(newest[ties[0] + 1]))
    return chosen, None


def _ranks(meta: StateMetaInfo, values: pa.Array, sql: str) -> Any:
    result = evaluate(_table(meta, value=values), sql)
    if result.null_count:
        raise EncodeError(
            f"the expression {sql!r} is null for a value", hint="choose an expression that orders all values"
        ).at(state=meta.name)
    if pa.types.is_floating(result.type) and pc.any(pc.is_nan(result)).as_py():
        raise EncodeError(
            f"the expression {sql!r} is NaN for a value", hint="choose an expression that orders all values"
        ).at(state=meta.name)
    return pc.rank(result, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)


def _decode(meta: StateMetaInfo, entries: EntryBatch, options: ReadOptions = OPTIONS) -> pa.Array:
    layout = StateLayout(meta)
    place = entries.data, entries.value, entries.value_end, options
    return map_values(layout.element, *place) if layout.kind == "map" else decode_framed(layout.element, *place)


def _parts(meta: StateMetaInfo, decoded: pa.Array) -> tuple[Any, pa.Array]:
    """Return the last access of values, ``None`` without a time to live, and the values themselves."""
    if not isinstance(StateLayout(meta).element.logical, TtlType):
        return None, decoded
    stamps = pc.struct_field(decoded, "last_access").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return stamps, pc.struct_field(decoded, "value")


def _value_serializer(meta: StateMetaInfo) -> Any:
    element = StateLayout(meta).element
    return dict(element.children())["value"] if isinstance(element.logical, TtlType) else element


def _table(meta: StateMetaInfo, **columns: pa.Array) -> pa.Table:
    column = table_column(value_type(meta), OPTIONS)
    arrays = [array for values in columns.values() for array in column.arrays(values)]
    return pa.Table.from_arrays(arrays, schema=columns_of(meta, *columns))


def has_stamps(meta: StateMetaInfo) -> bool:
    """Return True if the values of a state have a time to live, so that their last access is stored."""
    return isinstance(StateLayout(meta).element.logical, TtlType)
