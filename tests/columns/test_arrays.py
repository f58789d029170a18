"""NumPy arrays become the same Arrow arrays as with ``pa.array``, and the same NumPy arrays as with ``to_numpy``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from statetool.columns.arrays import as_arrow, as_binary, as_numpy


@pytest.mark.parametrize("n", [0, 1, 8, 21])
@pytest.mark.parametrize("kind", ["?", "i1", "i2", "i4", "i8", "u1", "u8", "f4", "f8"])
def test_numbers_with_and_without_nulls(kind: str, n: int) -> None:
    values: Any = (np.arange(2 * n) * 37 % 3).astype(kind)
    mask = np.arange(n) % 3 == 1
    for numbers in (values[:n], values[::2]):
        for null in (None, mask, np.zeros(n, dtype=np.bool_)):
            expected = pa.array(numbers, mask=null)
            array = as_arrow(numbers, mask=null)
            array.validate(full=True)
            assert array.equals(expected)
            assert array.type == expected.type
            assert array.null_count == expected.null_count


def test_not_a_number_is_a_value() -> None:
    assert as_arrow(np.array([np.nan, 1.0])).null_count == 0


@pytest.mark.parametrize("n", [0, 1, 8, 21])
@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64()])
def test_back_as_numbers(kind: pa.DataType, n: int) -> None:
    numbers = [i * 37 % 5 for i in range(n)]
    whole = pa.array(numbers, type=pa.int64()).cast(kind)
    for array in (whole, whole[n // 3 :], whole[n // 3 : n // 2], pa.chunked_array([whole[: n // 3], whole[n // 3 :]])):
        values = as_numpy(array)
        assert values.dtype == np.dtype(kind.to_pandas_dtype())
        assert values.tolist() == array.to_pylist()
        assert not values.flags.writeable
    with_nulls = pa.array([v if v % 2 else None for v in numbers], type=pa.int64()).cast(kind)[n // 3 :]
    assert as_numpy(with_nulls, null=0).tolist() == with_nulls.fill_null(False if kind == pa.bool_() else 0).to_pylist()


@pytest.mark.parametrize("array", [pa.array([1, None]), pa.array(["1"]), pa.array([0], type=pa.timestamp("us"))])
def test_what_has_no_number_is_refused(array: pa.Array) -> None:
    with pytest.raises(ValueError, match=r"null|number"):
        as_numpy(array)


@pytest.mark.parametrize("values", [[], [b""], [b"a", b"", b"bc"], [b"a", np.arange(2, dtype="<i8").data]])
def test_bytes(values: list[Any]) -> None:
    array = as_binary(values)
    array.validate(full=True)
    assert array.equals(pa.array(list(map(bytes, values)), type=pa.binary()))


def test_bytes_beyond_an_array_are_refused() -> None:
    much = np.zeros(1 << 28, dtype=np.int64)
    with pytest.raises(OverflowError, match="2147483648 bytes"):
        as_binary([much.data])
