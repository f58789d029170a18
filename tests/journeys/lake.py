"""Each checkpoint of a job is added to tables of Delta and Iceberg, without Spark and Java."""

from __future__ import annotations

from typing import Final

from tests.journeys.steps import Steps
from tools.sandbox import create

PACKAGES: Final = ("statetool[delta,iceberg]", "pyiceberg[sql-sqlite]")
#: Statements that read a table, by the names of its format and of the table. ``DeltaTable.to_pyarrow_table`` is left out: its threads close
#: Python files while the interpreter ends, which aborts the process (apache/arrow#34314).
_READ: Final = {
    ("delta", "reminders"): (
        "import deltalake, pyarrow; engine = deltalake.QueryBuilder().register('reminders', deltalake.DeltaTable('reminders')); "
        "table = pyarrow.table(engine.execute('SELECT checkpoint_id FROM reminders').read_all())"
    ),
    ("iceberg", "lake.state.reminders"): (
        "from pyiceberg.catalog import load_catalog; table = load_catalog('lake').load_table('state.reminders').scan().to_arrow()"
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
    for (style, table), statements in _READ.items():
        for checkpoint in (41, 42, 43):
            path = f"flink/checkpoints/chk-{checkpoint}"
            steps.run(f"statetool export {path} reminders keyed_state {table} --format {style} --append")
        ids = "ids = table['checkpoint_id'].to_pylist(); print(sorted(set(ids)), len(ids))"
        assert steps.run(f'python -c "{statements}; {ids}"') == "[41, 42, 43] 24\n"
        again = f"statetool export flink/checkpoints reminders keyed_state {table} --latest --format {style} --append"
        steps.run(again, code=2)  # no checkpoint is added twice
