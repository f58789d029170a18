"""``statetool demo``: the bundled savepoint in local Spark."""

from __future__ import annotations

import statetool
from statetool.demo import SAVEPOINT
from statetool.spark.session import local_session

ROWS = 2
QUERY = """
    SELECT t.service, t.domain, count(*) AS timers, count(DISTINCT t.key) AS keys, min(s.registered) AS least
    FROM demo_timers_timers t JOIN demo_timers_keyed_state s ON t.key = s.key
    GROUP BY t.service, t.domain ORDER BY t.domain
"""


def run_demo() -> None:
    """Print the namespaces of the bundled savepoint, the first rows of every table, and one SQL query.

    Raises
    ------
    MissingDependencyError
        There is no Java or no pyspark; says what to install.
    """
    spark = local_session(cores="2", name="statetool demo")
    spark.sparkContext.setLogLevel("ERROR")
    savepoint = statetool.load(SAVEPOINT, spark=spark)
    print(f"{SAVEPOINT}: checkpoint {savepoint.checkpoint_id}, metadata version {savepoint.metadata_version}")
    for operator in savepoint.operators.values():
        if not operator.tables:
            continue
        print(f"\n== {operator.name} (parallelism {operator.parallelism}, {operator.max_parallelism} key groups)")
        for table in operator.tables:
            print(f"-- {operator.name}.{table}")
            operator.table(table).show(ROWS, truncate=60)
    savepoint.register("demo")
    print(f"-- SQL{QUERY}")
    spark.sql(QUERY).show()
    spark.stop()
