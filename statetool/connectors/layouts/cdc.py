r"""Flink CDC: the MySQL source, and the common base of the sources for Postgres, Oracle, SQL Server, MongoDB and others.

A source first reads a table in chunks (snapshot phase), then the log of the database (stream phase) in one split that lists the chunks.

MySQL split 4 (``MySqlSplitSerializer``): i4 kind. 1, snapshot: utf table id in backquotes, utf split id, utf row type of the key, utf start
and utf end (hex of a Java stream of ``Object[]``, of null at the ends of the table), offset high watermark, schemas. 2, binlog: utf id, utf
empty, offsets start and end, i4 count of finished chunks (utf table id, utf id, utf start, utf end, offset), schemas, i4 total, boolean
suspended. Offset: boolean present [i4 length, JSON object of strings]. Schemas: i4 count, each utf table id, i4 length, JSON.

MySQL enumerator 5 (``PendingSplitsStateSerializer``): i4 version of splits, i4 kind (1 snapshot, 2 binlog, 3 hybrid). 1 and 3: tables done
(i4 count, utf), remaining chunks (i4 count, i4 length, split), assigned chunks (i4 count, utf id, i4 length, split), finished offsets (i4
count, utf id, offset), i4 status, remaining tables, boolean names are case-sensitive, schemas, boolean a table is being split [utf table,
utf next start, i4 next chunk]. 2 and, after all this, 3: boolean the binlog split is assigned.

Common base, split 6 (``SourceSplitSerializer``): a boolean (catalog before schema) before the table id of a snapshot split and in schemas;
a finished chunk has utf (hex of a Java stream of the offset factory) before its offset and a boolean after it; a stream split ends with
boolean suspended, boolean snapshot completed. Enumerator 8: the boolean before table ids of lists, and after the schemas i4 count,
each utf chunk id, i8 checkpoint. Offset factories are parsed as data and never executed.

Versions written by older releases (newer releases read some of these differently):

* MySQL 2.0: split 2 has no total and no suspended; enumerator 2 has a boolean (all are assigned) as the status, and ends there
* MySQL 2.1: split 3 has the total; enumerator 3 also has the remaining tables and the case-sensitivity flag
* MySQL 2.2: split 4, in 2.2.0 without suspended; enumerator 3 with an i4 status: distinguished from 2.1 by the version of splits
* MySQL 2.3 and later: split 4, enumerator 5 (4: without the table that is being split)
* common base 2.3: split 3 without the booleans before table ids, suspended and completed; enumerator 4 without them, with a boolean as
  the status, up to the schemas
* common base 2.4, 3.0: split 4 and enumerator 5 with these booleans; 3.1, 3.2: split 5 with suspended, enumerator 6 with an i4 status (7:
  and checkpoints of chunks); 3.3: split 5, enumerator 8; 3.4 and later: split 6, enumerator 8

Chunks of MySQL 2.1 and of the common base 2.3 have the same layout: only the enumerator tells them apart. Bytes of the serializers of MySQL
2.0 to 2.3 and 3.3, and of the common base 2.3, 2.4, 3.1 and 3.3 confirm these layouts, jobs those of the newest. Enumerators 4 of MySQL and
7 of the common base follow the source code alone: none of the releases tested writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, SourceState, SplitPosition
from statetool.connectors.wire import known_version, read_inner
from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaObject, read_java_stream

_SNAPSHOT, _STREAM, _HYBRID = 1, 2, 3
_STATUSES: Final = (
    "INITIAL_ASSIGNING",
    "INITIAL_ASSIGNING_FINISHED",
    "NEWLY_ADDED_ASSIGNING",
    "NEWLY_ADDED_ASSIGNING_SNAPSHOT_FINISHED",
    "NEWLY_ADDED_ASSIGNING_FINISHED",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSplit:
    """A chunk of a table: a range of its key. ``start`` and ``end`` are ``None`` at the ends of the table."""

    split_id: str
    kind: str
    table: str
    split_key_type: str
    start: Any
    end: Any
    high_watermark: Mapping[str, str] | None
    table_schemas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedChunk:
    """A finished chunk, as the stream split stores it."""

    table: str
    split_id: str
    start: Any
    end: Any
    high_watermark: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSplit:
    """The stream split. Fields that older versions do not store are ``None``."""

    split_id: str
    kind: str
    starting_offset: Mapping[str, str] | None
    ending_offset: Mapping[str, str] | None
    finished_splits: tuple[FinishedChunk, ...]
    total_finished_split_size: int | None
    suspended: bool | None
    table_schemas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedStreamSplit(StreamSplit):
    """The stream split of the common base."""

    snapshot_completed: bool | None


class MySqlSource(SplitConnector):
    """The MySQL source of Flink CDC."""

    name: ClassVar[str] = "mysql-cdc-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({2, 3, 4})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({2, 3, 4, 5})
    #: Name of the phase after the snapshot phase.
    log: ClassVar[str] = "binlog"

    def place(self, split: SnapshotSplit | StreamSplit) -> SplitPosition:
        if isinstance(split, SnapshotSplit):
            start, end = (None if v is None else offset_text(v) for v in (split.start, split.end))
            return SplitPosition(source=split.table, start=start, stop=end, finished=split.high_watermark is not None)
        at = split.starting_offset
        position = None if at is None else offset_text(at)
        return SplitPosition(
            source=", ".join(split.table_schemas) or None, position=position, time_ms=event_time_ms(at or {})
        )

    def backlog(self, enumerator: Enumerator | None) -> bool | None:
        assigned = None if enumerator is None else enumerator.facts.get(f"{self.log}_split_assigned")
        return None if assigned is None else not assigned

    def phase(self, state: SourceState) -> str:
        return f"it reads the {'snapshot' if state.backlog else self.log}"

    def read_split(self, version: int, c: Cursor) -> SnapshotSplit | StreamSplit:
        kind = c.i4()
        if kind == _SNAPSHOT:
            return SnapshotSplit(
                kind="snapshot",
                table=_plain_id(self.table_id(version, c)),
                split_id=c.utf(),
                split_key_type=c.utf(),
                start=_read_key(c),
                end=_read_key(c),
                high_watermark=_read_offset(c),
                table_schemas=self.schemas(version, c),
            )
        if kind == _STREAM:
            return self.stream_split(version, c)
        raise c.fail(f"kind {kind} of a split is neither 1 nor 2", pos=c.pos - 4)

    def stream_split(self, version: int, c: Cursor) -> StreamSplit:
        """Read the stream split after its kind."""
        start = c.pos
        split_id, _ = c.utf(), c.utf()
        if split_id != f"{self.log}-split":
            raise c.fail(f"the split of the log is called {split_id!r}, not '{self.log}-split'", pos=start)
        return StreamSplit(
            kind=self.log,
            split_id=split_id,
            starting_offset=_read_offset(c),
            ending_offset=_read_offset(c),
            finished_splits=tuple(
                self.finished_chunk(version, c) for _ in range(c.count("finished chunks", at_least=9))
            ),
            table_schemas=self.schemas(version, c),
            total_finished_split_size=c.i4() if version >= 3 else None,
            suspended=c.bool() if self.has_suspended(version, c) else None,
        )

    def has_suspended(self, version: int, c: Cursor) -> bool:
        """Return True if the flag follows that marks the stream split as suspended."""
        return version >= 4 and c.left > 0

    def finished_chunk(self, version: int, c: Cursor) -> FinishedChunk:
        """Read a finished chunk."""
        return FinishedChunk(
            table=_plain_id(c.utf()),
            split_id=c.utf(),
            start=_read_key(c),
            end=_read_key(c),
            high_watermark=_read_offset(c),
        )

    def table_id(self, version: int, c: Cursor) -> str:
        """Read the id of a table in a split or in schemas; the layout depends on the version of splits."""
        return c.utf()

    def listed_table(self, version: int, c: Cursor) -> str:
        """Read the id of a table in a list of the enumerator; the layout depends on the enumerator's version."""
        return c.utf()

    def schemas(self, version: int, c: Cursor) -> tuple[str, ...]:
        """Read the schemas of tables and return the ids of the tables."""
        return tuple(_read_schema(self.table_id(version, c), c) for _ in range(c.count("schemas", at_least=6)))

    def status(self, version: int, split_version: int, c: Cursor) -> str:
        """Read the status of the assigner."""
        # Version 3 is written by 2.1 (with splits of version 3) and by 2.2 (with version 4).
        return _read_status(c, as_number=version > 3 or (version, split_version) == (3, 4))

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        split_version = known_version(c.i4(), self.split_versions, "a split in the enumerator")
        kind = c.i4()
        if kind not in (_SNAPSHOT, _STREAM, _HYBRID):
            raise c.fail(f"kind {kind} of enumerator state is not 1 to 3", pos=c.pos - 4)
        kinds = {_SNAPSHOT: "snapshot", _STREAM: self.log, _HYBRID: "hybrid"}
        facts: dict[str, Any] = {"kind": kinds[kind], "split_version": split_version}
        splits = () if kind == _STREAM else self._read_chunks(version, split_version, c, facts)
        if kind != _SNAPSHOT:
            facts[f"{self.log}_split_assigned"] = c.bool()
        # The stream split is not listed.
        in_snapshot = kind != _STREAM and not facts.get(f"{self.log}_split_assigned")
        return Enumerator(splits=splits, lists_assigned=in_snapshot, facts=facts)

    def _read_chunks(
        self, version: int, split_version: int, c: Cursor, facts: dict[str, Any]
    ) -> tuple[KnownSplit, ...]:
        def chunk() -> SnapshotSplit | StreamSplit:
            return read_inner(c, lambda inner: self.read_split(split_version, inner), "a chunk")

        facts["already_processed_tables"] = self._tables(version, c)
        waiting = [chunk() for _ in range(c.count("chunks", at_least=4))]
        assigned = []
        for _ in range(c.count("chunks", at_least=6)):
            c.utf()
            assigned.append(chunk())
        done = {c.utf(): _read_offset(c) for _ in range(c.count("offsets", at_least=3))}
        facts["finished_offsets"] = done
        facts["assigner_status"] = self.status(version, split_version, c)
        if version >= 3:
            facts["remaining_tables"] = self._tables(version, c)
            facts["table_id_case_sensitive"] = c.bool()
        if version >= 4:
            facts["table_schemas"] = list(self.schemas(split_version, c))
        self.more_facts(version, c, facts)
        return (
            *(KnownSplit(split=s, status="unassigned") for s in waiting),
            *(KnownSplit(split=s, status="finished" if s.split_id in done else "assigned") for s in assigned),
        )

    def more_facts(self, version: int, c: Cursor, facts: dict[str, Any]) -> None:
        """Read the fields that newer versions of the enumerator store after the chunks."""
        if version >= 5:
            facts["splitting"] = _read_splitting(c)

    def _tables(self, version: int, c: Cursor) -> list[str]:
        return [_plain_id(self.listed_table(version, c)) for _ in range(c.count("tables", at_least=2))]


