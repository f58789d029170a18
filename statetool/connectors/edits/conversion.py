"""Conversion of the state of the Kafka consumer before FLIP-27 to that of Kafka's source, which resumes at the same records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from statetool.connectors.edits.edits import SplitChange
from statetool.connectors.layouts.kafka import DISCOVERED, KafkaSource, KafkaSplit, offset_of
from statetool.connectors.layouts.legacy_kafka import ConsumedPartition, KafkaConsumer
from statetool.connectors.model import Enumerator, KnownSplit
from statetool.connectors.sources import Source, coordinator_bytes
from statetool.connectors.wire import write_versioned
from statetool.errors import OptionError, UnsupportedError

#: Readable by every release of the connector: stores the assigned partitions only.
OLDEST: Final = 1
_VERSIONS: Final = (1, 2, 3)


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
