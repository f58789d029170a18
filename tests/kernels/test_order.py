"""Entries are sorted and packed as canonical key groups, with equal results compiled and uncompiled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core import jit
from statetool.kernels.core.jit import Kernel
from statetool.kernels.entries.deal import deal_groups, pack_groups, reorder_groups
from statetool.kernels.entries.order import find_lowest, sort_segments
from statetool.saving.streams.runs import (
    Spill,
    deal_run,
    lowest_of,
    order_of_groups,
    order_of_keys,
    pack_run,
    reorder_run,
)
from tests.support.snapshots.entry_batches import batch_of

_RECORDS = st.lists(
    st.tuples(
        st.integers(5, 7),
        st.integers(0, 2),
        st.tuples(st.sampled_from([b"", b"alike", b"much longer than 16"]), st.binary(max_size=3)).map(b"".join),
        st.binary(max_size=5),
    ),
    min_size=1,
    max_size=60,
)


def texts(batch: EntryBatch, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[tuple[int, int, bytes]]:
    """Return key group, state and key of entries in an order."""
    return [
        (int(batch.group[i]), int(batch.state[i]), bytes(batch.data[batch.key[i] : batch.key_end[i]])) for i in order
    ]


@pytest.fixture(params=["0", "1"])
def _compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = jit.EVERYTHING if request.param == "0" else jit.NOTHING
    for kernel in (deal_groups, find_lowest, pack_groups, reorder_groups, sort_segments):
        assert isinstance(kernel, Kernel)
        monkeypatch.setattr(kernel, "_run", None)
        monkeypatch.setitem(kernel.__dict__, "allowance", allowed)


@pytest.mark.usefixtures("_compiled")
@settings(max_examples=60)
@given(_RECORDS, st.integers(0, 99))
def test_keys_are_sorted_by_bytes_and_a_key_that_comes_twice_is_found(records, seed: int) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(records)
    order, twin = order_of_keys(batch)
    ordered = texts(batch, order)
    assert ordered == sorted(ordered)
    assert sorted(order.tolist()) == list(range(len(records)))
    assert (twin is not None) == (len(set(ordered)) < len(ordered))
    if twin is not None:
        at = order.tolist().index(twin)
        assert ordered[at] == ordered[at - 1]


@pytest.mark.usefixtures("_compiled")
@pytest.mark.parametrize("n", [300, 2000, 9000])
def test_many_keys_are_sorted_by_their_digits_and_ties_by_the_bytes_behind(n: int) -> None:
    rng = np.random.default_rng(n)
    # The first eight bytes of many are equal.
    keys = {
        bytes(rng.integers(0, 4, 8, dtype=np.uint8)) + bytes(rng.integers(0, 9, rng.integers(0, 4), dtype=np.uint8))
        for _ in range(n)
    }
    batch = batch_of(
        [(5, 1, key, b"v") for key in sorted(keys, key=lambda k: k[::-1])] + [(5, 2, key, b"") for key in sorted(keys)]
    )
    order, twin = order_of_keys(batch)
    assert texts(batch, order) == [(5, s, key) for s in (1, 2) for key in sorted(keys)]
    assert twin is None


@pytest.mark.usefixtures("_compiled")
@settings(max_examples=60)
@given(_RECORDS, st.sampled_from([1, 2]))
def test_entries_are_dealt_as_if_ordered_first(records, prefix: int) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(records)
    run, ordered = deal_run(batch, prefix), pack_run(batch, order_of_groups(batch.group, batch.state), prefix)
    assert bytes(run.data) == bytes(ordered.data)
    assert run.numbers.tolist() == ordered.numbers.tolist()
    assert run.starts.tolist() == ordered.starts.tolist()
    entries = run.entries(prefix)
    order = np.lexsort((np.arange(len(batch)), batch.state, batch.group))
    assert texts(entries, np.arange(len(entries))) == texts(batch, order)


@pytest.mark.usefixtures("_compiled")
@settings(max_examples=60)
@given(st.lists(_RECORDS, min_size=1, max_size=3), st.sampled_from([1, 2]))
def test_entries_of_runs_are_put_in_order_as_they_are(runs, prefix: int) -> None:  # type: ignore[no-untyped-def]
    with Spill() as spill:
        for place, records in enumerate(runs):
            spill.add(deal_run(batch_of(records), prefix), place)
        run = spill.segments().load()
    batch = run.entries(prefix)
    order, _ = order_of_keys(batch)
    copied, put_together = reorder_run(batch, order, prefix), pack_run(batch, order, prefix)
    assert bytes(copied.data) == bytes(put_together.data)
    assert copied.numbers.tolist() == put_together.numbers.tolist()
    assert copied.starts.tolist() == put_together.starts.tolist()


@pytest.mark.usefixtures("_compiled")
@settings(max_examples=60)
@given(_RECORDS)
def test_the_lowest_entry_of_each_key_group_is_found(records) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(records)
    run = deal_run(batch, 1)
    found = list(zip(*lowest_of(batch, run.numbers, ()).tolist(), strict=True))
    firsts = [(group, state, key[:16].ljust(16, b"\0")) for group, state, key, _ in records]
    lowest = [min(first for first in firsts if first[0] == group) for group in run.numbers.tolist()]
    assert found == [(s, int.from_bytes(k[:8], "big"), int.from_bytes(k[8:], "big")) for _, s, k in lowest]
