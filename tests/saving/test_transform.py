"""Values of states are changed in one call; everything else keeps its bytes."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import statetool
from statetool import flink
from statetool.cli.main import cli
from statetool.entries.form import ALL_ENTRIES
from statetool.errors import MissingKeyError, OptionError, UnknownNameError
from statetool.tables import splits
from tests.support.zoo import ZOO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def added(name: str, number: int) -> Any:
    def change(table: pa.Table) -> pa.Table:
        column = pc.add(table[name], pa.scalar(number, table[name].type))
        return table.select(["key", "key_group"]).append_column(name, column)

    return change


def entries(operator: statetool.Operator, *without: str) -> set[tuple[str, int, bytes, bytes]]:
    """Return all keyed entries as bytes, except those of some states."""
    kept = set()
    for source in operator.inventory.keyed.sources():
        names = [m.name for m in source.header().states]
        for batch in source.batches(ALL_ENTRIES):
            raw = bytes(batch.data)
            for i in range(len(batch)):
                name = names[batch.state[i]]
                if name not in without:
                    key, value = raw[batch.key[i] : batch.key_end[i]], raw[batch.value[i] : batch.value_end[i]]
                    kept.add((name, int(batch.group[i]), key, value))
    return kept


def test_a_function_changes_one_state_and_all_other_bytes_stay(tmp_path: Path) -> None:
    sp = statetool.load(ZOO)
    edits = sp["by-tuple"].transform(added("count", 1000), states=["count"])
    new = edits.transform("timers", added("registered", 1), states=["registered"]).write(str(tmp_path / "sp"))
    changed = {"by-tuple": "count", "timers": "registered"}
    for name, operator in sp.operators.items():
        without = [changed[name]] if name in changed else []
        assert entries(new[name], *without) == entries(operator, *without), name
        for state in operator.inventory.operator_states:
            assert new[name].to_arrow(state).equals(operator.to_arrow(state)), name
    before, after = (
        {str(r["key"]): r["count"] for r in s["by-tuple"].to_arrow(states=["count"]).to_pylist()} for s in (sp, new)
    )
    assert after == {key: value + 1000 for key, value in before.items()}
    assert set(new["by-tuple"].states.values()) == set(sp["by-tuple"].states.values())


def test_a_preview_is_the_difference_and_leaves_nothing(tmp_path: Path) -> None:
    sp = statetool.load(ZOO)
    edits = sp["by-tuple"].transform(added("count", 1), states=["count"])
    difference = edits.preview(str(tmp_path))
    (row,) = [s for s in difference.summary() if s.added + s.removed + s.changed]
    keys = sp["by-tuple"].to_arrow(states=["count"]).num_rows
    assert (row.operator, row.state, row.changed, row.added, row.removed) == ("by-tuple", "count", keys, 0, 0)
    del difference
    assert list(tmp_path.iterdir()) == []


def test_types_follow_columns(tmp_path: Path) -> None:
    sp = statetool.load(ZOO)

    def widened(table: pa.Table) -> pa.Table:
        counts = table["count"].cast(pa.int64())
        seen = table["seen"].cast(pa.list_(pa.string()))
        return table.select(["key"]).append_column("count", counts).append_column("seen", seen)

    new = sp["by-tuple"].transform(widened).write(str(tmp_path / "sp"))["by-tuple"]
    types = {n: (s.kind, s.value_type) for n, s in new.states.items()}
    assert types["count"] == ("value", "Long")
    assert types["seen"] == ("list", "List<String>")
    assert entries(new, "count", "seen") == entries(sp["by-tuple"], "count", "seen")


def test_what_cannot_be_is_refused() -> None:
    sp = statetool.load(ZOO)
    with pytest.raises(UnknownNameError, match=r"no state 'cuont'.*count"):
        sp["by-tuple"].transform(added("count", 1), states=["cuont"])
    with pytest.raises(OptionError, match="no column 'key'"):
        sp["by-tuple"].transform(lambda t: t.select(["count"]))
    with pytest.raises(OptionError, match="returns int"):
        sp["by-tuple"].transform(lambda t: 1)


def test_a_state_that_the_function_was_not_given_is_refused(tmp_path: Path) -> None:
    """Its serializer would have to be guessed from the column."""
    table = pa.table({"key": ["k"], "a": [1], "b": pa.array([2], pa.int32())})
    made = statetool.bootstrap_keyed_state(table)
    sp = statetool.SavepointWriter.new().with_operator("op", made).write(str(tmp_path / "old"))
    with pytest.raises(OptionError, match="state 'b', which the function was not given"):
        sp["op"].transform(lambda t: t.append_column("b", pa.array([3])), states=["a"]).write(str(tmp_path / "new"))


def test_nanoseconds_and_columns_called_like_them(tmp_path: Path) -> None:
    stamps = pa.array([1_000_000_001, None], pa.timestamp("ns", tz="UTC"))
    state = statetool.bootstrap_keyed_state(pa.table({"key": [1, 2], "t": stamps, "a": [1, 2]}))
    op = statetool.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "base"))["op"]
    with pytest.raises(OptionError, match=r"no column 't_nanos'.*'t' would lose"):
        op.transform(lambda table: table.select(["key", "t"]))
    changed = op.transform(lambda table: table.select(["key", "t", "t_nanos"])).write(str(tmp_path / "same"))["op"]
    assert entries(changed) == entries(op)
    new = op.transform(lambda table: table.select(["key", "a"]).append_column("a_nanos", table["a"]))
    rows = new.write(str(tmp_path / "new"))["op"].to_arrow(states=["a", "a_nanos"]).sort_by("key").to_pylist()
    assert rows == [{"key": 1, "a": 1, "a_nanos": 1}, {"key": 2, "a": 2, "a_nanos": 2}]


def test_expressions_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    sp = statetool.load(ZOO, spark)
    edits = sp["with-ttl"].transform(
        {"plain": "CAST(plain AS DECIMAL(20, 4))", "ttl-sum": "`ttl-sum` + plain"}, where="plain IS NOT NULL"
    )
    new = edits.write(str(tmp_path / "sp"))["with-ttl"]
    old = {r["key"]: r for r in sp["with-ttl"].to_arrow(states=["plain", "ttl-sum"], ttl="raw").to_pylist()}
    assert new.states["plain"].value_type == "BigDec"
    assert new.states["ttl-sum"].value_type == "Ttl<Long>"
    assert entries(new, "plain", "ttl-sum") == entries(sp["with-ttl"], "plain", "ttl-sum")
    rows = {r["key"]: r for r in new.to_arrow(states=["plain", "ttl-sum"], ttl="raw").to_pylist()}
    assert rows.keys() == old.keys()
    for key, row in old.items():
        plain, timed = row["plain"], row["ttl-sum"]
        assert rows[key]["plain"] == (None if plain is None else Decimal(plain))
        changed = timed is not None and plain is not None
        assert rows[key]["ttl-sum"] == ({**timed, "value": timed["value"] + plain} if changed else timed)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("nosuch + 1", r"cannot evaluate registered=nosuch \+ 1: .*`nosuch`"),
        ("registered +* 1", r"cannot evaluate registered=registered \+\* 1: .*PARSE_SYNTAX_ERROR"),
        ("array()", r"the type of 'registered' is incomplete: array<void>\. cast"),
    ],
)
def test_expressions_that_spark_does_not_take_are_refused(spark: SparkSession, sql: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        statetool.load(ZOO, spark)["timers"].transform({"registered": sql})


def test_a_rejected_expression_is_one_line(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["transform", ZOO, str(tmp_path / "sp"), "--uid", "timers", "--set", "registered=nosuch + 1"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: Spark cannot evaluate registered=nosuch + 1: [UNRESOLVED_COLUMN")
    assert len(line) < 400
    assert capfd.readouterr().err == ""


def test_an_expression_that_fails_ends_the_command_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    words = ["transform", ZOO, str(tmp_path / "sp"), "--uid", "timers", "--set", "registered=registered / 0"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 3
    assert re.search(r"^error: Spark failed: \[DIVIDE_BY_ZERO\].*--debug", done.stderr, re.MULTILINE)
    assert not (tmp_path / "sp" / "_metadata").exists()


@pytest.mark.parametrize("ttl", [False, True])
def test_what_becomes_of_nanoseconds_is_said(spark: SparkSession, tmp_path: Path, ttl: bool) -> None:
    """A newly set timestamp would keep the nanoseconds of the previous one."""
    stamps = pa.array([1_000_000_001, None, 1_002], pa.timestamp("ns", tz="UTC"))
    table = pa.table({"key": [1, 2, 3], "t": stamps, "a": [1, 2, 3]})
    types = {"t": statetool.value("TIMESTAMP", ttl=ttl, last_access_ms=5 if ttl else None)}
    made = statetool.bootstrap_keyed_state(table, states={**types, "a": statetool.value("BIGINT")})
    statetool.SavepointWriter.new().with_operator("op", made).write(str(tmp_path / "base"))
    op = statetool.load(str(tmp_path / "base"), spark)["op"]
    with pytest.raises(OptionError, match=r"'t' changes, but its nanoseconds in 't_nanos' do not.*set t_nanos too"):
        op.transform({"t": "t + INTERVAL 1 SECOND"})
    with pytest.raises(OptionError, match="no state has nanoseconds 'a_nanos'"):
        op.transform({"a_nanos": "0"})

    def after(change: dict[str, str], where: str | None = None) -> list[Any]:
        new = op.transform(change, where=where).write(str(tmp_path / f"new{len(list(tmp_path.iterdir()))}"))["op"]
        rows = new.to_arrow(states=["a", "t"]).sort_by("key").to_pylist()
        return [(r["t"] and r["t"].timestamp(), r["t_nanos"]) for r in rows]

    kept = after({"t": "t + INTERVAL 1 SECOND", "t_nanos": "t_nanos"})
    assert kept == [(2.0, 1), (None, None), (1.000001, 2)]
    anew = after({"t": "timestamp_seconds(7)", "t_nanos": "0"}, where="key = 1")
    assert anew == [(7.0, 0), (None, None), (0.000001, 2)]
    assert after({"t_nanos": "t_nanos + 5"}) == [(1.0, 6), (None, None), (0.000001, 7)]


def test_values_of_other_keys_stay_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(
        {
            "key": [1, 2],
            "n": [1, 2**53 + 1],
            "d": pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 18)),
            "l": [[1], [2**53 + 1]],
        }
    )
    states = {
        "n": statetool.value("BIGINT"),
        "d": statetool.value(statetool.flink.BIG_DECIMAL),
        "l": statetool.list_of("BIGINT"),
    }
    state = statetool.bootstrap_keyed_state(table, states=states)
    statetool.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "base"), flink_version="2.3")
    op = statetool.load(str(tmp_path / "base"), spark)["op"]
    with pytest.raises(MissingKeyError, match=r"no key fulfills the condition \[searched: op\].*--allow-missing"):
        op.transform({"n": "n + 1"}, where="key = 3 OR n IS NULL")
    op.transform({"n": "n + 1"}, where="key = 3", allow_missing=True).write(str(tmp_path / "same"))
    assert entries(statetool.load(str(tmp_path / "same"))["op"]) == entries(op)
    for name, sql, kind in (
        ("n", "n * 0.5D", "double"),
        ("d", "CAST(d AS DOUBLE)", "double"),
        ("l", "array(0.5D)", "array<double>"),
    ):
        with pytest.raises(OptionError, match=f"{name!r} would become {kind} for all keys"):
            op.transform({name: sql}, where="key = 1")
    assert op.transform({"n": "CAST(n AS DECIMAL(20, 4))", "d": "d"}, where="key = 1") is not None


def test_how_arrow_keeps_values_says_nothing_of_their_type(tmp_path: Path) -> None:
    """Other orders of fields, units, offsets and element names do not change the state's type."""
    color = flink.enum("com.acme.Color", ["RED", "BLUE"])
    order = flink.pojo("com.acme.Order", {"color": color, "n": flink.LONG})
    stamps = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    states = {
        "color": statetool.value(color),
        "order": statetool.value(order),
        "colors": statetool.value(flink.list_of(color)),
        "time": statetool.value(flink.DATE),
    }
    table = pa.table(
        {
            "key": [1, 2],
            "color": ["RED", "BLUE"],
            "order": [{"color": "RED", "n": 1}, None],
            "colors": [["RED"], []],
            "time": stamps,
        }
    )
    state = statetool.bootstrap_keyed_state(table, states=states)
    writer = statetool.SavepointWriter.new().with_operator("op", state)
    op = writer.write(str(tmp_path / "sp"), flink_version="2.3")["op"]

    def change(table: pa.Table) -> pa.Table:
        turned = pa.array([{"n": 1, "color": "BLUE"}, {"n": 2, "color": "RED"}])
        made = {
            "color": table["color"].cast(pa.large_string()).dictionary_encode(),
            "order": turned,
            "colors": pa.array([["BLUE", "RED"]] * 2, pa.large_list(pa.large_string())),
            "time": table["time"].cast(pa.timestamp("ns", "Europe/Berlin")),
        }
        return pa.table({"key": table["key"], **made})

    new = op.transform(change).write(str(tmp_path / "new"))["op"]
    assert {n: s.value_type for n, s in new.states.items()} == {n: s.value_type for n, s in op.states.items()}
    rows = new.to_arrow().sort_by("key")
    assert rows["order"].to_pylist() == [{"color": "BLUE", "n": 1}, {"color": "RED", "n": 2}]
    assert rows["colors"].to_pylist() == [["BLUE", "RED"]] * 2
    assert rows["time"].to_pylist() == stamps.to_pylist()


