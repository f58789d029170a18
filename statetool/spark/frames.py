"""Tables as DataFrames.

A small table is read in this process and becomes a local relation: its queries need no Python worker, and Spark handles column pruning,
filters and joins. A larger table is a stage of tasks with one partition per split, planned on the driver and read by
:func:`statetool.tables.read.read_split`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from statetool.errors import OptionError
from statetool.io.threads import in_threads
from statetool.spark.session import default_parallelism, has_data_sources, heap_bytes
from statetool.spark.source.guard import ROW_BYTES, read_checked
from statetool.spark.stages import ItemTask, Stages, stages_of_items
from statetool.spark.tables import arrow_frame
from statetool.spark.workers import check_workers
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan
from statetool.tables.splits import Split

#: Session setting: tables of up to this many stored bytes are read on the driver, and snapshots written there.
LOCAL_BYTES: Final = "spark.statetool.localBytes"
_DEFAULT_LOCAL_BYTES: Final = 8 << 20
#: A compressed table may be much larger than its stored bytes. Spark keeps up to 48 MiB in a relation.
_MAX_RELATION_BYTES: Final = 32 << 20
#: Tasks per core when splits are cut to keep all cores busy: few enough to start cheaply, small enough to end at about the same time.
_TASKS_PER_CORE: Final = 4
_LEAST_SPLIT_BYTES: Final = 8 << 20
#: Largest row as a fraction of the heap. An eighth works and a quarter fails, for lists, maps and bytes, collected, shuffled and written to
#: Parquet.
_HEAP_SHARE: Final = 8
_MAX_ROW_BYTES: Final = 1 << 30
#: Number of files read concurrently: files of small tables are often small too, and remote.
_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A planned table, and the session that reads it.

    Attributes
    ----------
    local_bytes
        Maximum stored bytes of a small table. Defaults to the session's ``spark.statetool.localBytes``, or 8 MiB.
    """

    spark: Any
    scan: TableScan
    local_bytes: int | None = None

    @property
    def is_small(self) -> bool:
        """Return True if the table is read on the driver."""
        return is_small(self.scan, local_limit(self.spark, self.local_bytes))

    def frame(self) -> Any:
        """Return the table as a DataFrame; a small table is read immediately.

        Raises
        ------
        FormatError
            A small table is damaged; errors of larger ones are raised by their queries.
        """
        table = _read_on_driver(self.scan) if has_data_sources() and self.is_small else None
        return scan_frame(self.spark, self.scan) if table is None else arrow_frame(self.spark, table)


def plan_for_tasks(spark: Any, plan: Callable[[ScanRequest], TableScan], request: ScanRequest) -> TableScan:
    """Plan a table for the tasks of a session: unless the request sets a split size, each core gets some."""
    return plan_for_cores(lambda: default_parallelism(spark), plan, request)


def plan_for_cores(
    cores: Callable[[], int], plan: Callable[[ScanRequest], TableScan], request: ScanRequest
) -> TableScan:
    """Plan a table for tasks on some cores; the number is needed only for tables of some size."""
    scan = plan(request)
    size = sum(split.size_bytes for split in scan.splits)
    if request.split_bytes is not None or size <= _LEAST_SPLIT_BYTES:
        return scan
    tasks = _TASKS_PER_CORE * cores()
    share = max(_LEAST_SPLIT_BYTES, size // tasks + size // (8 * tasks))  # the number of splits is never exactly that
    if all(split.size_bytes <= share for split in scan.splits):
        return scan
    return plan(replace(request, split_bytes=min(share, request.target_bytes)))


def scan_frame(spark: Any, scan: TableScan) -> Any:
    """Return a planned table as a DataFrame that is read by tasks, one partition per split."""
    check_workers(spark)
    return scan_stages(scan, row_limit(spark)).frame(spark)


def scan_stages(scan: TableScan, row_bytes: int | None, *, one_task: bool = False) -> Stages:
    """Return the stages that read a planned table, one task per split unless ``one_task``; no row is larger than ``row_bytes``."""
    items = [pickle.dumps(split) for split in scan.splits]
    return stages_of_items(items, split_reader(row_bytes), scan.schema, one_task=one_task)


def split_reader(row_bytes: int | None) -> ItemTask:
    """Return the function that turns pickled splits into their rows, none larger than ``row_bytes``."""

    def read(items: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        for item in items:
            yield from read_checked(pickle.loads(item), row_bytes=row_bytes)

    return read


def row_limit(spark: Any) -> int:
    """Return the maximum row size, in Arrow bytes, that a task passes to its JVM: the session's setting, or an eighth of the heap.

    The JVM holds a row several times while it receives, grows, sorts and writes it, in arrays of at most 2 GiB that double when they grow.
    """
    given = spark.conf.get(ROW_BYTES, None)
    return min(heap_bytes(spark) // _HEAP_SHARE, _MAX_ROW_BYTES) if given is None else _bytes_of(ROW_BYTES, given)


def local_limit(spark: Any, local_bytes: int | None = None) -> int:
    """Return the stored bytes up to which the driver does the work: the given limit, or the session's setting."""
    if local_bytes is not None:
        return local_bytes
    return _bytes_of(LOCAL_BYTES, spark.conf.get(LOCAL_BYTES, str(_DEFAULT_LOCAL_BYTES)))


def _bytes_of(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{name}={text!r} is not a number of bytes") from None


def is_small(scan: TableScan, most: int) -> bool:
    return sum(split.size_bytes for split in scan.splits) <= most


def _read_on_driver(scan: TableScan) -> pa.Table | None:
    """Return the rows of a small table; ``None`` if they are too large for a relation nevertheless."""
    batches: list[pa.RecordBatch] = []
    for split_batches in in_threads(_first_batches, scan.splits, _THREADS):
        batches += split_batches
        if sum(batch.nbytes for batch in batches) > _MAX_RELATION_BYTES:
            return None
    return pa.Table.from_batches(batches, schema=scan.schema)


def _first_batches(split: Split) -> list[pa.RecordBatch]:
    """Return the batches of a split, up to the first that exceeds the size of a relation."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in read_checked(split, row_bytes=None):
        batches.append(batch)
        size += batch.nbytes
        if size > _MAX_RELATION_BYTES:
            break
    return batches
