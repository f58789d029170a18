from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import statetool
from statetool.analysis.statistics.records import TABLES
from statetool.cli.main import cli
from statetool.entries.form import EntryRequest
from statetool.errors import OptionError, UnknownNameError
from statetool.html.markup import html
from statetool.io.cursor import Cursor
from statetool.reporting.report.times import growth as growth_section
from statetool.snapshot.metadata_tables import file_rows
from tests.support.quick import fewer_uncompiled
from tests.support.snapshots.trees import last_snapshot
from tests.support.zoo import ZOO

NOW = 1_800_000_000_000
CASES = (
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-canonical-compressed",
    "v2_3_0-rocksdb-native",
    "v2_3_0-rocksdb-heap-timers",
    "v2_3_0-changelog-rocksdb",
    "v2_3_0-unaligned",
    "v1_13_6-hashmap-canonical",
)
#: One of each form whose kernels are its own.
UNCOMPILED_CASES = (CASES[1], CASES[2], CASES[4], CASES[6])


def brute(operator: statetool.Operator) -> tuple[Counter[str], Counter[bytes], Counter[str]]:
    """Count entries by state, bytes by key, and distinct keys by state, one entry at a time."""
    entries, sizes, keys = Counter[str](), Counter[bytes](), defaultdict[str, set[bytes]](set)
    for source in operator.inventory.keyed.sources(raw=True):
        header = source.header()
        for batch in source.batches(EntryRequest(batch_bytes=1 << 16)):
            for i in range(len(batch)):
                meta = header.states[batch.state[i]]
                entries[meta.name] += 1
                if meta.kind == "timers":
                    continue
                c = Cursor(batch.data.data, int(batch.key[i]), int(batch.key_end[i]))
                header.key.skip(c)
                key = bytes(batch.data[batch.key[i] : c.pos])
                sizes[key] += int(batch.key_end[i] - batch.key[i] + batch.value_end[i] - batch.value[i])
                keys[meta.name].add(key)
    return entries, sizes, Counter({name: len(distinct) for name, distinct in keys.items()})


@pytest.mark.parametrize("case", fewer_uncompiled([*CASES], *UNCOMPILED_CASES))
def test_sizes_are_together_those_of_the_files(corpus: Path, case: str) -> None:
    sp = statetool.load(last_snapshot(corpus, case))
    statistics = sp.stats()
    assert statistics.unread == ()
    by_operator = Counter[str]()
    for row in statistics.rows("sizes"):
        by_operator[row.operator] += row.size_bytes
    for row in sp.metadata_rows("operators"):
        assert by_operator[row.operator] == row.state_bytes + row.coordinator_bytes
    assert [r.size_bytes for r in statistics.rows("operators")] == [by_operator[o] for o in sp]


def test_frames_of_a_canonical_savepoint_are_what_its_layout_says(corpus: Path) -> None:
    """An entry has two lengths and the key group; a state of a key group has its id, and the key group its end."""
    sp = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-canonical"))
    for operator in sp.operators.values():
        sizes = [r for r in operator.stats().rows("sizes") if r.scope == "keyed"]
        framing, expected = Counter[int](), Counter[int]()
        for row in sizes:
            if row.part == "framing":
                framing[row.key_group] += row.size_bytes
            elif row.part == "entries":
                expected[row.key_group] += row.entries * (8 + (1 if operator.max_parallelism <= 128 else 2)) + 2
        assert framing == {group: size + 2 for group, size in expected.items()}
        files = sum(r.size_bytes for r in file_rows(operator.inventory) if r.slot == "managed keyed")
        assert sum(r.size_bytes for r in sizes) == files


@pytest.mark.parametrize("case", fewer_uncompiled([*CASES], *UNCOMPILED_CASES))
def test_counts_and_largest_keys_equal_those_of_a_loop_over_all_entries(corpus: Path, case: str) -> None:
    sp = statetool.load(last_snapshot(corpus, case))
    for operator in sp.operators.values():
        entries, sizes, keys = brute(operator)
        statistics = operator.stats(largest=5)
        rows = [r for r in statistics.rows("states") if r.scope == "keyed"]
        assert {r.state: r.entries for r in rows if r.entries} == entries
        assert {r.state: r.keys for r in rows if r.keys} == keys
        largest = [r for r in statistics.rows("largest") if r.what == "key"]
        assert [r.size_bytes for r in largest] == sorted(sizes.values(), reverse=True)[:5]
        assert all(sizes[bytes.fromhex(r.key_bytes)] == r.size_bytes for r in largest)
        (row,) = statistics.rows("operators")
        assert (row.keys or 0) == len(sizes)


