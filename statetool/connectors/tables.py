"""The tables of sources and sinks: by name the dataclass of their rows, and the rows of an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statetool.connectors.checks import SourceCheck, check_source
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
from statetool.connectors.sinks import Sink, sink_of, sinks_of
from statetool.connectors.sources import Source, source_of
from statetool.errors import UnknownNameError, UnknownSerializerError, suggest
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True, slots=True)
class ConnectorTable:
    """A table: the dataclass of its rows, and those of one source or of one operator of a sink."""

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
        Name of the connector of a source whose bytes do not tell it.

    Raises
    ------
    UnknownNameError
        There is no such table, or no such connector.
    FormatError
        Damaged state, or not that of the connector.
    """
    if table not in CONNECTOR_TABLES:
        raise UnknownNameError(f"no table {table!r} of sources or sinks", hint=suggest(table, CONNECTOR_TABLES))
    definition, readable, rows = CONNECTOR_TABLES[table], [], []
    for operator in operators:
        try:
            operator.operator_states  # noqa: B018 - reads the headers
            readable.append(operator)
        except UnknownSerializerError as error:
            # Nobody can tell whether it is a source or a sink: the lists of both say so, other tables raise.
            if table not in _UNREADABLE:
                raise
            rows.append(_UNREADABLE[table](operator, f"its operator state cannot be read: {error.message}"))
        else:
            unknown = unknown_state(operator) if table in _UNREADABLE else None
            if unknown is not None and source_of(operator, connector) is None and sink_of(operator) is None:
                rows.append(_UNREADABLE[table](operator, f"its operator state cannot be read: {unknown.message}"))
    if definition.of_source is not None:
        sources = (source_of(operator, connector) for operator in readable)
        return [*(row for source in sources if source is not None for row in definition.of_source(source)), *rows]
    assert definition.of_sink is not None
    return [*(row for sink in sinks_of(readable) for row in definition.of_sink(sink)), *rows]


#: The rows that stand for an operator whose operator state cannot be read.
_UNREADABLE: Final[Mapping[str, Callable[[OperatorInventory, str], Any]]] = {
    "sources": unreadable_source,
    "sinks": unreadable_sink,
}
