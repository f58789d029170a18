"""Fold changes of a job's state into a table that is the state, by a Spark query that may be stopped, repeated and killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal


def fold_into(
    target: str, *, key: Sequence[str], format: Literal["parquet", "delta", "iceberg"] = "parquet"
) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that folds changes into a table, each checkpoint exactly once.

    ``changes.writeStream.foreachBatch(statetool.fold_into("s3a://lake/orders", key=["key"]))``, of a stream with ``mode=changes``. After each
    batch the table is the state of the last checkpoint in it. A batch that Spark repeats changes nothing; a query that is killed leaves the
    table as it was or as it should be. A checkpoint that comes whole (null in ``compared_with``) replaces all that was there.

    Parameters
    ----------
    target
        Of ``parquet`` a directory of its own, which holds versions of the table (read it with :func:`folded`): each batch writes all rows
        anew. Of ``delta`` and ``iceberg`` the name of a table, which is made if it is not there; each batch is one ``MERGE``, and
        ``checkpoint_id`` says when each row was changed last. The session needs their packages.
    key
        The columns that tell rows apart: ``key`` in ``keyed_state``; of a state's own table also ``namespace``, ``map_key`` or
        ``list_index``, where it has them; of ``timers`` all columns.
    format
        What the table is.

    Raises
    ------
    OptionError
        No such format, or no columns.
    """
    from statetool.spark.folding import fold_into as fold

    return fold(target, key, format)


def folded(spark: Any, target: str) -> Any:
    """Return what was folded into a directory of Parquet files, as a DataFrame: the last version that is whole.

    The version that was the last one when the frame was made stays readable until the second batch after it.

    Raises
    ------
    SnapshotNotFoundError
        Nothing was folded into it yet.
    """
    from statetool.spark.folding import folded as rows

    return rows(spark, target)
