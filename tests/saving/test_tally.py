"""Removed keys are counted in tasks: memory of the driver does not depend on the number of keys."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool
from statetool.saving.streams.filters import KeyGroupFilter
from statetool.saving.verbs import sample
from statetool.saving.verbs.tally import DistinctHashes, tally, tally_part, whole_key_groups
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from tests.support.checks.corpus_check import Case
from tests.support.quick import fewer_uncompiled
from tests.support.zoo import ZOO

ALL = KeyGroupFilter(groups=frozenset())


def keys_of(operator: statetool.Operator) -> set[Any]:
    """Return the keys of an operator, also those that have only timers."""
    return {key for table in ("keyed_state", "timers") for key in operator.to_arrow(table)["key"].to_pylist()}


@pytest.mark.parametrize("name", ["v2_3_0-rocksdb-heap-timers", "v2_3_0-rocksdb-native", "v2_3_0-changelog-hashmap"])
def test_each_key_is_counted_once(corpus: Path, name: str) -> None:
    path = str(Case(corpus / name).metadata)
    operator = Inventory(path).operator("timers")
    found = tally(operator, ALL, map)
    assert found.keys == len(keys_of(statetool.load(path)["timers"]))
    assert found.entries == found.entries_read


def test_no_two_groups_of_readers_have_a_key_group_in_common(corpus: Path) -> None:
    operator = Inventory(str(Case(corpus / "v2_3_0-rocksdb-heap-timers").metadata)).operator("timers")
    parts = whole_key_groups(operator)
    groups = Counter(g for part in parts for g in {g for reader in part for g in reader.group_sizes()})
    assert set(groups.values()) == {1}
    assert any(len(part) == 2 for part in parts), "timers are stored separately"


def large(tmp_path: Path, keys: int) -> OperatorInventory:
    numbers = pa.array(range(keys), pa.int64())
    state = statetool.bootstrap_keyed_state(pa.table({"key": numbers, "n": numbers}), states={"n": statetool.value()})
    path = str(tmp_path / str(keys))
    statetool.SavepointWriter.new(max_parallelism=8).with_operator("op", state).write(path, flink_version="2.3")
    return Inventory(path).operator("op")


def test_results_of_tasks_do_not_grow_with_the_keys(tmp_path: Path) -> None:
    sizes = []
    for keys in (100, 20_000):
        parts = [tally_part(((ALL,), part))[0] for part in whole_key_groups(large(tmp_path, keys))]
        assert sum(part.keys for part in parts) == keys
        sizes.append(max(len(pickle.dumps(part)) for part in parts))
    assert sizes[1] <= sizes[0] + 64


def test_hashes_are_kept_at_most_twice() -> None:
    random = np.random.default_rng(1)
    hashes = random.integers(0, 1 << 63, 400_000).astype(np.uint64)
    smallest, every = DistinctHashes(1000), DistinctHashes()
    for part in np.split(np.concatenate([hashes, hashes]), 100):
        smallest.add(part)
        every.add(part)
        assert smallest.held <= 1000 + (1 << 16) + len(part)
        assert every.held <= 2 * len(hashes) + len(part)
    assert smallest.sorted().tolist() == np.sort(hashes)[:1000].tolist()
    assert every.sorted().tolist() == np.sort(hashes).tolist()


@pytest.mark.parametrize("count", fewer_uncompiled([1, 7, 5000, 20_000, 30_000], 7, 20_000))
def test_large_samples_are_chosen_with_few_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    operator = large(tmp_path, 20_000)
    expected = sample._bound(operator, count, 3, map)
    monkeypatch.setattr(sample, "_MOST_HASHES", 0)
    sizes = []

    def measured(function: Any, items: Iterable[Any]) -> Iterable[Any]:
        for result in map(function, items):
            sizes.append(len(result))
            yield result

    assert sample._bound(operator, count, 3, measured) == expected
    # Counts by bucket, and the hashes of one bucket.
    assert all(size == 1 << 16 or size < 16 for size in sizes)


def test_a_sample_of_a_number_of_keys_has_that_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statetool.sample(ZOO, str(tmp_path / "a"), keys=3, operators=["timers"])
    monkeypatch.setattr(sample, "_MOST_HASHES", 2)
    plan = statetool.sample(ZOO, str(tmp_path / "b"), keys=3, operators=["timers"])
    assert [row.keys for row in plan.operators] == [3]
    a, b = (keys_of(statetool.load(str(tmp_path / name))["timers"]) for name in "ab")
    assert a == b
