"""Fold a job's state changes into a table that holds the state, by a Spark query that may be stopped, repeated and killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal


def fold_into(
    target: str, *, key: Sequence[str], format: Literal["parquet", "delta", "iceberg"] = "parquet"
) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that folds changes into a table, each checkpoint exactly once.

    Pass it to a stream with ``mode=changes``: ``changes.writeStream.foreachBatch(statetool.fold_into("s3a://lake/orders", key=["key"]))``.

    After each batch the table is the state of the last checkpoint in the batch. Repeating a batch changes nothing. If the query is killed,
    the table is in its state before or after the batch. A complete checkpoint (null in ``compared_with``) replaces the whole table.

    Parameters
    ----------
    target
        For ``parquet``, a dedicated directory that holds versions of the table. Read it with :func:`read_folded`. Each batch rewrites all rows.
        For ``delta`` and ``iceberg``, the name of a table, created if it does not exist. Each batch is one ``MERGE``, and
        ``checkpoint_id`` is the checkpoint of each row's last change. The session needs the packages of the format.
    key
        The columns that identify a row. For ``keyed_state``: ``key``. For a state's table: ``key`` and, if present, ``namespace``,
        ``map_key`` or ``list_index``. For ``timers``: all columns.
    format
        Format of the table.

    Raises
    ------
    OptionError
        The format is not supported, or no columns were given.
    """
    from statetool.spark.folding import fold_into as fold

    return fold(target, key, format)


def read_folded(spark: Any, target: str) -> Any:
    """Return the last complete version of a table that was folded into a directory of Parquet files, as a DataFrame.

    The version that is the last when the frame is created stays readable until the second batch after it.

    Raises
    ------
    SnapshotNotFoundError
        Nothing was folded into the directory yet.
    """
    from statetool.spark.folding import read_folded as rows

    return rows(spark, target)
