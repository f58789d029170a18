"""Iceberg's source (``org.apache.iceberg.flink.source``).

Bytes of the serializers of releases 1.5 and 1.10 confirm splits 2 and 3, and enumerators 1 and 2.

Split (``IcebergSourceSplitSerializer``), version 2: i4 index of the current file, i8 number of its records read, i4 count, each utf JSON of
a task (``ScanTaskParser``); 3: the JSON after i4 length. Version 1 is a Java stream of Iceberg's objects, and stays bytes:
releases up to 1.3 write it, 1.4 and 1.5 write version 2, 1.6 and later (followed up to 1.11) version 3.

Enumerator (``IcebergEnumeratorStateSerializer``), version 1: boolean has a position [i4 version 1, i4 length: boolean i8 snapshot, boolean
i8 its time in ms]; i4 version of splits, i4 count, each: i4 length, split, utf status; 2: then i4 count and i4 numbers of splits of the
last discoveries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition, Status
from statetool.connectors.wire import known_version, read_inner, read_versioned
from statetool.io.cursor import Cursor, decode_modified_utf8

_STATUSES: Final[Mapping[str, Status]] = {
    "UNASSIGNED": "unassigned",
    "ASSIGNED": "assigned",
    "COMPLETED": "finished",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTask:
    """A range of a data file, and the number of its delete files."""

    file: str
    start: int | None
    length: int | None
    delete_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSplit:
    """Ranges of data files that are read one after another: the index of the current range, and the number of its records read."""

    file_offset: int
    record_offset: int
    tasks: tuple[IcebergTask, ...]

    @property
    def split_id(self) -> str:
        # An id includes the class of its tasks: ``ScanTaskParser`` reads every task of a file as this one.
        files = ", ".join(f"SplitScanTask{{file={t.file}, start={t.start}, length={t.length}}}" for t in self.tasks)
        return f"IcebergSourceSplit{{files=[{files}]}}"


class IcebergSource(SplitConnector):
    """Iceberg's source."""

    name: ClassVar[str] = "iceberg-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({2, 3})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({1, 2})

    def place(self, split: IcebergSplit) -> SplitPosition:
        return SplitPosition(
            source=split.tasks[split.file_offset].file,
            start="file 0, record 0",
            position=f"file {split.file_offset}, record {split.record_offset}",
            stop=f"file {len(split.tasks)}",
        )

    def read_split(self, version: int, c: Cursor) -> IcebergSplit:
        start = c.pos
        file_offset, record_offset = c.i4(), c.i8()
        tasks = tuple(_read_task(version, c) for _ in range(c.count("tasks", at_least=2)))
        if not 0 <= file_offset < len(tasks) or record_offset < 0:
            raise c.fail(f"file {file_offset} of {len(tasks)}, record {record_offset}", pos=start)
        return IcebergSplit(file_offset=file_offset, record_offset=record_offset, tasks=tasks)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        facts: dict[str, Any] = {"snapshot_id": None, "snapshot_timestamp_ms": None}
        if c.bool():
            inner_version, inner = read_versioned(c, "a position")
            known_version(inner_version, (1,), "the position of the enumerator")
            facts["snapshot_id"] = inner.i8() if inner.bool() else None
            facts["snapshot_timestamp_ms"] = inner.i8() if inner.bool() else None
            inner.expect_end("a position")
        split_version = known_version(c.i4(), self.split_versions, "a split in the enumerator")
        splits = []
        for _ in range(c.count("splits", at_least=6)):
            split = read_inner(c, lambda framed: self.read_split(split_version, framed), "a split")
            start = c.pos
            status = c.utf()
            if status not in _STATUSES:
                raise c.fail(f"status {status!r} is not {', '.join(_STATUSES)}", pos=start)
            splits.append(KnownSplit(split=split, status=_STATUSES[status]))
        if version > 1:
            facts["enumeration_split_counts"] = [c.i4() for _ in range(c.count("numbers of splits", at_least=4))]
        return Enumerator(splits=tuple(splits), facts=facts)


def _read_task(version: int, c: Cursor) -> IcebergTask:
    start = c.pos
    text = c.utf() if version == 2 else _read_long_utf(c)
    try:
        task = json.loads(text)
        file = task["data-file"]["file-path"]
        deletes = task.get("delete-files") or ()
        return IcebergTask(
            file=str(file), start=task.get("start"), length=task.get("length"), delete_files=len(deletes)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise c.fail(f"no task of a scan of Iceberg: {error!r}", pos=start) from None


def _read_long_utf(c: Cursor) -> str:
    raw = c.bytes4("a task")
    return decode_modified_utf8(raw, c, c.pos - len(raw))