def test_a_function_that_drops_rows_is_told_which_timers_stay(tmp_path: Path) -> None:
    operator = statetool.load(ZOO)["timers"]
    with pytest.warns(UserWarning, match=r"dropped 1 row.*stay in _timer_state/.*call erase\('timers', keys\)"):
        operator.transform(lambda table: table.slice(1))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "_BATCH_BYTES", 2 << 10)


@pytest.mark.usefixtures("small_batches")
def test_rows_of_a_change_in_batches_do_not_grow_with_the_keys(tmp_path: Path) -> None:
    most: dict[int, int] = {}
    rows = 0

    def change(table: pa.Table) -> pa.Table:
        nonlocal rows
        rows = max(rows, table.num_rows)
        return added("n", 1)(table)

    for keys in (500, 2_000):
        table = pa.table({"key": range(keys), "n": range(keys), "kept": ["x" * (i % 50) for i in range(keys)]})
        state = statetool.bootstrap_keyed_state(table)
        sp = statetool.SavepointWriter.new().with_operator("a", state, parallelism=1)
        operator = sp.write(str(tmp_path / f"{keys}"))["a"]
        whole = operator.transform(added("n", 1), states=["n"]).write(str(tmp_path / f"{keys}-whole"))
        rows = 0
        new = operator.transform(change, states=["n"], in_batches=True).write(str(tmp_path / f"{keys}-batches"))
        assert entries(new["a"]) == entries(whole["a"])
        most[keys] = rows
    assert most[2_000] <= 1.1 * most[500] < 400


