"""The Kafka consumer before FLIP-27 (``FlinkKafkaConsumer``).

Union list state ``topic-partition-offset-states``: tuples of ``KafkaTopicPartition`` (by Kryo: cached hash, partition, topic) and i8
offset of the **last record read**; the source since FLIP-27 stores the next offset. Markers: -915623761773 committed (of the
consumer group), -915623761774 latest, -915623761775 earliest (``KafkaTopicPartitionStateSentinel``).

The serializer snapshot of a new state (:func:`state_type`) is the one that a job of Flink 1.x writes if it registers no classes with
Kryo: the class itself, and a placeholder for Avro's arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from statetool.connectors.connector import StateSource
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.kafka import topic_and_partition
from statetool.connectors.model import Split, SplitPosition
from statetool.errors import OptionError
from statetool.io.output import Output
from statetool.java.declaring.flink_types import LONG
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.optional_map import OptionalEntry
from statetool.serializers.typeutils.tuples import TupleSerializer
from statetool.types.declared import ClassDeclaration, TypeContext, class_of_fields
from statetool.types.java_hash import hash_string, to_int32

#: Markers used instead of offsets. -915623761776 is a partition whose offset is not known yet.
_OFFSETS: Final = {-915623761773: "committed", -915623761774: "latest", -915623761775: "earliest"}
_NOT_SET: Final = -915623761776
_PARTITION: Final = "org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition"
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
_AVRO: Final = "org.apache.avro.generic.GenericData$Array"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedPartition:
    """A partition of a topic. ``offset`` is the stored one: of the last record read, or a marker."""

    topic: str
    partition: int
    offset: int

    @property
    def split_id(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaConsumer(StateSource):
    """The Kafka consumer before FLIP-27."""

    name: ClassVar[str] = "flink-kafka-consumer"
    state: ClassVar[str] = "topic-partition-offset-states"
    markers: ClassVar[tuple[str, ...]] = tuple(_OFFSETS.values())
    classes: ClassVar[tuple[ClassDeclaration, ...]] = (
        class_of_fields(_PARTITION, {"topic": "java.lang.String", "partition": "int", "cachedHash": "int"}, final=True),
    )

    def place(self, split: ConsumedPartition) -> SplitPosition:
        marker = _OFFSETS.get(split.offset)
        is_offset = marker is None and split.offset != _NOT_SET
        position = str(split.offset + 1) if is_offset else None
        return SplitPosition(source=split.topic, partition=split.partition, position=position, marker=marker)

    def at(self, split: ConsumedPartition, position: str) -> ConsumedPartition:
        return replace(split, offset=_offset_of(position))

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> ConsumedPartition:
        topic, partition = topic_and_partition(split_id)
        return ConsumedPartition(topic=topic, partition=partition, offset=_offset_of(position))

    def read_element(self, operator: OperatorBytes, value: Any) -> ConsumedPartition:
        (topic, partition, _), offset = value
        return ConsumedPartition(topic=topic, partition=partition, offset=offset)

    def element_of(self, split: ConsumedPartition) -> Any:
        # Java: 31 * topic.hashCode() + partition, stored in ``cachedHash``.
        code = to_int32(31 * hash_string(split.topic) + split.partition)
        return (split.topic, split.partition, code), split.offset


def _offset_of(position: str) -> int:
    for offset, marker in _OFFSETS.items():
        if position == marker:
            return offset
    if not position.isascii() or not position.isdigit():
        raise OptionError(
            f"{position!r} is not a valid offset", hint=f"pass a number from 0, or {', '.join(_OFFSETS.values())}"
        )
    return int(position) - 1


def state_type() -> Serializer:
    """Return the serializer of the consumer's state as Flink 1.x creates it."""
    dummy = f"{_RUNTIME}kryo.Serializers$DummyAvro"
    registrations = (
        _registration(_PARTITION, _PARTITION),
        _registration(_AVRO, f"{dummy}RegisteredClass", f"{dummy}KryoSerializerClass"),
    )
    context = TypeContext(kryo=2, classes=KafkaConsumer.classes)
    names = ((_PARTITION, None), (_AVRO, f"{dummy}KryoSerializerClass"))
    kryo = f"{_RUNTIME}kryo.KryoSerializerSnapshot"
    partition = KryoSerializer(kryo, 2, _PARTITION, names, (registrations, (), ()), context)
    tuples, tuple2 = f"{_RUNTIME}TupleSerializerSnapshot", "org.apache.flink.api.java.tuple.Tuple2"
    return TupleSerializer(tuples, 3, 2, tuple2, (partition, LONG))


def stored_element(split: ConsumedPartition) -> bytes:
    """Return an element of the state, encoded by :func:`state_type`."""
    out = Output()
    state_type().encode(out, KafkaConsumer().element_of(split))
    return bytes(out)


def _registration(name: str, cls: str, serializer: str | None = None) -> OptionalEntry:
    key, value = Output(), Output()
    key.utf(name)
    value.utf(cls)
    value.i4(0 if serializer is None else 1)
    if serializer is not None:
        value.utf(serializer)
    return OptionalEntry(name=name, key=bytes(key), value=bytes(value), value_at=0)
