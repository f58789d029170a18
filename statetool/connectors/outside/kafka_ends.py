"""End offsets of partitions, requested from a running Kafka with ``kafka-python``. Reads no records and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from statetool.connectors.layouts.kafka import KafkaSource
from statetool.connectors.layouts.legacy_kafka import KafkaConsumer
from statetool.connectors.outside.kafka_client import TIMEOUT_MS, ask_kafka, client_settings, kafka_package
from statetool.connectors.sources import Source
from statetool.errors import OptionError


def reads_kafka(source: Source) -> bool:
    """Return True if a source reads Kafka."""
    return isinstance(source.connector, KafkaSource | KafkaConsumer)


def kafka_ends(
    source: Source,
    bootstrap_servers: str,
    settings: Mapping[str, Any] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> dict[str, int]:
    """Return the end offset of each partition that readers hold, by ``topic:partition``.

    Partitions that do not exist in Kafka are left out.

    Parameters
    ----------
    bootstrap_servers
        Brokers in the form of Kafka's tools: ``host:port``, separated by commas.
    settings
        More settings of ``kafka-python``'s consumer, such as ``security_protocol``.

    Raises
    ------
    OptionError
        The source does not read Kafka, or ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer in time, or refused.
    MissingDependencyError
        ``kafka-python`` is not installed.
    """
    if not reads_kafka(source):
        raise OptionError(
            f"source {source.label!r} is {source.name}, not Kafka's", hint="pass the end offsets as a file"
        )
    kafka = kafka_package("kafka")
    held: dict[str, set[int]] = {}
    for h in source.state.held:
        if h.split is not None:
            held.setdefault(h.split.topic, set()).add(h.split.partition)
    config = {
        **client_settings(bootstrap_servers, settings, timeout_ms),
        "allow_auto_create_topics": False,
        "enable_auto_commit": False,
        "group_id": None,
    }

    def ask() -> dict[str, int]:
        with closing(kafka.KafkaConsumer(**config)) as consumer:
            known = {topic: consumer.partitions_for_topic(topic) or set() for topic in held}
            asked = [kafka.TopicPartition(t, n) for t, numbers in held.items() for n in sorted(numbers & known[t])]
            ends = consumer.end_offsets(asked, timeout_ms=timeout_ms) if asked else {}
        return {f"{p.topic}:{p.partition}": end for p, end in ends.items()}

    return ask_kafka(bootstrap_servers, "end offsets", timeout_ms, ask, ", or pass the end offsets as a file")
