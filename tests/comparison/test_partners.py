"""Entries are paired while both sides are read, so that each side is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool as st
from statetool.comparison import keyed, partners, side
from statetool.comparison.partners import Partners
from statetool.comparison.side import HashedBatch
from statetool.entries.form import EntryRequest
from statetool.entries.streams import StreamSource
from statetool.formats.keyed.entries import EntryBatch
from tests.support.values.differences import difference_rows

N = 6000


def write(target: Path, table: pa.Table, **more: Any) -> st.Savepoint:
    states = {"count": st.value("BIGINT"), "tags": st.list_of("STRING")}
    bootstrap = st.bootstrap_keyed_state(table, key="id", states=states)
    return st.SavepointWriter.new().with_operator("accounts", bootstrap, parallelism=1, **more).write(str(target))


def accounts() -> pa.Table:
    return pa.table(
        {"id": range(N), "count": range(N), "tags": [[f"t{i % 7}"] * (i % 3) for i in range(N)]},
        pa.schema({"id": pa.int64(), "count": pa.int64(), "tags": pa.list_(pa.string())}),
    )


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> st.Savepoint:
    return write(tmp_path_factory.mktemp("partners") / "before", accounts(), max_parallelism=2)


@pytest.fixture
def changed() -> pa.Table:
    """A value in a hundred differs, some keys are new and some are gone."""
    table = accounts()
    some = pc.equal(pc.bit_wise_and(table["id"], 127), 3)
    table = table.set_column(1, "count", pc.add(table["count"], some.cast(pa.int64())))
    table = table.filter(pc.not_equal(pc.bit_wise_and(table["id"], 255), 9))
    new = table.slice(0, 50).set_column(0, "id", pc.add(table.slice(0, 50)["id"], N))
    return pa.concat_tables([table, new])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    """Count how many times each key group of each file is read."""
    counts: Counter[tuple[str, int]] = Counter()
    batches = StreamSource.batches

    def counted(source: StreamSource, request: EntryRequest) -> Iterator[EntryBatch]:
        counts.update((source.file, group) for group in source.group_sizes())
        return batches(source, request)

    monkeypatch.setattr(StreamSource, "batches", counted)
    return counts


@pytest.mark.parametrize("differ", ["nothing", "some", "all"])
def test_key_groups_that_do_not_fit_into_memory_are_read_once(
    before: st.Savepoint,
    changed: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reads: Counter[tuple[str, int]],
    differ: str,
) -> None:
    table = accounts()
    every = table.set_column(1, "count", pc.add(table["count"], 1))
    after = write(tmp_path / "after", {"nothing": table, "some": changed, "all": every}[differ], max_parallelism=2)
    expected = difference_rows(before.diff(after))
    assert (len(expected) == 0, len(expected) >= N) == (differ == "nothing", differ == "all")
    waiting: list[int] = []
    pair = Partners._pair

    def counted(found: Partners) -> None:
        waiting.append(len(found.before) + len(found.after))
        pair(found)

    monkeypatch.setattr(Partners, "_pair", counted)
    monkeypatch.setattr(partners, "PIECE_ENTRIES", 100)
    monkeypatch.setattr(partners, "WAITING_BYTES", 100_000)
    monkeypatch.setattr(side, "HELD_BYTES", 0)
    monkeypatch.setattr(keyed, "MOST_BYTES", 20_000)
    monkeypatch.setattr(keyed, "ROWS_BYTES", 4_000)
    reads.clear()
    assert difference_rows(before.diff(after)) == expected
    assert set(reads.values()) == {1}
    assert len(reads) == 4
    assert max(waiting) < N // 5


@pytest.mark.parametrize("waiting", [-1, 0, 5_000, 20_000, 100_000])
@pytest.mark.parametrize("max_parallelism", [2, 4])
def test_what_waits_too_long_is_compared_by_hashes(
    before: st.Savepoint,
    changed: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    waiting: int,
    max_parallelism: int,
) -> None:
    """Another max parallelism gives the entries another order."""
    after = write(tmp_path / "after", changed, max_parallelism=max_parallelism)
    expected, counts = difference_rows(before.diff(after)), before.diff(after).summary()
    remainders = []
    differences = Partners.differences

    def noted(found: Partners, portion_bytes: int) -> Iterator[Any]:
        yield from differences(found, portion_bytes)
        remainders.append(found.remainders)

    monkeypatch.setattr(Partners, "differences", noted)
    monkeypatch.setattr(partners, "PIECE_ENTRIES", 100)
    monkeypatch.setattr(partners, "WAITING_BYTES", waiting)
    monkeypatch.setattr(keyed, "MOST_BYTES", 100_000)
    assert difference_rows(before.diff(after)) == expected
    assert before.diff(after).summary() == counts
    if waiting < 5_000 or max_parallelism == 4:
        assert any(remainder is not None for remainder in remainders)
    elif waiting == 100_000:
        assert not any(remainder is not None for remainder in remainders)


class _Side:
    """Entries whose key hashes are ``keys`` and whose value hashes are ``values``."""

    def __init__(self, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any], batch: int) -> None:
        self.keys, self.values, self.batch = keys, values, batch
        self.counted = 0

    def batches(self) -> Iterator[HashedBatch]:
        for first in range(0, len(self.keys), self.batch):
            keys, values = self.keys[first : first + self.batch], self.values[first : first + self.batch]
            start, zeros = np.arange(len(keys)) * 2, np.zeros(len(keys), dtype=np.int64)
            entries = EntryBatch(
                data=np.zeros(2 * len(keys), dtype=np.uint8), state=zeros, group=zeros, key=start, key_end=start + 1,
                value=start + 1, value_end=start + 2, regions=(), file="",
            )  # fmt: skip
            yield HashedBatch(0, entries, keys, values)

    def count(self, number: int, batch: EntryBatch, sign: int = 1) -> None:
        assert number == 0
        self.counted += sign * len(batch)


@pytest.mark.parametrize("order", ["same", "other"])
@pytest.mark.parametrize("waiting", [2_000, 20_000, 1 << 30])
def test_partners_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch, order: str, waiting: int) -> None:
    monkeypatch.setattr(partners, "PIECE_ENTRIES", 32)
    monkeypatch.setattr(partners, "WAITING_BYTES", waiting)
    random = np.random.default_rng(7)
    for _ in range(30):
        sides = []
        for _ in range(2):
            keys = np.flatnonzero(random.random(400) < random.choice([0.0, 0.5, 0.97])).astype(np.uint64)
            keys = random.permutation(keys) if order == "other" else keys
            sides.append((keys, random.integers(0, 2, len(keys)).astype(np.uint64)))
        (key_a, _), (key_b, _) = sides
        a, b = (_Side(*hashes, int(random.integers(1, 100))) for hashes in sides)
        found = Partners(a, b)  # type: ignore[arg-type]
        portions = list(found.differences(int(random.choice([16, 1 << 20]))))
        seen: dict[str, dict[int, int]] = {"a": {}, "b": {}}
        for portion in portions:
            places = [{p for placed in of_side for p in placed.places.tolist()} for of_side in portion]
            for name, of_side in zip(seen, portion, strict=True):
                for placed in of_side:
                    assert len(placed.batch) == len(placed.numbers) == len(placed.places)
                    assert not set(placed.places.tolist()) & set(seen[name].values())
                    seen[name] |= dict(zip(placed.numbers.tolist(), placed.places.tolist(), strict=True))
            assert places[0] or places[1]
        left = [np.empty(0, dtype=np.int64)] * 2
        if found.remainders is not None:
            left = [
                np.flatnonzero(remainder.holds(0, len(keys)))
                for remainder, (keys, _) in zip(found.remainders, sides, strict=True)
            ]
        assert (a.counted, b.counted) == (len(key_a) - len(left[0]), len(key_b) - len(left[1]))
        values_a, values_b = (dict(zip(k.tolist(), v.tolist(), strict=True)) for k, v in sides)
        for name, keys, mine, others, remaining in (
            ("a", key_a, values_a, values_b, left[0]),
            ("b", key_b, values_b, values_a, left[1]),
        ):
            differing = {i for i, key in enumerate(keys.tolist()) if others.get(key) != mine[key]}
            assert seen[name].keys() | (set(remaining.tolist()) & differing) == differing
            assert not seen[name].keys() & set(remaining.tolist())
        place_a, place_b = ({keys[n]: p for n, p in seen[s].items()} for s, keys in (("a", key_a), ("b", key_b)))
        both = {key for key in values_a if key in values_b}
        assert all(place_a[key] == place_b[key] for key in both if key in place_a)
        assert len({*place_a.values(), *place_b.values()}) == len({*place_a, *place_b})
