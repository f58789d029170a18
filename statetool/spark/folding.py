"""Fold changes into a table that mirrors the state: each checkpoint exactly once, whatever is stopped, repeated or killed (PySpark 4).

A table of Parquet files is a folder of versions: ``checkpoint-<id>-...`` has the rows, and a file in ``_folded``, named by the checkpoint,
says that the version is complete, and names its folder. That file is written last and never overwritten, so a version is published
atomically. Delta and Iceberg tables are updated by one ``MERGE`` in one commit; repeating it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

from statetool.analysis.comparison.changes import CHANGE, DELETE
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError, suggest
from statetool.io import files, targets
from statetool.spark.lakes import lake_error
from statetool.spark.write.targets import spark_target

FoldFormat = Literal["parquet", "delta", "iceberg"]
_FORMATS: Final = ("parquet", "delta", "iceberg")
_ID, _TIME, _AGAINST = "checkpoint_id", "checkpoint_time", "compared_with"
_BEFORE_ALL: Final = -1
#: Columns of changes that the table does not have.
_ADDED: Final = (_ID, _TIME, _AGAINST, CHANGE.name)
_COMMITS: Final = "_folded"
#: Number of versions to keep, so that a query on the previous version can finish.
_VERSIONS_KEPT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """A version of a folder: the checkpoint up to which it is folded, and the folder of its rows."""

    checkpoint_id: int
    folder: str


def fold_into(target: str, key: Sequence[str], format: FoldFormat) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch``; see :func:`statetool.fold_into`."""
    if format not in _FORMATS:
        raise OptionError(f"format={format!r} is not one of {', '.join(_FORMATS)}")
    names = tuple(key)
    if isinstance(key, str) or not names:
        raise OptionError(f"key={key!r} is not a list of columns", hint="key=['key'] for keyed_state")
    fold = _fold_files if format == "parquet" else _merge

    def fold_batch(frame: Any, batch_id: int) -> None:
        missing = [n for n in (*_ADDED, *names) if n not in frame.columns]
        if missing:
            raise OptionError(
                f"the batch has no column {missing[0]!r}",
                hint=suggest(missing[0], frame.columns) or "fold a stream with mode=changes",
            )
        cached = frame.persist()
        try:
            fold(cached, target, names, format)
        finally:
            cached.unpersist()

    return fold_batch


def folded(spark: Any, target: str) -> Any:
    """Return the rows of a table of Parquet files; see :func:`statetool.folded`."""
    versions = _versions(target)
    if not versions:
        raise SnapshotNotFoundError(f"nothing was folded into {target} yet")
    return _rows(spark, target, versions[-1])


def _rows(spark: Any, target: str, version: _Version) -> Any:
    return spark.read.parquet(spark_target(spark, files.join(target, version.folder)))


def _newest(frame: Any, key: Sequence[str]) -> Any:
    """Return the last change of each row.

    The query fails if a row has two changes in one checkpoint, because ``key`` does not identify rows then.
    """
    from pyspark.sql import functions as f

    last = frame.groupBy(*map(_quote, key)).agg(
        f.max_by(f.struct(*map(_quote, frame.columns)), _ID).alias("_last"),
        f.when(
            f.count(f.lit(1)) > f.count_distinct(_ID),
            f.raise_error(f.lit(f"key={list(key)} does not tell the rows of the table apart: name more columns")),
        ).alias("_twice"),
    )
    # The check is part of the condition; otherwise Spark would drop it.
    return last.filter(f.col("_twice").isNull()).select("_last.*")


def _span(frame: Any, after: int | None) -> tuple[Any, int, bool] | None:
    """Return the changes after a checkpoint, its newest checkpoint, and whether they are a full table; ``None`` without changes."""
    from pyspark.sql import functions as f

    rows = frame if after is None else frame.filter(f.col(_ID) > after)
    newest, newest_whole, against = rows.agg(
        f.max(_ID), f.max(f.when(f.col(_AGAINST).isNull(), f.col(_ID))), f.min(_AGAINST)
    ).first()
    if newest is None:
        return None
    if newest_whole is not None:
        return rows.filter(f.col(_ID) >= newest_whole), newest, True
    if after is None or against < after:
        raise FormatError(
            f"the changes follow checkpoint {against}, but the table "
            + ("is empty" if after is None else f"is at checkpoint {after}"),
            hint="fold each stream into a new table, from a checkpoint that has rows (startingCheckpoint), with initialRows=true",
        )
    return rows, newest, False


# ---- folders of Parquet files -----------------------------------------------------------------


