from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.analysis.comparison import keyed, side
from statetool.analysis.comparison.keyed import join_differences
from statetool.analysis.comparison.meaning import Seeds
from statetool.cli.main import cli
from statetool.errors import EncodeError, OptionError, UnknownNameError
from statetool.kernels.entries.comparison import pair_hashes
from tests.support.corpora.archives import HERE, unpack
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.snapshots.trees import last_snapshot
from tests.support.values.differences import difference_rows, in_order
from tests.support.zoo import ZOO

N = 3000


def accounts(n: int = N) -> pa.Table:
    return pa.table(
        {
            "id": range(n),
            "count": range(n),
            "name": [f"name-{i}" for i in range(n)],
            "tags": [[f"t{i}", "x", f"u{i}"] for i in range(n)],
            "balances": pa.array([[("a", i / 2), ("b", 1.5)] for i in range(n)], pa.map_(pa.string(), pa.float64())),
        }
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> st.Savepoint:
    timers = pa.table({"id": [1, 2, 3], "timestamp": [5, 6, 7]})
    state = {"count": st.value("BIGINT"), "tags": st.list_of("STRING"), "balances": st.map_of("STRING", "DOUBLE")}
    lists = [
        st.bootstrap_list_state("offsets", pa.table({"value": [5, 6, 7, 8, 8]})),
        st.bootstrap_broadcast_state("rules", pa.table({"key": ["x", "y"], "value": [1, 2]})),
    ]
    bootstrap = st.bootstrap_keyed_state(
        accounts(), key="id", states={**state, "name": st.value("STRING")}, timers=timers
    )
    writer = st.SavepointWriter.new().with_operator("accounts", bootstrap, *lists, parallelism=3)
    return writer.write(str(tmp_path_factory.mktemp("diff") / "base"), flink_version="2.3")


def edited(base: st.Savepoint, target: Path, change: Callable[[pa.Table], pa.Table], *states: str) -> st.Savepoint:
    op = base["accounts"]
    bootstrap = st.bootstrap_keyed_state(change(op.to_arrow(states=states)), like=op)
    return st.SavepointWriter.from_existing(base).with_operator("accounts", bootstrap).write(str(target))


def test_a_snapshot_has_no_difference_to_itself() -> None:
    sp = st.load(ZOO)
    comparison = sp.diff(sp)
    assert comparison.equal
    assert comparison.structure == ()
    assert comparison.to_arrow().num_rows == 0
    compared = {(s.operator, s.state): s.entries_before for s in comparison.summary() if s.entries_before}
    assert sum(compared.values()) == sum(r.entries for r in sp.stats().rows("states") if r.kind != "broadcast") + 5


#: Every corpus of snapshots in this repository.
ARCHIVES: Final = (
    # Plans are not snapshots, and in-flight data is not compared.
    *sorted(p for p in (HERE / "corpus").glob("*.tar.xz") if not p.name.startswith(("sql-plans", "in-flight"))),
    HERE / "serializers" / "avro" / "savepoints.tar.xz",
)


@pytest.mark.full
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda a: a.name.partition(".")[0])
def test_every_snapshot_of_the_corpora_has_no_difference_to_itself(archive: Path, tmp_path: Path) -> None:
    seen = 0
    for metadata in sorted(unpack(archive, tmp_path).rglob("_metadata")):
        sp = st.load(str(metadata.parent))
        comparison = sp.diff(sp)
        assert not [s for s in comparison.summary() if s.added or s.removed or s.changed], metadata
        assert all("not compared" in s.what for s in comparison.structure), metadata
        # A changelog without materialized state does not tell the type of its keys.
        assert all("layout of the heap backend" in r or "key_types=" in r for r in comparison.unread), metadata
        seen += sum(s.entries_before for s in comparison.summary())
    assert seen


