"""Numbers of distinct keys: those of a dictionary, whatever the order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.formats.keyed.distinct import distinct

#: Short and long keys with their key groups. Many differ in one byte.
KEYS = st.tuples(
    st.integers(0, 3),
    st.one_of(
        st.binary(max_size=3),
        st.builds(lambda a, b: a + b"0123456789" + b, st.binary(max_size=1), st.binary(max_size=1)),
    ),
)


def numbered(keys: list[tuple[int, bytes]]) -> None:
    data = np.frombuffer(b"".join(k for _, k in keys) or b"\0", dtype=np.uint8)
    end = np.cumsum([len(k) for _, k in keys], dtype=np.int64)
    start = end - np.array([len(k) for _, k in keys], dtype=np.int64)
    ids, first = distinct(data, start, end, np.array([g for g, _ in keys], dtype=np.int64))
    numbers: dict[tuple[int, bytes], int] = {}
    assert ids.tolist() == [numbers.setdefault(k, len(numbers)) for k in keys]
    assert [keys[i] for i in first.tolist()] == list(numbers)
    assert first.tolist() == [keys.index(k) for k in numbers]


@given(st.lists(KEYS, max_size=60))
def test_keys_in_any_order(keys: list[tuple[int, bytes]]) -> None:
    numbered(keys)


@given(st.lists(st.lists(KEYS, max_size=30).map(sorted), max_size=5))
def test_states_in_order(states: list[list[tuple[int, bytes]]]) -> None:
    numbered([key for state in states for key in state])


@pytest.mark.parametrize("missing", [0, 2, 3])
def test_states_that_lack_keys_are_merged(missing: int) -> None:
    keys = sorted((i % 4, b"key %06d" % i) for i in range(300))
    some = [k for i, k in enumerate(keys) if not missing or i % missing]
    numbered([*keys, *some, *some[::7], *keys])
    numbered([*some, *keys])  # new keys between known ones: hashed from the first one on
    # A long distance per key: in total no more steps than there are keys.
    numbered([*keys, *([keys[-1], keys[0]] * 200)])
