"""Google's source of Pub/Sub for Flink 1.x (``org.apache.flink.streaming.connectors.gcp.pubsub.PubSubSource``).

List state ``_default_`` (``ListCheckpointed``): each element is a Java stream of ``AcknowledgeIdsForCheckpoint``, with the id of a checkpoint and
the ids by which the source acknowledges the messages received since the one before. It does so when a later checkpoint completes. Pub/Sub delivers
messages again that are not acknowledged before its deadline. Java streams are parsed as data and never executed.

Releases 3.0 and 3.1 have the same source. Its jar was not available: bytes of a job in Flink 1.20, with the source of release 3.1 compiled,
confirm this.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.rabbitmq import AcknowledgingSource, UnacknowledgedMessages
from statetool.connectors.wire import read_all
from statetool.errors import FormatError
from statetool.io.java_streams.reader import JavaObject, read_java_stream

_IDS: Final = "org.apache.flink.streaming.connectors.gcp.pubsub.common.AcknowledgeIdsForCheckpoint"
#: First bytes of the Java stream of such an object: magic, version, object and class.
_HEAD: Final = b"\xac\xed\0\5sr" + len(_IDS).to_bytes(2, "big") + _IDS.encode("ascii")


class PubSubSource(AcknowledgingSource):
    """Google's source of Pub/Sub."""

    name: ClassVar[str] = "pubsub-source"
    state: ClassVar[str] = "_default_"

    def recognises(self, operator: OperatorBytes) -> bool:
        """Return True if all elements have ids of Pub/Sub: the state of every ``ListCheckpointed`` function has this name."""
        if not super().recognises(operator):
            return False
        elements = list(operator.elements(self.state))
        return bool(elements) and all(e.data.startswith(_HEAD) for e in elements)

    def read_element(self, operator: OperatorBytes, value: Any) -> UnacknowledgedMessages:
        return read_acknowledge_ids(value)


def read_acknowledge_ids(data: bytes) -> UnacknowledgedMessages:
    """Read the Java stream of the ids of a checkpoint.

    Raises
    ------
    FormatError
        It is not a checkpoint with ids of messages.
    """
    stored = read_all(data, read_java_stream, "a checkpoint with ids of messages")
    if isinstance(stored, JavaObject) and stored.cls.name == _IDS:
        match stored.fields:
            # The list writes its capacity, then its elements.
            case {"checkpointId": int(number), "acknowledgeIds": JavaObject(annotations=[bytes(), *ids])}:
                if all(isinstance(i, str) for i in ids):
                    return UnacknowledgedMessages(message_ids={number: tuple(map(str, ids))}, messages=len(ids))
    raise FormatError(f"expected a {_IDS} with texts")
