"""First rows of a table, and the listing of all tables: as text, HTML and pandas."""

from __future__ import annotations

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, UnknownNameError
from statetool.tables.rows import Rows
from tests.support.zoo import ZOO


def test_first_rows_are_those_of_the_table() -> None:
    operator = statetool.load(ZOO)["timers"]
    rows = operator.head(3, "timers")
    assert rows.to_arrow().equals(operator.to_arrow("timers").slice(0, 3).combine_chunks())
    assert [row["key"] for row in rows] == rows.to_pandas()["key"].tolist()
    assert len(operator.head()) == 5
    assert operator.head().to_arrow().column_names == operator.to_arrow().column_names


def test_an_operator_without_keyed_state_shows_its_first_table() -> None:
    operator = statetool.load(ZOO)["op-lists"]
    assert operator.tables[0] == "buffered"
    assert operator.head(2).to_arrow().equals(operator.to_arrow("buffered").slice(0, 2).combine_chunks())


def test_libraries_of_arrow_take_an_operator() -> None:
    savepoint = statetool.load(ZOO)
    assert pa.table(savepoint["timers"]).equals(savepoint["timers"].to_arrow())
    assert pa.table(savepoint["op-lists"]).equals(savepoint["op-lists"].to_arrow("buffered"))


def test_values_of_unknown_classes_are_bytes_with_the_reason() -> None:
    shown = statetool.load(ZOO)["orders"].head(on_error="keep_raw")._repr_html_()
    assert "0x02" in shown
    assert "PublicTypes$Money" in shown


def test_wrong_numbers_and_names_are_errors() -> None:
    operator = statetool.load(ZOO)["timers"]
    with pytest.raises(OptionError):
        operator.head(0)
    with pytest.raises(UnknownNameError):
        operator.head(1, "nothing")


def test_the_listing_has_every_table_of_every_operator() -> None:
    sp = statetool.load(ZOO)
    listed = [(row["operator"], row["table"]) for row in sp.tables]
    assert listed == [(name, table) for name, op in sp.operators.items() for table in op.tables]
    order = next(row for row in sp.tables if row["table"] == "order")
    assert order["value_type"] == "POJO corpus.PublicTypes$Order"
    assert "PublicTypes$Money" in order["reason"]
    assert sp.tables._repr_html_().count("<tr>") == 1 + len(listed)


def test_text_is_cut_and_html_is_escaped() -> None:
    table = pa.table({"<b>": ["<i>\x1b" + "x" * 5000], "n": [12345]})
    rows = Rows(table, "<u>", ["<s>"])
    assert all(len(line) < 100 for line in repr(rows).splitlines())
    assert "\x1b" not in repr(rows)
    shown = rows._repr_html_()
    assert not {tag for tag in ("<b>", "<i>", "<u>", "<s>", "\x1b") if tag in shown}
    assert "12345" in shown
    assert len(shown) < 10_000
    assert rows.to_pandas().iloc[0, 0] == table.column(0)[0].as_py()
