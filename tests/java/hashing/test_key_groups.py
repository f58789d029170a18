"""Key groups of many hash codes equal those of single hash codes."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from statetool.formats.key_groups import MAX_PARALLELISM_LIMIT, key_group_for, murmur
from statetool.java.hashing.key_hash import key_groups

#: Murmur maps it to the smallest integer, which has no positive counterpart.
_SMALLEST = -2089875627


@example([_SMALLEST, 0, -1], 127)
@given(
    st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=20),
    st.integers(1, MAX_PARALLELISM_LIMIT),
)
def test_key_groups_of_many_hash_codes(hashes: list[int], max_parallelism: int) -> None:
    expected = [key_group_for(h, max_parallelism) for h in hashes]
    assert key_groups(np.array(hashes, dtype=np.int64), max_parallelism).tolist() == expected


def test_the_smallest_integer_is_in_the_first_key_group() -> None:
    assert murmur(_SMALLEST) == 0 != murmur(_SMALLEST + 1)
