"""Export a table of a snapshot with Spark: to Parquet, Avro or JSON lines.

As a job::

    spark-submit --py-files statetool.zip export_job.py PATH --operator UID --table keyed_state \\
        --format parquet --output DIR

``statetool.zip`` holds the package (``cd site-packages && zip -r statetool.zip statetool``, or the wheel itself); the
workers need its dependencies. Each task reads one split and writes one file; Spark's committer publishes them.
Where statetool is installed, ``python -m statetool.spark.export_job`` with the same arguments does it on this machine.
Exit codes: 0 fine, 2 usage, 3 unreadable input.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from statetool import errors
from statetool.errors import OptionError, StatetoolError, TargetExistsError, UnknownNameError
from statetool.io import files
from statetool.spark.avro_export import export_avro

_OWN_ERROR: Final = re.compile(r"^statetool\.errors\.(\w+): (.*)$", re.MULTILINE)


def export_table(
    operator: Any, table: str, target: str, *, style: str = "parquet", progress: bool = False, **arguments: Any
) -> int:
    """Write a table to a new directory and return the number of its rows.

    Parameters
    ----------
    operator
        A :class:`statetool.Operator` that was loaded with a Spark session.
    style
        ``parquet``, ``avro`` or ``jsonl``. Keys without fields are the text ``{}`` but in Avro: Spark does not write them otherwise.

    Raises
    ------
    TargetExistsError
        The target is there.
    StatetoolError
        What the tasks raised, with its place.
    """
    if files.exists(target):
        raise TargetExistsError(f"{target} exists already", hint="choose a new directory")
    frame = _storable(operator.table(table, **arguments), style)
    counted, count = _observe_rows(frame)
    with _errors_of_tasks(), _Progress(frame.sparkSession, enabled=progress):
        if style == "avro":
            export_avro(counted, target, name=table)
        else:
            counted.write.format("json" if style == "jsonl" else style).mode("errorifexists").save(target)
    return count()


def _storable(frame: Any, style: str) -> Any:
    """Return the frame with structs without fields as text: keys of SQL operators that have one group for all rows.

    Spark writes such only to Avro.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    types = {field.name: field.dataType for field in frame.schema.fields}
    empty = [name for name, kind in types.items() if isinstance(kind, StructType) and not kind.fields]
    return frame.withColumns({name: f.lit("{}") for name in empty}) if empty and style != "avro" else frame


def _observe_rows(frame: Any) -> tuple[Any, Callable[[], int]]:
    """Return the frame with a counter of the rows that pass, so that nothing is read twice."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation("export")
    return frame.observe(observation, f.count(f.lit(1)).alias("rows")), lambda: int(observation.get["rows"])


@contextmanager
def _errors_of_tasks() -> Iterator[None]:
    """Raise errors of ours as themselves; Spark has them as text, below the traceback of the worker."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = _OWN_ERROR.findall(str(error))
        if not found:
            raise
        name, text = found[-1]
        raise getattr(errors, name, StatetoolError)(text) from error


class _Progress:
    """Shows finished tasks of the running stage on stderr."""

    def __init__(self, spark: Any, *, enabled: bool) -> None:
        self.spark = spark
        # Only a classic session knows about its stages.
        self.enabled = enabled and sys.stderr.isatty() and "connect" not in type(spark).__module__
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


def main(arguments: Sequence[str]) -> int:
    """Run the job and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="export_job.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", help="directory or metadata file of the snapshot")
    parser.add_argument("--operator", required=True, help="uid or operator id")
    parser.add_argument("--table", default="keyed_state", help="keyed_state, timers, or the name of a state")
    parser.add_argument("--format", dest="style", choices=("parquet", "avro", "jsonl"), default="parquet")
    parser.add_argument("--output", "--target", dest="target", required=True, help="a directory that does not exist")
    parser.add_argument("--states", help="comma-separated states of keyed_state")
    parser.add_argument("--ttl", choices=("show", "raw", "hide_expired"))
    parser.add_argument("--ttl-ms", type=int, help="time to live for --ttl hide_expired")
    parser.add_argument("--nanos", choices=("error", "companion", "truncate"))
    parser.add_argument("--decimals", choices=("decimal", "string"))
    parser.add_argument("--on-error", choices=("error", "keep_raw"))
    parser.add_argument(
        "--uid", action="append", default=[], help="name an operator that the snapshot knows by id only"
    )
    parser.add_argument("--rebase", action="append", default=[], metavar="OLD=NEW", help="where moved files are now")
    given = vars(parser.parse_args(arguments))
    place = {name: given.pop(name) for name in ("path", "operator", "table", "target", "style", "uid", "rebase")}
    extra = {name: value for name, value in given.items() if value is not None}
    if "states" in extra:
        extra["states"] = extra["states"].split(",")
    try:
        rows = _export(place, extra)
    except StatetoolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, OptionError | UnknownNameError) else 3
    print(f"{rows} rows in {place['target']}")
    return 0


def _export(place: dict[str, Any], extra: dict[str, Any]) -> int:
    import statetool
    from statetool.spark.session import local_session

    moved = [pair.partition("=") for pair in place["rebase"]]
    if bad := [old for old, equals, _ in moved if not equals]:
        raise OptionError(f"--rebase {bad[0]!r} is not OLD=NEW")
    savepoint = statetool.load(
        place["path"],
        spark=local_session(name="statetool export"),
        uids=place["uid"],
        rebase={old: new for old, _, new in moved},
    )
    operator = savepoint[place["operator"]]
    return export_table(operator, place["table"], place["target"], style=place["style"], progress=True, **extra)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
