"""Registry of connectors: the bundled ones, and those of other packages in the entry point group ``statetool.connectors``.

An entry point names a subclass of one of the kinds in :mod:`statetool.connectors.connector` that can be created without arguments.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, TypeAlias

from statetool.connectors.connector import SinkConnector, SplitConnector, StateSink, StateSource, try_read
from statetool.connectors.model import SourceBytes, SourceState
from statetool.errors import OptionError, UnknownNameError, suggest

GROUP: Final = "statetool.connectors"
Connector: TypeAlias = SplitConnector | StateSource | SinkConnector | StateSink

#: Bundled connectors, as ``module:class`` below :mod:`statetool.connectors.layouts`.
_BUILT_IN: Final = (
    "kafka:KafkaSource",
    "files:FileSource",
    "sequences:NumberSequence",
    "hybrid:HybridSource",
    "kinesis:KinesisSource",
    "dynamodb_streams:DynamoDbStreamsSource",
    "rocketmq:RocketMqSource",
    "cdc:MySqlSource",
    "cdc:IncrementalSource",
    "pulsar:PulsarSource",
    "kafka_dynamic:DynamicKafkaSource",
    "jdbc:JdbcSource",
    "iceberg:IcebergSource",
    "mongodb:MongoSource",
    "paimon_source:PaimonSource",
    "fluss:FlussSource",
    "legacy_kafka:KafkaConsumer",
    "legacy_sources:KinesisConsumer",
    "debezium:DebeziumFunction",
    "rabbitmq:RabbitMqSource",
    "pubsub:PubSubSource",
    "legacy_sources:FileMonitoring",
    "legacy_sources:FileReader",
    "kafka_sink:KafkaSink",
    "pulsar:PulsarSink",
    "jdbc:JdbcSink",
    "iceberg_sink:IcebergSink",
    "iceberg_sink:DynamicIcebergSink",
    "file_sink:FileSink",
    "file_sink:StreamingFileSink",
    "rocketmq:RocketMqSink",
    "doris:DorisSink",
    "doris:DorisCopySink",
    "starrocks:StarRocksSink",
    "starrocks:StarRocksSinkFunction",
    "async_sink:KinesisStreamsSink",
    "async_sink:SqsSink",
    "async_sink:FirehoseSink",
    "async_sink:DynamoDbSink",
    "async_sink:Elasticsearch8Sink",
    "async_sink:HttpSink",
    "async_sink:ClickHouseSink",
    "delta:DeltaSink",
    "delta:DeltaKernelSink",
    "paimon:PaimonSink",
    "hudi:HudiSink",
    "iceberg_sink:IcebergFilesCommitter",
    "fluss:FlussSink",
    "two_phase:TwoPhaseCommitSink",
    "two_phase:KafkaProducer",
    "write_ahead:WriteAheadSink",
)


@cache
def connectors() -> tuple[Connector, ...]:
    """Return all connectors.

    Raises
    ------
    OptionError
        An entry point is not a connector, or two connectors have the same name.
    """
    names = (name.split(":") for name in _BUILT_IN)
    classes = [getattr(import_module(f"statetool.connectors.layouts.{module}"), name) for module, name in names]
    classes += [e.load() for e in entry_points(group=GROUP)]
    by_name: dict[str, Connector] = {}
    for cls in classes:
        connector = cls()
        if not isinstance(connector, SplitConnector | StateSource | SinkConnector | StateSink):
            raise OptionError(f"{cls!r} is registered as a connector, but does not implement one")
        if connector.name in by_name:
            raise OptionError(f"two connectors are called {connector.name!r}")
        by_name[connector.name] = connector
    return tuple(by_name.values())


def split_connectors() -> tuple[SplitConnector, ...]:
    """Return the connectors of FLIP-27 sources."""
    return tuple(c for c in connectors() if isinstance(c, SplitConnector))


def state_sources() -> tuple[StateSource, ...]:
    """Return the connectors of sources that store positions in list states."""
    return tuple(c for c in connectors() if isinstance(c, StateSource))


def sink_connectors() -> tuple[SinkConnector, ...]:
    """Return the connectors of Sink V2."""
    return tuple(c for c in connectors() if isinstance(c, SinkConnector))


def state_sinks() -> tuple[StateSink, ...]:
    """Return the connectors of sinks that store pending items in list states."""
    return tuple(c for c in connectors() if isinstance(c, StateSink))


def split_connector(name: str) -> SplitConnector:
    """Return the connector of a FLIP-27 source by its name.

    Raises
    ------
    UnknownNameError
        No connector has this name.
    """
    by_name = {c.name: c for c in split_connectors()}
    if name not in by_name:
        raise UnknownNameError(f"no connector {name!r}", hint=suggest(name, by_name))
    return by_name[name]


def recognise(given: SourceBytes) -> list[tuple[SplitConnector, SourceState]]:
    """Return the connectors that can read the bytes of a source, with the decoded state: none, one, or several if there are few bytes.

    Splits and enumerator must fit to the last byte if the connector knows their version. Among the connectors that fit, those that know
    most versions are returned.
    """
    fitting: list[tuple[int, SplitConnector, SourceState]] = []
    for connector in split_connectors():
        known = len(given.split_versions & connector.split_versions)
        known += given.enumerator is not None and given.enumerator_version in connector.enumerator_versions
        state = try_read(connector, given) if known else None
        if state is not None and (any(h.split is not None for h in state.held) or _has_content(state)):
            fitting.append((known, connector, state))
    most = max((n for n, _, _ in fitting), default=0)
    return [(c, s) for n, c, s in fitting if n == most]


def _has_content(state: SourceState) -> bool:
    return state.enumerator is not None and bool(state.enumerator.splits or any(state.enumerator.facts.values()))
