"""Pulsar (``org.apache.flink.connector.pulsar``).

Bytes of the serializers confirm splits 0 and enumerators 0 (release 1.14), splits 1 and enumerators 2 (3.0), splits 2 and enumerators 3
(4.1), and committables. Enumerators 1 follow the source code alone: releases 1.14.6
and 1.15.2 write 0, release 1.16.0 writes 2.

Split, version 2 (``PulsarPartitionSplitSerializer``): utf topic, i4 partition, i4 count of ranges of hashes (i4, i4), i4 length and a Java
stream of the stop cursor, boolean has the id of the last message read [i4 length, bytes], boolean has a transaction [i8, i8]. Version 1:
one more i4 after the ranges; 0: one range, without a count. Enumerator (``PulsarSourceEnumStateSerializer``), version 3: i4 count of
partitions in the layout of a split's first fields; 2: as splits of version 1; 1: of version 0; 0: then unused fields: i4 count of splits of
version 0; i4 count, each i4 subtask and such a list; i4 count, each i4 subtask, i4 count, utf ids; a boolean. Committable, version 1: i8,
i8 transaction id, utf topic.

The id of a message is Protobuf (``MessageIdData``: 1 ledger, 2 entry, 3 partition, 4 index in a batch) and shown in the form of Pulsar's
tools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from statetool.connectors.connector import SinkConnector, SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, PendingCommit, SplitPosition
from statetool.connectors.wire import read_inner
from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream

Range = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarSplit:
    """A partition of a topic (-1: the topic is not partitioned), or ranges of its key hashes."""

    topic: str
    partition: int
    ranges: tuple[Range, ...]
    #: Whether the layout has one range without a count. Such releases write the range into the split id without brackets.
    single_range: bool = False
    message_id: bytes | None = None
    transaction_id: Range | None = None

    @property
    def split_id(self) -> str:
        topic = self.topic if self.partition < 0 else f"{self.topic}-partition-{self.partition}"
        ranges = ", ".join(f"{low}-{high}" for low, high in self.ranges)
        return f"{topic}|{ranges}" if self.single_range else f"{topic}|[{ranges}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarCommittable:
    """A Pulsar transaction on a topic."""

    topic: str
    most_significant: int
    least_significant: int


class PulsarSource(SplitConnector):
    """Pulsar's source."""

    name: ClassVar[str] = "pulsar-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2, 3})

    def place(self, split: PulsarSplit) -> SplitPosition:
        partition = None if split.partition < 0 else split.partition
        # The stored id is that of the last message read.
        position = None if split.message_id is None else f"after {_message_id(split.message_id)}"
        return SplitPosition(source=split.topic, partition=partition, position=position)

    def read_split(self, version: int, c: Cursor) -> PulsarSplit:
        partition = _read_partition(version, c)
        read_inner(c, read_java_stream, "a stop cursor")
        return replace(
            partition,
            message_id=c.bytes4("a message id") if c.bool() else None,
            transaction_id=(c.i8(), c.i8()) if c.bool() else None,
        )

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        splits = []
        for _ in range(c.count("partitions", at_least=10)):
            split = _read_partition(max(0, version - 1), c)
            splits.append(KnownSplit(split=split, status="assigned"))
        if version == 0:
            self._skip_unused(c)
        return Enumerator(splits=tuple(splits), lists_assigned=True)

    def _skip_unused(self, c: Cursor) -> None:
        def splits() -> None:
            for _ in range(c.count("splits", at_least=20)):
                self.read_split(0, c)

        splits()
        for _ in range(c.count("subtasks", at_least=8)):
            c.i4()
            splits()
        for _ in range(c.count("subtasks", at_least=8)):
            c.i4()
            for _ in range(c.count("ids", at_least=2)):
                c.utf()
        c.bool()


class PulsarSink(SinkConnector):
    """Pulsar's sink."""

    name: ClassVar[str] = "pulsar-sink"
    committable_versions: ClassVar[frozenset[int]] = frozenset({1})

    def read_committable(self, version: int, c: Cursor) -> PulsarCommittable:
        most, least = c.i8(), c.i8()
        return PulsarCommittable(topic=c.utf(), most_significant=most, least_significant=least)

    def pending(self, committable: PulsarCommittable) -> PendingCommit:
        name = f"({committable.most_significant},{committable.least_significant}) {committable.topic}"
        return PendingCommit(name=name, status="", subtask=-1, fields=committable)


def _read_partition(version: int, c: Cursor) -> PulsarSplit:
    start = c.pos
    topic, partition = c.utf(), c.i4()
    count = 1 if version == 0 else c.count("ranges", at_least=8)
    ranges = tuple((c.i4(), c.i4()) for _ in range(count))
    if version == 1:
        c.i4()
    if not topic or partition < -1 or not ranges:
        raise c.fail(f"{topic!r}, {partition} is not a partition of a Pulsar topic", pos=start)
    return PulsarSplit(topic=topic, partition=partition, ranges=ranges, single_range=version == 0)


def _message_id(raw: bytes) -> str:
    """Return ``ledger:entry:partition`` and, in a batch, the index; hexadecimal digits if the bytes are not such an id."""
    c, numbers = Cursor(raw), {3: -1, 4: -1}
    try:
        while c.left:
            tag = c.varint()
            if tag & 7 == 0:
                number = c.varint64()
                numbers[tag >> 3] = number - (1 << 64) if number >> 63 & 1 else number
            elif tag & 7 == 2:
                c.skip(c.varint())
            else:
                return raw.hex()
    except FormatError:
        return raw.hex()
    if not {1, 2} <= numbers.keys():
        return raw.hex()
    return ":".join(str(numbers[n]) for n in (1, 2, 3, 4) if n < 4 or numbers[n] >= 0)
