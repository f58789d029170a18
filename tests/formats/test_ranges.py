from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from statetool.formats.keyed.ranges import KeyGroupRange, batches_of, even_batches_of


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 3000))
def test_even_runs_hold_everything_in_order_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    items = [KeyGroupRange(number, 0, size) for number, size in enumerate(sizes)]
    runs = list(even_batches_of(items, limit=limit))
    assert [item for run in runs for item in run] == items
    assert all(sum(i.size_bytes for i in run) <= limit or len(run) == 1 for run in runs)


@given(st.integers(1, 200), st.integers(1, 50))
def test_runs_of_equal_items_differ_by_little(count: int, fitting: int) -> None:
    items = [KeyGroupRange(number, 0, 10) for number in range(count)]
    lengths = [len(run) for run in even_batches_of(items, limit=10 * fitting)]
    assert max(lengths) - min(lengths) <= 1
    assert len(lengths) == len(list(batches_of(items, limit=10 * fitting))) == math.ceil(count / fitting)
