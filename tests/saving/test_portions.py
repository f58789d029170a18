"""Tables of this process become the same state whether written at once or in portions of key groups, in memory or on local disk."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool import SavepointWriter, bootstrap_keyed_state, bootstrap_state
from statetool.errors import EncodeError
from statetool.saving.bootstrap import portions
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition
from statetool.saving.local import LocalRunner
from statetool.saving.versions import parse_release
from statetool.snapshot.inventory import Inventory
from tests.support.quick import UNCOMPILED, fewer_uncompiled
from tests.support.snapshots.stored import stream_bytes
from tests.support.zoo import ZOO

N = 200 if UNCOMPILED else 500
MIXED = pa.table(
    {
        "k": [f"key {i * 7919 % N}" for i in range(N)],
        "n": [None if i % 7 == 0 else i for i in range(N)],
        "s": ["x" * (i % 90) for i in range(N)],
        "d": pa.array([f"{i % 5}" for i in range(N)]).dictionary_encode(),
        "m": pa.array([[(f"{j}", j / 2) for j in range(i % 4)] for i in range(N)], pa.map_("string", "double")),
        "l": [[i] * (i % 3) for i in range(N)],
    }
)
MIXED_STATES = {
    "n": statetool.value("BIGINT"), "s": statetool.value("STRING"), "d": statetool.value("STRING"), "m": statetool.map_of("STRING", "DOUBLE"),
    "l": statetool.list_of("BIGINT"),
}  # fmt: skip
TIMERS = pa.table({"k": [f"key {i}" for i in range(0, N, 3)], "timestamp": list(range(0, N, 3))})
ELEMENTS = [(f"key {i}", j, f"{i}-{j}") for i in range(60) for j in range(i % 5)]
LONG = pa.table(dict(zip(("k", "list_index", "value"), map(list, zip(*ELEMENTS, strict=True)), strict=True)))


def pieces(table: pa.Table, seed: int) -> pa.Table:
    """Return a table with other chunks, some of them empty."""
    edges = sorted([0, *random.Random(seed).choices(range(table.num_rows + 1), k=9), table.num_rows])
    slices = [table.slice(a, b - a) for a, b in pairwise(edges)]
    for i, cut in enumerate(slices):
        if "d" in cut.column_names:  # each chunk has a separate dictionary
            own = cut["d"].cast(pa.string()).dictionary_encode().combine_chunks()
            slices[i] = cut.set_column(cut.column_names.index("d"), "d", own)
    return pa.concat_tables(slices)


@pytest.fixture(
    params=["dealt", "together", "each key group", "on disk", "on disk, each key group", "parts of 60 rows"]
)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a composition in one of the ways used for large tables."""
    if request.param != "dealt":
        monkeypatch.setattr(portions, "_LEAST_ROWS", 0)
    if "each key group" in request.param:
        monkeypatch.setattr(portions, "_PORTION_BYTES", 1)
    if "60 rows" in request.param:
        monkeypatch.setattr(portions, "_PART_ROWS", 60)
        monkeypatch.setattr(portions, "_TOGETHER_BYTES", 1000)

    def write(writer: SavepointWriter, target: Path, base: str | None = None) -> Inventory:
        runner = LocalRunner()
        if "on disk" in request.param:
            runner._memory_bytes = 0
        given = None if base is None else Inventory(base)
        write_composition(
            Composition(base=given, changes=writer.changes), str(target), parse_release("2.3", default=3), runner
        )
        return Inventory(str(target))

    return write


