"""State that is read and written back unchanged has the same bytes, including scales of BigDecimals and stored nulls."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.columns.decode import as_data
from statetool.columns.types import PRESENT, SCALE
from statetool.columns.values import map_values
from statetool.errors import DecodeError, EncodeError, OptionError
from statetool.serializers.typeutils.options import OptionSerializer
from statetool.types.options import ReadOptions
from tests.support.snapshots.stored import stored_entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: As written by Java's BigDecimal; the scales are 4, 1, 2, 0, -3, 18 and 30.
NUMBERS = ["58.6006", "1.5", "1.50", "7", "1E+3", "1E-18", "0E-30"]
OPTION = OptionSerializer(
    "org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 3, 2, None, (flink.LONG,)
)
PAIR = flink.row(flink.BIG_DECIMAL, flink.STRING)


def written(path: Path, *bootstraps: Any) -> st.Operator:
    writer = st.SavepointWriter.new(max_parallelism=128).with_operator("op", *bootstraps, parallelism=2)
    return writer.write(str(path), flink_version="1.20")["op"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of this module's savepoints."""
    return tmp_path_factory.mktemp("exact")


@pytest.fixture(scope="module")
def decimals(folder: Path) -> st.Operator:
    """Keys and values with BigDecimals in every kind of structure, written from text."""
    text = pa.array(NUMBERS)
    n = len(NUMBERS)
    columns = {
        "key": text,
        "v": pa.array([*NUMBERS[1:], None]),
        "items": pa.array([NUMBERS[: i + 1] for i in range(n)]),
        "prices": pa.array(
            [[("a", x), ("b", None)] if i else [] for i, x in enumerate(NUMBERS)], pa.map_("string", "string")
        ),
        "by_number": pa.array([[(x, "v"), ("2.50", None)] for x in NUMBERS], pa.map_("string", "string")),
        "pair": pa.array([{"f0": x, "f1": "s"} if i != 2 else {"f0": None, "f1": None} for i, x in enumerate(NUMBERS)]),
        "lists": pa.array([[[x], [], [x, "3.140"]] for x in NUMBERS]),
        "timed": pa.array([{"last_access": 5, "value": x} for x in NUMBERS], _timed(pa.string())),
    }
    states = {
        "v": st.value(flink.BIG_DECIMAL),
        "items": st.list_of(flink.BIG_DECIMAL),
        "prices": st.map_of(flink.STRING, flink.BIG_DECIMAL),
        "by_number": st.map_of(flink.BIG_DECIMAL, flink.STRING),
        "pair": st.value(PAIR),
        "lists": st.list_of(flink.list_of(flink.BIG_DECIMAL)),
        "timed": st.value(flink.BIG_DECIMAL, ttl=True),
    }
    state = st.bootstrap_keyed_state(pa.table(columns), key_type=flink.BIG_DECIMAL, states=states)
    return written(folder / "decimals", state)


def _timed(value: pa.DataType) -> pa.DataType:
    return pa.struct([("last_access", pa.timestamp("ms", tz="UTC")), ("value", value)])


def test_scales_are_shown_beside_the_numbers(decimals: st.Operator) -> None:
    rows = {row["key_scale"]: row for row in decimals.to_arrow().to_pylist()}
    assert sorted(rows) == [-3, 0, 1, 2, 4, 18, 30]
    row = rows[1]
    assert (row["key"], row["v"], row[f"v{SCALE}"]) == (Decimal("1.5"), Decimal("1.5"), 2)
    assert row[f"items{SCALE}"] == [4, 1]
    assert row[f"prices{SCALE}"] == [("a", 1), ("b", None)]
    assert row[f"by_number{SCALE}"] == [{"key": 1}, {"key": 2}]
    assert row[f"pair{SCALE}"] == {"f0": 1}
    assert row[f"lists{SCALE}"] == [[1], [], [1, 3]]
    assert row[f"timed{SCALE}"] == 1
    plain = decimals.to_arrow(decimals="plain")
    assert not [name for name in plain.schema.names if name.endswith(SCALE)]
    table = decimals.to_arrow()
    assert table.select(plain.schema.names).equals(plain)


