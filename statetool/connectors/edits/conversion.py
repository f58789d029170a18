"""Conversion between the state of the Kafka consumer before FLIP-27 and that of Kafka's source. Both resume at the same records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from statetool.connectors.checks import check_source
from statetool.connectors.edits.edits import SplitChange
from statetool.connectors.layouts.kafka import DISCOVERED, KafkaSource, KafkaSplit, offset_of
from statetool.connectors.layouts.legacy_kafka import ConsumedPartition, KafkaConsumer
from statetool.connectors.model import Enumerator, KnownSplit
from statetool.connectors.sources import READER_STATE, Source, coordinator_bytes
from statetool.connectors.wire import write_versioned
from statetool.errors import OptionError, UnsupportedError

#: Readable by every release of the connector: stores the assigned partitions only.
OLDEST: Final = 1
_VERSIONS: Final = (1, 2, 3)
#: The last metadata version of Flink 1.x: Flink 2 does not have this consumer.
_LAST_OF_FLINK_1: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedConsumer:
    """New state for Kafka's source: splits by subtask, and coordinator state.

    Attributes
    ----------
    states
        The consumer's states, which are dropped.
    """

    changes: tuple[SplitChange, ...]
    readers: Mapping[int, tuple[bytes, ...]]
    coordinator: bytes
    states: frozenset[str]


def convert_consumer(source: Source, enumerator_version: int) -> ConvertedConsumer:
    """Convert the state of a consumer to the state of Kafka's source.

    Raises
    ------
    OptionError
        The source is not such a consumer, or the version does not exist.
    UnsupportedError
        The consumer had not yet determined the offset of a partition.
    """
    if not isinstance(source.connector, KafkaConsumer):
        raise OptionError(f"operator {source.label!r} is {source.name}, not the Kafka consumer before FLIP-27")
    if enumerator_version not in _VERSIONS:
        raise OptionError(
            f"enumerator state of version {enumerator_version}", hint="1 (every release reads it), 2 or 3"
        )
    kafka = KafkaSource()
    readers: dict[int, tuple[bytes, ...]] = {}
    splits, changes = [], []
    for held in source.state.held:
        split = _kafka_split(source.connector, held.split)
        readers[held.subtask] = (*readers.get(held.subtask, ()), write_versioned(0, kafka.write_split(0, split)))
        splits.append(KnownSplit(split=split, status="assigned"))
        after = kafka.place(split)
        changes.append(_change(source, split, held.subtask, str(held.split.offset), after.position or after.marker))
    enumerator = Enumerator(splits=tuple(splits), lists_assigned=True, facts={DISCOVERED: True})
    coordinator = coordinator_bytes(enumerator_version, kafka.write_enumerator(enumerator_version, enumerator))
    return ConvertedConsumer(
        changes=tuple(changes),
        readers=readers,
        coordinator=coordinator,
        states=frozenset(source.operator.operator_states) & {KafkaConsumer.state, "_default_"},
    )


def _kafka_split(consumer: KafkaConsumer, split: ConsumedPartition) -> KafkaSplit:
    place = consumer.place(split)
    position = place.position or place.marker
    if position is None:
        raise UnsupportedError(f"partition {split.split_id}: the consumer had not found its offset yet")
    return KafkaSplit(topic=split.topic, partition=split.partition, starting_offset=offset_of(position))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedSource:
    """New state for the Kafka consumer before FLIP-27: its partitions by subtask.

    Attributes
    ----------
    states
        The source's states, which are dropped along with its coordinator state.
    """

    changes: tuple[SplitChange, ...]
    partitions: tuple[tuple[int, ConsumedPartition], ...]
    states: frozenset[str]


def convert_source(source: Source, metadata_version: int) -> ConvertedSource:
    """Convert the state of Kafka's source to the state of the consumer before FLIP-27.

    Parameters
    ----------
    metadata_version
        Metadata version of the snapshot: it determines whether its Flink release has the consumer.

    Raises
    ------
    OptionError
        The source is not Kafka's.
    UnsupportedError
        The consumer cannot store the state: a partition has a stopping offset, a partition starts where the job's settings say,
        splits and enumerator disagree, or the snapshot is of Flink 2.
    """
    kafka = source.connector
    if not isinstance(kafka, KafkaSource):
        raise OptionError(f"operator {source.label!r} is {source.name}, not Kafka's source")
    if metadata_version > _LAST_OF_FLINK_1:
        raise UnsupportedError(
            "Flink 2 has no FlinkKafkaConsumer",
            hint="take the savepoint, or write it, with a release of Flink 1.x first",
        ).at(operator=source.label)
    enumerator = source.state.enumerator
    if enumerator is None or any(h.split is None for h in source.state.held):
        raise UnsupportedError(f"source {source.label!r} has state that cannot be decoded: {source.note}")
    if problems := [c for c in check_source(source) if c.is_problem]:
        raise UnsupportedError(
            f"readers and enumerator of {source.label!r} do not agree: {problems[0].split_id}: {problems[0].message}",
            hint="run statetool sources check, then sources remove or sources add",
        )
    waiting = [(0, k.split) for k in enumerator.splits if k.status == "unassigned"]
    partitions, changes = [], []
    for subtask, split in [*((h.subtask, h.split) for h in source.state.held), *waiting]:
        before = kafka.place(split)
        partition = _consumed_partition(split, before.position or before.marker)
        partitions.append((subtask, partition))
        changes.append(_change(source, split, subtask, before.position or before.marker, str(partition.offset)))
    return ConvertedSource(changes=tuple(changes), partitions=tuple(partitions), states=frozenset({READER_STATE}))


def _consumed_partition(split: KafkaSplit, position: str | None) -> ConsumedPartition:
    if position is None:
        raise UnsupportedError(
            f"partition {split.split_id} starts at a position that only the settings of the job define",
            hint="set its position, or remove it: the consumer reads unknown partitions from their beginning",
        )
    if split.stopping_offset is not None:
        raise UnsupportedError(
            f"partition {split.split_id} ends at {KafkaSource().place(split).stop}, and the consumer has no ends",
            hint="remove it, and let the source read it to its end",
        )
    return KafkaConsumer().added(f"{split.topic}:{split.partition}", position, ())


def _change(source: Source, split: KafkaSplit, subtask: int, before: str | None, after: str | None) -> SplitChange:
    return SplitChange(
        operator=source.label,
        split_id=split.split_id,
        place="reader",
        subtask=subtask,
        change="converted",
        before=before,
        after=after,
    )
