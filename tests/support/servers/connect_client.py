"""Use of a snapshot by a Spark Connect client: ``python -m tests.support.servers.connect_client URL PATH DAMAGED CHECKPOINTS TARGET`` prints the results.

It needs a separate process, because a process with another kind of session cannot be a client. The server's Python has only the dependencies
of statetool. The package is made ready by the lines of the page about clusters, after the errors without them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import statetool
from statetool.errors import StatetoolError

PAGE: Final = Path(__file__).parents[3] / "docs" / "operations" / "clusters.md"


def documented(language: str) -> str:
    """Return the block of the page about Spark Connect in a language."""
    section = PAGE.read_text("utf-8").partition("## Use Spark Connect")[2].partition("\n## ")[0]
    return section.partition(f"```{language}\n")[2].partition("```")[0]


def row_texts(frame: Any) -> list[str]:
    """Return rows as comparable texts."""
    return sorted(repr(row) for row in frame.toArrow().to_pylist())


def error_of(function: Any) -> list[str]:
    """Return the kind and the text of an error."""
    try:
        function()
    except StatetoolError as error:
        return [type(error).__name__, str(error)]
    raise AssertionError("there is no error")


def stream_of(spark: Any, checkpoints: str, folder: str) -> list[str]:
    """Return the rows that a stream reads."""
    options = {"operatorUid": "op", "uids": "op", "mode": "changes"}
    frame = spark.readStream.format("flink-state").options(**options).load(checkpoints)
    stream = frame.writeStream.format("memory").queryName("stream").option("checkpointLocation", folder)
    stream.trigger(availableNow=True).start().awaitTermination()
    return row_texts(spark.table("stream").select("key", "a"))


def main(url: str, path: str, damaged: str, checkpoints: str, target: str) -> None:
    """Print the answers."""
    spark: Any = SparkSession.builder.remote(url).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    savepoint = statetool.load(path, spark=spark)
    answers: dict[str, Any] = {"session": type(spark).__module__}
    operator = savepoint["timers"]
    by_tasks = statetool.load(path, spark=spark, driver_read_limit=0)["timers"]
    source = spark.read.format("flink-state").option("operatorUid", "timers")
    answers["missing"] = [
        error_of(by_tasks.keyed_state().count),
        error_of(lambda: source.load(path).count()),
        error_of(lambda: statetool.verify(path, spark=spark)),
    ]
    exec(documented("py").replace("sc://host:15002", url), {})
    answers["missing in streams"] = error_of(lambda: stream_of(spark, checkpoints, f"{target}-offsets"))
    answers["keyed_state"] = row_texts(operator.keyed_state())
    answers["by_tasks"] = row_texts(by_tasks.keyed_state())
    answers["metadata"] = savepoint.states().count()
    answers["views"] = savepoint.register("sp")
    answers["view"] = row_texts(spark.sql("SELECT * FROM sp_timers_keyed_state"))
    answers["source"] = row_texts(source.load(path))
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
    orders = statetool.load(damaged, spark=spark, driver_read_limit=0)["orders"]
    answers["error"] = error_of(lambda: row_texts(orders.keyed_state(states=["pet"])))
    spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