@pytest.mark.parametrize("option", ["decimal", "string"])
def test_tables_with_decimals_are_written_back_unchanged(decimals: st.Operator, tmp_path: Path, option: Any) -> None:
    table = decimals.to_arrow(ttl="raw", decimals=option)
    assert stored_entries(written(tmp_path / "like", st.bootstrap_keyed_state(table, like=decimals))) == stored_entries(
        decimals
    )
    grouped = decimals.to_arrow(ttl="raw", decimals=option, key_group=True)
    state = st.bootstrap_keyed_state(grouped, like=decimals, key_group="key_group")
    assert stored_entries(written(tmp_path / "grouped", state)) == stored_entries(decimals)
    # Portions and slices of tables keep the shapes of companions.
    sliced = pa.concat_tables([table.slice(3), table.slice(0, 3)])
    assert stored_entries(
        written(tmp_path / "sliced", st.bootstrap_keyed_state(sliced, like=decimals))
    ) == stored_entries(decimals)


@pytest.mark.parametrize("name", ["v", "items", "prices", "by_number", "pair", "lists", "timed"])
def test_the_long_form_with_decimals_is_written_back_unchanged(
    decimals: st.Operator, tmp_path: Path, name: str
) -> None:
    table = decimals.to_arrow(name, ttl="raw")
    new = written(tmp_path / "sp", st.bootstrap_state(name, table, like=decimals))
    assert stored_entries(new) == Counter({e: n for e, n in stored_entries(decimals).items() if e[0] == name})


def test_a_transform_that_changes_nothing_keeps_every_byte(decimals: st.Operator, tmp_path: Path) -> None:
    for option in ("decimal", "string"):
        edits = decimals.transform(lambda table: table, decimals=option)
        assert stored_entries(edits.write(str(tmp_path / option))["op"]) == stored_entries(decimals)


def test_a_changed_number_keeps_its_scale_or_gets_the_digits_that_it_needs(
    decimals: st.Operator, tmp_path: Path
) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = [None if v is None else v + Decimal("0.25") for v in table["v"].to_pylist()]
        return table.set_column(table.schema.get_field_index("v"), "v", pa.array(values, pa.decimal128(38, 18)))

    new = decimals.transform(change, states=["v"]).write(str(tmp_path / "sp"))["op"]
    texts = {row["key"]: row["v"] for row in new.to_arrow(states=["v"], decimals="string").to_pylist()}
    expected = ["1.75", "1.75", "7.25", "1000.25", "0.250000000000000001", "0.250000000000000000000000000000"]
    assert [texts[key] for key in NUMBERS[:-1]] == expected


def test_numbers_of_more_than_38_digits_are_transformed_as_text(tmp_path: Path) -> None:
    wide = "1" * 40 + ".50"
    table = pa.table({"key": pa.array([wide, "2"]), "v": pa.array([wide, "3.0"])})
    states = {"v": st.value(flink.BIG_DECIMAL)}
    op = written(tmp_path / "sp", st.bootstrap_keyed_state(table, key_type=flink.BIG_DECIMAL, states=states))
    with pytest.raises(st.errors.StatetoolError, match="pass decimals='string'"):
        op.transform(lambda t: t)
    new = op.transform(lambda t: t, decimals="string").write(str(tmp_path / "new"))["op"]
    assert stored_entries(new) == stored_entries(op)


