"""RocketMQ: the source and sink of rocketmq-flink.

Split: utf topic, utf broker, i4 queue, i8 next offset, i8 stop. In version 0 (``org.apache.rocketmq.flink``, before August 2023), ``stop`` is a
time in epoch ms, the greatest number if there is none; in version 1 (``org.apache.flink.connector.rocketmq``), an offset, -1 if there is none.
Since March 2025, a boolean follows in version 1: the queue is added to the reader, not removed from it.

Enumerator, version 0. ``org.apache.rocketmq.flink``: i4 count of readers, i4 version of splits, each i4 subtask, i4 count of splits, each i4
length, split. ``org.apache.flink.connector.rocketmq``: i4 count of assigned queues, each utf broker, utf topic, i4 queue.

Committable of the sink, version 1 (``SendCommittableSerializer``): utf topic, utf broker, i4 queue, i8 offset in the queue, utf message id, utf
id of the offset (empty if the broker tells none), utf transaction id. Each is a message that RocketMQ holds back until it is committed. RocketMQ
rolls it back after the sink's transaction timeout.

Follows the sources at three commits, before and after August 2023 and of March 2025, as the jars were not available. Bytes of serializers that
were compiled from these sources confirm it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from statetool.connectors.connector import SinkConnector, SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, PendingCommit, SplitPosition
from statetool.connectors.wire import known_version, read_inner
from statetool.errors import FormatError
from statetool.io.cursor import Cursor

_NEVER: Final = (1 << 63) - 1
_NO_STOPPING_OFFSET: Final = -1
_LEAST_SPLIT_BYTES: Final = 24
_LEAST_QUEUE_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RocketMqQueue:
    """A queue of a topic on a broker.

    Attributes
    ----------
    offset
        Next offset, negative if none is known yet.
    stopping_offset, stopping_ms
        End of reading. ``None`` if there is none.
    is_increase
        Whether the queue is added to the reader, not removed from it. ``None`` if not stored.
    """

    split_id: str
    topic: str
    broker: str
    queue: int
    offset: int
    stopping_offset: int | None = None
    stopping_ms: int | None = None
    is_increase: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RocketMqMessage:
    """A message that RocketMQ delivers after its commit."""

    topic: str
    broker: str
    queue: int
    queue_offset: int
    message_id: str
    offset_message_id: str
    transaction_id: str


class RocketMqSource(SplitConnector):
    """RocketMQ's source."""

    name: ClassVar[str] = "rocketmq-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0, 1})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0})

    def place(self, split: RocketMqQueue) -> SplitPosition:
        stop = None if split.stopping_offset is None else str(split.stopping_offset)
        return SplitPosition(
            source=split.topic,
            partition=split.queue,
            position=str(split.offset) if split.offset >= 0 else None,
            stop=stop if split.stopping_ms is None else f"timestamp={split.stopping_ms}",
        )

    def read_split(self, version: int, c: Cursor) -> RocketMqQueue:
        start = c.pos
        topic, broker, queue = _read_queue(c)
        offset, stop = c.i8(), c.i8()
        if min(offset, stop) < _NO_STOPPING_OFFSET:
            raise c.fail(f"queue {queue} of {topic!r} from {offset} to {stop}", pos=start)
        is_offset = version > 0
        separator, endless = ("#", _NO_STOPPING_OFFSET) if is_offset else ("-", _NEVER)
        end = None if stop == endless else stop
        return RocketMqQueue(
            split_id=f"{topic}{separator}{broker}{separator}{queue}",
            topic=topic,
            broker=broker,
            queue=queue,
            offset=offset,
            stopping_offset=end if is_offset else None,
            stopping_ms=None if is_offset else end,
            is_increase=c.bool() if is_offset and c.left else None,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        start = c.pos
        try:
            queues = [_read_queue(c) for _ in range(c.count("queues", at_least=_LEAST_QUEUE_BYTES))]
            c.expect_end("assigned queues")
        except FormatError:
            c.pos = start
            return self._read_assignment(c)
        assigned = sorted(f"{topic}#{broker}#{queue}" for broker, topic, queue in queues)
        return Enumerator(facts={"assigned_queues": assigned})

    def _read_assignment(self, c: Cursor) -> Enumerator:
        splits = []
        readers = c.count("readers", at_least=8)
        version = known_version(c.i4(), (0,), "a split in the enumerator")
        for _ in range(readers):
            subtask = c.i4()
            for _ in range(c.count("splits", at_least=_LEAST_SPLIT_BYTES)):
                split = read_inner(c, lambda inner: self.read_split(version, inner), "a split")
                splits.append(KnownSplit(split=split, status="assigned", subtask=subtask))
        return Enumerator(splits=tuple(splits), lists_assigned=True)


class RocketMqSink(SinkConnector):
    """RocketMQ's sink with delivery exactly once. Otherwise it has no state."""

    name: ClassVar[str] = "rocketmq-sink"
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_committable(self, version: int, c: Cursor) -> RocketMqMessage:
        start = c.pos
        topic, broker, queue = _read_queue(c)
        message = RocketMqMessage(
            topic=topic,
            broker=broker,
            queue=queue,
            queue_offset=c.i8(),
            message_id=c.utf(),
            offset_message_id=c.utf(),
            transaction_id=c.utf(),
        )
        if message.queue_offset < 0 or not (message.message_id and message.transaction_id):
            raise c.fail(f"message {message.message_id!r} of transaction {message.transaction_id!r}", pos=start)
        return message

    def pending(self, committable: RocketMqMessage) -> PendingCommit:
        return PendingCommit(
            name=committable.transaction_id,
            status="",
            subtask=-1,
            transactional_id=committable.transaction_id,
            fields=committable,
        )


def _read_queue(c: Cursor) -> tuple[str, str, int]:
    """Read two names, of a topic and a broker or the other way round, and the number of a queue."""
    start = c.pos
    first, second, queue = c.utf(), c.utf(), c.i4()
    if not (first and second) or queue < 0:
        raise c.fail(f"queue {queue} of {first!r} and {second!r}", pos=start)
    return first, second, queue
