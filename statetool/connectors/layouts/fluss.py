"""Fluss: the source (``org.apache.fluss.flink.source``, before release 0.8 ``com.alibaba.fluss.flink.source``) and the sink's recovery state.

Split, versions 0 and 1 (``SourceSplitSerializer``): i1 kind, i8 table, boolean and (i8 partition, utf its name), i4 bucket. Kinds:

* 1, a snapshot and then the log: i8 snapshot, i8 records to skip, boolean the snapshot was read, i8 start offset of the log; since version 1
  i8 end offset and boolean the split is bounded
* 2, the log: i8 start offset, i8 end offset. The end is the least number if there is none
* 3, all rows of a bucket (version 1): nothing more. It starts again after a restore
* -1, a file of a data lake: i4 version, i4 index, i4 length and the lake's own split, which stays bytes
* -2, files of a data lake and then the log: i4 version, boolean and (i4 count, each i4 length and the lake's own split), i8 start offset, i8
  end offset, i8 records to skip, i4 index of the file, boolean all files were read

Enumerator (``FlussSourceEnumeratorStateSerializer``): i4 count of assigned buckets, each i8 table, boolean and i8 partition, i4 bucket; i4 count
of assigned partitions, each i8 partition and utf name. Then, in version 0 only of tables with a data lake: boolean and (i4 count and i4 version of
the splits that remain, each i4 length and split). Since version 2: utf id of a lease on snapshots. Since version 3: boolean the first discovery is
finished, i4 count of unassigned splits, and if there are any, i4 version, each i4 length and split. A bucket is shown as ``TABLE-BUCKET`` or
``TABLE-pPARTITION-BUCKET``, the end of the id of its split.

Union list state ``undo_recovery_state`` of the sink (:mod:`statetool.serializers.libraries.fluss`): a restored sink undoes what it wrote after these offsets.

Bytes of the serializers of releases 0.7 (enumerators 0) and 0.9 (enumerators 2, data lakes) confirm this, and bytes of serializers that were
compiled from the sources of August 2026 (splits 1, enumerators 3). Enumerators 1, which no release writes, follow these sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SplitConnector, StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import Enumerator, KnownSplit, SinkState, SplitPosition
from statetool.connectors.wire import known_version, read_inner
from statetool.io.cursor import Cursor
from statetool.serializers.libraries.fluss import SNAPSHOTS

_HYBRID: Final = 1
_LOG: Final = 2
_ROWS: Final = 3
_LAKE_FILE: Final = -1
_LAKE_HYBRID: Final = -2
#: Prefix of the id of a split, by kind.
_PREFIXES: Final = {
    _HYBRID: "hybrid-snapshot-log",
    _LOG: "log",
    _ROWS: "kv-batch",
    _LAKE_FILE: "lake-snapshot",
    _LAKE_HYBRID: "lake-hybrid-snapshot-log",
}
_EARLIEST: Final = -2
_NO_STOPPING_OFFSET: Final = -(1 << 63)
_LEAST_BUCKET_BYTES: Final = 13
_LEAST_SPLIT_BYTES: Final = 18
_UNDO: Final = "undo_recovery_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlussSplit:
    """A bucket of a table.

    Attributes
    ----------
    starting_offset, stopping_offset
        Offsets of the log; the start is -2 for the earliest one. ``None`` if the split has no log, or no end.
    snapshot_id
        The snapshot that is read before the log.
    records_to_skip
        Records that were read of the snapshot, or of the current file of a data lake.
    snapshot_finished
        Whether only the log is left. ``None`` if the split has no snapshot and no files of a data lake.
    is_batch
        Whether the split is bounded, since version 1.
    lake_files
        Splits of the data lake, as bytes.
    lake_index
        Index of the current file of the data lake.
    """

    split_id: str
    table_id: int
    partition_id: int | None
    partition_name: str | None
    bucket: int
    starting_offset: int | None = None
    stopping_offset: int | None = None
    snapshot_id: int | None = None
    records_to_skip: int | None = None
    snapshot_finished: bool | None = None
    is_batch: bool | None = None
    lake_files: tuple[bytes, ...] | None = None
    lake_index: int | None = None


class FlussSource(SplitConnector):
    """Fluss's source."""

    name: ClassVar[str] = "fluss-source"
    markers: ClassVar[tuple[str, ...]] = ("earliest",)
    split_versions: ClassVar[frozenset[int]] = frozenset({0, 1})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2, 3})

    def place(self, split: FlussSplit) -> SplitPosition:
        source = f"table {split.table_id}" + (f" ({split.partition_name})" if split.partition_name else "")
        position, marker = None, None
        if split.snapshot_finished is False and split.lake_index is not None:
            position = f"lake file {split.lake_index}, record {split.records_to_skip}"
        elif split.snapshot_finished is False:
            position = f"snapshot {split.snapshot_id}, record {split.records_to_skip}"
        elif split.starting_offset == _EARLIEST:
            marker = "earliest"
        elif split.starting_offset is not None:
            position = str(split.starting_offset)
        elif split.lake_index is not None:
            position = f"lake file {split.lake_index}"
        return SplitPosition(
            source=source,
            partition=split.bucket,
            position=position,
            stop=None if split.stopping_offset is None else str(split.stopping_offset),
            marker=marker,
        )

    def read_split(self, version: int, c: Cursor) -> FlussSplit:
        start = c.pos
        kind = c.i1()
        if kind not in _PREFIXES or (kind == _ROWS and version < 1):
            raise c.fail(f"kind {kind} of a split of Fluss is not known in version {version}", pos=start)
        table, partition, partition_name, bucket = _read_bucket(c, named=True, in_lake=kind < 0)
        fields = _read_fields(c, kind, version)
        split_id = f"{_PREFIXES[kind]}-{_bucket_name(table, partition, bucket)}"
        return FlussSplit(
            split_id=f"{split_id}-{fields['lake_index']}" if kind == _LAKE_FILE else split_id,
            table_id=table,
            partition_id=partition,
            partition_name=partition_name,
            bucket=bucket,
            **fields,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        buckets = []
        for _ in range(c.count("buckets", at_least=_LEAST_BUCKET_BYTES)):
            table, partition, _, bucket = _read_bucket(c, named=False)
            buckets.append(_bucket_name(table, partition, bucket))
        partitions = {c.i8(): c.utf() for _ in range(c.count("partitions", at_least=10))}
        facts: dict[str, Any] = {
            "assigned_buckets": sorted(buckets),
            "assigned_partitions": {str(k): v for k, v in partitions.items()},
        }
        splits: list[FlussSplit] = []
        # In version 0, only tables with a data lake have remaining splits.
        if (version > 0 or c.left) and c.bool():
            splits += self._read_splits(c, always_versioned=True)
        if version >= 2:
            facts["lease_id"] = c.utf()
        if version >= 3:
            facts["initial_discovery_finished"] = c.bool()
            splits += self._read_splits(c, always_versioned=False)
        return Enumerator(splits=tuple(KnownSplit(split=s, status="unassigned") for s in splits), facts=facts)

    def _read_splits(self, c: Cursor, *, always_versioned: bool) -> list[FlussSplit]:
        count = c.count("splits", at_least=_LEAST_SPLIT_BYTES)
        if not count and not always_versioned:
            return []
        version = known_version(c.i4(), self.split_versions, "a split in the enumerator")
        return [read_inner(c, lambda inner: self.read_split(version, inner), "a split") for _ in range(count)]


class FlussSink(StateSink):
    """Fluss's sink, as far as it keeps state: the offsets after which a restored sink undoes its writes (since release 0.9)."""

    name: ClassVar[str] = "fluss-sink"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _UNDO in operator.states and operator.states[_UNDO].value.snapshot_class in SNAPSHOTS

    def read(self, operator: OperatorBytes) -> SinkState:
        writers: list[tuple[int, Any]] = []
        versions = set()
        for subtask, (version, _, offsets) in operator.values(_UNDO):
            versions.add(version)
            undo_after = {_bucket_name(table, partition, bucket): at for table, partition, bucket, at in offsets}
            writers.append((subtask, {"undo_after": undo_after}))
        return SinkState(role="writer", writers=tuple(writers), versions=frozenset(versions))


def _read_fields(c: Cursor, kind: int, version: int) -> dict[str, Any]:
    """Read what follows the bucket of a split."""
    start = c.pos
    fields: dict[str, Any] = {}
    match kind:
        case 1:
            fields = {"snapshot_id": c.i8(), "records_to_skip": c.i8(), "snapshot_finished": c.bool()}
            fields |= {"starting_offset": c.i8(), "stopping_offset": c.i8() if version > 0 else _NO_STOPPING_OFFSET}
            if version > 0:
                fields["is_batch"] = c.bool()
        case 2:
            fields = {"starting_offset": c.i8(), "stopping_offset": c.i8()}
        case -1:
            fields = {"lake_version": c.i4(), "lake_index": c.i4(), "lake_files": (c.bytes4("a split of a data lake"),)}
        case -2:
            fields = {"lake_version": c.i4(), "lake_files": _read_lake_files(c)}
            fields |= {"starting_offset": c.i8(), "stopping_offset": c.i8(), "records_to_skip": c.i8()}
            fields |= {"lake_index": c.i4(), "snapshot_finished": c.bool()}
    stop = fields.get("stopping_offset", _NO_STOPPING_OFFSET)
    numbers = [fields.get(n, 0) for n in ("snapshot_id", "records_to_skip", "lake_version", "lake_index")]
    if min(numbers) < 0 or fields.get("starting_offset", 0) < _EARLIEST or (stop < 0 and stop != _NO_STOPPING_OFFSET):
        raise c.fail(f"a split of Fluss with {fields}", pos=start)
    if "stopping_offset" in fields and stop == _NO_STOPPING_OFFSET:
        fields["stopping_offset"] = None
    fields.pop("lake_version", None)
    return fields


def _read_lake_files(c: Cursor) -> tuple[bytes, ...] | None:
    if not c.bool():
        return None
    return tuple(c.bytes4("a split of a data lake") for _ in range(c.count("splits of a data lake", at_least=4)))


def _read_bucket(c: Cursor, *, named: bool, in_lake: bool = False) -> tuple[int, int | None, str | None, int]:
    """Read table, partition, name of the partition, and bucket. Those of a data lake that Fluss does not know have negative numbers."""
    start = c.pos
    table = c.i8()
    partition = partition_name = None
    if c.bool():
        partition = c.i8()
        partition_name = c.utf() if named else None
    bucket = c.i4()
    if table < 0 or (min(bucket, partition or 0) < 0 and not in_lake):
        raise c.fail(f"bucket {bucket} of table {table}", pos=start)
    return table, partition, partition_name, bucket


def _bucket_name(table: int, partition: int | None, bucket: int) -> str:
    return f"{table}-{bucket}" if partition is None else f"{table}-p{partition}-{bucket}"
