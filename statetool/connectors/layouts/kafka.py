"""Kafka's source (``org.apache.flink.connector.kafka.source``).

Split, version 0 (``KafkaPartitionSplitSerializer``): utf topic, i4 partition, i8 starting offset, i8 stopping offset. In a reader, the
starting offset is the next offset to read. It stays a marker (-1 latest, -2 earliest, -3 committed) until the first record. Starting
offset ``Long.MIN_VALUE``: not resolved yet, carried over from an older enumerator. Stopping offset ``Long.MIN_VALUE``: none.

Enumerator (``KafkaSourceEnumStateSerializer``):

* 0: i4 subtasks, i4 version of splits, each: i4 subtask, i4 count, splits (i4 length, bytes)
* 1: i4 count, each utf topic, i4 partition: the assigned ones
* 2: as 1 with i4 status (0 assigned, 1 unassigned) after each; boolean initial discovery finished
* 3: i4 count, i4 version of splits, each: i4 length, split, i4 status; the boolean. The offset of an assigned split is its
  start, not the position of its reader. The offset of an unassigned split is its future start.

Releases 3.0 of the connector write enumerators 1 (as Flink 1.17 does), 3.1 to 4.0 write 2, 5.0 and later 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, Split, SplitPosition, Status
from statetool.connectors.wire import known_version, read_inner
from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output

_NONE: Final = -(1 << 63)
#: Markers used instead of offsets, by their names in Kafka's settings.
OFFSETS: Final = {-1: "latest", -2: "earliest", -3: "committed"}
_STATUSES: Final[tuple[Status, ...]] = ("assigned", "unassigned")
#: Brokers allow letters, digits, dots, dashes and underscores. Services that implement Kafka's protocol allow more.
_MOST_LETTERS: Final = 249
DISCOVERED: Final = "initial_discovery_finished"
_SUBTASKS: Final = "subtasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSplit:
    """A partition of a topic with the stored offsets; ``None`` for a start that is not resolved yet and for no stop."""

    topic: str
    partition: int
    starting_offset: int | None = None
    stopping_offset: int | None = None

    @property
    def split_id(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaSource(SplitConnector):
    """Kafka's source."""

    name: ClassVar[str] = "kafka-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({0})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({0, 1, 2, 3})
    markers: ClassVar[tuple[str, ...]] = tuple(OFFSETS.values())

    def place(self, split: KafkaSplit) -> SplitPosition:
        marker = OFFSETS.get(split.starting_offset) if split.starting_offset is not None else None
        position = None if marker or split.starting_offset is None else str(split.starting_offset)
        stop = split.stopping_offset
        return SplitPosition(
            source=split.topic,
            partition=split.partition,
            position=position,
            stop=None if stop is None else OFFSETS.get(stop, str(stop)),
            marker=marker,
        )

    def at(self, split: KafkaSplit, position: str) -> KafkaSplit:
        return replace(split, starting_offset=offset_of(position))

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> KafkaSplit:
        topic, partition = topic_and_partition(split_id)
        return KafkaSplit(topic=topic, partition=partition, starting_offset=offset_of(position))

    def read_split(self, version: int, c: Cursor) -> KafkaSplit:
        topic, partition = _read_partition(c)
        start, stop = c.i8(), c.i8()
        return KafkaSplit(
            topic=topic, partition=partition, starting_offset=_offset(start), stopping_offset=_offset(stop)
        )

    def write_split(self, version: int, split: KafkaSplit) -> bytes:
        out = Output()
        _write_partition(out, split)
        for offset in (split.starting_offset, split.stopping_offset):
            out.i8(_NONE if offset is None else offset)
        return bytes(out)

    def keeps_positions(self, version: int, enumerator: Enumerator) -> bool:
        return version in (0, 3)

    def upgrade_enumerator(self, version: int, enumerator: Enumerator) -> tuple[int, Enumerator]:
        # Kafka's connector restores them the same way: no start is resolved, so unassigned partitions resolve theirs again.
        facts = {DISCOVERED: True, **{k: v for k, v in enumerator.facts.items() if k != _SUBTASKS}}
        return 3, replace(enumerator, facts=facts)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        if version == 0:
            return self._read_assignments(c)
        count = c.count("partitions", at_least=6)
        if version == 3:
            known_version(c.i4(), self.split_versions, "a split in the enumerator")
        splits = []
        for _ in range(count):
            if version == 3:
                split = read_inner(c, lambda inner: self.read_split(0, inner), "a split")
            else:
                topic, partition = _read_partition(c)
                split = KafkaSplit(topic=topic, partition=partition)
            splits.append(KnownSplit(split=split, status="assigned" if version == 1 else _read_status(c)))
        facts = {} if version == 1 else {DISCOVERED: c.bool()}
        return Enumerator(splits=tuple(splits), lists_assigned=True, facts=facts)

    def _read_assignments(self, c: Cursor) -> Enumerator:
        count = c.count("subtasks", at_least=8)
        known_version(c.i4(), self.split_versions, "a split in the enumerator")
        splits, subtasks = [], []
        for _ in range(count):
            subtasks.append(c.i4())
            for _ in range(c.count("splits", at_least=4)):
                split = read_inner(c, lambda inner: self.read_split(0, inner), "a split")
                splits.append(KnownSplit(split=split, status="assigned", subtask=subtasks[-1]))
        return Enumerator(splits=tuple(splits), lists_assigned=True, facts={_SUBTASKS: subtasks})

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        out = Output()
        if version == 0:
            self._write_assignments(out, enumerator)
            return bytes(out)
        out.i4(len(enumerator.splits))
        if version == 3:
            out.i4(0)
        for each in enumerator.splits:
            if version == 3:
                out.bytes4(self.write_split(0, each.split))
            else:
                _write_partition(out, each.split)
            if version > 1:
                out.i4(_STATUSES.index(each.status))
        if version > 1:
            out.bool(enumerator.facts[DISCOVERED])
        return bytes(out)

    def _write_assignments(self, out: Output, enumerator: Enumerator) -> None:
        subtasks: list[Any] = enumerator.facts[_SUBTASKS]
        out.i4(len(subtasks))
        out.i4(0)
        for subtask in subtasks:
            # An added split has no subtask yet. It goes to the first one: any subtask is valid for a split that a reader holds.
            splits = [
                s for s in enumerator.splits if s.subtask == subtask or (s.subtask is None and subtask == subtasks[0])
            ]
            out.i4(subtask)
            out.i4(len(splits))
            for each in splits:
                out.bytes4(self.write_split(0, each.split))


