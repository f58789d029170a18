"""Delta Lake (``io.delta.flink.sink``).

``delta-sink``, of Delta's connectors for Flink 1.x. Its files are those of ``FileSink`` (:mod:`statetool.connectors.layouts.file_sink`):

* Writer, versions 1 and 2 (``DeltaWriterBucketStateSerializer``): i4 0x1E764B79, bucket id (versioned), utf path, utf application id.
* Committable, version 1 (``DeltaCommittableSerializer``): i4 0x1E765C80, utf application id, i8 checkpoint id, i4 count, each utf column and
  utf value of the partition, utf name of the file, i8 records, i8 bytes, i8 epoch ms of its last change, pending file (versioned).
* Global committable, version 1 (``DeltaGlobalCommittableSerializer``): i4 0x1E765C80, i4 count, each a committable without its magic number.
  Flink 1.13 and 1.14 store them in the state of the global committer. From 1.15 on, it has committables.

``delta-kernel-sink``, of Delta 4.3 and later for Flink 2. Committable, version 1 (``DeltaCommittable.Serializer``): a Java stream of data (utf
job id, utf operator id, i8 checkpoint id), the object ``WriterResultContext`` (watermarks), and data (i4 count, each utf action as JSON).

Follows delta-io/connectors 0.4 to 0.6, Delta 3.0 to 4.0 and 4.3 to 4.4 from their sources, as the jars were not available. Bytes of serializers
that were compiled from these sources confirm it, and a job in Flink 1.16 with the sink compiled from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SinkConnector
from statetool.connectors.layouts.file_sink import (
    BUCKET,
    COMMITTABLE,
    File,
    expect_magic,
    hidden_part,
    pending_file,
    read_bucket_id,
    read_pending_file,
)
from statetool.connectors.model import NamedFile, PendingCommit, SinkState
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, JavaStream
from statetool.io.output import Output

_CONTEXT: Final = "io.delta.flink.sink.WriterResultContext"
_ACTIONS: Final = frozenset({"add", "remove", "cdc", "metaData", "protocol", "txn", "commitInfo", "domainMetadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaBucket:
    """A folder that a writer writes to."""

    bucket_id: str
    bucket_path: str
    app_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFile:
    """A file that a commit adds to the table."""

    app_id: str
    checkpoint_id: int
    partition: Mapping[str, str]
    file_name: str
    record_count: int
    size_bytes: int
    last_update_ms: int
    pending_file: File


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaActions:
    """Actions that a commit adds to the log of the table."""

    job_id: str
    operator_id: str
    checkpoint_id: int
    low_watermark: int
    high_watermark: int
    actions: tuple[Mapping[str, Any], ...]


class DeltaSink(SinkConnector):
    """Delta's sink for Flink 1.x."""

    name: ClassVar[str] = "delta-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({1, 2})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})
    global_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_writer(self, version: int, c: Cursor) -> DeltaBucket:
        expect_magic(c, BUCKET, "the state of a bucket")
        return DeltaBucket(bucket_id=read_bucket_id(c), bucket_path=c.utf(), app_id=c.utf())

    def read_committable(self, version: int, c: Cursor) -> DeltaFile:
        expect_magic(c, COMMITTABLE, "a committable of files")
        return _read_file(c)

    def split_global(self, version: int, c: Cursor) -> tuple[bytes, ...]:
        expect_magic(c, COMMITTABLE, "a global committable of files")
        magic, files = bytes(c.data[c.pos - 4 : c.pos]), []
        for _ in range(c.count("committables", at_least=4)):
            start = c.pos
            _read_file(c)
            files.append(magic + bytes(c.data[start : c.pos]))
        return tuple(files)

    def join_global(self, version: int, committables: Sequence[bytes]) -> bytes:
        out = Output()
        out += COMMITTABLE.to_bytes(4, "big")
        out.i4(len(committables))
        for committable in committables:
            out += committable[4:]
        return bytes(out)

    def pending(self, committable: DeltaFile) -> PendingCommit:
        return replace(
            pending_file(committable.pending_file),
            name=committable.file_name,
            size_bytes=committable.size_bytes,
            fields=committable,
        )

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        for pending in state.pending:
            if isinstance(pending.fields, DeltaFile):
                file = pending.fields.pending_file
                committed = file.target_file or file.path
                yield replace(hidden_part(file, pending), committed_path=committed, fails_restore=False)


class DeltaKernelSink(SinkConnector):
    """Delta's sink for Flink 2."""

    name: ClassVar[str] = "delta-kernel-sink"
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_committable(self, version: int, c: Cursor) -> DeltaActions:
        start = c.pos
        stream = JavaStream(c)
        head = Cursor(_block(stream, c))
        job_id, operator_id, checkpoint_id = head.utf(), head.utf(), head.i8()
        head.expect_end("the ids of a committable")
        context = stream.read()
        is_context = isinstance(context, JavaObject) and context.cls.name == _CONTEXT
        low, high = (context.fields.get(f"{name}Watermark") if is_context else None for name in ("low", "high"))
        if not isinstance(low, int) or not isinstance(high, int):
            raise c.fail("expected watermarks in a committable of Delta", pos=start)
        tail = b""
        while c.left:
            tail += _block(stream, c)
        body = Cursor(tail)
        actions = tuple(_action(body) for _ in range(body.count("actions", at_least=2)))
        body.expect_end("the actions of a committable")
        return DeltaActions(
            job_id=job_id,
            operator_id=operator_id,
            checkpoint_id=checkpoint_id,
            low_watermark=low,
            high_watermark=high,
            actions=actions,
        )

    def pending(self, committable: DeltaActions) -> PendingCommit:
        added = [action["add"] for action in committable.actions if "add" in action]
        return PendingCommit(
            name=f"{committable.operator_id}/{committable.checkpoint_id}",
            status="",
            subtask=-1,
            file=str(added[0].get("path")) if len(added) == 1 else None,
            size_bytes=sum(size for a in added if isinstance(size := a.get("size"), int)),
            expires=False,
            fields=committable,
        )


def _read_file(c: Cursor) -> DeltaFile:
    start = c.pos
    if not (app_id := c.utf()):
        raise c.fail("expected the id of an application in a committable of Delta", pos=start)
    return DeltaFile(
        app_id=app_id,
        checkpoint_id=c.i8(),
        partition={c.utf(): c.utf() for _ in range(c.count("columns of a partition", at_least=4))},
        file_name=c.utf(),
        record_count=c.i8(),
        size_bytes=c.i8(),
        last_update_ms=c.i8(),
        pending_file=read_pending_file(c),
    )


def _block(stream: JavaStream, c: Cursor) -> bytes:
    start = c.pos
    block = stream.read()
    if not isinstance(block, bytes):
        raise c.fail("expected data in the Java stream of a committable", pos=start)
    return block


def _action(c: Cursor) -> Mapping[str, Any]:
    start = c.pos
    try:
        action = json.loads(c.utf())
    except (ValueError, RecursionError) as error:
        raise c.fail(f"an action is not JSON: {error}", pos=start) from error
    known = _ACTIONS & action.keys() if isinstance(action, dict) else ()
    if len(known) != 1 or not all(isinstance(action[name], dict) for name in known):
        raise c.fail("expected an action of Delta", pos=start)
    return dict(action)
