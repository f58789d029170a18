"""Iceberg's sinks (``org.apache.iceberg.flink.sink``).

Committable of ``IcebergSink``, version 1 (``IcebergCommittableSerializer``): utf job id, utf operator id, i8 checkpoint, i4 length and
manifests. Committable of ``DynamicIcebergSink`` (``DynamicCommittableSerializer``), version 1: before these utf table, utf branch, i4
schema, i4 partition spec, boolean upserts, i4 count and i4 fields of equality (``WriteTarget``); 2: before these utf table, utf branch, and
i4 count of manifests, each after i4 length. Release 1.10 writes version 1, 1.11 version 2.

``FlinkSink`` (``IcebergFilesCommitter``) stores list states: ``iceberg-files-committer-state``, a map of checkpoints to manifests, and
``iceberg-flink-job-id``.

Manifests (``DeltaManifestsSerializer``; empty if nothing was written), versioned. Version 1: a manifest of data; 2: i4 length and manifest
of data, i4 length and manifest of deletes (0: none), i4 count and utf names of referenced files. A manifest (``AvroEncoderUtil``): C2 01,
utf Avro schema, Avro. A commit is identified by job id, operator id and checkpoint, which Iceberg writes to its snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SinkConnector, StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import NamedFile, PendingCommit, SinkState
from statetool.connectors.wire import known_version, read_all, read_versioned
from statetool.io.cursor import Cursor
from statetool.java.declaring.flink_types import avro
from statetool.serializers.avro.binary import AvroBinaryCursor
from statetool.types import StructType

_STATE: Final = "iceberg-files-committer-state"
_JOB: Final = "iceberg-flink-job-id"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_AVRO_MAGIC: Final = b"\xc2\x01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """Manifests to commit, with the field names of Iceberg; ``None`` if absent."""

    data: Mapping[str, Any] | None = None
    deletes: Mapping[str, Any] | None = None
    referenced_data_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCommittable:
    """Data that a job wrote to one table for one checkpoint. Table and branch are set for the sink to several tables."""

    job_id: str
    operator_id: str
    checkpoint_id: int
    manifests: tuple[Manifests, ...]
    table: str | None = None
    branch: str | None = None

    @property
    def name(self) -> str:
        """Unique name of the committable."""
        where = f"{self.table}@{self.branch} " if self.table is not None else ""
        return f"{where}{self.job_id}/{self.operator_id}/{self.checkpoint_id}"


class IcebergSink(SinkConnector):
    """Iceberg's Sink V2 sink."""

    name: ClassVar[str] = "iceberg-sink"
    commits_by_checkpoint_id: ClassVar[bool] = True
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_committable(self, version: int, c: Cursor) -> IcebergCommittable:
        return _read_committable(c, lambda: (read_manifests(c.bytes4("manifests")),))

    def pending(self, committable: IcebergCommittable) -> PendingCommit:
        return _pending(committable, status="", subtask=-1)

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        return manifest_files(state)


class DynamicIcebergSink(IcebergSink):
    """Iceberg's sink to several tables."""

    name: ClassVar[str] = "dynamic-iceberg-sink"
    committable_versions: ClassVar[frozenset[int]] = frozenset({1, 2})

    def read_committable(self, version: int, c: Cursor) -> IcebergCommittable:
        table, branch = c.utf(), c.utf()
        if version == 1:
            c.i4()
            c.i4()
            c.bool()
            for _ in range(c.count("fields", at_least=4)):
                c.i4()
        committable = _read_committable(
            c, lambda: tuple(read_manifests(c.bytes4("manifests")) for _ in range(_manifest_count(version, c)))
        )
        return replace(committable, table=table, branch=branch)


