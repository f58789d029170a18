"""Keys of several states that are split together: without copies, and to the parts that each state has alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import statetool as st
from statetool.entries.form import EntryRequest
from statetool.entries.selection import StateSelection
from statetool.errors import DecodeError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.tables.splits import KeyedSplit

KEYS = 300
STATES = {"count": st.value("BIGINT"), "balances": st.map_of("STRING", "DOUBLE"), "events": st.list_of("BIGINT")}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyedHeader, EntryBatch]:
    """Write a value, a map and a list for each key, and read all entries."""
    table = pa.table(
        {
            "id": range(KEYS),
            "count": range(KEYS),
            "balances": pa.array(
                [[("EUR", k / 4), ("USD", -k / 2)] for k in range(KEYS)], pa.map_(pa.string(), pa.float64())
            ),
            "events": [[k, -k] for k in range(KEYS)],
        }
    )
    path: Path = tmp_path_factory.mktemp("selection") / "savepoint"
    operator = st.bootstrap_keyed_state(table, key="id", states=STATES)
    st.SavepointWriter.new().with_operator("op", operator, parallelism=1).write(str(path))
    (split,) = (s for s in st.load(str(path))["op"].scan("keyed_state").splits if isinstance(s, KeyedSplit))
    (batch,) = split.source.batches(EntryRequest())
    return split.source.header(), batch


def test_states_of_one_namespace_are_split_at_once_without_copies(read: tuple[KeyedHeader, EntryBatch]) -> None:
    header, batch = read
    selection = StateSelection(header, None)
    (part,) = selection.split_layouts(batch, range(len(header.states)))
    assert part.ends[-1] == len(batch) == 4 * KEYS
    assert all(map(np.shares_memory, part.entries.rows(), batch.by_state().rows()))
    for state, entries, keys in part.each():
        alone, split = selection.split(batch, state)
        assert all(map(np.array_equal, entries.rows(), alone.rows()))
        for name in ("key", "key_end", "namespace", "namespace_end", "user_key"):
            assert np.array_equal(getattr(keys, name), getattr(split, name)), name
        assert np.shares_memory(keys.key_end, part.keys.key_end)


def test_bytes_after_the_namespace_belong_to_maps_only(read: tuple[KeyedHeader, EntryBatch]) -> None:
    header, batch = read
    selection = StateSelection(header, None)
    entries = batch.by_state().take(slice(None))
    count = next(i for i, meta in enumerate(header.states) if meta.name == "count")
    first = batch.bounds()[count][0]
    entries.key_end[first] += 1
    with pytest.raises(DecodeError, match="1 bytes follow key and namespace") as caught:
        list(selection.split_layouts(entries, range(len(header.states))))
    assert caught.value.where.offset == entries.key_end[first] - 1
    entries.key_end[first] -= 1