@pytest.mark.usefixtures("small_batches")
def test_a_change_in_batches_may_add_states_and_drop_keys(tmp_path: Path) -> None:
    operator = statetool.load(ZOO)["timers"]

    def change(table: pa.Table) -> pa.Table:
        return table.slice(1).append_column("text", table["registered"][1:].cast(pa.string()))

    edits = operator.transform(change, in_batches=True)
    with pytest.warns(UserWarning, match=r"dropped \d+ rows?.*stay in _timer_state/"):
        new = edits.write(str(tmp_path / "new"))["timers"]
    texts = {row["key"]: (row["registered"], row["text"]) for row in new.to_arrow().to_pylist()}
    before = {row["key"]: row["registered"] for row in operator.to_arrow().to_pylist()}
    assert texts == {key: (before[key], str(before[key])) for key in texts}
    assert 0 < len(texts) < len(before)


@pytest.mark.usefixtures("small_batches")
def test_changes_in_batches_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"key": range(4_000), "n": range(4_000)})
    state = statetool.bootstrap_keyed_state(table)
    sp = statetool.SavepointWriter.new().with_operator("a", state, parallelism=1)
    operator = sp.write(str(tmp_path / "base"))["a"]
    kinds = iter([pa.int64(), pa.int64(), pa.string()])
    edits = operator.transform(lambda t: t.set_column(1, "n", t["n"].cast(next(kinds))), states=["n"], in_batches=True)
    with pytest.raises(OptionError, match=r"other columns for a later batch.*n string.*n int64.*cast the columns"):
        edits.write(str(tmp_path / "new"))
    with pytest.raises(OptionError, match="returns list, not a table"):
        operator.transform(lambda t: t.to_pylist(), in_batches=True)
    with pytest.raises(OptionError, match="in_batches= cannot be combined with expressions"):
        operator.transform({"n": "n + 1"}, in_batches=True)
    on_spark = statetool.load(str(tmp_path / "base"), spark)["a"]
    with pytest.raises(OptionError, match="in_batches= applies to Arrow tables"):
        on_spark.transform(lambda frame: frame, in_batches=True)
    frame = statetool.bootstrap_keyed_state(spark.createDataFrame([(1, 2)], "key BIGINT, m BIGINT"))
    both = operator.transform(added("n", 1), states=["n"], in_batches=True).with_operator("b", frame)
    with pytest.raises(
        OptionError, match=r"in_batches=True cannot be written together with DataFrames.*write this change first"
    ):
        both.write(str(tmp_path / "both"))


