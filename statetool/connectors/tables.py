"""Tables of sources and sinks: the dataclass of rows per table name, and the rows of an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statetool.connectors.checks import SourceCheck, check_source, unreadable_check
from statetool.connectors.elements import unknown_state
from statetool.connectors.rows import (
    EnumeratorRow,
    SinkRow,
    SourceRow,
    SplitRow,
    TransactionRow,
    enumerator_rows,
    sink_row,
    source_row,
    split_rows,
    transaction_rows,
    unreadable_sink,
    unreadable_source,
)
from statetool.connectors.sinks import Sink, sinks_in, sinks_of
from statetool.connectors.sources import Source, source_of
from statetool.errors import UnknownNameError, UnknownSerializerError, suggest
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True, slots=True)
class ConnectorTable:
    """A table: the dataclass of its rows, and functions that return the rows of one source or of one operator of a sink."""

    record: type[Any]
    of_source: Callable[[Source], Sequence[Any]] | None = None
    of_sink: Callable[[Sink], Iterable[Any]] | None = None


CONNECTOR_TABLES: Final[Mapping[str, ConnectorTable]] = {
    "sources": ConnectorTable(SourceRow, of_source=lambda source: [source_row(source)]),
    "source_splits": ConnectorTable(SplitRow, of_source=split_rows),
    "enumerators": ConnectorTable(EnumeratorRow, of_source=enumerator_rows),
    "source_checks": ConnectorTable(SourceCheck, of_source=check_source),
    "sinks": ConnectorTable(SinkRow, of_sink=lambda sink: [sink_row(sink)]),
    "transactions": ConnectorTable(TransactionRow, of_sink=transaction_rows),
}


def connector_rows(table: str, operators: Iterable[OperatorInventory], connector: str | None = None) -> list[Any]:
    """Return the rows of one of :data:`CONNECTOR_TABLES`.

    Parameters
    ----------
    connector
        Name of the connector of a source whose bytes do not identify it.

    Raises
    ------
    UnknownNameError
        No table or connector has this name.
    FormatError
        State is damaged, or does not belong to the connector.
    """
    if table not in CONNECTOR_TABLES:
        raise UnknownNameError(f"no table {table!r} of sources or sinks", hint=suggest(table, CONNECTOR_TABLES))
    definition, unreadable = CONNECTOR_TABLES[table], _UNREADABLE.get(table)
    if unreadable is None:
        readable, rows = list(operators), []
        for operator in readable:
            operator.operator_states  # noqa: B018 - raises where its headers cannot be read
    else:
        readable, unread = readable_operators(operators, connector)
        rows = [unreadable(operator, reason) for operator, reason in unread]
    if definition.of_source is not None:
        sources = (source_of(operator, connector) for operator in readable)
        return [*(row for source in sources if source is not None for row in definition.of_source(source)), *rows]
    assert definition.of_sink is not None
    return [*(row for sink in sinks_of(readable) for row in definition.of_sink(sink)), *rows]


def readable_operators(
    operators: Iterable[OperatorInventory], connector: str | None = None
) -> tuple[list[OperatorInventory], list[tuple[OperatorInventory, str]]]:
    """Return the operators with readable operator state, and the other operators with the reason: their kind is unknown."""
    readable, unread = [], []
    for operator in operators:
        try:
            operator.operator_states  # noqa: B018 - reads the headers
        except UnknownSerializerError as error:
            unread.append((operator, _unread_note(error)))
            continue
        readable.append(operator)
        unknown = unknown_state(operator)
        if unknown is not None and source_of(operator, connector) is None and not sinks_in(operator):
            unread.append((operator, _unread_note(unknown)))
    return readable, unread


def sinks_and_unknown(operators: Iterable[OperatorInventory]) -> list[Sink]:
    """Return the operators of sinks, and those that may belong to a sink."""
    readable, unread = readable_operators(operators)
    return [*sinks_of(readable), *(Sink.unknown(operator) for operator, _ in unread)]


def _unread_note(error: UnknownSerializerError) -> str:
    return f"its operator state cannot be read: {error.message}"


#: Rows for an operator whose operator state cannot be read.
_UNREADABLE: Final[Mapping[str, Callable[[OperatorInventory, str], Any]]] = {
    "sources": unreadable_source,
    "source_checks": unreadable_check,
    "sinks": unreadable_sink,
}