def test_largest_lists_and_maps_equal_those_of_the_tables(corpus: Path) -> None:
    operator = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-native"))["collections-by-string"]
    statistics = operator.stats(largest=100)
    rows = operator.to_arrow(states=["prices", "names", "history"]).to_pylist()
    lengths: dict[str, list[int]] = {
        "prices": sorted((len(r["prices"]) for r in rows if r["prices"] is not None), reverse=True)
    }
    for name in ("names", "history"):
        lengths[name] = sorted((len(r[name]) for r in rows if r[name] is not None), reverse=True)
    for name, expected in lengths.items():
        actual = [r.length for r in statistics.rows("largest") if r.state == name and r.what in ("list", "map")]
        assert sorted(actual, reverse=True) == expected
        counted = sum(r.count for r in statistics.rows("distribution") if r.state == name and r.what == "length")
        assert counted == len(expected)
    shown = {r.key for r in statistics.rows("largest") if r.what == "key"}
    assert shown == {text if len(text := repr(r["key"])) <= 100 else f"{text[:100]}..." for r in rows}


def test_distribution_counts_every_entry_once() -> None:
    statistics = statetool.load(ZOO).stats()
    entries = {(r.operator, r.state): r.entries for r in statistics.rows("states") if r.scope == "keyed" and r.entries}
    for what in ("key_bytes", "value_bytes"):
        counts = Counter[tuple[str, str]]()
        for row in statistics.rows("distribution"):
            if row.what == what:
                assert row.at_least <= row.at_most
                counts[row.operator, row.state] += row.count
        assert counts == entries


def test_skew_at_another_parallelism_adds_up_to_the_same() -> None:
    operator = statetool.load(ZOO)["collections-by-string"]
    rows = operator.stats(parallelism=7).rows("skew")
    for parallelism in (operator.parallelism, 7):
        subtasks = [r for r in rows if r.parallelism == parallelism]
        assert [r.subtask for r in subtasks] == list(range(parallelism))
        assert sum(r.key_groups for r in subtasks) == operator.max_parallelism
        assert sum(r.size_bytes for r in subtasks) == operator.stats().rows("operators")[0].entries_bytes
        assert sum(r.of_mean for r in subtasks) == pytest.approx(parallelism, abs=0.01)


