"""Latency of queries: ``python -m tests.perf.latency_bench [PATH] [--idle SECONDS] [--large PATH OPERATOR]``.

For each small table, prints the median time from the method call to rows on the driver, compared with the same Spark query on an in-memory
table of the same rows, in the same run. The first query of the session comes before that. ``--idle`` repeats everything after a pause
(Spark's workers end after a minute); ``--large`` reads a table into the noop sink, for the first time and again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import statetool
from statetool.spark.schema import spark_schema
from statetool.spark.session import local_session
from tests.support.zoo import ZOO

Action = Callable[[], object]


def seconds(action: Action) -> float:
    """Return the duration of an action."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show(frame: Any) -> str:
    """Return the output of ``show(20)``."""
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.showString(20, 20, False))
    return str(frame._show_string(20))


def questions(spark: Any, operator: statetool.Operator, table: str) -> list[tuple[Action, Action]]:
    """Return queries on a table, and the same queries on its rows in Spark's memory."""
    rows = operator.table(table).collect()
    schema = spark_schema(operator.scan(table).schema)
    bare = spark.createDataFrame(rows, schema).coalesce(1).cache()
    bare.count()
    return [
        (lambda: show(operator.table(table)), lambda: show(bare)),
        (lambda: operator.table(table).filter("key IS NULL").count(), lambda: bare.filter("key IS NULL").count()),
        (lambda: operator.table(table).collect(), lambda: bare.collect()),
    ]


def compare(spark: Any, savepoint: statetool.Savepoint, repeats: int) -> None:
    """Print a line per table, and the medians of all."""
    ours: list[float] = []
    theirs: list[float] = []
    for operator in savepoint.operators.values():
        for table in operator.tables:
            if "key" not in operator.scan(table).schema.names:
                continue
            pairs = questions(spark, operator, table) * repeats
            own = median(seconds(question) for question, _ in pairs)
            bare = median(seconds(question) for _, question in pairs)
            ours.append(own)
            theirs.append(bare)
            print(
                f"{operator.name:24} {table:28} {own:7.3f} s  bare {bare:7.3f} s  {own / bare:5.2f} times", flush=True
            )
    print(
        f"{len(ours)} tables: median {median(ours):.3f} s, slowest {max(ours):.3f} s, bare {median(theirs):.3f} s, "
        f"median of {median(o / t for o, t in zip(ours, theirs, strict=True)):.2f} times"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.perf.latency_bench")
    parser.add_argument("path", nargs="?", default=ZOO)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--idle", type=float, help="seconds of a pause, after which everything is asked again")
    parser.add_argument("--large", nargs=2, metavar=("PATH", "OPERATOR"))
    given = parser.parse_args()
    spark = local_session(cores="2", name="latency")
    spark.sparkContext.setLogLevel("ERROR")
    savepoint = statetool.load(given.path, spark=spark)
    operator = next(o for o in savepoint.operators.values() if o.tables)
    print(
        f"{'first query of the session':54} {seconds(lambda: show(operator.table(operator.tables[0]))):6.3f} s",
        flush=True,
    )
    for when in ("first", "second", "third"):
        taken = seconds(lambda: savepoint.register("bench"))
        print(f"{f'register, {when} time':54} {taken:6.3f} s", flush=True)
    for when in ("first", "second", "third"):
        taken = seconds(lambda: show(spark.table(f"bench_{operator.name}_{operator.tables[0]}".replace("-", "_"))))
        print(f"{f'a view, {when} time':54} {taken:6.3f} s", flush=True)
    compare(spark, savepoint, given.repeats)
    if given.idle:
        time.sleep(given.idle)
        print(f"after {given.idle:.0f} s of idleness")
        compare(spark, savepoint, given.repeats)
    if given.large:
        path, name = given.large
        for when in ("first", "second", "third"):
            frame = statetool.load(path, spark=spark)[name].keyed_state()
            taken = seconds(lambda f=frame: f.write.format("noop").mode("overwrite").save())  # type: ignore[misc]
            print(f"{f'{path}, {when} time':54} {taken:6.3f} s", flush=True)


if __name__ == "__main__":
    main()