def test_a_change_in_batches_of_no_keys(tmp_path: Path) -> None:
    empty = pa.table({"key": pa.array([], pa.int64()), "n": pa.array([], pa.int64())})
    state = statetool.bootstrap_keyed_state(empty)
    operator = statetool.SavepointWriter.new().with_operator("a", state, parallelism=1).write(str(tmp_path / "a"))["a"]
    new = operator.transform(added("n", 1), states=["n"], in_batches=True).write(str(tmp_path / "new"))
    assert new["a"].to_arrow().num_rows == 0


def test_one_field_of_a_struct_is_changed(spark: Any, tmp_path: Path) -> None:
    sp = statetool.load(ZOO, spark=spark)
    uid = "collections-by-string"
    change = {"mean.f0": "mean.f0 + 1", "history": "history"}
    new = sp[uid].transform(change, where="key = ''").write(str(tmp_path / "new"))
    old_rows, new_rows = (
        {r.key: r["mean"].asDict() for r in s[uid].keyed_state(["mean"]).collect()} for s in (sp, new)
    )
    old_rows[""]["f0"] += 1
    assert new_rows == old_rows
    with pytest.raises(UnknownNameError, match="no field 'f9'"):
        sp[uid].transform({"mean.f9": "1"})
    with pytest.raises(OptionError, match="has no fields"):
        sp[uid].transform({"total.f9": "1"})
    with pytest.raises(OptionError, match="in part"):
        sp[uid].transform({"mean.f0": "1", "mean": "mean"})


@pytest.mark.full
@pytest.mark.parametrize(
    ("expression", "says"),
    # A field in a state is no name of a state.
    [("v=v", True), ("v=v + 1", False), ("r.f0=r.f0", True), ("r.f0=r.f0 + 1", False)],
)
def test_a_command_that_changes_nothing_says_so(
    tmp_path: Path, spark: SparkSession, expression: str, says: bool
) -> None:
    table = pa.table({"id": [1, 2], "v": [1, 2], "r": [{"f0": 1}, {"f0": 2}]})
    types = {"v": statetool.value("BIGINT"), "r": statetool.value("ROW<f0 BIGINT>")}
    state = statetool.bootstrap_keyed_state(table, key="id", states=types)
    statetool.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "sp"), flink_version="2.3")
    words = ("transform", str(tmp_path / "sp"), str(tmp_path / "new"), "--uid", "op", "--set", expression)
    for dry_run in (("--dry-run",), ()):
        done = CliRunner().invoke(cli, [*words, *dry_run])
        assert done.exit_code == 0, done.output
        assert (f"nothing {'would change' if dry_run else 'changed'}" in done.stderr) == says
