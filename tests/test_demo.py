"""The bundled savepoints of the shop: everything decodes, and no number needs an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.demo import NEXT_DAY, SAVEPOINT

BOTH = pytest.mark.parametrize("path", [SAVEPOINT, NEXT_DAY], ids=["savepoint", "next-day"])


def numbers(value: Any) -> Iterator[int | float | Decimal]:
    """Yield all numbers inside a value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, int | float | Decimal):
        yield value


@BOTH
def test_every_value_of_the_shop_is_read(path: str) -> None:
    found = statetool.verify(path, deep=True)
    assert (found.ok, list(found.problems)) == (True, [])
    assert sum(f.stat().st_size for f in Path(path).iterdir()) < 60_000


@BOTH
def test_no_number_of_the_shop_is_negative(path: str) -> None:
    savepoint = statetool.load(path)
    tables: dict[str, Any] = {
        f"{operator.name} {table}": operator.to_arrow(table).to_pylist()
        for operator in savepoint.operators.values()
        for table in operator.tables
    }
    tables |= {name: savepoint.to_arrow(name).to_pylist() for name in ("operators", "states", "files", "key_groups")}
    stats = savepoint.stats()
    tables |= {name: stats.to_arrow(name).to_pylist() for name in ("operators", "states", "skew")}
    assert {name: rows for name, rows in tables.items() if any(n < 0 for n in numbers(rows))} == {}


def test_the_sums_of_the_shop_agree() -> None:
    for path in (SAVEPOINT, NEXT_DAY):
        for row in statetool.load(path)["orders"].to_arrow().to_pylist():
            assert row["total_cents"] == sum(cents for _, cents in row["spent"] or ())
            assert row["points"] == row["total_cents"] // 100
