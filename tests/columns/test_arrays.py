"""Arrays of NumPy become what ``pa.array`` makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from statetool.columns.arrays import as_arrow


@pytest.mark.parametrize("n", [0, 1, 8, 21])
@pytest.mark.parametrize("kind", ["?", "i1", "i2", "i4", "i8", "u1", "u8", "f4", "f8"])
def test_numbers_with_and_without_nulls(kind: str, n: int) -> None:
    values: Any = (np.arange(2 * n) * 37 % 3).astype(kind)
    mask = np.arange(n) % 3 == 1
    for some in (values[:n], values[::2]):
        for null in (None, mask, np.zeros(n, dtype=np.bool_)):
            expected = pa.array(some, mask=null)
            found = as_arrow(some, mask=null)
            found.validate(full=True)
            assert found.equals(expected)
            assert found.type == expected.type
            assert found.null_count == expected.null_count


def test_not_a_number_is_a_value() -> None:
    assert as_arrow(np.array([np.nan, 1.0])).null_count == 0