@pytest.mark.parametrize(
    ("keep", "column"),
    [
        (["key", "v", f"v{SCALE}"], "key"),
        (["key", f"key{SCALE}", "v"], "v"),
        (["key", f"key{SCALE}", "prices"], "prices"),
        (["key", f"key{SCALE}", "lists"], "lists"),
        (["key", f"key{SCALE}", "timed"], "timed"),
    ],
)
def test_decimals_whose_scale_is_not_known_are_refused(
    decimals: st.Operator, tmp_path: Path, keep: list[str], column: str
) -> None:
    table = decimals.to_arrow(ttl="raw").select(keep)
    with pytest.raises(OptionError, match=f"column '{column}' is decimal.*scale.*not known") as caught:
        written(tmp_path / "sp", st.bootstrap_keyed_state(table, like=decimals))
    assert "decimals='string'" in str(caught.value)
    assert f"{column}{SCALE}" in str(caught.value)
    if column != "key":
        with pytest.raises(OptionError, match=f"'{column}{SCALE}', without which"):
            decimals.transform(lambda t: t.drop_columns([f"{column}{SCALE}"]))


def test_decimals_of_users_have_the_scale_of_their_type(tmp_path: Path) -> None:
    table = pa.table({"key": pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "v": pa.array([Decimal("2.500")])})
    op = written(tmp_path / "sp", st.bootstrap_keyed_state(table))
    assert op.to_arrow(decimals="string").to_pylist() == [{"key": "1.50", "v": "2.500"}]


def test_a_key_with_another_scale_than_its_companion_says_is_refused(decimals: st.Operator, tmp_path: Path) -> None:
    table = decimals.to_arrow(states=["v"])
    none = table.set_column(1, f"key{SCALE}", pa.nulls(len(table), pa.int32()))
    with pytest.raises(EncodeError, match="the key group depends on it"):
        written(tmp_path / "none", st.bootstrap_keyed_state(none, like=decimals))
    short = table.set_column(1, f"key{SCALE}", pa.array([0] * len(table), pa.int32()))
    with pytest.raises(EncodeError, match="with scale 0"):
        written(tmp_path / "short", st.bootstrap_keyed_state(short, like=decimals))


def test_scales_of_another_shape_are_refused(decimals: st.Operator, tmp_path: Path) -> None:
    table = decimals.to_arrow(states=["items"])
    at = table.schema.get_field_index("items")
    shorter = table.set_column(at, "items", pa.array([v[:-1] for v in table["items"].to_pylist()], table["items"].type))
    with pytest.raises(EncodeError, match=r"values with \d scales"):
        written(tmp_path / "sp", st.bootstrap_keyed_state(shorter, like=decimals))


@pytest.mark.parametrize("written_as", ["58.6006", "58.60060", "5860060E-5"])
def test_keys_are_found_by_their_numbers(decimals: st.Operator, written_as: str) -> None:
    (row,) = decimals.to_arrow(keys=[Decimal(written_as)]).to_pylist()
    assert (row["key"], row[f"key{SCALE}"]) == (Decimal("58.6006"), 4)
    assert decimals.to_arrow("v", keys=[Decimal(written_as)]).num_rows == 1


def test_keys_that_are_one_number_are_all_found(decimals: st.Operator) -> None:
    shown = [key for key in decimals.to_arrow(states=["v"])["key"].to_pylist() if key == Decimal("1.5")]
    found = decimals.to_arrow(states=["v"], keys=shown[:1])
    assert sorted(found[f"key{SCALE}"].to_pylist()) == [1, 2]
    assert decimals.to_arrow(keys=[Decimal("1.51")]).num_rows == 0
    assert decimals.to_arrow(keys=[Decimal(1000), Decimal(0)]).num_rows == 2


def test_operator_state_with_decimals_is_written_back_unchanged(tmp_path: Path) -> None:
    column = pa.table({"value": pa.array(NUMBERS), "key": pa.array(NUMBERS)})
    first = written(
        tmp_path / "first",
        st.bootstrap_list_state("list", column, type=flink.BIG_DECIMAL),
        st.bootstrap_broadcast_state("wide", column, key_type=flink.BIG_DECIMAL, value_type=flink.BIG_DECIMAL),
    )
    second = written(
        tmp_path / "second",
        st.bootstrap_list_state("list", first.to_arrow("list"), like=first),
        st.bootstrap_broadcast_state("wide", first.to_arrow("wide"), like=first),
    )
    for name in ("list", "wide"):
        rows = [sorted(op.to_arrow(name, decimals="string").to_pylist(), key=repr) for op in (first, second)]
        assert rows[0] == rows[1]
        assert sorted(row["value"] for row in rows[0]) == sorted(NUMBERS)
    state = st.bootstrap_list_state("list", first.to_arrow("list", decimals="plain"), like=first)
    with pytest.raises(OptionError, match="column 'value' is decimal"):
        written(tmp_path / "third", state)