def test_expired_values_are_those_that_a_read_hides() -> None:
    operator = statetool.load(ZOO)["with-ttl"]
    times = [v["last_access"] for v in operator.to_arrow("ttl-sum", ttl="raw")["value"].to_pylist()]
    middle = int(sorted(times)[len(times) // 2].timestamp() * 1000)
    statistics = operator.stats(ttl_ms=1000, now_ms=middle + 1000)
    (row,) = [r for r in statistics.rows("ages") if r.state == "ttl-sum" and r.expired is not None]
    hidden = operator.to_arrow("ttl-sum", ttl="hide_expired", ttl_ms=1000, now_ms=middle + 1000)
    assert row.expired == len(times) - hidden.num_rows > 0
    assert row.count == len(times)
    for state in ("ttl-value", "ttl-list", "ttl-map"):
        (row,) = [r for r in statistics.rows("ages") if r.state == state and r.expired is not None]
        assert row.count == operator.to_arrow(state, ttl="raw").num_rows
        spans = [r.count for r in statistics.rows("ages") if r.state == state and r.expired is None]
        assert sum(spans) == row.count


def test_timers_are_counted_by_when_they_fire(corpus: Path) -> None:
    for case in ("v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-heap-timers", "v2_3_0-hashmap-canonical"):
        operator = statetool.load(last_snapshot(corpus, case))["timers"]
        fires: dict[str, list[int]] = defaultdict(list)
        for row in operator.to_arrow("timers").to_pylist():
            fires[row["domain"]].append(row["timestamp"])
        now = sorted(fires["processing"])[3]
        for domain, times in fires.items():
            rows = [r for r in operator.stats(now_ms=now).rows("timers") if r.domain == domain]
            whole, spans = rows[0], rows[1:]
            assert (whole.count, whole.first_ms, whole.last_ms) == (len(times), min(times), max(times))
            assert sum(r.count for r in spans) == len(times)
            overdue = sum(r.count for r in spans if r.in_below_ms is not None and r.in_below_ms <= 0)
            assert overdue == sum(t < now for t in times)


def test_the_same_job_has_the_same_counts_in_every_form(corpus: Path) -> None:
    """The bytes differ: the heap backend and RocksDB have different layouts for lists."""

    def counted(case: str) -> dict[tuple[str, str], tuple[int, int | None]]:
        rows = statetool.load(last_snapshot(corpus, case)).stats().rows("states")
        return {(r.operator, r.state): (r.entries, r.keys) for r in rows if r.scope == "keyed" and r.kind != "timers"}

    canonical = counted("v2_3_0-rocksdb-canonical")
    for case in ("v2_3_0-rocksdb-canonical-compressed", "v2_3_0-rocksdb-native", "v2_3_0-hashmap-canonical"):
        other = counted(case)
        same = canonical.keys() & other.keys()
        assert len(same) > 10
        assert {s: other[s] for s in same} == {s: canonical[s] for s in same}


def test_what_cannot_be_read_is_counted_as_such(corpus: Path) -> None:
    sp = statetool.load(last_snapshot(corpus, "v2_3_0-hashmap-native"))
    statistics = sp.stats()
    assert any("cannot be found in the layout of the heap backend" in reason for reason in statistics.unread)
    rows = {r.operator: r for r in statistics.rows("operators")}
    assert rows["orders"].unread_bytes > 0
    assert rows["orders"].keys is None
    assert rows["by-tuple"].unread_bytes == 0
    for row in sp.metadata_rows("operators"):
        assert rows[row.operator].size_bytes == row.state_bytes + row.coordinator_bytes


def test_operator_state_is_counted_by_elements() -> None:
    operator = statetool.load(ZOO)["op-lists"]
    rows = {r.state: r for r in operator.stats().rows("states")}
    assert rows["buffered"].entries == operator.to_arrow("buffered").num_rows
    assert rows["offsets"].entries == operator.to_arrow("offsets").num_rows
    by_subtask = [r for r in operator.stats().rows("sizes") if r.state == "buffered"]
    assert sum(r.entries for r in by_subtask) == rows["buffered"].entries
    assert len(by_subtask) == operator.parallelism


def test_snappy_is_measured_on_a_sample(corpus: Path) -> None:
    row = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-canonical"))["orders"].stats().rows("operators")[0]
    assert row.snappy_ratio is not None
    assert 0.1 < row.snappy_ratio < 1


def test_options_are_checked() -> None:
    sp = statetool.load(ZOO)
    with pytest.raises(OptionError, match="largest=-1"):
        sp.stats(largest=-1)
    with pytest.raises(TypeError, match="larges"):
        sp.stats(larges=1)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="by-short"):
        sp.stats(operators=["by-shor"])
    with pytest.raises(UnknownNameError, match="sizes"):
        sp["by-short"].stats().rows("size")


def test_tables_are_arrow_too() -> None:
    statistics = statetool.load(ZOO)["with-ttl"].stats(now_ms=NOW)
    assert statistics.tables == tuple(TABLES)
    for table in statistics.tables:
        assert statistics.to_arrow(table).num_rows == len(statistics.rows(table)), table


def test_growth_is_what_each_checkpoint_added(corpus: Path) -> None:
    root = str(corpus / "v2_3_0-rocksdb-incremental")
    rows = statetool.growth(root)
    ids = sorted({r.checkpoint_id for r in rows})
    assert len(ids) > 1
    sizes = {(r.checkpoint_id, r.operator, r.state): r for r in rows}
    assert all(r.entries_added is None for r in rows if r.checkpoint_id == ids[0])
    for before, after in pairwise(ids):
        for (number, operator, state), row in sizes.items():
            if number == after:
                old = sizes[before, operator, state].entries
                assert old is not None
                assert row.entries is not None
                assert row.entries_added == row.entries - old


def test_growth_knows_nothing_of_what_cannot_be_read(corpus: Path) -> None:
    rows = statetool.growth(str(corpus / "v2_3_0-hashmap-native"))
    of_orders = [r for r in rows if r.operator == "orders"]
    assert of_orders
    assert {(r.entries, r.size_bytes) for r in of_orders} == {(None, None)}
    assert all(r.entries is not None for r in rows if r.operator == "by-tuple")
    assert "Not included, because they could not be read in every checkpoint: " in growth_section(rows)


def test_growth_is_of_each_directory_where_no_job_is_named(tmp_path: Path) -> None:
    for job in ("a", "b"):
        shutil.copytree(ZOO, tmp_path / job / "chk-2")
    rows = statetool.growth(str(tmp_path))
    assert len({r.path for r in rows}) == 2
    assert {r.entries_added for r in rows} == {None}


def run(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, ["stats", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_the_command_prints_what_the_api_gives() -> None:
    statistics = statetool.load(ZOO).stats(now_ms=NOW, largest=2)
    shown = json.loads(run(ZOO, "--output", "json", "--now-ms", str(NOW), "--largest", "2").stdout)
    assert (shown.pop("unread"), shown.pop("json_version")) == ([], 1)
    assert {name: len(rows) for name, rows in shown.items()} == {t: len(statistics.rows(t)) for t in statistics.tables}
    text = run(ZOO, "--uid", "timers").stdout
    assert "_timer_state/event_user-timers" in text
    assert "by-short" not in text
    rows = json.loads(run(ZOO, "--uid", "timers", "--table", "sizes", "--output", "json").stdout)
    assert sum(r["size_bytes"] for r in rows) == next(
        r.state_bytes for r in statetool.load(ZOO).metadata_rows("operators") if r.operator == "timers"
    )


def test_the_command_shows_growth_of_a_directory(corpus: Path) -> None:
    root = str(corpus / "v2_3_0-rocksdb-incremental")
    rows = json.loads(run(root, "--output", "json").stdout)
    assert {"checkpoint_id", "entries_added", "bytes_added"} <= set(rows[0])
    refused = run(root, "--ttl-ms", "5", code=2)
    assert "--ttl-ms cannot be used for the growth of a directory of snapshots" in refused.stderr


def test_spark_counts_the_same(spark: Any) -> None:
    names = ["orders", "timers"]
    # Each is opened anew: headers that are known are not read again.
    here = statetool.load(ZOO).stats(operators=names, now_ms=NOW)
    there = statetool.load(ZOO).stats(operators=names, now_ms=NOW, spark=spark)
    assert all(here.rows(t) == there.rows(t) for t in here.tables)


def test_a_restore_reads_everything_once_at_the_same_parallelism(corpus: Path) -> None:
    for case in ("v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-native"):
        operator = statetool.load(last_snapshot(corpus, case))["collections-by-string"]
        rows = operator.stats(bandwidth_mib=1, latency_ms=500).rows("restore")
        assert [r.subtask for r in rows] == list(range(operator.parallelism))
        files = [r for r in file_rows(operator.inventory) if r.slot == "managed keyed"]
        assert sum(r.read_bytes for r in rows) == sum(r.own_bytes for r in rows) == sum(r.size_bytes for r in files)
        for row in rows:
            own = [f for f in files if f.subtask == row.subtask]
            assert row.requests == len(own)
            assert row.files == len({f.path for f in own if not f.inline})
            assert row.seconds == pytest.approx(len(own) / 2 + row.read_bytes / (1 << 20), abs=0.001)


def test_after_rescaling_a_database_is_read_whole_by_many(corpus: Path) -> None:
    canonical = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-canonical"))["orders"]
    native = statetool.load(last_snapshot(corpus, "v2_3_0-rocksdb-native"))["orders"]
    wide = 3 * native.parallelism
    for operator, whole in ((canonical, False), (native, True)):
        rows = [r for r in operator.stats(parallelism=wide).rows("restore") if r.parallelism == wide]
        assert len(rows) == wide
        total = sum(r.size_bytes for r in file_rows(operator.inventory) if r.slot == "managed keyed")
        if whole:
            assert sum(r.read_bytes for r in rows) >= 3 * total
            assert sum(r.own_bytes for r in rows) == pytest.approx(total, abs=wide)
        else:
            header = operator.stats().rows("operators")[0].header_bytes / operator.parallelism
            assert sum(r.read_bytes for r in rows) <= total + wide * header
            assert all(r.read_bytes == r.own_bytes for r in rows)


def test_union_state_is_read_by_all_and_lists_are_dealt_out() -> None:
    operator = statetool.load(ZOO)["op-lists"]
    sizes = {r.state: r.size_bytes for r in operator.stats().rows("states")}
    rows = [r for r in operator.stats(parallelism=8).rows("restore") if r.parallelism == 8]
    headers = sum(part.first for part in operator.inventory.elements.streams)
    assert all(r.read_bytes == pytest.approx(headers + sizes["offsets"] + sizes["buffered"] / 8, abs=1) for r in rows)
    with pytest.raises(OptionError, match="bandwidth"):
        operator.stats(bandwidth_mib=0)


def test_notebooks_show_stored_and_uncompressed_sizes_and_what_was_not_read(corpus: Path) -> None:
    statistics = statetool.load(str(corpus / "v2_3_0-hashmap-native" / "snapshot")).stats()
    shown = statistics._repr_html_()
    assert statistics.unread
    assert all(html(reason) in shown for reason in statistics.unread)
    for o in statistics.rows("operators"):
        assert f'value="{o.size_bytes}"' in shown
        assert o.entries_bytes is None or f'value="{o.entries_bytes}"' in shown
    assert 'value="None"' not in shown
    frame = statistics.to_pandas("states")
    sizes = [None if pd.isna(n) else n for n in frame["size_bytes"]]
    assert sizes == [s.size_bytes for s in statistics.rows("states")]
    assert str(frame["keys"].dtype) == "Int64"
