"""End offsets of partitions, requested from a running Kafka with ``kafka-python``. Reads no records and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from typing import Any, Final

from statetool.connectors.kafka import KafkaSource
from statetool.connectors.legacy_kafka import KafkaConsumer
from statetool.connectors.sources import Source
from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError

TIMEOUT_MS: Final = 30_000


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
    kafka, errors = _package("kafka"), _package("kafka.errors")
    held: dict[str, set[int]] = {}
    for h in source.state.held:
        if h.split is not None:
            held.setdefault(h.split.topic, set()).add(h.split.partition)
    config = {
        "client_id": "statetool",
        "request_timeout_ms": timeout_ms,
        "bootstrap_timeout_ms": timeout_ms,
        **(settings or {}),
        "bootstrap_servers": [broker.strip() for broker in bootstrap_servers.split(",")],
        "allow_auto_create_topics": False,
        "enable_auto_commit": False,
        "group_id": None,
    }
    try:
        with closing(kafka.KafkaConsumer(**config)) as consumer:
            known = {topic: consumer.partitions_for_topic(topic) or set() for topic in held}
            asked = [kafka.TopicPartition(t, n) for t, numbers in held.items() for n in sorted(numbers & known[t])]
            ends = consumer.end_offsets(asked, timeout_ms=timeout_ms) if asked else {}
    except (AssertionError, errors.KafkaConfigurationError, TypeError) as error:
        raise OptionError(f"settings of kafka-python: {error}") from error
    except (errors.KafkaError, OSError, ValueError) as error:
        raise ConnectionFailedError(
            f"Kafka at {bootstrap_servers} did not return end offsets: {error!r}",
            hint="check brokers and settings (--kafka security_protocol=...), or pass the end offsets as a file",
        ) from error
    return {f"{p.topic}:{p.partition}": end for p, end in ends.items()}


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "end offsets from Kafka need the package kafka-python", hint="pip install 'statetool[kafka]'"
        ) from error
