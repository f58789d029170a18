"""The shop of the demo: real Flink writes the bundled savepoints again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

import statetool
from statetool.demo import NEXT_DAY, SAVEPOINT
from tests.support.flink.shop_job import open_shop, take_savepoints
from tests.support.notebooks import NOTEBOOKS

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]
#: Its state contains ids that a broker has given to producers.
SINK = ("invoices", "Sink Committer: invoices")


def tables(path: str) -> dict[tuple[str, str], list[str]]:
    """Return the rows of all tables, without their order."""
    savepoint = statetool.load(path)
    rows = {
        (str(operator.uid), table): sorted(map(str, operator.to_arrow(table, **_with_ages(table)).to_pylist()))
        for operator in savepoint.operators.values()
        if operator.uid not in SINK
        for table in operator.tables
    }
    return {**rows, ("events", "splits"): sorted(map(str, savepoint.connector_rows("source_splits")))}


def _with_ages(table: str) -> dict[str, Any]:
    return {} if table in ("timers", "windows") else {"ttl": "raw"}


def test_flink_writes_the_bundled_savepoints(tmp_path: Path) -> None:
    for taken, bundled in zip(take_savepoints(tmp_path), (SAVEPOINT, NEXT_DAY), strict=True):
        assert tables(str(taken)) == tables(bundled)
        transactions = statetool.load(str(taken)).connector_rows("transactions")
        assert len(transactions) == len(statetool.load(bundled).connector_rows("transactions"))


def test_the_job_goes_on_from_the_savepoint_that_the_notebook_corrects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cells: dict[str, Any] = {}
    for cell in nbformat.read(NOTEBOOKS / "correct-a-value.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, cells)
    with open_shop(tmp_path) as shop:
        shop.skip_day()
        found = tables(str(shop.run_day(cells["target"])))
    expected = tables(NEXT_DAY)
    for table, values in (
        ("keyed_state", ("'points': 87", "'points': 187")),
        ("points", ("'value': 87", "'value': 187")),
    ):
        expected["orders", table] = sorted(
            row.replace(*values) if "'key': 'Ben'" in row else row for row in expected["orders", table]
        )
    assert found == expected
