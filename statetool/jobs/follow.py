"""Follow a job's checkpoints and maintain a Parquet, Delta or Iceberg table that mirrors a table of its state.

As a job::

    spark-submit --py-files statetool.zip follow.py s3a://bucket/checkpoints/<job id> --uid orders \\
        --target s3a://lake/orders --offsets s3a://lake/_offsets/orders

``statetool.zip`` is the output of :mod:`statetool.jobs.package`, or the wheel renamed to ``.zip``. The workers need its dependencies.

* ``--offsets`` is the checkpointLocation of the query. Started again with the same location, the job continues after the last
  checkpoint that it processed. Each checkpoint is folded exactly once, even if the job was killed. PySpark 4.0 and 4.1, whose streams
  have no position, read the changes of all new checkpoints as a batch.
* With ``--once`` the job ends after the checkpoints that exist.
* A checkpoint that Flink deletes before or while it is read is skipped, and the next one brings its changes. With
  ``--option failOnDataLoss=true`` a deleted checkpoint is an error.
* A Parquet table is a directory of versions, of which ``statetool.read_folded(spark, target)`` reads the newest. Delta and Iceberg need their
  packages (``--packages``) and the name of a table.

Exit codes: 0 success, 2 usage error, 3 unreadable input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import statetool
from statetool.cli.output import echo_err
from statetool.errors import CheckpointDeletedError, OptionError, StatetoolError, UnknownNameError
from statetool.io.glibc import claim_process
from statetool.jobs.batches import follow_in_batches
from statetool.operations.advice.configuration import parse_duration
from statetool.spark.session import local_session

#: Maximum number of successive checkpoints that may be deleted while they are read.
_MOST_DELETED: Final = 5


def main(arguments: Sequence[str]) -> int:
    """Run the job and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="follow.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", help="directory of the checkpoints of one job")
    parser.add_argument("--uid", dest="operator", required=True, help="uid or operator id")
    parser.add_argument("--table", default="keyed_state", help="keyed_state (default), timers, or the name of a state")
    parser.add_argument("--key", action="append", help="column of the primary key (default: key); may be repeated")
    parser.add_argument("--target", required=True, help="directory (parquet), or name of the table (delta, iceberg)")
    parser.add_argument("--format", choices=("parquet", "delta", "iceberg"), default="parquet")
    parser.add_argument("--offsets", required=True, help="checkpointLocation of the query")
    parser.add_argument(
        "--every",
        default="10 seconds",
        help="interval between looks for new checkpoints (default: 10 seconds); a number alone is seconds",
    )
    parser.add_argument("--once", action="store_true", help="end after the checkpoints that exist")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another option of the data source flink-state; may be repeated",
    )
    parsed = parser.parse_args(arguments)
    try:
        _follow(parsed)
    except StatetoolError as error:
        echo_err(f"error: {error}")
        return 2 if isinstance(error, OptionError | UnknownNameError) else 3
    return 0


def _follow(parsed: argparse.Namespace) -> None:
    more_options = [pair.partition("=") for pair in parsed.option]
    if incomplete := [name for name, equals, _ in more_options if not equals]:
        raise OptionError(f"--option {incomplete[0]!r} is not NAME=VALUE")
    fold = statetool.fold_into(parsed.target, key=parsed.key or ["key"], format=parsed.format)
    spark = local_session(name="statetool follow")
    statetool.register(spark)
    # The previous value of a row does not affect the table, and would have to be looked up.
    options = {"operatorUid": parsed.operator, "table": parsed.table, "mode": "changes", "upserts": "true"}
    # A deleted checkpoint does not affect the table: the next one is compared with the last one read, or comes whole.
    options |= {"failOnDataLoss": "false"}
    options |= {name: value for name, _, value in more_options}
    from statetool.spark.source import streaming  # register says what is missing if PySpark has no Python data sources

    if not streaming.STREAMS_KNOW_THEIR_POSITION:
        seconds = None if parsed.once else _seconds(parsed.every)
        follow_in_batches(spark, parsed.root, options, fold, parsed.offsets, seconds=seconds)
        return
    frame = spark.readStream.format("flink-state").options(**options).load(parsed.root)
    stream = frame.writeStream.foreachBatch(fold).option("checkpointLocation", parsed.offsets)
    trigger = (
        {"availableNow": True}
        if parsed.once
        else {"processingTime": f"{parsed.every} seconds" if parsed.every.isdigit() else parsed.every}
    )
    deleted, batch, has_advised = 0, None, False
    while True:
        query = stream.trigger(**trigger).start()
        try:
            query.awaitTermination()
            return
        except CheckpointDeletedError as error:
            # After a restart, the query finds that the checkpoint is gone and continues with the next one.
            progress = query.lastProgress
            went_on = progress is not None and progress["batchId"] != batch
            if parsed.once:  # a batch without rows may be one whose checkpoints were all deleted
                went_on = went_on and any(p["numInputRows"] for p in query.recentProgress)
            deleted = 1 if went_on else deleted + 1
            batch = progress["batchId"] if progress is not None else batch
            if options["failOnDataLoss"] == "true" or deleted > _MOST_DELETED:
                raise
            # The message of a task's error names the number of checkpoints to retain.
            what = "another checkpoint was deleted while it was read" if has_advised else error.message
            echo_err(f"{what}; reading the next one")
            has_advised = True


def _seconds(every: str) -> float:
    """Return an interval in the form of a trigger of Spark: a number of seconds, or one with a unit."""
    return float(every) if every.isdigit() else parse_duration(every) / 1000


if __name__ == "__main__":
    claim_process()
    sys.exit(main(sys.argv[1:]))