# ---- null values and absent states ---------------------------------------------------------------


@pytest.fixture(scope="module")
def optional(folder: Path) -> st.Operator:
    """Keys with Some, with None and without the state, for plain and timed values; lists and maps that contain None."""
    columns = {
        "key": pa.array([1, 2, 3]),
        "o": pa.array([10, None, None]),
        f"o{PRESENT}": pa.array([True, True, False]),
        "n": pa.array([1, 2, 3]),
        "items": pa.array([[1, None], [None], None], pa.list_(pa.int64())),
        "by": pa.array([[("a", None), ("b", 2)], None, [("c", None)]], pa.map_("string", "int64")),
        "timed": pa.array(
            [{"last_access": 5, "value": 1}, {"last_access": 5, "value": None}, None], _timed(pa.int64())
        ),
    }
    states = {
        "o": st.value(OPTION),
        "n": st.value(flink.LONG),
        "items": st.list_of(OPTION),
        "by": st.map_of(flink.STRING, OPTION),
        "timed": st.value(OPTION, ttl=True),
    }
    return written(folder / "optional", st.bootstrap_keyed_state(pa.table(columns), states=states))


def test_null_values_are_told_from_absent_states(optional: st.Operator) -> None:
    rows = sorted(optional.to_arrow(states=["o", "timed", "n"]).to_pylist(), key=lambda row: row["key"])
    assert [(row["o"], row[f"o{PRESENT}"]) for row in rows] == [(10, True), (None, True), (None, False)]
    assert [(row["timed"], row[f"timed{PRESENT}"]) for row in rows] == [(1, True), (None, True), (None, False)]
    assert optional.to_arrow(presence="omit").schema.names == ["key", "o", "n", "items", "by", "timed"]
    assert f"timed{PRESENT}" not in optional.to_arrow(ttl="raw").schema.names


def test_null_values_are_written_back_unchanged(optional: st.Operator, tmp_path: Path) -> None:
    table = optional.to_arrow(ttl="raw")
    assert stored_entries(written(tmp_path / "like", st.bootstrap_keyed_state(table, like=optional))) == stored_entries(
        optional
    )
    new = optional.transform(lambda t: t).write(str(tmp_path / "same"))["op"]
    assert stored_entries(new) == stored_entries(optional)
    shown = st.bootstrap_keyed_state(optional.to_arrow(), like=optional, last_access_ms=5)
    assert stored_entries(written(tmp_path / "shown", shown)) == stored_entries(optional)
    for name in ("o", "items", "by", "timed"):
        long = st.bootstrap_state(name, optional.to_arrow(name, ttl="raw"), like=optional)
        expected = Counter({e: n for e, n in stored_entries(optional).items() if e[0] == name})
        assert stored_entries(written(tmp_path / f"long-{name}", long)) == expected


def test_nulls_that_nothing_tells_apart_are_refused(optional: st.Operator, tmp_path: Path) -> None:
    table = optional.to_arrow(states=["o", "n"], presence="omit").drop_columns(["n"])
    with pytest.raises(EncodeError, match="no state, or a state that holds null") as caught:
        written(tmp_path / "sp", st.bootstrap_keyed_state(table, like=optional))
    assert f"o{PRESENT}" in str(caught.value)
    with pytest.raises(OptionError, match=f"no column 'o{PRESENT}'"):
        optional.transform(lambda t: t.drop_columns([f"o{PRESENT}"]), states=["o"])
    wrong = optional.to_arrow(states=["o"]).set_column(2, f"o{PRESENT}", pa.array([False] * 2))
    with pytest.raises(EncodeError, match="has no state as"):
        written(tmp_path / "wrong", st.bootstrap_keyed_state(wrong, like=optional))
    known = table.filter(pa.compute.field("o").is_valid())
    op = written(tmp_path / "known", st.bootstrap_keyed_state(known, like=optional))
    assert op.to_arrow().to_pylist() == [{"key": 1, "o": 10, f"o{PRESENT}": True}]