# ``test_forms.py`` compares all forms.
@pytest.mark.parametrize("case", ["rocksdb-canonical-compressed", "rocksdb-native", "hashmap-canonical"])
def test_the_same_job_in_another_form_has_the_same_values(corpus: Path, case: str) -> None:
    """They ran one after another, so last access times differ, and each has operators that the other lacks."""
    first = st.load(last_snapshot(corpus, "v2_3_0-rocksdb-canonical"), declarations=CLASSES)
    second = st.load(last_snapshot(corpus, f"v2_3_0-{case}"), declarations=CLASSES)
    both = [o for o in first if o in second and o != "orders"]
    comparison = first.diff(second, operators=both, access_times=False)
    assert [s for s in comparison.structure if s.severity == "difference"] == []
    assert comparison.unread == ()
    assert comparison.to_arrow().to_pylist() == []
    assert sum(s.entries_before for s in comparison.summary()) > 150


@pytest.mark.full
def test_another_release_has_the_same_values(corpus: Path) -> None:
    """Operators have no uids in 1.20. Kryo 2 and 5 write orders, with a class inside that is not declared, as different bytes."""
    first, second = (st.load(last_snapshot(corpus, f"{v}-rocksdb-canonical")) for v in ("v1_20_5", "v2_3_0"))
    comparison = first.diff(second, access_times=False)
    assert not [c for c in comparison.summary() if c.changed]
    assert {"money", "order"} == {s for s in ("money", "order") for r in comparison.unread if f"state {s}]" in r}
    assert {s.state for s in comparison.structure if s.severity == "difference"} == {
        "variant",
        "bitmap",
        "set",
    }


