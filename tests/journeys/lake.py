"""Each checkpoint of a job is added to tables of Delta and Iceberg, without Spark and Java."""

from __future__ import annotations

from typing import Final

from tests.journeys.steps import Steps
from tools.sandbox import create

PACKAGES: Final = ("statetool[delta,iceberg]", "pyiceberg[sql-sqlite]")
#: Expressions of a table, by the names of its format and of the table.
_READ: Final = {
    ("delta", "reminders"): "__import__('deltalake').DeltaTable('reminders').to_pyarrow_table()",
    ("iceberg", "lake.state.reminders"): (
        "__import__('pyiceberg.catalog').catalog.load_catalog('lake').load_table('state.reminders').scan().to_arrow()"
    ),
}


def run(steps: Steps) -> None:
    """Add checkpoints to both tables, and read them."""
    create(steps.folder / "flink")
    steps.variables = {
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{steps.folder}/catalog.db",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"file://{steps.folder}/warehouse",
    }
    steps.begin()
    for (style, table), expression in _READ.items():
        for checkpoint in (41, 42, 43):
            path = f"flink/checkpoints/chk-{checkpoint}"
            steps.run(f"statetool export {path} reminders keyed_state {table} --format {style} --append")
        ids = f"{expression}['checkpoint_id'].to_pylist()"
        assert steps.run(f'python -c "x = {ids}; print(sorted(set(x)), len(x))"') == "[41, 42, 43] 24\n"
        again = f"statetool export flink/checkpoints reminders keyed_state {table} --latest --format {style} --append"
        steps.run(again, code=2)  # no checkpoint is added twice
