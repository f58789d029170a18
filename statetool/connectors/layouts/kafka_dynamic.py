"""Kafka's dynamic source for several clusters (``org.apache.flink.connector.kafka.dynamic.source``).

Split (``DynamicKafkaSourceSplitSerializer``), version 1: utf id of the cluster, i4 version of the split of Kafka, its bytes to the end; 2:
boolean is retained [i8 until, ms] after the id.

Enumerator (``DynamicKafkaSourceEnumStateSerializer``), version 1: i4 count of streams, each: utf id, i4 count of clusters, each: utf id, i4
count and utf topics, utf bootstrap servers; i4 version of Kafka's enumerator state, i4 count of clusters, each: utf id, i4 length, Kafka's
enumerator state. 2: after the bootstrap servers two offset initializers: boolean [i4 length, a Java stream]. 3: at the end the retained
clusters: i4 count, each: utf id, i8 until (ms), i4 length, Kafka's enumerator state. Java streams are parsed as data and never executed.

Releases 3.1 to 4.0 of the connector write splits 1 and enumerators 1, 5.0 enumerators 2; later releases write splits 2 and enumerators 3.
Bytes of the serializers of releases 3.4 and 5.0 confirm splits 1 and enumerators 1 and 2. Bytes of serializers that were compiled from the
sources of June 2026 confirm the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from statetool.connectors.connector import SplitConnector
from statetool.connectors.layouts.kafka import KafkaSource, KafkaSplit
from statetool.connectors.model import Enumerator, KnownSplit, SplitPosition
from statetool.connectors.wire import known_version, read_inner
from statetool.io.cursor import Cursor
from statetool.serializers.typeutils.java_values import read_java

_KAFKA = KafkaSource()


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicSplit:
    """A partition in a cluster. ``retained_until_ms`` is set if the cluster is no longer read."""

    cluster: str
    kafka: KafkaSplit
    retained_until_ms: int | None = None

    @property
    def split_id(self) -> str:
        return f"{self.cluster}-{self.kafka.split_id}"


class DynamicKafkaSource(SplitConnector):
    """Kafka's dynamic source for several clusters."""

    name: ClassVar[str] = "dynamic-kafka-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({1, 2})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({1, 2, 3})
    markers: ClassVar[tuple[str, ...]] = KafkaSource.markers

    def place(self, split: DynamicSplit) -> SplitPosition:
        place = _KAFKA.place(split.kafka)
        # Several clusters may have topics of the same name.
        return replace(place, source=f"{split.cluster}/{place.source}")

    def read_split(self, version: int, c: Cursor) -> DynamicSplit:
        cluster = c.utf()
        until = c.i8() if version == 2 and c.bool() else None
        known_version(c.i4(), _KAFKA.split_versions, "a split of Kafka")
        return DynamicSplit(cluster=cluster, kafka=_KAFKA.read_split(0, c), retained_until_ms=until)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        streams = {c.utf(): self._clusters(version, c) for _ in range(c.count("streams", at_least=6))}
        kafka_version = known_version(c.i4(), _KAFKA.enumerator_versions, "enumerator state of Kafka")
        splits: list[KnownSplit] = []
        clusters: dict[str, Any] = {}
        for _ in range(c.count("clusters", at_least=6)):
            cluster = c.utf()
            clusters[cluster] = self._facts_of(cluster, kafka_version, None, c, splits)
        retained: dict[str, Any] = {}
        for _ in range(c.count("retained clusters", at_least=14) if version == 3 else 0):
            cluster, until = c.utf(), c.i8()
            retained[cluster] = {"until_ms": until, **self._facts_of(cluster, kafka_version, until, c, splits)}
        facts = {"streams": streams, "clusters": clusters, "retained": retained}
        return Enumerator(splits=tuple(splits), lists_assigned=True, facts=facts)

    @staticmethod
    def _clusters(version: int, c: Cursor) -> dict[str, Any]:
        clusters = {}
        for _ in range(c.count("clusters", at_least=8)):
            cluster = c.utf()
            facts: dict[str, Any] = {"topics": [c.utf() for _ in range(c.count("topics", at_least=2))]}
            facts["bootstrap_servers"] = c.utf()
            for initializer in ("starting", "stopping") if version > 1 else ():
                facts[initializer] = read_java(c.bytes4("offsets")) if c.bool() else None
            clusters[cluster] = facts
        return clusters

    @staticmethod
    def _facts_of(cluster: str, version: int, until: int | None, c: Cursor, splits: list[KnownSplit]) -> dict[str, Any]:
        """Read the enumerator state of a cluster, add its splits to ``splits`` and return its facts."""
        enumerator = read_inner(c, lambda inner: _KAFKA.read_enumerator(version, inner), "enumerator state of Kafka")
        splits += (
            replace(k, split=DynamicSplit(cluster=cluster, kafka=k.split, retained_until_ms=until))
            for k in enumerator.splits
        )
        return dict(enumerator.facts)