def expected(writer: SavepointWriter, target: Path) -> Inventory:
    """Write like small tables are written (``test_small_writes`` shows that Spark tasks write the same)."""
    writer.write(str(target), flink_version="2.3")
    return Inventory(str(target))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: bootstrap_keyed_state(t(MIXED), key="k", states=MIXED_STATES, timers=t(TIMERS)),
        lambda t: bootstrap_keyed_state(t(MIXED.select(["k", "m"])), key="k"),
        lambda t: bootstrap_state("l", t(LONG), type=statetool.list_of("STRING"), key="k"),
        lambda t: bootstrap_keyed_state(t(pa.table({"k": [True, False], "n": [1, 2]})), key="k"),
        lambda t: bootstrap_keyed_state(t(MIXED.slice(0, 0)), key="k", states=MIXED_STATES),
    ],
    ids=["states and timers", "maps alone", "elements", "keys of one bit", "no rows"],
)
def test_the_bytes_are_the_same(run: Any, make: Any, tmp_path: Path) -> None:
    check_bytes(run, make, 3, tmp_path)


@pytest.mark.parametrize("parallelism", fewer_uncompiled([1, 100], 100))
def test_the_bytes_are_the_same_at_each_parallelism(run: Any, parallelism: int, tmp_path: Path) -> None:
    check_bytes(run, lambda t: bootstrap_keyed_state(t(MIXED.select(["k", "m"])), key="k"), parallelism, tmp_path)


def check_bytes(run: Any, make: Any, parallelism: int, tmp_path: Path) -> None:
    def writer(seed: int) -> SavepointWriter:
        return SavepointWriter.new().with_operator("o", make(lambda t: pieces(t, seed)), parallelism=parallelism)

    whole = stream_bytes(expected(writer(0), tmp_path / "whole").operators["o"])
    # Each parallelism has other chunks.
    assert stream_bytes(run(writer(parallelism), tmp_path / "again").operators["o"]) == whole


def test_entries_that_are_kept_are_put_among_those_of_a_table(run: Any, tmp_path: Path) -> None:
    savepoint = statetool.load(ZOO)
    rows = savepoint["by-short"].to_arrow()
    column = next(name for name in rows.column_names if name not in ("key", "key_group"))
    state = bootstrap_keyed_state(rows.select(["key", column]).rename_columns(["key", "copied"]), key="key")
    writer = SavepointWriter.from_existing(savepoint).with_operator("by-short", state)
    found = run(writer, tmp_path / "sp", ZOO)
    again = statetool.load(str(tmp_path / "sp"))["by-short"].to_arrow()
    assert stream_bytes(found.operators["by-short"])
    assert again.num_rows == rows.num_rows > 0
    assert again.sort_by("key").select(rows.column_names).equals(rows.sort_by("key"))
    assert again.sort_by("key")["copied"].to_pylist() == rows.sort_by("key")[column].to_pylist()


def test_a_key_that_comes_twice_is_found(run: Any, tmp_path: Path) -> None:
    table = pa.concat_tables([MIXED, MIXED.slice(77, 1)])
    state = bootstrap_keyed_state(table, key="k", states=MIXED_STATES)
    with pytest.raises(EncodeError, match=r"key 'key \d+' occurs twice"):
        run(SavepointWriter.new().with_operator("o", state), tmp_path / "sp")
    assert not (tmp_path / "sp").exists()


def test_a_value_of_a_later_portion_that_cannot_be_written_leaves_nothing(run: Any, tmp_path: Path) -> None:
    table = pa.table({"k": list(range(N)), "n": [*range(N - 1), 1 << 40]})
    state = bootstrap_keyed_state(table, key="k", states={"n": statetool.value("INT")})
    with pytest.raises(EncodeError, match=f"row with key {N - 1}"):
        run(SavepointWriter.new().with_operator("o", state), tmp_path / "sp")
    assert not (tmp_path / "sp").exists()


