"""The terminal browser, driven by textual's pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import DataTable, Static, Tree

import statetool
from statetool.cli.read.browser import Browser
from tests.support.patience import PATIENCE_S
from tests.support.zoo import ZOO


def browse(width: int, steps: Callable[[Browser, Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = Browser(statetool.load(ZOO))
        async with app.run_test(size=(width, 30)) as pilot:
            await steps(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for what a key or a thread will do: on a busy machine, a pause of the pilot ends before."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited too long"
        await pilot.pause(0.02)


async def show(app: Browser, pilot: Pilot[None], operator: str, table: str) -> DataTable[Any]:
    """Open an operator in the tree, and one of its tables, by keyboard."""
    tree = app.query_one(Tree)
    node = next(n for n in tree.root.children if n.data == (operator, ""))
    node.expand()

    def is_chosen() -> bool:
        for leaf in node.children:
            if leaf.data == (operator, table):
                tree.move_cursor(leaf)
                return tree.cursor_node is leaf
        return False

    await until(pilot, is_chosen)
    tree.focus()
    app.query_one("#about", Static).update("")
    await pilot.press("enter")
    await until(pilot, lambda: about(app) != "" and not about(app).endswith("reading ..."))
    return app.query_one(DataTable)


def about(app: Browser) -> str:
    return str(app.query_one("#about", Static).content)


@pytest.mark.parametrize("width", [80, 200])
def test_tables_of_an_operator_are_shown(width: int) -> None:
    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        table = await show(app, pilot, "with-ttl", "keyed_state")
        assert table.row_count == 13
        assert [str(c.label) for c in table.ordered_columns][:3] == ["key", "ttl-value", "ttl-map"]
        assert "13 rows, end of table" in about(app)
        cell = max(len(str(v)) for v in table.get_row_at(1))
        assert cell <= width // 3
        table.focus()
        await pilot.press("enter")
        text = "{k0 -> 56, k1 -> 69, k2 -> 82, k3 -> 43}"
        await until(pilot, lambda: any(text in str(s.content) for s in app.screen.query(Static)))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        states = await show(app, pilot, "timers", "states")
        assert states.row_count == 3

    browse(width, steps)


def test_more_rows_are_read_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.cli.read.browser.PAGE", 10)

    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        table = await show(app, pilot, "timers", "timers")
        assert (table.row_count, about(app).splitlines()[-1]) == (10, "10 rows, press m for more")
        await pilot.press("m")
        await until(pilot, lambda: about(app).splitlines()[-1] == "20 rows, press m for more")
        assert table.row_count == 20

    browse(80, steps)


def test_every_table_of_the_snapshot_can_be_shown() -> None:
    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        for operator in ("op-lists", "by-tuple", "orders", "win-session-list"):
            for name in statetool.load(ZOO)[operator].tables:
                await show(app, pilot, operator, name)
                assert "rows, " in about(app), (operator, name, about(app))

    browse(80, steps)


def test_what_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise statetool.StatetoolError("[damaged] bytes")

    monkeypatch.setattr("statetool.cli.read.browser._rows", fail)

    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        await show(app, pilot, "timers", "timers")
        assert about(app) == r"\[damaged] bytes"

    browse(80, steps)


def test_keys_for_rows_say_that_no_table_is_open() -> None:
    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        for key in ("slash", "s", "m"):
            app.query_one("#about", Static).update("")
            await pilot.press(key)
            await until(pilot, lambda: "no table is open" in about(app))
        await show(app, pilot, "with-ttl", "keyed_state")
        await pilot.press("slash", "5")
        await until(pilot, lambda: "of 13 contain '5'" in about(app))

    browse(80, steps)


def test_rows_are_filtered_and_sorted_and_keys_are_explained() -> None:
    async def steps(app: Browser, pilot: Pilot[None]) -> None:
        table = await show(app, pilot, "with-ttl", "keyed_state")
        table.focus()
        first = str(table.get_row_at(0)[0])
        await pilot.press("s", "s")
        await until(pilot, lambda: "sorted by ttl-value" in about(app))
        await pilot.press("slash", "5", "6")
        await until(pilot, lambda: "of 13 contain '56'" in about(app))
        assert 0 < table.row_count < 13
        assert all("56" in str(row) for row in app._shown)
        await pilot.press("escape")
        await until(pilot, lambda: table.row_count == 13)
        while "sorted" in about(app):
            await pilot.press("s")
            await pilot.pause(0.02)
        assert str(table.get_row_at(0)[0]) == first
        await pilot.press("question_mark")
        await until(pilot, lambda: any("sort" in str(s.content) for s in app.screen.query(Static)))
        card = app.screen.query_one(VerticalScroll)
        assert "Escape" in str(card.border_subtitle)
        assert app.focused is card
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)

    browse(120, steps)