class IcebergFilesCommitter(StateSink):
    """Iceberg's sink before Sink V2."""

    name: ClassVar[str] = "iceberg-files-committer"
    commits_by_checkpoint_id: ClassVar[bool] = True
    file_states: ClassVar[tuple[str, ...]] = (_STATE,)

    def recognises(self, operator: OperatorBytes) -> bool:
        return _STATE in operator.states and _JOB in operator.states

    def read(self, operator: OperatorBytes) -> SinkState:
        jobs = [value for _, value in operator.values(_JOB)]
        job = jobs[0] if jobs else ""
        pending = tuple(
            _pending(_stored_committable(job, checkpoint, raw), status="pre_committed", subtask=subtask)
            for subtask, checkpoints in operator.values(_STATE)
            for checkpoint, raw in checkpoints
        )
        return SinkState(role="committer", pending=pending, writers=tuple((0, {"job_id": job_id}) for job_id in jobs))

    def without(self, operator: OperatorBytes, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
        jobs = [value for _, value in operator.values(_JOB)]
        job = jobs[0] if jobs else ""
        elements: dict[int, tuple[bytes, ...]] = {}
        for element, (subtask, checkpoints) in zip(operator.elements(_STATE), operator.values(_STATE), strict=True):
            remaining = [(n, raw) for n, raw in checkpoints if _stored_committable(job, n, raw).name not in names]
            data = element.data if len(remaining) == len(checkpoints) else operator.encoded(_STATE, remaining)
            elements[subtask] = (*elements.get(subtask, ()), data)
        return {_STATE: elements}

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        return manifest_files(state)


def manifest_files(state: SinkState) -> Iterator[NamedFile]:
    """Yield the manifests that a restored committer reads. It deletes those that it has committed, so their commits may be in the table."""
    for pending in state.pending:
        for both in pending.fields.manifests if isinstance(pending.fields, IcebergCommittable) else ():
            for manifest in (both.data, both.deletes):
                if manifest is not None:
                    yield NamedFile(
                        path=manifest["manifest_path"],
                        size_bytes=manifest.get("manifest_length"),
                        fails_restore=False,
                        subtask=pending.subtask,
                    )


def _stored_committable(job: str, checkpoint: int, raw: bytes) -> IcebergCommittable:
    # The operator's id is not stored: it is the operator that holds the state.
    return IcebergCommittable(job_id=job, operator_id="", checkpoint_id=checkpoint, manifests=(read_manifests(raw),))


def _pending(committable: IcebergCommittable, *, status: str, subtask: int) -> PendingCommit:
    files = [m["manifest_path"] for both in committable.manifests for m in (both.data, both.deletes) if m is not None]
    return PendingCommit(
        name=committable.name,
        status=status,
        subtask=subtask,
        checkpoint_id=committable.checkpoint_id,
        file=", ".join(files) or None,
        expires=False,
        fields=committable,
    )


def _manifest_count(version: int, c: Cursor) -> int:
    return 1 if version == 1 else c.count("manifests", at_least=4)


def _read_committable(c: Cursor, manifests: Any) -> IcebergCommittable:
    start = c.pos
    job_id, operator_id, checkpoint_id = c.utf(), c.utf(), c.i8()
    if not _ID.fullmatch(job_id) or not _ID.fullmatch(operator_id) or checkpoint_id < 0:
        raise c.fail(f"{job_id!r}, {operator_id!r} are not the ids of a job and an operator", pos=start)
    return IcebergCommittable(
        job_id=job_id, operator_id=operator_id, checkpoint_id=checkpoint_id, manifests=manifests()
    )


def read_manifests(raw: bytes) -> Manifests:
    """Read manifests in their frame.

    Raises
    ------
    FormatError, UnsupportedError
        The bytes are not manifests, or are of an unknown version.
    """
    return read_all(raw, _read_manifests, "manifests") if raw else Manifests()


def _read_manifests(c: Cursor) -> Manifests:
    version, inner = read_versioned(c, "manifests")
    known_version(version, (1, 2), "manifests")
    if version == 1:
        return Manifests(data=_read_manifest(inner.take(inner.left)))
    manifests = Manifests(
        data=_read_manifest(inner.bytes4("a manifest")),
        deletes=_read_manifest(inner.bytes4("a manifest")),
        referenced_data_files=tuple(inner.utf() for _ in range(inner.count("files", at_least=2))),
    )
    inner.expect_end("manifests")
    return manifests


def _read_manifest(raw: bytes) -> Mapping[str, Any] | None:
    if not raw:
        return None
    c = Cursor(raw)
    if c.take(2) != _AVRO_MAGIC:
        raise c.fail("expected a manifest in Avro (C2 01)", pos=0)
    start = c.pos
    serializer = avro(c.utf())
    if not isinstance(serializer.logical, StructType) or "manifest_path" not in (
        f.name for f in serializer.logical.fields
    ):
        raise c.fail("the Avro schema is not that of a manifest", pos=start)
    body = AvroBinaryCursor.over(c)
    values = serializer.decode(body)
    body.expect_end("a manifest")
    return {f.name: v for f, v in zip(serializer.logical.fields, values, strict=True)}
