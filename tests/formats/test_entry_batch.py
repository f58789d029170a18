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


def of(batch: EntryBatch) -> list[list[int]]:
    return [column.tolist() for column in batch.rows()]


@given(RUNS)
def test_entries_of_each_state_in_their_order(runs: list[tuple[int, int]]) -> None:
    batch = batch_of(np.array([state for state, count in runs for _ in range(count)], dtype=np.int64))
    assert batch.states() == sorted(set(batch.state.tolist()))
    for state in (*batch.states(), 5):
        assert of(batch.of_state(state)) == of(batch.take(np.flatnonzero(batch.state == state)))
    assert of(batch.by_state()) == of(batch.take(np.argsort(batch.state, kind="stable")))
    for state, (low, high) in batch.bounds().items():
        assert of(batch.by_state().take(slice(low, high))) == of(batch.of_state(state))


@given(RUNS, st.lists(st.sampled_from([0, 1, 2, 5, 7, 300]), unique=True))
def test_entries_of_several_states_one_after_another(runs: list[tuple[int, int]], states: list[int]) -> None:
    batch = batch_of(np.array([state for state, count in runs for _ in range(count)], dtype=np.int64))
    wanted = [np.flatnonzero(batch.state == state) for state in states]
    assert of(batch.of_states(states)) == of(batch.take(np.concatenate([*wanted, np.empty(0, dtype=np.int64)])))


def test_entries_that_are_sorted_by_state_are_not_copied() -> None:
    batch = batch_of(np.repeat(np.array([1, 4, 9]), 100))
    assert batch.by_state() is batch
    assert np.shares_memory(batch.of_state(4).key, batch.key)


@pytest.mark.parametrize("runs", [1, 1000])
def test_states_are_dealt_again_in_a_part(runs: int) -> None:
    batch = batch_of(np.tile(np.repeat(np.arange(4), 500 // runs or 1), runs))
    part = batch.of_state(2)
    assert part.states() == [2]
    assert len(part.of_state(2)) == len(part)
    assert not len(part.of_state(1))
    rest = batch.take(np.flatnonzero(batch.state != 2))
    assert rest.states() == [0, 1, 3]
