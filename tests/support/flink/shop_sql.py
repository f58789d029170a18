"""The SQL job of the notebook ``sql-job``: sales of the shop by city. The orders and customers are those of ``shop/events.txt``.

``python -m tests.support.flink.shop_sql`` runs the compiled plan in Flink, and writes the savepoint and the plan to ``notebooks/sql-job``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.support.flink.machine import FlinkMachine
from tests.support.flink.shop_job import FLINK, days
from tests.support.flink.sql import Input, Query, Row, run_query
from tests.support.notebooks import NOTEBOOKS

FOLDER: Final = NOTEBOOKS / "sql-job"
SALES: Final = Query(
    inputs=(
        Input(
            name="orders",
            columns=(("customer", "STRING", "STRING"), ("product", "STRING", "STRING"), ("cents", "LONG", "BIGINT")),
        ),
        Input(name="customers", columns=(("name", "STRING", "STRING"), ("city", "STRING", "STRING"))),
    ),
    sql="SELECT c.city, COUNT(*) AS orders, SUM(o.cents) AS cents, MAX(o.cents) AS largest "
    "FROM orders AS o JOIN customers AS c ON o.customer = c.name GROUP BY c.city",
)


def sales_rows() -> dict[str, list[Row]]:
    """Return the rows of both tables until the first savepoint of the shop."""
    rows: dict[str, list[Row]] = {"orders": [], "customers": []}
    _, records = next(days())
    for _, text in records:
        match text.split():
            case ["order", customer, _, product, _, cents]:
                rows["orders"].append(("INSERT", customer, product, int(cents)))
            case ["joined", name, _, city, _]:
                rows["customers"].append(("INSERT", name, city))
    return rows


def main() -> None:
    """Replace the savepoint and the plan."""
    rows = sales_rows()
    cities = {city for _, _, city in rows["customers"]}
    # A new row of a city is one change, and each further order two: the old row goes, the new one comes.
    changes = 2 * len(rows["orders"]) - len(cities)
    with tempfile.TemporaryDirectory() as work:
        machine = FlinkMachine(FLINK, Path(work))
        try:
            answer = run_query(machine, SALES, rows, results=changes, savepoint=Path(work) / "taken", planned=True)
        finally:
            machine.close()
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(answer["savepoint"], FOLDER / "savepoint")
        (FOLDER / "plan.json").write_text(answer["plan"], "utf-8")
        (FOLDER / "query.sql").write_text(f"{SALES.sql.replace(' FROM', chr(10) + 'FROM')}\n", "utf-8")


if __name__ == "__main__":
    main()
