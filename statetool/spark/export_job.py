"""Export a table of a snapshot with Spark: to Parquet, Avro or JSON lines.

As a job::

    spark-submit --py-files statetool.zip export_job.py PATH --operator UID --table keyed_state \\
        --format parquet --target DIR

``statetool.zip`` holds the package (``cd site-packages && zip -r statetool.zip statetool``, or the wheel itself); the
workers need its dependencies. Each task reads one split and writes one file; Spark's committer publishes them.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from statetool.errors import TargetExistsError
from statetool.io import files
from statetool.spark.avro_export import export_avro


def export_table(
    operator: Any, table: str, target: str, *, style: str = "parquet", progress: bool = False, **arguments: Any
) -> int:
    """Write a table to a new directory and return the number of its rows.

    Parameters
    ----------
    operator
        A :class:`statetool.Operator` that was loaded with a Spark session.
    style
        ``parquet``, ``avro`` or ``jsonl``.

    Raises
    ------
    TargetExistsError
        The target is there.
    """
    if files.exists(target):
        raise TargetExistsError(f"{target} exists already", hint="choose a new directory")
    frame = operator.keyed_state(**arguments) if table == "keyed_state" else operator.state(table, **arguments)
    counted, count = _observe_rows(frame)
    with _Progress(frame.sparkSession, enabled=progress):
        if style == "avro":
            export_avro(counted, target, name=table)
        else:
            counted.write.format("json" if style == "jsonl" else style).mode("errorifexists").save(target)
    return count()


def _observe_rows(frame: Any) -> tuple[Any, Callable[[], int]]:
    """Return the frame with a counter of the rows that pass, so that nothing is read twice."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation("export")
    return frame.observe(observation, f.count(f.lit(1)).alias("rows")), lambda: int(observation.get["rows"])


class _Progress:
    """Shows finished tasks of the running stage on stderr."""

    def __init__(self, spark: Any, *, enabled: bool) -> None:
        self.spark = spark
        self.enabled = enabled and sys.stderr.isatty()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self.enabled:
            self.thread.start()

    def __exit__(self, *exc: object) -> None:
        self.stop.set()
        if self.enabled:
            self.thread.join()

    def _watch(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        tracker = self.spark.sparkContext.statusTracker()
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("exporting", total=None)
            while not self.stop.wait(0.2):
                for stage in tracker.getActiveStageIds():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        bar.update(task, total=info.numTasks, completed=info.numCompletedTasks)


def main(arguments: Sequence[str]) -> None:
    """Run the job."""
    parser = argparse.ArgumentParser(prog="export_job.py", description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--operator", required=True)
    parser.add_argument("--table", default="keyed_state")
    parser.add_argument("--format", dest="style", choices=("parquet", "avro", "jsonl"), default="parquet")
    parser.add_argument("--target", required=True)
    parser.add_argument("--states", help="comma-separated states of keyed_state")
    parser.add_argument("--nanos", choices=("error", "companion", "truncate"), default="error")
    parser.add_argument("--decimals", choices=("decimal", "string"), default="decimal")
    given = parser.parse_args(arguments)

    import statetool
    from statetool.spark.session import local_session

    operator = statetool.load(given.path, spark=local_session(name="statetool export"))[given.operator]
    extra = {"states": given.states.split(",")} if given.states else {}
    rows = export_table(
        operator, given.table, given.target, style=given.style, nanos=given.nanos, decimals=given.decimals, **extra
    )
    print(f"{rows} rows in {given.target}")


if __name__ == "__main__":
    main(sys.argv[1:])
