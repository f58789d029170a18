"""Use of a snapshot by a Spark Connect client: ``python -m tests.support.servers.connect_client URL PATH DAMAGED TARGET`` prints the results as JSON.

It needs a separate process, because a process with another kind of session cannot be a client.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import statetool
from statetool.errors import StatetoolError


def row_texts(frame: Any) -> list[str]:
    """Return rows as comparable texts."""
    return sorted(repr(row) for row in frame.toArrow().to_pylist())


def main(url: str, path: str, damaged: str, target: str) -> None:
    """Print the answers."""
    spark: Any = SparkSession.builder.remote(url).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    savepoint = statetool.load(path, spark=spark)
    answers: dict[str, Any] = {"session": type(spark).__module__}
    operator = savepoint["timers"]
    answers["keyed_state"] = row_texts(operator.keyed_state())
    by_tasks = statetool.load(path, spark=spark, local_bytes=0)["timers"]
    answers["by_tasks"] = row_texts(by_tasks.keyed_state())
    answers["metadata"] = savepoint.states().count()
    answers["views"] = savepoint.register("sp")
    answers["view"] = row_texts(spark.sql("SELECT * FROM sp_timers_keyed_state"))
    source = spark.read.format("flink-state").option("operatorUid", "timers").load(path)
    answers["source"] = row_texts(source)
    answers["verified"] = statetool.verify(path, deep=True, spark=spark).ok
    answers["entries"] = sum(row.entries or 0 for row in savepoint.stats(spark=spark).rows("states"))
    frame = operator.keyed_state().selectExpr("key", "CAST(registered + 100 AS INT) AS registered")
    change = statetool.bootstrap_keyed_state(frame, like=operator)
    written = statetool.SavepointWriter.from_existing(savepoint).with_operator("timers", change).write(target)
    answers["written"] = row_texts(written["timers"].keyed_state())
    answers["differences"] = [
        [s.operator, s.state, s.added, s.removed, s.changed] for s in savepoint.diff(written).summary() if s.changed
    ]
    rescaled = f"{target}-rescaled"
    statetool.rescale(savepoint, rescaled, {"timers": 64}, spark=spark)
    answers["rescaled"] = statetool.load(rescaled)["timers"].max_parallelism
    try:
        row_texts(statetool.load(damaged, spark=spark, local_bytes=0)["orders"].keyed_state(states=["pet"]))
    except StatetoolError as error:
        answers["error"] = [type(error).__name__, str(error)]
    spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
