"""Uncommitted transactions of sinks compared with the system that they commit to: a table of Paimon, Iceberg or Delta, Kafka, a
database, or the file system.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from statetool.connectors.outside.delta_commits import delta_commit_rows
from statetool.connectors.outside.file_checks import file_commit_rows
from statetool.connectors.outside.jdbc_transactions import jdbc_commit_rows
from statetool.connectors.outside.kafka_transactions import kafka_commit_rows
from statetool.connectors.outside.table_commits import TableCommitRow, table_commit_rows
from statetool.errors import OptionError
from statetool.snapshot.operator import OperatorInventory


def commit_check_rows(
    operators: Iterable[OperatorInventory],
    *,
    paimon: str | None = None,
    iceberg: str | None = None,
    delta: str | None = None,
    kafka: str | None = None,
    kafka_settings: Mapping[str, Any] | None = None,
    jdbc: str | None = None,
) -> list[TableCommitRow]:
    """Compare the uncommitted transactions of all sinks of a kind with the one system that is given, or those of files with the file system.

    Raises
    ------
    OptionError
        Several systems are given, or the snapshot has no sink of this kind.
    """
    given = [name for name in (paimon, iceberg, delta, kafka, jdbc) if name is not None]
    if not given and not kafka_settings:
        rows = file_commit_rows(operators)
        if rows is not None:
            return rows
    if len(given) != 1:
        raise OptionError(
            "sinks are compared with one table, with Kafka or with a database; the snapshot has no sink that writes files"
            if not given
            else "sinks are compared with one table, with Kafka or with a database",
            hint="pass one of --paimon, --iceberg, --delta, --kafka, --jdbc (in Python: paimon=, iceberg=, delta=, kafka=, jdbc=)",
        )
    if kafka_settings and kafka is None:
        raise OptionError("settings of Kafka need its brokers", hint="pass --kafka HOST:PORT (in Python: kafka=)")
    if kafka is not None:
        return kafka_commit_rows(operators, kafka, kafka_settings)
    if jdbc is not None:
        return jdbc_commit_rows(operators, jdbc)
    if delta is not None:
        return delta_commit_rows(operators, delta)
    return table_commit_rows(operators, given[0], "iceberg" if paimon is None else "paimon")
