"""A directory of checkpoints as one table, read in one query or as a stream (PySpark 4).

Offsets are checkpoint ids, with the ids that a batch reads. So if Spark repeats a batch after a failure, it reads the same checkpoints,
even if newer ones exist. The progress of a query shows the offsets, the number of unread checkpoints (``behind``) and whether these
are backlog (``isProcessingBacklog``).

With ``mode=changes``, each checkpoint is compared with the previously read one: the last of the previous batch, whose id is in its offset.
A checkpoint after an empty one is returned whole: the empty one returned no row, so the consumer may still have rows from before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from statetool.analysis.comparison.changes import (
    CHANGE,
    INSERT,
    UPSERT,
    ChangeUnit,
    changes,
    check_changes,
    plan_changes,
    with_change,
)
from statetool.errors import CheckpointDeletedError, OptionError, SnapshotNotFoundError, UnsupportedError, warn
from statetool.io import files
from statetool.io.retention import BatchTimes
from statetool.operations.directories.following import (
    FOLLOW_OPTIONS,
    FollowOptions,
    completed_checkpoints,
    first_offset,
    next_step,
)
from statetool.operations.directories.heads import SnapshotHead
from statetool.snapshot.locate import METADATA_NAME
from statetool.spark.source.guard import read_checked, reject_unsupported_rows
from statetool.spark.source.options import STATE_OPTIONS, SourceOptions
from statetool.tables.option_text import by_known_names
from statetool.tables.scan import TableScan, scan_table
from statetool.tables.splits import Split

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark before 4.2
    SupportsTriggerAvailableNow = object
#: Whether streams tell a source their position: in PySpark 4.2 and later.
STREAMS_KNOW_THEIR_POSITION: Final = SupportsTriggerAvailableNow is not object

#: Columns before those of the table.
_ID: Final = pa.field("checkpoint_id", pa.int64(), nullable=False)
_TIME: Final = pa.field("checkpoint_time", pa.timestamp("us", "UTC"))
#: For changes: the checkpoint that they are compared with; null if the checkpoint is returned whole.
_AGAINST: Final = pa.field("compared_with", pa.int64())
#: Maximum stored bytes of a table in which the driver itself looks for a row.
_SMALL_BYTES: Final = 8 << 20
#: Maximum number of listings if all listed checkpoints were deleted before one was read.
_MOST_LISTINGS: Final = 5
#: Maximum number of deleted checkpoints before a batch query gives up.
_MOST_LOST: Final = 5


class CheckpointPartition(InputPartition):
    """Part of a checkpoint that one task reads; ``constants`` are columns placed first, each with one value for all rows."""

    def __init__(
        self,
        head: SnapshotHead,
        unit: Split | ChangeUnit,
        against: int | None,
        *,
        changes: str | None,
        row_bytes: int,
    ) -> None:
        super().__init__(0)
        self.unit = unit
        self.row_bytes = row_bytes
        #: Kind of change of rows returned without a comparison, ``None`` if changes were not requested.
        self.changes = changes
        time_us = None if head.modified_ms is None else head.modified_ms * 1000
        self.constants = [
            (_ID, head.checkpoint_id),
            (_TIME, time_us),
            *([(_AGAINST, against)] if changes is not None else []),
        ]


def is_root(options: Mapping[str, str]) -> bool:
    """Return True if the path of a read is a directory of checkpoints, not a snapshot."""
    path = options.get("path")
    return bool(path) and files.is_dir(str(path)) and not files.exists(files.join(str(path), METADATA_NAME))


@dataclass(frozen=True, slots=True)
class _CheckpointScan:
    """The table in one checkpoint; ``schema`` is that of the stream."""

    head: SnapshotHead
    options: SourceOptions
    scan: TableScan
    schema: pa.Schema

    @property
    def is_small(self) -> bool:
        return sum(split.size_bytes for split in self.scan.splits) <= _SMALL_BYTES

    def has_rows(self) -> bool:
        """Return True if there is a row; runs on the driver and stops at the first."""
        return any(batch.num_rows for split in self.scan.splits for batch in read_checked(split, row_bytes=None))


@dataclass(slots=True)
class CheckpointTable:
    """Table over the checkpoints below a directory."""

    root: str
    follow: FollowOptions
    _table_options: Mapping[str, str]
    #: Checkpoints that were deleted before they were read.
    lost: set[int] = field(default_factory=set)
    #: Heads of checkpoints by directory, each read once.
    _heads: dict[str, SnapshotHead] = field(default_factory=dict)
    _has_advised: bool = False
    _has_left_out: bool = False
    _times: BatchTimes = field(default_factory=BatchTimes)
    #: Since when the stream waits for a checkpoint that it can read in time.
    _waits_since_s: float | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CheckpointTable:
        """Read the options of ``flink-state`` over a directory.

        Raises
        ------
        OptionError
            An option does not exist, or its value is invalid.
        """
        texts = by_known_names(options, (*STATE_OPTIONS, *FOLLOW_OPTIONS))
        root = texts.get("path", "")
        follow = FollowOptions.parse({n: t for n, t in texts.items() if n in FOLLOW_OPTIONS})
        return cls(root, follow, {n: t for n, t in texts.items() if n not in FOLLOW_OPTIONS})

    def completed(self) -> list[SnapshotHead]:
        """Return the completed checkpoints by id."""
        heads = completed_checkpoints(self.root, self._heads)
        self._times.add_listing({head.checkpoint_id or 0: head.modified_ms or 0 for head in heads})
        return heads

    def start_batch(self, wanted: Sequence[int], before: int | None) -> None:
        """Note that a batch starts to read checkpoints, and compares them with an earlier one in mode changes."""
        base = [before] if before is not None and self.follow.changes else []
        self._times.start_batch(time.monotonic(), min((*wanted, *base)))

    def end_batch(self) -> None:
        """Warn once if the job may delete checkpoints before a batch that takes as long as the last one has read them."""
        advice = self._times.end_batch(time.monotonic())
        if advice is not None and not self._has_advised:
            warn(advice, stacklevel=3)
            self._has_advised = True

    def poll(self) -> None:
        """Note that the stream looks for new checkpoints."""
        self._times.add_poll(time.monotonic())

    def leave_out_unreadable(self, completed: Sequence[SnapshotHead], after: int) -> list[SnapshotHead]:
        """Return checkpoints without those after a given one that the job would delete before they are read; with a warning, once.

        If all would be deleted, none is left, so that the stream waits for the next one, but at most for the time between two. With
        ``failOnDataLoss``, and if the last checkpoint of the query is among them, nothing is left out: a deletion is then an error.
        """
        unread = [h.checkpoint_id or 0 for h in completed if (h.checkpoint_id or 0) > after]
        retention = self._times.retention
        if self.follow.fail_on_data_loss or retention is None or self.follow.ending in unread:
            return list(completed)
        readable = self._times.readable(unread, time.time() * 1000)
        if readable or not unread:
            self._waits_since_s = None
        else:
            now_s = time.monotonic()
            self._waits_since_s = now_s if self._waits_since_s is None else self._waits_since_s
            if now_s - self._waits_since_s > retention.period_s:
                return list(completed)
        if len(readable) < len(unread) and not self._has_left_out:
            least_s = self._times.least_read_s
            advice = f". To read all, set execution.checkpointing.num-retained: {retention.needed(least_s)}"
            warn(
                f"checkpoints that the job would delete before they are read are left out: a batch takes {least_s:.1f} s or more"
                f"{'' if self._has_advised else advice}",
                stacklevel=3,
            )
            self._has_advised = self._has_left_out = True
        return [h for h in completed if (h.checkpoint_id or 0) <= after or h.checkpoint_id in readable]

    def scan(self, head: SnapshotHead) -> _CheckpointScan:
        """Plan the table in one checkpoint."""
        options = SourceOptions({**self._table_options, "path": head.path})
        if self.follow.changes:
            check_changes(options.operator, options.request)
        scan = scan_table(options.operator, options.request)
        added = [_ID, _TIME, *([_AGAINST, CHANGE] if self.follow.changes else [])]
        if clashing := {f.name for f in added} & {n.lower() for n in scan.schema.names}:
            raise OptionError(
                f"columns of the table have the names of columns that the stream adds: {', '.join(sorted(clashing))}",
                hint="read one state at a time: table=<its name>",
            )
        return _CheckpointScan(head, options, scan, pa.schema([*added, *scan.schema]))

    @property
    def schema(self) -> pa.Schema:
        """Return the columns: ``checkpoint_id``, ``checkpoint_time``, and those of the table in the newest checkpoint.

        Raises
        ------
        SnapshotNotFoundError
            No checkpoint exists yet.
        """
        for _ in range(_MOST_LISTINGS):
            completed = self.completed()
            for head in reversed(completed):
                try:
                    return self.scan(head).schema
                except SnapshotNotFoundError:
                    continue  # deleted since it was listed
            if not completed:
                break
        raise SnapshotNotFoundError(
            f"no completed checkpoint below {self.root} yet, so the columns are not known",
            hint="start the stream after the first checkpoint",
        )

    def partitions(
        self, wanted: Sequence[int], schema: pa.Schema, *, before: int | None = None
    ) -> list[InputPartition]:
        """Plan checkpoints; depending on the options, a deleted one is an error, or left out with a warning.

        Parameters
        ----------
        before
            The previously read checkpoint, ``None`` if these are the first.

        Raises
        ------
        CheckpointDeletedError
            A checkpoint was deleted.
        OptionError
            A checkpoint has other columns than the stream.
        """
        heads = {h.checkpoint_id: h for h in self.completed()}
        planned: list[InputPartition] = []
        is_first = before is None
        last: _CheckpointScan | None = None
        if before is not None and self.follow.changes:
            try:
                last = self._scan_of(heads, before, schema)
            except SnapshotNotFoundError as error:
                self._report_lost_base(before, error)
        for checkpoint_id in wanted:
            try:
                scanned = self._scan_of(heads, checkpoint_id, schema)
            except SnapshotNotFoundError as error:
                self._report_lost(checkpoint_id, error)
                continue
            if self.follow.changes and last is None and not is_first:
                _check_that_loss_shows(scanned)
            if not is_first or not self.follow.changes or self.follow.initial_rows:
                planned += self._planned(scanned, last)
            is_first, last = False, scanned
        return planned

    def _scan_of(
        self, heads: Mapping[int | None, SnapshotHead], checkpoint_id: int, schema: pa.Schema
    ) -> _CheckpointScan:
        if checkpoint_id not in heads:
            raise CheckpointDeletedError(f"Flink deleted checkpoint {checkpoint_id} below {self.root}")
        scanned = self.scan(heads[checkpoint_id])
        self._check_columns(checkpoint_id, schema, scanned.schema)
        return scanned

    def _planned(self, scanned: _CheckpointScan, last: _CheckpointScan | None) -> Iterator[InputPartition]:
        """Yield the partitions of a checkpoint: all of its rows, or the changes since the last one."""
        units: Sequence[Split | ChangeUnit] = scanned.scan.splits
        against = None
        if self.follow.changes and last is not None and not (last.is_small and not last.has_rows()):
            against = last.head.checkpoint_id
            old, new = ((s.options.operator, s.scan) for s in (last, scanned))
            units = plan_changes(old, new, scanned.options.request, upserts=self.follow.upserts)
        change = None if not self.follow.changes else UPSERT if self.follow.upserts else INSERT
        for unit in units:
            yield CheckpointPartition(scanned.head, unit, against, changes=change, row_bytes=scanned.options.row_bytes)

    def _report_lost_base(self, checkpoint_id: int, error: SnapshotNotFoundError) -> None:
        message = f"checkpoint {checkpoint_id}, with which the next one is to be compared, was deleted: {error.message}"
        instead = "the next one then comes whole, with null in compared_with"
        self._report_deletion(checkpoint_id, message, instead, error)

    def _report_lost(self, checkpoint_id: int, error: SnapshotNotFoundError) -> None:
        message = f"checkpoint {checkpoint_id} was deleted before it was read: {error.message}"
        self._report_deletion(checkpoint_id, message, "the query then goes on without it", error)
        self.lost.add(checkpoint_id)

    def _report_deletion(self, checkpoint_id: int, message: str, instead: str, error: SnapshotNotFoundError) -> None:
        """Raise an error, or warn; the first warning names the number of checkpoints that Flink should retain."""
        advice = f"let Flink keep {self._needed_retention(checkpoint_id)} (execution.checkpointing.num-retained)"
        if self.follow.fail_on_data_loss:
            hint = f"{advice}, or set failOnDataLoss to false: {instead}"
            raise CheckpointDeletedError(message, hint=hint) from error
        warn(message if self._has_advised else f"{message}. To read all, {advice}", stacklevel=3)
        self._has_advised = True

    def _needed_retention(self, checkpoint_id: int) -> str:
        """Return how many checkpoints Flink must keep, so that a deleted one would still exist: those completed since, and one more."""
        newest = max((head.checkpoint_id or 0 for head in self.completed()), default=checkpoint_id)
        return f"more than {newest - checkpoint_id}" if newest > checkpoint_id else "more"

    def _check_columns(self, checkpoint_id: int, expected: pa.Schema, actual: pa.Schema) -> None:
        if actual.equals(expected):
            return
        change = next(
            (
                f"{f.name} is {f.type} there"
                for f in actual
                if f.name not in expected.names or not expected.field(f.name).equals(f)
            ),
            f"{', '.join(sorted({*expected.names} - {*actual.names}))} is missing",
        )
        raise OptionError(
            f"checkpoint {checkpoint_id} has other columns than the stream was started with: {change}",
            hint="start the query again with this checkpoint as startingCheckpoint and a new checkpointLocation",
        )


def _check_that_loss_shows(scanned: _CheckpointScan) -> None:
    """Refuse a checkpoint that is returned whole after a loss, but has no row to show that, and would be compared with the next one."""
    if not scanned.is_small and not scanned.has_rows():
        raise UnsupportedError(
            f"checkpoint {scanned.head.checkpoint_id} replaces all rows, because the previous one was deleted, but its "
            f"{_SMALL_BYTES >> 20} MiB or more contain no row that could tell the query to do so",
            hint="start again with a later startingCheckpoint, a new checkpointLocation and a new target",
        )


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, CheckpointPartition):
        return
    unit = partition.unit
    if isinstance(unit, ChangeUnit):
        batches = reject_unsupported_rows(changes(unit), operator=unit.spec.operator, row_bytes=partition.row_bytes)
    else:
        batches = read_checked(unit, row_bytes=partition.row_bytes)
        if partition.changes is not None:
            batches = (with_change(b, partition.changes) for b in batches)
    fields = [field for field, _ in partition.constants]
    for batch in batches:
        values = [pa.repeat(pa.scalar(value, field.type), batch.num_rows) for field, value in partition.constants]
        yield pa.RecordBatch.from_arrays([*values, *batch.columns], schema=pa.schema([*fields, *batch.schema]))


class CheckpointsReader(DataSourceReader):
    """Reader of the existing checkpoints, once."""

    def __init__(self, table: CheckpointTable) -> None:
        self.table = table

    def partitions(self) -> Sequence[InputPartition]:
        table = self.table
        completed = table.completed()
        step = next_step(completed, first_offset(completed, table.follow), table.follow, table.follow.most)
        return table.partitions(step.chosen, table.schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from _read(partition)


class CheckpointStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream that reads each completed checkpoint."""

    def __init__(self, table: CheckpointTable) -> None:
        self.table = table
        self.columns = table.schema
        self.until: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the newest checkpoint, which is the last one of the query."""
        completed = self.table.completed()
        self.until = completed[-1].checkpoint_id if completed else first_offset(completed, self.table.follow)

    def initialOffset(self) -> dict[str, Any]:
        return _offset(first_offset(self.table.completed(), self.table.follow))

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

        most = self.table.follow.most
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        if start is None:
            raise OptionError(
                "PySpark before 4.2 does not tell a source the position of its stream", hint="use PySpark 4.2 or later"
            )
        self.table.poll()
        completed = self.table.completed()
        self.table.end_batch()
        if self.until is not None:
            self._reach_the_newest(completed, int(start["checkpoint"]))
            completed = [h for h in completed if (h.checkpoint_id or 0) <= self.until]
        else:
            completed = self.table.leave_out_unreadable(completed, int(start["checkpoint"]))
        step = next_step(completed, int(start["checkpoint"]), self.table.follow, _most(limit))
        if not step.chosen:
            return start
        return _offset(step.chosen[-1], read=step.chosen, behind=step.behind, is_backlog=step.is_backlog)

    def _reach_the_newest(self, completed: Sequence[SnapshotHead], after: int) -> None:
        """Extend the query to a later checkpoint if its last one was deleted before it was read."""
        ids = [h.checkpoint_id or 0 for h in completed]
        unread = self.until is not None and (after < self.until or self.until in self.table.lost)
        if self.until is not None and unread and ids and self.until not in ids:
            if len(self.table.lost) > _MOST_LOST:
                raise CheckpointDeletedError(
                    f"{len(self.table.lost)} checkpoints below {self.table.root} were deleted before they were read",
                    hint="let Flink keep more: execution.checkpointing.num-retained",
                )
            self.until = max(self.until, ids[-1])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if int(start["checkpoint"]) >= int(end["checkpoint"]):
            return []
        earlier, wanted = _ids(start), _ids(end)
        before = earlier[-1] if earlier else None
        self.table.start_batch(wanted, before)
        return self.table.partitions(wanted, self.columns, before=before)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from _read(partition)


def _most(limit: Any) -> int | None:
    """Return the maximum number of checkpoints per batch that Spark allows; it may request all, whatever the options say."""
    from pyspark.sql.streaming.datasource import ReadMaxFiles

    return int(limit.max_files) if isinstance(limit, ReadMaxFiles) else None


def _ids(offset: Mapping[str, Any]) -> list[int]:
    """Return the checkpoints read by the batch that ends at an offset."""
    return [int(n) for n in str(offset["read"]).split(",") if n]


def _offset(checkpoint: int, *, read: Sequence[int] = (), behind: int = 0, is_backlog: bool = False) -> dict[str, Any]:
    return {
        "checkpoint": checkpoint,
        "read": ",".join(map(str, read)),
        "behind": behind,
        "isProcessingBacklog": is_backlog,
    }