def _offset(stored: int) -> int | None:
    return None if stored == _NONE else stored


def offset_of(position: str) -> int:
    """Return the offset for a number or marker given as text.

    Raises
    ------
    OptionError
        The text is neither a number nor a marker.
    """
    for offset, marker in OFFSETS.items():
        if position == marker:
            return offset
    if not position.isascii() or not position.isdigit() or int(position) >= 1 << 63:
        raise OptionError(
            f"{position!r} is not a valid offset", hint=f"pass a number from 0, or {', '.join(OFFSETS.values())}"
        )
    return int(position)


def topic_and_partition(text: str) -> tuple[str, int]:
    """Parse ``topic:partition``. Topic names contain dashes and dots, but no colon.

    Raises
    ------
    OptionError
        The text is not of this form.
    """
    topic, colon, partition = text.rpartition(":")
    if not colon or not _is_topic(topic) or not (partition.isascii() and partition.isdigit()):
        raise OptionError(f"{text!r} is not TOPIC:PARTITION", hint="pass a topic and a partition, as in orders:3")
    return topic, int(partition)


def _is_topic(name: str) -> bool:
    return 0 < len(name) <= _MOST_LETTERS and name.isprintable()


def _read_partition(c: Cursor) -> tuple[str, int]:
    start = c.pos
    topic, partition = c.utf(), c.i4()
    if not _is_topic(topic) or partition < 0:
        raise c.fail(f"{topic!r}, {partition} is not a partition of a topic", pos=start)
    return topic, partition


def _write_partition(out: Output, split: KafkaSplit) -> None:
    out.utf(split.topic)
    out.i4(split.partition)


def _read_status(c: Cursor) -> Status:
    status = c.i4()
    if not 0 <= status < len(_STATUSES):
        raise c.fail(f"status {status} of a partition is neither 0 nor 1", pos=c.pos - 4)
    return _STATUSES[status]
