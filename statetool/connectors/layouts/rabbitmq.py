"""Sources of messages that are acknowledged after a checkpoint (``MessageAcknowledgingSourceBase``, Flink 1.x): RabbitMQ's ``RMQSource``.

List state ``message-acknowledging-source-state``: per subtask, a Java stream of ``SerializedCheckpointData[]``, each with the id of a
checkpoint, the number of messages received since the one before, and their ids, one after another. RabbitMQ's ids are strings of Flink: the
correlation ids of messages that are not acknowledged yet. A restored source drops the messages with these ids when the broker delivers
them again. Java streams are parsed as data and never executed.

Bytes of a job with release 3.0 in Flink 1.20 confirm this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSource
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import SourceState, SplitPosition
from statetool.connectors.wire import read_all
from statetool.errors import FormatError, several
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaObject, read_java_stream
from statetool.serializers.typeutils.basic import read_string

_CHECKPOINT: Final = "org.apache.flink.streaming.api.functions.source.SerializedCheckpointData"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnacknowledgedMessages:
    """Messages that a subtask has received and not acknowledged.

    ``message_ids`` has the ids by checkpoint: texts, or for another source than RabbitMQ's, which has other ids, all ids as bytes.
    """

    split_id: str = "messages"
    message_ids: Mapping[int, tuple[str, ...] | bytes]
    messages: int


class AcknowledgingSource(StateSource):
    """A source of messages that it acknowledges after a checkpoint."""

    def read(self, operator: OperatorBytes) -> SourceState:
        held = super().read(operator).held
        # Messages belong to a connection, not to a split: each element has its own.
        named = (replace(h, split=replace(h.split, split_id=f"messages-{i}")) for i, h in enumerate(held))
        return SourceState(held=tuple(named))

    def place(self, split: UnacknowledgedMessages) -> SplitPosition:
        return SplitPosition(position=several(split.messages, "unacknowledged message"))


class RabbitMqSource(AcknowledgingSource):
    """RabbitMQ's source."""

    name: ClassVar[str] = "rabbitmq-source"
    state: ClassVar[str] = "message-acknowledging-source-state"

    def read_element(self, operator: OperatorBytes, value: Any) -> UnacknowledgedMessages:
        return read_messages(value)


def read_messages(data: bytes) -> UnacknowledgedMessages:
    """Read the Java stream of a subtask.

    Raises
    ------
    FormatError
        It is not an array of checkpoints with messages.
    """
    stored = read_all(data, read_java_stream, "checkpoints with messages")
    ids: dict[int, tuple[str, ...] | bytes] = {}
    messages = 0
    for checkpoint in stored.items if isinstance(stored, JavaArray) else (stored,):
        if not isinstance(checkpoint, JavaObject) or checkpoint.cls.name != _CHECKPOINT:
            raise FormatError("the state of a source of acknowledged messages has other objects than checkpoints")
        match checkpoint.fields:
            case {"checkpointId": int(number), "numIds": int(count), "serializedData": JavaArray(items=bytes(raw))}:
                ids[number] = _read_ids(raw, count)
                messages += count
            case _:
                raise FormatError(f"a {_CHECKPOINT} lacks its fields")
    return UnacknowledgedMessages(message_ids=ids, messages=messages)


def _read_ids(data: bytes, count: int) -> tuple[str, ...] | bytes:
    c = Cursor(data)
    try:
        ids = tuple(read_string(c) for _ in range(count))
        c.expect_end("ids of messages")
    except FormatError:
        return data
    return data if None in ids else tuple(map(str, ids))
