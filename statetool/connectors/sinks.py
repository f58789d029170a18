"""The sinks of a snapshot: which operators belong to one, of which connector, and what they have not committed.

Sink V2 keeps list states of byte arrays, each versioned: ``writer_raw_states`` of writers, ``streaming_committer_raw_states`` of committers
(:mod:`statetool.connectors.collector`), ``remaining_compact_commit_raw_state`` of the compact coordinator of files (one committable an
element). Nothing names the connector: it is recognised by versions and by bytes that it reads to the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from statetool.connectors import registry
from statetool.connectors.collector import STATES, VERSION, Collector, Request, read_collector, write_collector
from statetool.connectors.connector import Recognised, SinkConnector, StateSink
from statetool.connectors.elements import OperatorBytes, reading_as
from statetool.connectors.model import Pending, SinkState
from statetool.connectors.wire import read_version, whole_versioned, write_versioned
from statetool.errors import StatetoolError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io.output import Output
from statetool.snapshot.operator import OperatorInventory

WRITER_STATE: Final = "writer_raw_states"
COMMITTER_STATE: Final = "streaming_committer_raw_states"
COMPACT_STATE: Final = "remaining_compact_commit_raw_state"
_ROLES: Final = {WRITER_STATE: "writer", COMMITTER_STATE: "committer", COMPACT_STATE: "compact-coordinator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Recognised[SinkConnector | StateSink]):
    """One operator of a sink."""

    data: OperatorBytes
    state: SinkState

    @property
    def note(self) -> str:
        """What is not shown, and why."""
        if len(self.candidates) > 1:
            return f"could be of {' or '.join(self.candidates)}"
        if self.state.unread:
            return (
                f"not known: versions {sorted({v for _, v, _ in self.state.unread})}, {len(self.state.unread)} elements"
            )
        return ""


def sinks_of(operators: Iterable[OperatorInventory]) -> list[Sink]:
    """Return the operators that belong to sinks; a committer that holds nothing has the connector of its writer."""
    sinks = [sink for operator in operators if (sink := sink_of(operator)) is not None]
    writers = {
        operator_id_for_uid(f"Sink Committer: {s.operator.uid}"): s.connector
        for s in sinks
        if s.state.role == "writer" and s.operator.uid
    }
    return [
        replace(s, connector=writers.get(s.operator.state.operator_id))
        if s.connector is None and not s.candidates
        else s
        for s in sinks
    ]


def sink_of(operator: OperatorInventory) -> Sink | None:
    """Return what an operator keeps as part of a sink, ``None`` if it is none."""
    states = registry.state_sinks()
    data = OperatorBytes(operator, tuple(c for s in states for c in s.classes))
    for sink in states:
        if sink.recognises(data):
            with reading_as(sink.name, data):
                return Sink(operator=operator, data=data, connector=sink, state=sink.read(data))
    for name, role in _ROLES.items():
        if name in data.states:
            return _sink_v2(operator, data, name, role)
    return None


def _sink_v2(operator: OperatorInventory, data: OperatorBytes, name: str, role: str) -> Sink:
    with reading_as("a sink", data):
        elements = [(subtask, *whole_versioned(value, "an element")) for subtask, value in data.values(name)]
    read = {WRITER_STATE: _read_writers, COMMITTER_STATE: _read_committables, COMPACT_STATE: _read_compacting}[name]
    fitting: list[tuple[int, SinkConnector, SinkState]] = []
    for connector in registry.sink_connectors():
        try:
            state = read(connector, role, elements)
        except StatetoolError:
            continue
        decoded = len(state.writers) + sum(p.undecoded is None for p in state.pending)
        fitting.append((decoded, connector, state))
    most = max((n for n, _, _ in fitting), default=0)
    best = [(c, s) for n, c, s in fitting if n == most]
    if most and len(best) == 1:
        return Sink(operator=operator, data=data, connector=best[0][0], state=best[0][1])
    candidates = tuple(c.name for c, _ in best) if most else ()
    # Bytes that no connector decodes are shown in the frames that the first one read.
    state = _unread_state(role, elements) if candidates or not best else best[0][1]
    return Sink(operator=operator, data=data, state=state, candidates=candidates)


def _unread_state(role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    return SinkState(role=role, unread=tuple(elements), versions=frozenset(v for _, v, _ in elements))


def _read_writers(connector: SinkConnector, role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    writers, unread = [], []
    for subtask, version, raw in elements:
        if version in connector.writer_versions:
            writers.append((subtask, read_version(raw, version, connector.read_writer, "the state of a writer")))
        else:
            unread.append((subtask, version, raw))
    return SinkState(
        role=role, writers=tuple(writers), unread=tuple(unread), versions=frozenset(v for _, v, _ in elements)
    )


def _read_committables(connector: SinkConnector, role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    pending: list[Pending] = []
    unread = []
    for subtask, version, raw in elements:
        if version != VERSION:
            unread.append((subtask, version, raw))
            continue
        pending += _committables_of(connector, subtask, read_collector(raw))
    return SinkState(
        role=role,
        pending=tuple(pending),
        unread=tuple(unread),
        versions=frozenset(p.version for p in pending if p.version is not None),
    )


def _read_compacting(connector: SinkConnector, role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    pending = [
        replace(_pending(connector, version, raw), status="compacting", subtask=subtask, version=version)
        for subtask, version, raw in elements
    ]
    return SinkState(role=role, pending=tuple(pending), versions=frozenset(v for _, v, _ in elements))


def _committables_of(connector: SinkConnector, subtask: int, collector: Collector) -> Iterator[Pending]:
    """Yield the committables of a collector."""
    for checkpoint in collector.checkpoints:
        for writer in checkpoint.writers:
            for request in writer.requests:
                yield replace(
                    _pending(connector, request.version, request.data),
                    status=STATES[request.state],
                    # Version 0 does not store the writer's subtask: it is that of the committer.
                    subtask=subtask if writer.subtask is None else writer.subtask,
                    checkpoint_id=checkpoint.checkpoint_id,
                    retries=request.retries,
                    version=request.version,
                )


def _pending(connector: SinkConnector, version: int, raw: bytes) -> Pending:
    if version not in connector.committable_versions:
        return Pending(name=f"(version {version})", status="", subtask=-1, version=version, undecoded=raw)
    return connector.pending(read_version(raw, version, connector.read_committable, "a committable"))


def without_committables(sink: Sink, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
    """Return the elements, by state and subtask, of a sink that forgets the named committables.

    Raises
    ------
    UnsupportedError
        The connector cannot forget any.
    """
    connector = sink.connector
    if isinstance(connector, StateSink):
        return connector.without(sink.data, names)
    assert connector is not None
    connector.check_forgettable()
    name = next(n for n, role in _ROLES.items() if role == sink.state.role)

    def forgotten(request: Request) -> bool:
        return _pending(connector, request.version, request.data).name in names

    elements: dict[int, tuple[bytes, ...]] = {}
    for element, (subtask, value) in zip(sink.data.elements(name), sink.data.values(name), strict=True):
        version, raw = whole_versioned(value, "an element")
        data = element.data
        if name == COMMITTER_STATE and version == VERSION:
            data = _byte_array(write_versioned(version, write_collector(read_collector(raw).without(forgotten))))
        elif name == COMPACT_STATE and _pending(connector, version, raw).name in names:
            continue
        elements[subtask] = (*elements.get(subtask, ()), data)
    return {name: elements}


def _byte_array(data: bytes) -> bytes:
    out = Output()
    out.bytes4(data)
    return bytes(out)
