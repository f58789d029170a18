"""Sources of a snapshot: their operators, connectors and decoded state.

A FLIP-27 source has the list state ``SourceReaderState`` (versioned byte arrays, one per split) and, as coordinator state, i4 1 (format of
``SourceCoordinator``) and the versioned enumerator state. Neither names the connector: it is recognised by the versions, and by reading the
bytes to the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statetool.connectors import registry
from statetool.connectors.connector import Recognised, SplitConnector, StateSource
from statetool.connectors.elements import OperatorBytes, reading_as
from statetool.connectors.model import HeldSplit, SourceBytes, SourceState
from statetool.connectors.wire import read_all, read_versioned, whole_versioned
from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.snapshot.operator import OperatorInventory

READER_STATE: Final = "SourceReaderState"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Recognised[SplitConnector | StateSource]):
    """One source.

    Attributes
    ----------
    given
        The bytes of a FLIP-27 source.
    coordinator_version
        Format of its coordinator state. Only format 1 is read.
    """

    state: SourceState
    given: SourceBytes | None = None
    coordinator_version: int | None = None
    coordinator: bytes | None = None

    @property
    def note(self) -> str:
        """Missing information, and the reason."""
        if len(self.candidates) > 1:
            return f"so few bytes could be of {' or '.join(self.candidates)}: say which with connector="
        if self.connector is None and (self.state.held or self.coordinator):
            return "no connector reads these bytes: they are shown as they are"
        if self.coordinator_version not in (None, _FORMAT):
            return f"coordinator state of format {self.coordinator_version} is not known"
        if self.given is not None and self.given.enumerator is not None and self.state.enumerator is None:
            return f"enumerator state of version {self.given.enumerator_version} is not known"
        if any(h.split is None for h in self.state.held):
            return f"splits of version {sorted({h.version for h in self.state.held if h.split is None})} are not known"
        return ""


def source_of(operator: OperatorInventory, connector: str | None = None) -> Source | None:
    """Return the source in an operator, ``None`` if it is not a source.

    Parameters
    ----------
    connector
        Name of the connector, if the bytes do not identify it.

    Raises
    ------
    UnknownNameError
        No connector has this name.
    FormatError
        The bytes are not those of the named connector.
    """
    states = registry.state_sources()
    data = OperatorBytes(operator, tuple(c for s in states for c in s.classes))
    if READER_STATE in data.states:
        return _split_source(operator, data, connector)
    for source in states:
        if source.recognises(data) and connector in (None, source.name):
            return Source(operator=operator, connector=source, state=source.read(data))
    return None


def _split_source(operator: OperatorInventory, data: OperatorBytes, name: str | None) -> Source:
    with reading_as("a source", data):
        held = [_held_split(operator, subtask, value) for subtask, value in data.values(READER_STATE)]
    coordinator = data.coordinator
    coordinator_format = None if not coordinator else Cursor(coordinator).i4()
    version: int | None = None
    enumerator: bytes | None = None
    if coordinator and coordinator_format == _FORMAT:
        version, enumerator = read_all(coordinator, _read_coordinator, "coordinator state")
    given = SourceBytes(held=tuple(held), enumerator_version=version, enumerator=enumerator)
    if name is not None:
        chosen = registry.split_connector(name)
        fitting: Sequence[tuple[SplitConnector, SourceState]] = [(chosen, chosen.read(given))]
    else:
        fitting = registry.recognise(given)
    is_recognised = len(fitting) == 1
    return Source(
        operator=operator,
        connector=fitting[0][0] if is_recognised else None,
        state=fitting[0][1] if is_recognised else SourceState(held=given.held),
        given=given,
        candidates=tuple(c.name for c, _ in fitting),
        coordinator_version=coordinator_format,
        coordinator=coordinator,
    )


def _held_split(operator: OperatorInventory, subtask: int, value: bytes) -> HeldSplit:
    try:
        version, raw = whole_versioned(value, "a split")
    except StatetoolError as error:
        raise error.at(operator=operator.label, state=READER_STATE) from None
    return HeldSplit(subtask=subtask, version=version, data=raw)


def _read_coordinator(c: Cursor) -> tuple[int, bytes]:
    c.i4()
    version, inner = read_versioned(c, "enumerator state")
    return version, inner.take(inner.left)


def coordinator_bytes(version: int, enumerator: bytes) -> bytes:
    """Return the bytes of coordinator state."""
    out = Output()
    out.i4(_FORMAT)
    out.i4(version)
    out.bytes4(enumerator)
    return bytes(out)
