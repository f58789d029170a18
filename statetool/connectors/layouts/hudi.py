"""Writers of Hudi (``org.apache.hudi.sink``).

List state ``write-metadata-state`` of POJOs ``WriteMetadataEvent``: task, instant, flags, and the files written since the last commit (a list of
``WriteStatus`` by Kryo, whose classes only Hudi's jar describes). The files are the last field, so the others are read without the jar. A
restored writer sends an event to the coordinator, which commits it, if the timeline of the table still has its instant as pending
(``AbstractStreamWriteFunction.restoreWriteMetadata``).

``write-metadata-state-v2`` (``WriteMetadataStateSerializer``, of unreleased sources): byte arrays, each a versioned Avro record. Versions 1 to
4 differ in their schema, which the bytes do not have. They stay bytes.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import PendingCommit, SinkState
from statetool.connectors.wire import whole_versioned
from statetool.errors import UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.serializers.typeutils.pojo import PojoSerializer

_EVENTS: Final = "write-metadata-state"
_AVRO_EVENTS: Final = "write-metadata-state-v2"
_EVENT_CLASS: Final = "org.apache.hudi.sink.event.WriteMetadataEvent"
_FILES: Final = "writeStatuses"
#: Flags of a POJO of exactly the class of its serializer.
_EXACT: Final = 2


class HudiSink(StateSink):
    """A writer of Hudi's sink."""

    name: ClassVar[str] = "hudi-sink"

    def recognises(self, operator: OperatorBytes) -> bool:
        return _AVRO_EVENTS in operator.states or _events(operator) is not None

    def read(self, operator: OperatorBytes) -> SinkState:
        pending: list[PendingCommit] = []
        writers: list[tuple[int, Any]] = []
        unread: list[tuple[int, int, bytes]] = []
        are_files_read = True
        if (serializer := _events(operator)) is not None:
            for element in operator.elements(_EVENTS):
                event = _read_event(serializer, Cursor(element.data))
                are_files_read &= _FILES in event
                written = event.pop(_FILES, None)
                # Kryo's values without columns are JSON.
                files = json.loads(written) if isinstance(written, str) else written
                writers.append((element.subtask, {**event, "files": None if files is None else len(files)}))
                if event.get("instantTime") and files != []:
                    pending.append(
                        PendingCommit(
                            name=f"{event['instantTime']}/{event.get('taskID')}",
                            status="pre_committed",
                            subtask=element.subtask,
                            is_decided_by_table=True,
                            fields={**event, "files": files},
                        )
                    )
        if _AVRO_EVENTS in operator.states:
            unread += (
                (subtask, *whole_versioned(value, "an event of a writer"))
                for subtask, value in operator.values(_AVRO_EVENTS)
            )
        return SinkState(
            role="sink",
            pending=tuple(pending),
            writers=tuple(writers),
            versions=frozenset(version for _, version, _ in unread),
            unread=tuple(unread),
            note="" if are_files_read else "its files are not read: pass Hudi's jar with --jar",
        )


def _events(operator: OperatorBytes) -> PojoSerializer | None:
    """Return the serializer of a writer's events, ``None`` if the state is another one of this name."""
    meta = operator.states.get(_EVENTS)
    serializer = None if meta is None else meta.value
    return serializer if isinstance(serializer, PojoSerializer) and serializer.pojo_class == _EVENT_CLASS else None


def _read_event(serializer: PojoSerializer, c: Cursor) -> dict[str, Any]:
    """Return the fields of an event, without its files if their classes are not known."""
    start = c.pos
    try:
        values = serializer.decode(c)
        c.expect_end("an event of a writer")
        return {} if values is None else {name: values[i] for i, (name, _) in enumerate(serializer.fields)}
    except UnknownSerializerError:
        if serializer.fields[-1][0] != _FILES or c.data[start] != _EXACT:
            raise
    c.pos = start + 1
    fields: dict[str, Any] = {}
    for name, part in serializer.fields[:-1]:
        fields[name] = None if c.bool() else part.decode(c)
    return fields