class IncrementalSource(MySqlSource):
    """Sources on the common base of Flink CDC: Postgres, Oracle, SQL Server, MongoDB and others."""

    name: ClassVar[str] = "incremental-cdc-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({3, 4, 5, 6})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({4, 5, 6, 7, 8})
    log: ClassVar[str] = "stream"

    def table_id(self, version: int, c: Cursor) -> str:
        if version >= 4:
            c.bool()
        return c.utf()

    def listed_table(self, version: int, c: Cursor) -> str:
        if version >= 5:
            c.bool()
        return c.utf()

    def stream_split(self, version: int, c: Cursor) -> StreamSplit:
        split = super().stream_split(version, c)
        return CompletedStreamSplit(
            **{name: getattr(split, name) for name in StreamSplit.__dataclass_fields__},
            snapshot_completed=c.bool() if version >= 6 else None,
        )

    def has_suspended(self, version: int, c: Cursor) -> bool:
        return version >= 5

    def finished_chunk(self, version: int, c: Cursor) -> FinishedChunk:
        table, split_id, start, end = _plain_id(c.utf()), c.utf(), _read_key(c), _read_key(c)
        _read_hex(c)
        offset = _read_offset(c)
        if version >= 4:
            c.bool()
        return FinishedChunk(table=table, split_id=split_id, start=start, end=end, high_watermark=offset)

    def status(self, version: int, split_version: int, c: Cursor) -> str:
        return _read_status(c, as_number=version >= 6)

    def more_facts(self, version: int, c: Cursor, facts: dict[str, Any]) -> None:
        if version >= 7:
            count = c.count("chunks", at_least=10)
            facts["split_finished_checkpoint_ids"] = {c.utf(): c.i8() for _ in range(count)}
        if version >= 8:
            facts["splitting"] = _read_splitting(c)