def test_a_key_group_of_large_rows_among_small_ones_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, large, limit = 4_000, 10_000, 160 << 10  # small, because the kernels also run uncompiled
    monkeypatch.setattr(portions, "_PORTION_BYTES", 80 << 10)

    def write(texts: list[str], target: Path) -> Any:
        table = pa.table({"k": list(range(n)), "s": texts})
        assert portions.comes_in_portions(table, 1)
        state = bootstrap_keyed_state(table, key="k", states={"s": statetool.value("STRING")})
        writer = SavepointWriter.new().with_operator("o", state)
        runner = LocalRunner(threads=1)
        runner._memory_bytes = limit
        write_composition(Composition(changes=writer.changes), str(target), parse_release("2.3", default=3), runner)
        return statetool.load(str(target))["o"].to_arrow(key_group=True)

    small = write(["x"] * n, tmp_path / "small")
    hot = set(small.filter(pc.equal(small["key_group"], 77))["key"].to_pylist())
    texts = ["y" * large if i in hot else "x" for i in range(n)]
    encoded = []
    made = portions.TablesInPortions.entries

    def entries(self: Any, numbers: range) -> Any:
        batch = made(self, numbers)
        encoded.append(0 if batch is None else batch.data.nbytes)
        return batch

    monkeypatch.setattr(portions.TablesInPortions, "entries", entries)
    found = write(texts, tmp_path / "skewed")
    assert len(hot) * large > 1.5 * limit
    assert 0 < max(encoded) < limit
    assert dict(zip(found["key"].to_pylist(), found["s"].to_pylist(), strict=True)) == dict(enumerate(texts))


def test_a_portion_is_bounded_by_its_entries_which_repeat_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, limit = 400, 32 << 10
    columns = {f"s{i}": pa.array([i] * n, pa.int16()) for i in range(12)}
    maps = pa.array([[(j, j) for j in range(5)]] * n, pa.map_(pa.int32(), pa.int32()))
    table = pa.table({"k": [f"{i:0100}" for i in range(n)], **columns, "m": maps})
    states = {name: statetool.value("SMALLINT") for name in columns} | {"m": statetool.map_of("INT", "INT")}
    encoded = []
    made = portions.TablesInPortions.entries

    def entries(self: Any, numbers: range) -> Any:
        batch = made(self, numbers)
        assert batch is not None
        encoded.append(batch.data.nbytes)
        return batch

    monkeypatch.setattr(portions, "_PORTION_BYTES", limit)
    monkeypatch.setattr(portions, "_LEAST_ROWS", 0)
    monkeypatch.setattr(portions.TablesInPortions, "entries", entries)
    writer = SavepointWriter.new().with_operator("o", bootstrap_keyed_state(table, key="k", states=states))
    writer.write(str(tmp_path / "sp"))
    assert limit / 3 < sorted(encoded)[len(encoded) // 2]
    assert max(encoded) < limit
    found = statetool.load(str(tmp_path / "sp"))["o"].to_arrow()
    assert sorted(found["key"].to_pylist()) == table["k"].to_pylist()


def test_large_tables_come_in_portions_but_not_in_small_chunks() -> None:
    table = pa.table({"k": list(range(5000)), "n": list(range(5000))})
    assert portions.comes_in_portions(table, 4)
    assert not portions.comes_in_portions(table, 40)
    assert not portions.comes_in_portions(pieces(table, 1), 4)
    assert not portions.comes_in_portions(table.slice(0, 0), 1)


def test_columns_that_no_state_comes_from_are_not_looked_at(run: Any, tmp_path: Path) -> None:
    views = pa.array(["a", "b"], pa.string_view())
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), views, views], ["k", "n", "x", "x"])
    states = {"n": statetool.value("BIGINT")}
    writer = SavepointWriter.new().with_operator("o", bootstrap_keyed_state(table, key="k", states=states))
    found = run(writer, tmp_path / "sp")
    assert len(stream_bytes(found.operators["o"])) == 1
    viewed = bootstrap_keyed_state(table.select([0, 2]), key="k", states={"x": statetool.value("STRING")})
    with pytest.raises(EncodeError, match=r"column .*type string_view.*cast the column first"):
        run(SavepointWriter.new().with_operator("o", viewed), tmp_path / "views")
