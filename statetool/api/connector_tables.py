"""Tables of sources and sinks: DataFrames, or Arrow if there is no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from statetool.api.execution import shown_records
from statetool.errors import OptionError
from statetool.snapshot.operator import OperatorInventory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.api.operator import Operator
    from statetool.connectors.sources import Source


def connector_table(
    spark: SparkSession | None, table: str, operators: Iterable[OperatorInventory], connector: str | None = None
) -> DataFrame | pa.Table:
    """Return a table of sources or sinks."""
    from statetool.connectors.tables import CONNECTOR_TABLES, connector_rows

    return shown_records(spark, CONNECTOR_TABLES[table].record, connector_rows(table, operators, connector))


def source_table(
    spark: SparkSession | None, table: str, operator: OperatorInventory, connector: str | None
) -> DataFrame | pa.Table:
    """Return a table of one source. Raise ``OptionError`` if the operator is not a source."""
    needed_source(operator, connector)
    return connector_table(spark, table, [operator], connector)


def transactions_table(spark: SparkSession | None, operator: OperatorInventory) -> DataFrame | pa.Table:
    """Return the uncommitted transactions of a sink. Raise ``OptionError`` if the operator is not a sink."""
    from statetool.connectors.elements import unknown_state
    from statetool.connectors.sinks import sink_of

    if sink_of(operator) is None:
        raise unknown_state(operator) or OptionError(
            f"operator {operator.label.display!r} is no sink", hint="Savepoint.sinks() lists them"
        )
    return connector_table(spark, "transactions", [operator])


def lag_table(
    spark: SparkSession | None, operator: OperatorInventory, ends: Any, connector: str | None
) -> DataFrame | pa.Table:
    """Return the lag of a source's splits; end offsets are a mapping, an Arrow table or a DataFrame."""
    from statetool.connectors.lag import LagRow, lag_rows

    return shown_records(spark, LagRow, lag_rows(needed_source(operator, connector), split_ends(ends)))


def split_ends(ends: Any) -> Mapping[str, int | str]:
    from statetool.connectors.positions import positions_of

    if isinstance(ends, Mapping):
        return ends
    return positions_of(ends.to_pylist() if hasattr(ends, "to_pylist") else [row.asDict() for row in ends.collect()])


def kafka_ends(operator: Operator, bootstrap_servers: str, **settings: Any) -> dict[str, int]:
    """Return the end offsets in a running Kafka of the partitions that a source holds, for :meth:`statetool.Operator.lag`.

    Parameters
    ----------
    operator
        A Kafka source.
    bootstrap_servers
        Brokers as ``host:port``, separated by commas.
    settings
        Further consumer settings of ``kafka-python`` (the extra ``kafka``), such as ``security_protocol="SSL"``.

    Returns
    -------
    dict of str to int
        Offsets by ``topic:partition``. Partitions that do not exist in Kafka are omitted.

    Raises
    ------
    OptionError
        The operator is not a Kafka source, or ``kafka-python`` does not know a setting.
    ConnectionFailedError
        Kafka did not answer, or refused the connection.
    MissingDependencyError
        ``kafka-python`` is not installed.
    """
    from statetool.connectors import kafka_ends as kafka

    return kafka.kafka_ends(needed_source(operator.inventory, None), bootstrap_servers, settings)


def needed_source(operator: OperatorInventory, connector: str | None) -> Source:
    """Return the state that an operator keeps as a source.

    Raises
    ------
    OptionError
        The operator is not a source.
    UnknownSerializerError
        State of an unknown type hides whether the operator is a source.
    """
    from statetool.connectors.elements import unknown_state
    from statetool.connectors.sources import source_of

    source = source_of(operator, connector)
    if source is None:
        raise unknown_state(operator) or OptionError(
            f"operator {operator.label.display!r} is no source", hint="statetool sources list shows them"
        )
    return source