def _read_status(c: Cursor, *, as_number: bool) -> str:
    status = c.i4() if as_number else int(c.bool())
    if not 0 <= status < len(_STATUSES):
        raise c.fail(f"status {status} of the assigner is not 0 to 4", pos=c.pos - 4)
    return _STATUSES[status]


def _read_splitting(c: Cursor) -> dict[str, Any] | None:
    """Read the table that is being split into chunks."""
    if not c.bool():
        return None
    table, start, chunk_id = _plain_id(c.utf()), _read_key(c), c.i4()
    # The next start is a single value, not an array.
    first = start[0] if isinstance(start, list) and len(start) == 1 else start
    return {"table": table, "next_chunk_start": first, "next_chunk_id": chunk_id}


def _read_schema(table: str, c: Cursor) -> str:
    c.bytes4("a schema")
    return _plain_id(table)


def _plain_id(table: str) -> str:
    """Return the id of a table without quotes around its parts."""
    return table.replace("`", "").replace('"', "")


def _read_offset(c: Cursor) -> dict[str, str] | None:
    if not c.bool():
        return None
    start = c.pos
    raw = c.bytes4("an offset")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise c.fail(f"an offset that is no JSON: {error}", pos=start) from None
    if not isinstance(value, dict):
        raise c.fail("an offset that is no JSON object", pos=start)
    return value


