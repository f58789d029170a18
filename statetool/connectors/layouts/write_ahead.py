"""Write-ahead sinks on Flink's ``GenericWriteAheadSink``, such as Cassandra's exactly-once sink.

List state ``pending-checkpoints`` of ``JavaSerializer``: objects ``GenericWriteAheadSink$PendingCheckpoint`` with checkpoint id, subtask,
timestamp, and the state handle of the records that the subtask received for this checkpoint. Its file is in ``taskowned``: the sink deletes
it when it has sent the records, not Flink. The committer of the sink, whose system is not known, tells a restored sink what it has sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import NamedFile, PendingCommit, SinkState
from statetool.connectors.state_handles import handles_in, has_java_values, read_object
from statetool.errors import FormatError, StatetoolError, several
from statetool.io.java_streams.reader import JavaObject
from statetool.serializers.core.opaque import OpaqueSerializer

_STATE: Final = "pending-checkpoints"
_CLASS: Final = "org.apache.flink.streaming.runtime.operators.GenericWriteAheadSink$PendingCheckpoint"


class WriteAheadSink(StateSink):
    """A sink on ``GenericWriteAheadSink``."""

    name: ClassVar[str] = "write-ahead-sink"
    file_states: ClassVar[tuple[str, ...]] = (_STATE,)
    keeps_state_files: ClassVar[bool] = True

    def recognises(self, operator: OperatorBytes) -> bool:
        meta = operator.states.get(_STATE)
        # A serializer that is not known may hide files.
        return meta is not None and (has_java_values(meta) or isinstance(meta.value, OpaqueSerializer))

    def read(self, operator: OperatorBytes) -> SinkState:
        pending: list[PendingCommit] = []
        unread: list[tuple[int, int, bytes]] = []
        for element in operator.elements(_STATE):
            try:
                pending.append(_pending(element.subtask, read_object(element.data)))
            except StatetoolError:
                unread.append((element.subtask, 0, element.data))
        return SinkState(role="sink", pending=tuple(pending), unread=tuple(unread))

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        for pending in state.pending:
            if pending.file is not None:
                yield NamedFile(
                    path=pending.file,
                    size_bytes=pending.size_bytes,
                    is_state=True,
                    subtask=pending.subtask,
                    state=_STATE,
                    name=pending.name,
                )


def _pending(subtask: int, value: Any) -> PendingCommit:
    if not isinstance(value, JavaObject) or value.cls.name != _CLASS:
        raise FormatError(f"an element is not a {_CLASS}")
    fields: dict[str, Any] = {name: value.fields[name] for name in ("checkpointId", "subtaskId", "timestamp")}
    handles = list(handles_in(value))
    if len(handles) != 1:
        raise FormatError(f"an element has {several(len(handles), 'state handle')}, expected 1")
    if handles[0].path is not None:
        fields |= {"file": handles[0].path, "bytes": handles[0].size_bytes}
    return PendingCommit(
        name=f"{fields['checkpointId']}/{fields['subtaskId']}",
        status="pre_committed",
        subtask=subtask,
        checkpoint_id=fields["checkpointId"],
        start_ms=fields["timestamp"],
        file=fields.get("file"),
        size_bytes=fields.get("bytes"),
        expires=False,
        fields=fields,
    )
