"""The notebooks are executed: they print their stored outputs, which contain the expected numbers."""

from __future__ import annotations

import nbformat
import pytest

import statetool
from tests.support.flink.shop_sql import FOLDER, sales_rows
from tests.support.notebooks import NOTEBOOKS, executed, printed

#: Expected text in the outputs of each notebook, stored and new.
EXPECTED = {
    "a-first-state": ["{'EUR': 0.25}", "2027-01-15 08:00:00+00:00", "ValueStateDescriptor<Long> countState", "True"],
    "compare-two-savepoints": [
        "difference daily-sales",
        "orders.points: +0 -1 ~1",
        "daily-sales.window-contents: +0 -4 ~0",
    ],
    "correct-a-value": ["[('orders', 'points', 'Ben', '87', '187')]", "149 entries, 45 keys", "0 problems", "fully"],
    "follow-checkpoints": ["chk-3 3 True newest", "1 4\n2 8\n3 12", "{('sent', 'added'): 8}"],
    "open-a-savepoint": [
        "operators: 11",
        "tables: 31",
        "state bytes: 33727",
        "key groups of orders: 128, not empty: 12",
        "keys: 12",
        "reminders: {'2026-03-04': 1, '2026-03-07': 1",
    ],
    "sources-and-sinks": ["orders-0 reader 25 -> 20", "shop-invoices-1-2  received", "15.0"],
    "state-of-a-sql-job": ["[{'key': {'f0': 'Paris'}", "accState.sum(cents)", "'London': 10590", "equal: True"],
    "test-a-job": ["ValueStateDescriptor<Integer> pointsState", "is_valid PASSED", "adds_points SKIPPED"],
    "what-is-large": [
        "11349",
        "'Ada'",
        "subtask 3 of 4 would hold 2.15 of the mean",
        "33 values have an age, 6 are older",
    ],
    "who-is-this-key": ["('reminders', 'timers'): 1", "key group 125 of 128, subtask 1 of 2", "total_cents: readable"],
}
PLOTS = {"open-a-savepoint": 1, "what-is-large": 1}


def test_every_notebook_is_checked() -> None:
    assert {p.stem for p in NOTEBOOKS.glob("*.ipynb")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_notebook_is_stored_with_what_it_is_about(name: str) -> None:
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    shown = "".join(printed(stored))
    for words in EXPECTED[name]:
        assert words in shown
    outputs = [o for c in stored.cells if c.cell_type == "code" for o in c.outputs]
    assert sum("image/png" in o.get("data", {}) for o in outputs) == PLOTS.get(name, 0)
    assert not any(o.output_type == "error" or "/tmp/" in str(o) for o in outputs)


@pytest.mark.full
@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_notebook_prints_what_is_stored(name: str) -> None:
    path = NOTEBOOKS / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    assert printed(executed(path)) == printed(stored), "run python -m tests.support.notebooks"


def test_the_sql_job_of_the_notebook_has_the_sales_of_the_shop() -> None:
    rows = sales_rows()
    city_of = {name: city for _, name, city in rows["customers"]}
    orders: dict[str, list[int]] = {}
    for _, customer, _, cents in rows["orders"]:
        orders.setdefault(city_of[customer], []).append(cents)
    sp = statetool.load(str(FOLDER / "savepoint"), columns_from_plan=str(FOLDER / "plan.json"))
    sales = sp["9_group-aggregate"].to_arrow(states=["accState"]).to_pylist()
    assert {r["key"]["city"]: list(r["accState"].values()) for r in sales} == {
        city: [len(cents), sum(cents), max(cents), "+I"] for city, cents in orders.items()
    }
