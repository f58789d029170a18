"""Entries are dealt to their states: in long runs, in short ones, and with states of any ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.formats.keyed.entries import EntryBatch

#: Runs of one state: its id and its number of entries.
RUNS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 7, 300, 70_000]), st.integers(1, 200)), max_size=30)


def batch_of(states: np.ndarray) -> EntryBatch:
    at = np.arange(len(states), dtype=np.int64)
    return EntryBatch(
        data=np.zeros(0, dtype=np.uint8),
        state=states,
        group=at * 2,
        key=at * 3,
        key_end=at * 3 + 1,
        value=at * 3 + 1,
        value_end=at * 3 + 3,
        regions=(),
        file="f",
    )


@given(RUNS)
def test_entries_of_each_state_in_their_order(runs: list[tuple[int, int]]) -> None:
    batch = batch_of(np.array([state for state, count in runs for _ in range(count)], dtype=np.int64))
    assert batch.states() == sorted(set(batch.state.tolist()))
    for state in (*batch.states(), 5):
        wanted = np.flatnonzero(batch.state == state)
        found = batch.of_state(state)
        for name in ("state", "group", "key", "key_end", "value", "value_end"):
            assert getattr(found, name).tolist() == getattr(batch, name)[wanted].tolist()
        assert batch.group[batch.index_of(state)].tolist() == found.group.tolist()


@pytest.mark.parametrize("runs", [1, 1000])
def test_states_are_dealt_again_in_a_part(runs: int) -> None:
    batch = batch_of(np.tile(np.repeat(np.arange(4), 500 // runs or 1), runs))
    part = batch.of_state(2)
    assert part.states() == [2]
    assert len(part.of_state(2)) == len(part)
    assert not len(part.of_state(1))
    rest = batch.take(np.flatnonzero(batch.state != 2))
    assert rest.states() == [0, 1, 3]
