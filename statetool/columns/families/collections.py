"""Columns of lists and maps: counted, in Avro blocks, or with a null mask."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.columns.arrays import as_arrow, is_valid
from statetool.columns.batch import Batch, Column
from statetool.columns.families.assembly import build_lists, build_maps
from statetool.columns.families.ttl import find_unexpired
from statetool.columns.from_plain import null_key_error
from statetool.errors import DecodeError
from statetool.kernels.core.arrays import Int64s, Mask
from statetool.kernels.core.codes import NOT_SKIPPABLE, check, coded_error
from statetool.kernels.values import elements
from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import fixed_size, least_size
from statetool.kernels.values.skip_program import compile_skip
from statetool.types import ListType, LogicalType, MapType

_NO_PROGRAM: Final = np.empty(0, dtype=np.int64)
_MAX_EMPTY_ELEMENTS: Final = 1 << 24


def decode_repeated(b: Batch, element: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    assert isinstance(logical, ListType)
    counts, starts, _, ends, after = _find_elements(b, element, None, pos, end)
    array, _ = b.part("element", element, logical.element, starts, ends, None)
    fresh = find_unexpired(b, element, starts)
    if fresh is not None:
        array, counts = array.filter(as_arrow(fresh)), _counts(fresh, counts)
    return build_lists(b, array, counts, logical, pos), after


def decode_pairs(b: Batch, key: ir.Op, value: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    assert isinstance(logical, MapType)
    counts, starts, value_starts, ends, after = _find_elements(b, key, value, pos, end)
    keys, _ = b.part("key", key, logical.key, starts, ends, None)
    values, _ = b.part("value", value, logical.value, value_starts, ends, None)
    fresh = find_unexpired(b, value, value_starts)
    if fresh is not None:
        keys, values, counts = keys.filter(as_arrow(fresh)), values.filter(as_arrow(fresh)), _counts(fresh, counts)
    if keys.null_count:
        first = int(np.argmin(is_valid(keys)))
        raise null_key_error().at(offset=int(starts[first]))
    return build_maps(b, keys, values, counts, logical, pos), after


def _find_elements(
    b: Batch, first: ir.Op, second: ir.Op | None, pos: Int64s, end: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Return counts, starts, starts of values, ends of frames, and the positions after all, of elements (or keys and values)."""
    sizes = [fixed_size(first), 0 if second is None else fixed_size(second)]
    first_program = compile_skip(first)
    second_program = _NO_PROGRAM if second is None else compile_skip(second)
    if first_program is None or second_program is None:
        raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
    counts, body = np.empty_like(pos), np.empty_like(pos)
    at_least = least_size(first) + (0 if second is None else least_size(second))
    check(elements.read_counts(b.data, pos, end, at_least, counts, body), pos)
    total = check_count(b, int(counts.sum()), pos)
    starts, seconds, ends = (np.empty(total, dtype=np.int64) for _ in range(3))
    after = np.empty_like(pos)
    if None not in sizes:
        elements.strided_positions(body, end, counts, sizes[0], at_least, starts, seconds, ends, after)
    else:
        check(
            elements.element_positions(
                b.data, first_program, second_program, body, end, counts, starts, seconds, ends, after
            ),
            pos,
        )
    return counts, starts, seconds, ends, after


def decode_masked_list(b: Batch, element: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    assert isinstance(logical, ListType)
    prog = compile_skip(element)
    if prog is None:
        raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
    counts, body, after = (np.empty_like(pos) for _ in range(3))
    check(elements.mask_counts(b.data, pos, end, counts, body), pos)
    total = check_count(b, int(counts.sum()), pos)
    starts, ends = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    valid = np.empty(total, dtype=np.uint8)
    check(elements.masked_positions(b.data, prog, pos + 4, body, end, counts, starts, ends, valid, after), pos)
    array, _ = b.part("element", element, logical.element, starts, ends, valid == 1)
    return build_lists(b, array, counts, logical, pos), after


def decode_blocks(b: Batch, key: ir.Op | None, value: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    first = value if key is None else key
    prog = compile_skip(first)
    value_prog = _NO_PROGRAM if key is None else compile_skip(value)
    if prog is None or value_prog is None:
        raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
    counts, after = np.empty_like(pos), np.empty_like(pos)
    at_least = least_size(first) + (0 if key is None else least_size(value))
    total = np.zeros(1, dtype=np.int64)
    check(elements.first_blocks(b.data, pos, end, at_least, total), pos)
    capacity = -1
    while capacity < total[0]:
        # Repeated only if a value has more than one block.
        capacity = check_count(b, int(total[0]), pos)
        starts, seconds, ends = (np.empty(capacity, dtype=np.int64) for _ in range(3))
        check(
            elements.block_elements(
                b.data, prog, value_prog, pos, end, at_least, counts, starts, seconds, ends, total, after
            ),
            pos,
        )
    if key is None:
        assert isinstance(logical, ListType)
        array, _ = b.part("element", value, logical.element, starts, ends, None)
        return build_lists(b, array, counts, logical, pos), after
    assert isinstance(logical, MapType)
    keys, _ = b.part("key", key, logical.key, starts, ends, None)
    values, _ = b.part("value", value, logical.value, seconds, ends, None)
    return build_maps(b, keys, values, counts, logical, pos), after


def check_count(b: Batch, total: int, pos: Int64s) -> int:
    """Return a number of elements if it fits a batch."""
    if total > len(b.data) + _MAX_EMPTY_ELEMENTS:
        raise DecodeError(
            f"{total} elements of lists in one batch, most of which take no bytes", hint="read with smaller batches"
        ).at(offset=int(pos[0]))
    return total


def _counts(kept: Mask, counts: Int64s) -> Int64s:
    running = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(counts)
    kept_counts: Int64s = running[ends] - running[ends - counts]
    return kept_counts