def test_differences_of_an_edited_copy_are_the_edit(base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        new = pc.if_else(pc.equal(pc.bit_wise_and(table["key"], 63), 5), pc.add(table["count"], 1000), table["count"])
        return table.set_column(table.schema.get_field_index("count"), "count", new)

    comparison = base.diff(edited(base, tmp_path / "new", change, "count"))
    expected = [i for i in range(N) if i % 64 == 5]
    assert difference_rows(comparison) == rows_of_values(
        "count", "changed", {str(i): (str(i), str(i + 1000)) for i in expected}
    )
    (counts,) = [s for s in comparison.summary() if s.changed]
    assert (counts.state, counts.changed, counts.added, counts.removed) == ("count", len(expected), 0, 0)
    assert (counts.entries_before, counts.entries_after) == (N, N)
    assert not comparison.equal
    assert comparison.structure == ()


def rows_of_values(state: str, change: str, values: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    differences = [
        {"state": state, "key": k, "change": change, "before": before, "after": after}
        for k, (before, after) in values.items()
    ]
    return sorted(differences, key=in_order)


def test_elements_of_lists_and_entries_of_maps_are_told(base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        rows_of_table = table.to_pylist()
        for row in rows_of_table:
            if row["key"] == 7:
                row["tags"] = ["t7", "y"]
                row["balances"] = [("a", 3.5), ("c", 9.0)]
            if row["key"] == 8:
                row["tags"] = [*row["tags"], "more"]
        return pa.Table.from_pylist(rows_of_table, schema=table.schema)

    comparison = base.diff(edited(base, tmp_path / "new", change, "tags", "balances"))
    names = ("state", "key", "list_index", "map_key", "change", "before", "after")
    assert Counter(tuple(r.get(n) for n in names) for r in difference_rows(comparison)) == Counter(
        [
            ("tags", "7", 1, None, "changed", "x", "y"),
            ("tags", "7", 2, None, "removed", "u7", None),
            ("tags", "8", 3, None, "added", None, "more"),
            ("balances", "7", None, "b", "removed", "1.5", None),
            ("balances", "7", None, "c", "added", None, "9"),
        ]
    )


def test_states_timers_and_elements_that_are_gone_are_told(base: st.Savepoint, tmp_path: Path) -> None:
    small = st.bootstrap_keyed_state(
        accounts(10).select(["id", "count"]), key="id", timers=pa.table({"id": [1, 2], "timestamp": [5, 9]})
    )
    lists = [
        st.bootstrap_list_state("offsets", pa.table({"value": [8, 7, 5, 9]})),
        st.bootstrap_broadcast_state("rules", pa.table({"key": ["y", "x", "z"], "value": [2, 3, 4]})),
    ]
    after = st.SavepointWriter.new().with_operator("accounts", small, *lists).write(str(tmp_path / "a"))
    keys = st.SavepointWriter.from_existing(after).write(str(tmp_path / "b"))
    comparison = base.diff(keys)
    assert {(s.state, s.what, s.severity) for s in comparison.structure} >= {
        ("name", "state", "difference"),
        ("tags", "state", "difference"),
        ("balances", "state", "difference"),
        (None, "parallelism", "note"),
    }
    counts = {s.state: (s.added, s.removed, s.changed) for s in comparison.summary()}
    assert counts["count"] == (0, N - 10, 0)
    assert counts["name"] == (0, N, 0)
    assert counts["tags"] == (0, 3 * N, 0)
    assert counts["rules"] == (1, 0, 1)
    assert counts["offsets"] == (1, 2, 0)
    told = Counter(
        (r["state"], r.get("key"), r["change"], r.get("before"), r.get("after")) for r in difference_rows(comparison)
    )
    expected = [
        ("rules", "x", "changed", "1", "3"),
        ("rules", "z", "added", None, "4"),
        ("offsets", None, "removed", "6", None),
        ("offsets", None, "removed", "8", None),
        ("offsets", None, "added", None, "9"),
    ]
    assert {r: n for r, n in told.items() if r[0] in ("rules", "offsets")} == Counter(expected)
    timers = {r[1:] for r in told if r[0].startswith("_timer_state")}
    assert timers == {("2", "removed", "6", None), ("2", "added", None, "9"), ("3", "removed", "7", None)}


@pytest.mark.parametrize("most", [100, 384, 512, 1000])
def test_max_parallelism_may_differ(base: st.Savepoint, tmp_path: Path, most: int) -> None:
    st.rescale(base, str(tmp_path / "rescaled"), max_parallelism=most)
    other = st.load(str(tmp_path / "rescaled"))
    comparison = base.diff(other)
    assert comparison.to_arrow().num_rows == 0
    assert comparison.equal
    assert [s.what for s in comparison.structure] == ["max_parallelism"]
    assert sum(s.entries_before for s in comparison.summary()) > 5 * N


def test_only_some_states_and_keys(base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(1, "count", pc.add(table["count"], 1))

    after = edited(base, tmp_path / "new", change, "count")
    comparison = base.diff(after, keys=[17, 18], operators=["accounts"])
    assert difference_rows(comparison) == rows_of_values("count", "changed", {"17": ("17", "18"), "18": ("18", "19")})
    assert base.diff(after, states=["name", "tags"]).equal
    assert base.diff(after, states=["count"]).summary()[0].changed == N
    with pytest.raises(UnknownNameError, match="did you mean count"):
        base.diff(after, states=["cout"])
    with pytest.raises(UnknownNameError, match="accounts"):
        base.diff(after, operators=["acounts"])
    with pytest.raises(EncodeError):
        base.diff(after, operators=["accounts"], keys=["text"])
    sp = st.load(ZOO)
    with pytest.raises(OptionError, match="keys need one operator"):
        sp.diff(sp, keys=[1])


def test_timers_of_a_key_are_compared_too(base: st.Savepoint, tmp_path: Path) -> None:
    timers = st.bootstrap_keyed_state(
        accounts(), key="id", states={"count": st.value("BIGINT")}, timers=pa.table({"id": [1, 2], "timestamp": [5, 8]})
    )
    after = st.SavepointWriter.new().with_operator("accounts", timers, parallelism=3).write(str(tmp_path / "new"))
    timer_rows = [
        r
        for r in difference_rows(base.diff(after, operators=["accounts"], keys=[2]))
        if r["state"].startswith("_timer")
    ]
    assert [(r["key"], r["change"], r.get("before"), r.get("after")) for r in timer_rows] == [
        ("2", "added", None, "8"),
        ("2", "removed", "6", None),
    ]


def test_a_type_that_changed_does_not_hide_equal_values(base: st.Savepoint, tmp_path: Path) -> None:
    """Bytes of a long and a double are never considered equal; a long equals an int of the same value."""

    def written(kind: str, name: str) -> st.Savepoint:
        bootstrap = st.bootstrap_keyed_state(
            accounts(50).select(["id", "count"]), key="id", states={"count": st.value(kind)}
        )
        return st.SavepointWriter.new().with_operator("a", bootstrap).write(str(tmp_path / name))

    longs, ints, doubles = written("BIGINT", "longs"), written("INT", "ints"), written("DOUBLE", "doubles")
    comparison = longs.diff(ints)
    assert [(s.what, s.before, s.after) for s in comparison.structure] == [("value type", "Long", "Int")]
    assert comparison.to_arrow().num_rows == 0
    assert not comparison.equal
    bits = np.arange(50, dtype=np.int64).view(np.float64)
    table = pa.table({"id": range(50), "count": bits})
    same_bytes = st.bootstrap_keyed_state(table, key="id", states={"count": st.value("DOUBLE")})
    other = st.SavepointWriter.new().with_operator("a", same_bytes).write(str(tmp_path / "bits"))
    assert longs.diff(other).summary()[0].changed == 49  # the bits of 0 are those of 0.0, which has another text
    assert longs.diff(doubles).summary()[0].changed == 0


def test_parts_and_second_reads_give_the_same(
    base: st.Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.filter(pc.not_equal(table["key"], 11)).set_column(
            1, "count", pc.add(table.filter(pc.not_equal(table["key"], 11))["count"], 1)
        )

    after = edited(base, tmp_path / "new", change, "count")
    expected = difference_rows(base.diff(after))
    assert len(expected) >= N - 1
    monkeypatch.setattr(side, "HELD_BYTES", 0)
    assert difference_rows(base.diff(after)) == expected
    monkeypatch.setattr(keyed, "MOST_BYTES", 100_000)
    assert difference_rows(base.diff(after)) == expected


@pytest.mark.parametrize("held", [0, side.HELD_BYTES])
def test_memory_does_not_grow_with_the_differences(
    base: st.Savepoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Differences of one key group become rows in portions, and the batches held for them are limited with their positions."""

    def change(table: pa.Table) -> pa.Table:
        return table.slice(1).set_column(1, "count", pc.add(table["count"][1:], 1))

    after = edited(base, tmp_path / "new", change, "count")
    expected = difference_rows(base.diff(after))
    at_once: list[int] = []

    def counted(of: side.SnapshotSide, index: Any, *arguments: Any) -> Any:
        at_once.append(len(index))
        return rows(of, index, *arguments)

    rows = keyed._rows
    monkeypatch.setattr(keyed, "_rows", counted)
    monkeypatch.setattr(keyed, "ROWS_BYTES", 1_000)
    monkeypatch.setattr(side, "HELD_BYTES", held)
    assert difference_rows(base.diff(after)) == expected
    assert len(expected) > 10 * max(at_once) > 0


def test_held_entries_count_with_their_positions(base: st.Savepoint, monkeypatch: pytest.MonkeyPatch) -> None:
    request = side.SideRequest(sources=tuple(base["accounts"].inventory.keyed.sources()), states=("count",), keys=None)
    seen = side.SnapshotSide(request, Seeds(), side.Slice())
    seen.hashes()
    held = sum(len(b.data) + sum(c.nbytes for c in b.rows()) for _, b in seen._held or ())
    assert held > 2 * seen.size_bytes > 0
    monkeypatch.setattr(side, "HELD_BYTES", held - 1)
    again = side.SnapshotSide(request, Seeds(), side.Slice())
    again.hashes()
    assert again._held is None


def test_keys_with_other_bytes_are_joined_by_what_they_are() -> None:
    def table(places: list[int], keys: list[str], values: list[str]) -> pa.Table:
        n = len(keys)
        nothing = pa.nulls(n, pa.string())
        return pa.table(
            {
                "place": pa.array(places, pa.int64()),
                "list_index": pa.nulls(n, pa.int64()),
                "key_group": pa.array([0] * n, pa.int32()),
                "key": keys,
                "namespace": nothing,
                "map_key": nothing,
                "value": values,
                "undecoded": pa.repeat(False, n),
            }
        )

    before, after = (
        table([0, 1, 2], ["a", "b", "c"], ["1", "2", "3"]),
        table([7, 8, 9], ["c", "b", "d"], ["3", "5", "6"]),
    )
    assert join_differences("o", "s", before, after).num_rows == 6
    differences = join_differences("o", "s", before, after, by_text=True).to_pylist()
    assert [(r["key"], r["change"]) for r in differences] == [("a", "removed"), ("b", "changed"), ("d", "added")]
    before = before.set_column(5, "map_key", pa.array(["\0", "\0\x01", None]))
    after = before.set_column(5, "map_key", pa.array([None, "\0\x01", None]))
    differences = join_differences("o", "s", before, after, by_text=True).to_pylist()
    assert [(r["key"], r["change"]) for r in differences] == [("a", "removed"), ("a", "added")]


def test_pairs_of_hashes_are_those_of_a_dictionary() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        left = random.integers(0, 40, random.integers(0, 60)).astype(np.uint64)
        right = random.integers(0, 40, random.integers(0, 60)).astype(np.uint64)
        pairs, taken = np.empty(len(left), dtype=np.int64), np.zeros(len(right), dtype=np.uint8)
        table = np.full(1 << max(4, (2 * len(right)).bit_length()), -1, dtype=np.int64)
        pair_hashes(left, right, table, pairs, taken)
        both = Counter(left.tolist()) & Counter(right.tolist())
        paired = np.flatnonzero(pairs >= 0)
        assert Counter(left[paired].tolist()) == both
        assert (right[pairs[paired]] == left[paired]).all()
        assert len(set(pairs[paired].tolist())) == len(paired) == taken.sum()


def run(*arguments: str, exit_code: int) -> Any:
    done = CliRunner().invoke(cli, ["diff", *arguments])
    assert done.exit_code == exit_code, done.output
    return done


def test_the_command_tells_differences_and_exits_with_1(base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(1, "count", pc.add(table["count"], 1))

    after = edited(base, tmp_path / "new", change, "count")
    assert "No differences" in run(base.path, base.path, exit_code=0).stdout
    shown = json.loads(run(base.path, after.path, "--output", "json", "--limit", "5", exit_code=1).stdout)
    assert not shown["equal"]
    assert len(shown["differences"]) == 5
    assert shown["summary"][0]["changed"] == N
    text = run(base.path, after.path, "--limit", "1", exit_code=1)
    assert f"{N:,} differences (1 shown, --limit)" in text.stdout
    of_a_key = run(base.path, after.path, "--uid", "accounts", "--keys", "[4]", exit_code=1)
    assert "1 difference. " in of_a_key.stdout
    run(base.path, after.path, "--states", "name", exit_code=0)


def test_the_command_writes_all_differences_to_a_file(base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(1, "count", pc.add(table["count"], 1))

    after = edited(base, tmp_path / "new", change, "count")
    target = tmp_path / "all.parquet"
    parquet = (base.path, after.path, "--output", "parquet")
    done = run(*parquet, "--target", str(target), exit_code=1)
    assert f"{N:,} differences, written to {target}" in " ".join(done.stdout.split())
    assert f"{N:,} values changed" in done.stdout
    assert "before:" not in done.stdout
    assert pq.read_table(target).num_rows == N
    assert "already exists" in run(*parquet, "--target", str(target), exit_code=2).stderr
    more = tmp_path / "more.parquet"
    assert "--limit" in run(*parquet, "--target", str(more), "--limit", "1", exit_code=2).stderr
    assert not more.exists()
    for given in (parquet, (base.path, after.path, "--target", str(more))):
        assert "--output parquet --target" in run(*given, exit_code=2).stderr


def test_differences_are_a_frame_on_spark(spark: Any, base: st.Savepoint, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(1, "count", pc.add(table["count"], 1))

    after = edited(base, tmp_path / "new", change, "count")
    first = st.load(base.path, spark=spark)
    comparison = first.diff(after)
    frame = comparison.frame()
    assert frame.columns == comparison.to_arrow().column_names
    assert frame.filter("change = 'changed' and state = 'count'").count() == N
    assert comparison.summary()[0].changed == N


def test_nothing_is_decoded_where_bytes_are_equal(base: st.Savepoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Iterator[pa.Table]:
        raise AssertionError("decoded")

    monkeypatch.setattr(keyed, "_value_rows", refuse)
    assert base.diff(base).summary()