def test_a_null_of_java_in_a_map_is_not_taken_for_none() -> None:
    data = as_data(b"\0\0" + b"\1")
    pos, end = np.array([0, 2]), np.array([2, 3])
    with pytest.raises(DecodeError, match=r"a null in the place of a .*Option") as caught:
        map_values(OPTION, data, pos, end, ReadOptions())
    assert caught.value.where.offset == 2
    assert map_values(OPTION, data, pos[:1], end[:1], ReadOptions()).to_pylist() == [None]


# ---- with Spark ----------------------------------------------------------------------------------


@pytest.mark.full
def test_expressions_that_change_nothing_keep_every_byte(
    decimals: st.Operator, optional: st.Operator, folder: Path, spark: SparkSession, tmp_path: Path
) -> None:
    for name, operator in (("decimals", decimals), ("optional", optional)):
        op = st.load(str(folder / name), spark=spark).with_uids(["op"])["op"]
        change = {state: f"`{state}`" for state in op.inventory.keyed_states}
        where = "key IS NULL" if name == "decimals" else None
        new = op.transform(change, where=where, allow_missing=True)
        assert stored_entries(new.write(str(tmp_path / name))["op"]) == stored_entries(operator)
        frame = op.keyed_state(ttl="raw")
        state = st.bootstrap_keyed_state(frame.repartition(3), like=op)
        assert stored_entries(written(tmp_path / f"{name}-like", state)) == stored_entries(operator)


@pytest.mark.full
@pytest.mark.usefixtures("decimals", "optional")
def test_expressions_keep_scales_and_null_values(folder: Path, spark: SparkSession, tmp_path: Path) -> None:
    op = st.load(str(folder / "decimals"), spark=spark).with_uids(["op"])["op"]
    new = op.transform({"v": "CAST(v + 1 AS DECIMAL(38, 18))"}, where="key = 7").write(str(tmp_path / "decimals"))["op"]
    texts = {row["key"]: row["v"] for row in new.to_arrow(states=["v"], decimals="string").to_pylist()}
    # A scale of -3 becomes 0, which 1001 needs.
    assert [texts[key] for key in NUMBERS[:-1]] == ["1.5", "1.50", "7", "1001", "1E-18", "0E-30"]
    more = op.transform({"v": "v", f"v{SCALE}": "3"}, where="key = 7").write(str(tmp_path / "scale"))["op"]
    (row,) = more.to_arrow(states=["v"], decimals="string", keys=[Decimal(7)]).to_pylist()
    assert row["v"] == "1000.000"

    op = st.load(str(folder / "optional"), spark=spark).with_uids(["op"])["op"]
    new = op.transform({"o": "o * 2"}).write(str(tmp_path / "optional"))["op"]
    rows = sorted(new.to_arrow(states=["o", "n"]).to_pylist(), key=lambda row: row["key"])
    assert [(row["o"], row[f"o{PRESENT}"]) for row in rows] == [(20, True), (None, True), (None, False)]


def test_edits_take_the_key_with_exactly_the_given_scale(decimals: st.Operator, tmp_path: Path) -> None:
    """In Java, ``1.5`` and ``1.50`` are two keys."""

    def scales(operator: st.Operator) -> list[int]:
        return sorted(operator.to_arrow(states=["v"], keys=[Decimal("1.5")])[f"key{SCALE}"].to_pylist())

    assert scales(decimals) == [1, 2]
    for i, (key, left) in enumerate((("1.5", [2]), ("1.50", [1]), ("1.500", []))):
        written_to = decimals.erase([Decimal(key)]).write(str(tmp_path / f"{i}"))
        assert scales(written_to[decimals.name]) == left
