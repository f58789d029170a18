"""Paimon's source (``org.apache.paimon.flink.source``).

Split, version 1 (``FileStoreSourceSplitSerializer``): utf id, a Java stream of the table's split, i8 number of records read. A table's split is
a ``DataSplit``, which writes its own bytes into the stream. They begin with i8 magic number, i4 version, i8 snapshot, i4 length and partition,
i4 bucket, utf path of the bucket. The rest, its files, changes with the version (2 to 8).

Enumerator, version 1 (``PendingSplitsCheckpointSerializer``): i4 count of unassigned splits, each i4 length and split; i8 next snapshot, -1 if
none.

Bytes of the serializers of releases 0.9.0 (``DataSplit`` 2) and 1.3.1 (8) confirm this. Java streams are parsed as data and never executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition
from statetool.connectors.wire import read_inner
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream

_DATA_SPLIT: Final = "org.apache.paimon.table.source.DataSplit"
_MAGIC: Final = -2394839472490812314
#: Versions that begin with snapshot, partition, bucket and path.
_DATA_VERSIONS: Final = range(2, 9)
_NO_SNAPSHOT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSplit:
    """Files of a bucket."""

    split_id: str
    snapshot_id: int
    bucket: int
    bucket_path: str
    records_to_skip: int


class PaimonSource(SplitConnector):
    """Paimon's source."""

    name: ClassVar[str] = "paimon-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({1})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({1})

    def place(self, split: PaimonSplit) -> SplitPosition:
        return SplitPosition(source=split.bucket_path, position=f"record {split.records_to_skip}")

    def read_split(self, version: int, c: Cursor) -> PaimonSplit:
        start = c.pos
        split_id = c.utf()
        stored = read_java_stream(c, without_fields=frozenset({_DATA_SPLIT}))
        if not isinstance(stored, JavaObject) or stored.cls.name != _DATA_SPLIT:
            raise c.fail(f"expected a {_DATA_SPLIT}", pos=start)
        snapshot_id, bucket, path = _read_data_split(stored)
        skipped = c.i8()
        if not split_id or skipped < 0:
            raise c.fail(f"split {split_id!r}, record {skipped}", pos=start)
        return PaimonSplit(
            split_id=split_id,
            snapshot_id=snapshot_id,
            bucket=bucket,
            bucket_path=path,
            records_to_skip=skipped,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        splits = tuple(
            KnownSplit(split=read_inner(c, lambda inner: self.read_split(1, inner), "a split"), status="unassigned")
            for _ in range(c.count("splits", at_least=4))
        )
        snapshot = c.i8()
        if snapshot < _NO_SNAPSHOT:
            raise c.fail(f"snapshot {snapshot}", pos=c.pos - 8)
        return Enumerator(splits=splits, facts={"snapshot_id": None if snapshot == _NO_SNAPSHOT else snapshot})


def _read_data_split(stored: JavaObject) -> tuple[int, int, str]:
    """Return snapshot, bucket and path of a bucket, from the bytes that the object wrote."""
    c = Cursor(b"".join(part for part in stored.annotations if isinstance(part, bytes)))
    magic = c.i8()
    if magic != _MAGIC:
        raise c.fail(f"{magic} is not the number that begins a split of a table of Paimon", pos=0)
    version = c.i4()
    if version not in _DATA_VERSIONS:
        raise c.fail(f"version {version} of a split of a table of Paimon is not supported", pos=c.pos - 4)
    snapshot = c.i8()
    c.bytes4("a partition")
    return snapshot, c.i4(), c.utf()
