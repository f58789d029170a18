"""Fluss's source (``com.alibaba.fluss.flink.source``), as confirmed by bytes of the serializers of release 0.7.

Split, version 0 (``SourceSplitSerializer``): i1 kind, i8 table, boolean and (i8 partition, utf its name), i4 bucket. Kind 1 reads a snapshot
and then the log: i8 snapshot, i8 records to skip, boolean the snapshot was read, i8 start offset of the log. Kind 2 reads the log: i8 start
offset, i8 end offset (the least number if there is none). Negative kinds read tables in a data lake: the layout of their content depends on the lake.

Enumerator, version 0 (``FlussSourceEnumeratorStateSerializer``): i4 count of assigned buckets, each i8 table, boolean and i8 partition, i4
bucket; i4 count of assigned partitions, each i8 partition and utf name. A bucket is shown as ``TABLE-BUCKET`` or
``TABLE-pPARTITION-BUCKET``, the end of the id of its split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, SplitPosition
from statetool.io.cursor import Cursor

_HYBRID: Final = 1
_LOG: Final = 2
_EARLIEST: Final = -2
_NO_STOPPING_OFFSET: Final = -(1 << 63)
_LEAST_BUCKET_BYTES: Final = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class FlussSplit:
    """A bucket of a table.

    ``starting_offset`` is an offset of the log, -2 for the earliest one. The other fields are ``None`` if the split has no snapshot.
    """

    split_id: str
    table_id: int
    partition_id: int | None
    partition_name: str | None
    bucket: int
    starting_offset: int
    stopping_offset: int | None = None
    snapshot_id: int | None = None
    records_to_skip: int | None = None
    snapshot_finished: bool | None = None


class FlussSource(SplitConnector):
    """Fluss's source."""

    name: ClassVar[str] = "fluss-source"
    markers: ClassVar[tuple[str, ...]] = ("earliest",)
    split_versions: ClassVar[frozenset[int]] = frozenset({0})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: FlussSplit) -> SplitPosition:
        source = f"table {split.table_id}" + (f" ({split.partition_name})" if split.partition_name else "")
        in_snapshot = split.snapshot_finished is False
        is_earliest = split.starting_offset == _EARLIEST
        log = None if is_earliest else str(split.starting_offset)
        return SplitPosition(
            source=source,
            partition=split.bucket,
            position=f"snapshot {split.snapshot_id}, record {split.records_to_skip}" if in_snapshot else log,
            stop=None if split.stopping_offset is None else str(split.stopping_offset),
            marker="earliest" if is_earliest and not in_snapshot else None,
        )

    def read_split(self, version: int, c: Cursor) -> FlussSplit:
        start = c.pos
        kind = c.i1()
        if kind not in (_HYBRID, _LOG):
            what = "of a table in a data lake" if kind < 0 else "of a split"
            raise c.fail(f"kind {kind} {what} of Fluss is not supported, only {_HYBRID} and {_LOG}", pos=start)
        table, partition, partition_name, bucket = _read_bucket(c, named=True)
        snapshot: dict[str, Any] = {}
        if kind == _HYBRID:
            snapshot = {"snapshot_id": c.i8(), "records_to_skip": c.i8(), "snapshot_finished": c.bool()}
            if min(snapshot["snapshot_id"], snapshot["records_to_skip"]) < 0:
                raise c.fail(f"snapshot {snapshot['snapshot_id']}, record {snapshot['records_to_skip']}", pos=start)
        starting_offset = c.i8()
        stopping_offset = c.i8() if kind == _LOG else _NO_STOPPING_OFFSET
        if starting_offset < _EARLIEST or (stopping_offset < 0 and stopping_offset != _NO_STOPPING_OFFSET):
            raise c.fail(f"offsets from {starting_offset} to {stopping_offset}", pos=start)
        prefix = "hybrid-snapshot-log" if kind == _HYBRID else "log"
        return FlussSplit(
            split_id=f"{prefix}-{_bucket_name(table, partition, bucket)}",
            table_id=table,
            partition_id=partition,
            partition_name=partition_name,
            bucket=bucket,
            starting_offset=starting_offset,
            stopping_offset=None if stopping_offset == _NO_STOPPING_OFFSET else stopping_offset,
            **snapshot,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        buckets = []
        for _ in range(c.count("buckets", at_least=_LEAST_BUCKET_BYTES)):
            table, partition, _, bucket = _read_bucket(c, named=False)
            buckets.append(_bucket_name(table, partition, bucket))
        partitions = {c.i8(): c.utf() for _ in range(c.count("partitions", at_least=10))}
        facts = {"assigned_buckets": sorted(buckets), "assigned_partitions": {str(k): v for k, v in partitions.items()}}
        return Enumerator(facts=facts)


def _read_bucket(c: Cursor, *, named: bool) -> tuple[int, int | None, str | None, int]:
    """Read table, partition, name of the partition, and bucket."""
    start = c.pos
    table = c.i8()
    partition = partition_name = None
    if c.bool():
        partition = c.i8()
        partition_name = c.utf() if named else None
    bucket = c.i4()
    if min(table, bucket, partition or 0) < 0:
        raise c.fail(f"bucket {bucket} of table {table}", pos=start)
    return table, partition, partition_name, bucket


def _bucket_name(table: int, partition: int | None, bucket: int) -> str:
    return f"{table}-{bucket}" if partition is None else f"{table}-p{partition}-{bucket}"
