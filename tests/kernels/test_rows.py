"""Rows of entries, offsets and frames, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.columns.arrays import offsets_of
from statetool.errors import DecodeError
from statetool.kernels.entries.rows import count_rows, mark_rows
from statetool.kernels.values.decode_fixed import first_unfilled

ROWS = st.lists(st.integers(0, 12), max_size=20)


@given(st.one_of(ROWS, ROWS.map(sorted)))
def test_rows_are_marked_and_counted(rows: list[int]) -> None:
    valid, counts = np.zeros(13, dtype=np.bool_), np.zeros(13, dtype=np.int64)
    row = np.array(rows, dtype=np.int64)
    assert mark_rows(row, valid) == (rows == sorted(set(rows)))
    assert count_rows(row, counts) == (rows == sorted(rows))
    assert valid.tolist() == [k in rows for k in range(13)]
    assert counts.tolist() == [rows.count(k) for k in range(13)]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_offsets_are_sums_of_sizes(sizes: list[int]) -> None:
    offsets = offsets_of(np.array(sizes, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64))
    assert offsets.dtype == np.int32
    assert offsets.tolist() == [sum(sizes[:k]) for k in range(len(sizes) + 1)]


@pytest.mark.parametrize("sizes", [[1 << 31], [1 << 30, 1 << 30, 0], [5, (1 << 31) - 6, 1, 1 << 40]])
def test_columns_of_more_than_2_gib_are_refused(sizes: list[int]) -> None:
    pos = np.arange(7, 7 + len(sizes))
    with pytest.raises(DecodeError, match="more than 2 GiB in one column") as caught:
        offsets_of(np.array(sizes, dtype=np.int64), pos)
    assert caught.value.where.offset == 7


def test_the_largest_column_is_taken() -> None:
    assert offsets_of(np.array([(1 << 31) - 2, 1]), np.zeros(2, dtype=np.int64)).tolist() == [
        0,
        (1 << 31) - 2,
        (1 << 31) - 1,
    ]


def test_the_first_value_that_does_not_fill_its_frame() -> None:
    end = np.arange(5)
    assert first_unfilled(end.copy(), end) == -1
    assert first_unfilled(np.array([0, 1, 3, 3, 9]), end) == 2