def _fold_files(frame: Any, target: str, key: Sequence[str], _: FoldFormat) -> None:
    spark = frame.sparkSession
    versions = _versions(target)
    last = versions[-1] if versions else None
    span = _span(frame, None if last is None else last.checkpoint_id)
    if span is None:
        return
    rows, checkpoint_id, whole = span
    changed = _newest(rows, key)
    table = changed.filter(changed[CHANGE.name] != DELETE).drop(*_ADDED)
    if not whole and last is not None:
        table = _without(_rows(spark, target, last), changed, key).unionByName(table)
    version = _Version(checkpoint_id=checkpoint_id, folder=f"checkpoint-{checkpoint_id}-{uuid4().hex[:8]}")
    table.write.parquet(spark_target(spark, files.join(target, version.folder)))
    commits = files.join(target, _COMMITS)
    targets.make_dir(commits)
    text = json.dumps({"checkpoint_id": checkpoint_id, "folder": version.folder})
    targets.put_new(files.join(commits, f"{checkpoint_id:020d}.json"), text.encode())
    _clean(target, [*versions, version])


def _without(table: Any, changed: Any, key: Sequence[str]) -> Any:
    """Return the rows of a table that are not among the changed ones; keys may have nulls."""
    other = changed.select(*(changed[_quote(name)].alias(f"_{i}") for i, name in enumerate(key)))
    same_key = None
    for i, name in enumerate(key):
        same_column = table[_quote(name)].eqNullSafe(other[f"_{i}"])
        same_key = same_column if same_key is None else same_key & same_column
    return table.join(other, same_key, "left_anti")


def _versions(target: str) -> list[_Version]:
    """Return the complete versions of a table, oldest first."""
    commits = files.join(target, _COMMITS)
    names = sorted(name for name in targets.list_sizes(commits) if name.endswith(".json"))
    return [_Version(**json.loads(files.read_whole(files.join(commits, name)))) for name in names]


def _clean(target: str, versions: Sequence[_Version]) -> None:
    """Remove old versions and the remains of failed batches; the last ``_VERSIONS_KEPT`` stay."""
    current = {v.folder for v in versions[-_VERSIONS_KEPT:]}
    for version in versions[:-_VERSIONS_KEPT]:
        targets.remove(files.join(files.join(target, _COMMITS), f"{version.checkpoint_id:020d}.json"))
    for name in targets.list_sizes(target):
        if name.startswith("checkpoint-") and name not in current:
            targets.remove_tree(files.join(target, name))


# ---- tables with MERGE -------------------------------------------------------------------------


def _merge(frame: Any, target: str, key: Sequence[str], format: FoldFormat) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        _merge_batch(frame, target, key, format)
    except (PySparkException, Py4JJavaError) as error:
        if (missing := lake_error(error, format)) is not None:
            raise missing from error
        raise


def _merge_batch(frame: Any, target: str, key: Sequence[str], format: FoldFormat) -> None:
    spark = frame.sparkSession
    is_new = not spark.catalog.tableExists(target)
    # Deleted rows leave no checkpoint id in the table, so a repeated batch is merged again, which changes nothing.
    span = _span(frame, None if is_new else _BEFORE_ALL)
    if span is None:
        return
    if is_new:  # only after the batch is known to be the first: an empty table would accept any
        frame.limit(0).drop(*(n for n in _ADDED if n != _ID)).write.format(format).saveAsTable(target)
    rows, _, whole = span
    _newest(rows, key).createOrReplaceTempView(view := f"statetool_changes_{uuid4().hex[:8]}")
    try:
        spark.sql(merge_statement(target, view, key, [n for n in frame.columns if n not in _ADDED], whole=whole))
    finally:
        spark.catalog.dropTempView(view)


def merge_statement(target: str, view: str, key: Sequence[str], columns: Sequence[str], *, whole: bool) -> str:
    """Return the ``MERGE`` that folds a view of changes; ``whole``: rows missing from the view are deleted."""
    every = [_ID, *columns]
    deleted = f"s.{CHANGE.name} = '{DELETE}'"
    return "\n".join(
        [
            f"MERGE INTO {target} t USING {view} s",
            "ON " + " AND ".join(f"t.{_quote(n)} <=> s.{_quote(n)}" for n in key),
            f"WHEN MATCHED AND {deleted} THEN DELETE",
            "WHEN MATCHED THEN UPDATE SET " + ", ".join(f"t.{_quote(n)} = s.{_quote(n)}" for n in every),
            f"WHEN NOT MATCHED AND NOT ({deleted}) THEN INSERT ({', '.join(map(_quote, every))})"
            f" VALUES ({', '.join(f's.{_quote(n)}' for n in every)})",
            *(["WHEN NOT MATCHED BY SOURCE THEN DELETE"] if whole else []),
        ]
    )


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
