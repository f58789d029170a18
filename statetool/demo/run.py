"""Tour of the bundled savepoint of a shop: the ``statetool demo`` command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol

import statetool
from statetool.demo import SAVEPOINT
from statetool.spark.session import check_java, local_session

TIMERS = """\
SELECT string(time) AS time, count(*) AS reminders
FROM reminders GROUP BY time ORDER BY time"""
JOIN = """\
SELECT key AS customer, customer.email, string(min(time)) AS next_reminder
FROM orders JOIN reminders USING (key) GROUP BY ALL ORDER BY next_reminder, customer LIMIT 3"""
NEXT = """
Next, pass the path of your own savepoint or checkpoint (or of this one: {path}). The first three commands need no Spark.
  statetool ls PATH                List its tables, or the snapshots below a directory
  statetool states PATH            List its states and their types
  statetool head PATH UID TABLE    Show rows of a table
  statetool shell PATH             Open a Python prompt with the snapshot, Spark, and a view per table
  statetool doctor --warm          Run once per machine: compile the kernels, so that Spark commands start a third faster"""


#: In a JVM that lives a few seconds, optimizing compilers, parallel collectors and verification of Spark's bytecode cost more time than
#: they save. Later Java versions ignore unknown options.
_SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms512m -Xmn300m "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

#: For queries of a few rows, code generation and adaptive planning of shuffles take longer than they save.
_FEW_ROWS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


class Printer(Protocol):
    """Printer of the tour's tables."""

    def rows(self, rows: Sequence[Any], *, columns: Sequence[str] | None = None) -> None:
        """Print records, with all columns or only ``columns``."""


def run_demo(out: Printer) -> None:
    """Show the bundled savepoint, one keyed state, an edit and its result, timers, and a join by SQL.

    Raises
    ------
    MissingDependencyError
        Java or pyspark is missing; says what to install.
    """
    check_java()
    with ThreadPoolExecutor(1) as starting:
        # The JVM starts while the first tables, which do not need it, are read.
        session = starting.submit(local_session, cores="2", name="statetool demo", java=_SHORT_LIVED)
        savepoint = statetool.load(SAVEPOINT)
        _show_contents(savepoint, out)
        _show_edit(savepoint, out)
        spark = session.result()
    _show_queries(savepoint.with_session(spark), spark, out)
    print(NEXT.format(path=_shorter(SAVEPOINT)))


def _show_contents(savepoint: statetool.Savepoint, out: Printer) -> None:
    with_state = [o for o in savepoint.operators.values() if o.tables]
    sizes = {row.operator: row.state_bytes for row in savepoint.metadata_rows("operators")}
    print(f"A savepoint that Flink wrote: the job of a small shop, {len(with_state)} operators with state\n")
    out.rows([_contents(operator, sizes[operator.name]) for operator in with_state])
    print(
        '\nOne row per key, one column per state: sp["orders"].keyed_state(states=["total_cents", "points", "spent"])\n'
    )
    table = savepoint["orders"].to_arrow(states=["total_cents", "points", "spent"])
    out.rows(table.sort_by("key").slice(0, 3).to_pylist())


def _contents(operator: statetool.Operator, size: int) -> Mapping[str, Any]:
    states = [name for name, state in operator.states.items() if state.kind != "timers"]
    timers = len(states) < len(operator.states)
    return {
        "operator": operator.name,
        "parallelism": operator.parallelism,
        "bytes": size,
        "states": ", ".join([*states, *(["timers"] if timers else [])]),
    }


def _show_edit(savepoint: statetool.Savepoint, out: Printer) -> None:
    import pyarrow.compute as pc

    operator = savepoint["orders"]
    table = operator.to_arrow(states=["points"]).sort_by("key")
    print(
        "\nAn edit: 100 bonus points for every customer, with the job's own serializers; everything else keeps its bytes\n"
    )
    changed = table.set_column(1, "points", pc.add(table["points"], 100).cast("int32"))
    with tempfile.TemporaryDirectory() as folder:
        change = statetool.bootstrap_keyed_state(changed, like=operator)
        writer = statetool.SavepointWriter.from_existing(savepoint).with_operator("orders", change)
        written = writer.write(str(Path(folder) / "corrected"))
        corrected = written["orders"].to_arrow(states=["points"]).sort_by("key")
        differing = [o.name for o in savepoint.operators.values() if not _same(o, written[o.name])]
        before, after = table["points"].to_pylist(), corrected["points"].to_pylist()
        rows = zip(table["key"].to_pylist(), before, after, strict=True)
        out.rows([dict(zip(("customer", "before", "after"), row, strict=True)) for row in list(rows)[:3]])
        print(f"\nRead back; operators with other keyed state than before: {', '.join(differing)}")


def _show_queries(savepoint: statetool.Savepoint, spark: Any, out: Printer) -> None:
    spark.sparkContext.setLogLevel("ERROR")
    for name, value in _FEW_ROWS.items():
        spark.conf.set(name, value)
    savepoint["orders"].keyed_state(states=["customer"]).createOrReplaceTempView("orders")
    savepoint["reminders"].timers().createOrReplaceTempView("reminders")
    for title, query in (("Timers, asked by SQL on Spark", TIMERS), ("State and timers, joined", JOIN)):
        print(f"\n{title}\n\n  " + query.replace("\n", "\n  ") + "\n")
        out.rows([row.asDict() for row in spark.sql(query).collect()])


def _shorter(path: str) -> str:
    return min(path, os.path.relpath(path), key=len)


def _same(before: statetool.Operator, after: statetool.Operator) -> bool:
    wanted = [table for table in ("keyed_state", "timers") if table in before.tables]
    return all(before.to_arrow(table).equals(after.to_arrow(table)) for table in wanted)
