"""Measurements of entries equal those of plain loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statetool.kernels.entries.measures import count_keys, measure_rows, select_largest
from statetool.kernels.entries.walk import Rows

#: Items: size, key group, key, rank.
ITEMS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.binary(max_size=70), st.integers(0, 2)), max_size=40
)
#: Entries: state, index of the key group, sizes of key and value, id of the key.
ENTRIES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 300), st.integers(0, 300), st.integers(0, 5)),
    max_size=60,
)


@given(ITEMS, st.integers(0, 12))
def test_the_largest_items_in_descending_order(items: list[tuple[int, int, bytes, int]], most: int) -> None:
    data = np.frombuffer(b"".join(key for _, _, key, _ in items) or b"\0", dtype=np.uint8)
    end = np.cumsum([len(key) for _, _, key, _ in items], dtype=np.int64)
    start = end - np.array([len(key) for _, _, key, _ in items], dtype=np.int64)
    size, group, rank = (np.array([item[i] for item in items], dtype=np.int64) for i in (0, 1, 3))
    out = np.empty(min(most, len(items)), dtype=np.int64)
    found = out[: select_largest(data, size, group, start, end, rank, out)].tolist()
    wanted = sorted(items, key=lambda item: (-item[0], item[1], item[2][:64], -item[3]))[:most]
    assert [(s, g, k[:64], r) for s, g, k, r in (items[i] for i in found)] == [
        (s, g, k[:64], r) for s, g, k, r in wanted
    ]


@given(ENTRIES)
def test_counts_and_sizes(entries: list[tuple[int, int, int, int, int]]) -> None:
    state, index, key, value, _ = np.array(entries, dtype=np.int64).reshape(-1, 5).T.copy()
    zero = np.zeros(len(entries), dtype=np.int64)
    counts, sizes = np.zeros((4, 3, 4), dtype=np.int64), np.zeros((4, 3, 64), dtype=np.int64)
    largest = np.zeros(4, dtype=np.int64)
    measure_rows(state, Rows(state, zero, zero, key, zero, value), index, counts, sizes, largest)
    plain = Counter[tuple[int, ...]]()
    for s, g, k, v, _ in entries:
        plain[0, s, g, 0] += 1
        plain[0, s, g, 2] += k
        plain[0, s, g, 3] += v
        plain[1, s, 0, k.bit_length()] += 1
        plain[1, s, 1, v.bit_length()] += 1
        plain[2, s, 0, 0] = max(plain[2, s, 0, 0], v)
    for kind, found in enumerate((counts, sizes, largest[:, None, None])):
        assert {(kind, *i): n for i, n in np.ndenumerate(found) if n} == {
            i: n for i, n in plain.items() if n and i[0] == kind
        }


@given(ENTRIES)
def test_distinct_keys_of_each_state(entries: list[tuple[int, int, int, int, int]]) -> None:
    entries.sort(key=lambda entry: entry[0])
    # A key is in one key group.
    of_key = {id_: index for _, index, _, _, id_ in entries}
    state, _, _, _, ids = np.array(entries, dtype=np.int64).reshape(-1, 5).T.copy()
    index = np.array([of_key[i] for i in ids.tolist()], dtype=np.int64)
    counts = np.zeros((4, 3, 4), dtype=np.int64)
    count_keys(state, ids, index, np.full(6, -1, dtype=np.int64), counts)
    plain = Counter((s, of_key[i]) for s, i in {(s, i) for s, _, _, _, i in entries})
    assert {place: n for place, n in np.ndenumerate(counts[:, :, 1]) if n} == plain
    assert not counts[:, :, [0, 2, 3]].any()