def _read_hex(c: Cursor) -> Any:
    start = c.pos
    text = c.utf()
    try:
        inner = Cursor(bytes.fromhex(text))
    except ValueError:
        raise c.fail("expected hexadecimal digits of a Java stream", pos=start) from None
    try:
        value = read_java_stream(inner)
        inner.expect_end("a Java stream")
    except FormatError as error:
        raise c.fail(f"a Java stream in hexadecimal digits: {error.message}", pos=start) from None
    return value


def _read_key(c: Cursor) -> Any:
    """Read the values of a key; ``None`` at an end of the table."""
    return _plain(_read_hex(c))


def _plain(value: Any) -> Any:
    """Return Java objects as plain data: boxes as their values, other objects as class and fields."""
    match value:
        case JavaArray(items=bytes() as raw):
            return raw.hex()
        case JavaArray(items=items):
            return [_plain(v) for v in items]
        case JavaObject(cls=cls, fields=fields):
            if cls.name.startswith("java.lang.") and fields.keys() == {"value"}:
                return fields["value"]
            return {"class": cls.name, **{k: _plain(v) for k, v in fields.items()}}
        case str():
            return str(value)
    return value


def event_time_ms(offset: Mapping[str, Any]) -> int | None:
    """Return the time of the last event if offsets store it: in seconds for MySQL, in microseconds for Postgres."""
    for key, factor, divisor in (("ts_sec", 1000, 1), ("ts_usec", 1, 1000)):
        text = str(offset.get(key, ""))
        if text.isascii() and text.isdigit() and int(text):
            return int(text) * factor // divisor
    return None


def offset_text(value: Any) -> str:
    """Return an offset or key as JSON text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
