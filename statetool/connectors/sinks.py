"""Sinks of a snapshot: their operators, connectors, and uncommitted transactions and files.

Sink V2 stores list states of versioned byte arrays: ``writer_raw_states`` of writers, ``streaming_committer_raw_states`` of committers
and global committers (:mod:`statetool.connectors.layouts.collector`), ``remaining_compact_commit_raw_state`` of the compact coordinator of files
(one committable per element). Flink 1.13 and 1.14 store the state of writer and committer in one operator. State does not name the
connector: it is recognised by versions, and by reading the bytes to the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from statetool.connectors import registry
from statetool.connectors.connector import Recognised, SinkConnector, StateSink
from statetool.connectors.elements import OperatorBytes, reading_as, unknown_state
from statetool.connectors.layouts.collector import (
    LEGACY,
    STATES,
    VERSION,
    Collector,
    LegacyCommittables,
    Request,
    is_global,
    read_collector,
    read_global,
    read_legacy,
    write_collector,
    write_global,
    write_legacy,
)
from statetool.connectors.model import PendingCommit, SinkState
from statetool.connectors.wire import read_version, whole_versioned, write_versioned
from statetool.errors import OptionError, StatetoolError, UnsupportedError, several
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io.output import Output
from statetool.snapshot.operator import OperatorInventory

WRITER_STATE: Final = "writer_raw_states"
COMMITTER_STATE: Final = "streaming_committer_raw_states"
COMPACT_STATE: Final = "remaining_compact_commit_raw_state"
#: Connector name of elements that cannot be read.
UNKNOWN_NAME: Final = "(unknown)"
#: Role of an operator whose operator state cannot be read.
UNKNOWN_ROLE: Final = "unknown"
#: Role of an operator by the state that it has.
ROLES: Final = {WRITER_STATE: "writer", COMMITTER_STATE: "committer", COMPACT_STATE: "compact-coordinator"}
#: Role of an operator that commits what all committers of a sink hand over. Its state has the name of theirs.
GLOBAL_ROLE: Final = "global-committer"
#: Uids of the committers of a sink, by its uid.
COMMITTER_UIDS: Final = ("Sink Committer: {}", "Sink {} Global Committer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Recognised[SinkConnector | StateSink]):
    """One operator of a sink, in one of its roles."""

    data: OperatorBytes
    state: SinkState

    @classmethod
    def unknown(cls, operator: OperatorInventory) -> Sink:
        """Return the entry of an operator that may belong to a sink: its operator state cannot be read."""
        return cls(operator=operator, data=OperatorBytes(operator), state=SinkState(role=UNKNOWN_ROLE))

    @property
    def is_read(self) -> bool:
        """Return True if everything uncommitted in the operator is read, at least its frames."""
        return self.state.role != UNKNOWN_ROLE and not self.state.unread

    @property
    def note(self) -> str:
        """Missing information, and the reason."""
        if len(self.candidates) > 1:
            return f"could be of {' or '.join(self.candidates)}"
        if self.state.unread:
            return f"not known: versions {sorted({v for _, v, _ in self.state.unread})}, {several(len(self.state.unread), 'element')}"
        if undecoded := [p for p in self.state.pending if p.undecoded is not None]:
            return f"no connector reads {several(len(undecoded), 'committable')} of version {sorted({p.version for p in undecoded if p.version is not None})}"
        if self.connector is None and self.is_read and not self.state.pending and not self.state.writers:
            return "nothing to commit: its state is empty, as that of Kafka's sink with at-least-once, and does not name the connector"
        return self.state.note


def sinks_of(operators: Iterable[OperatorInventory]) -> list[Sink]:
    """Return the operators that belong to sinks. Committers without committables get the connector of their writer."""
    sinks = [sink for operator in operators for sink in sinks_in(operator)]
    writers = {
        operator_id_for_uid(uid.format(s.operator.uid)): s.connector
        for s in sinks
        if s.state.role == "writer" and s.operator.uid
        for uid in COMMITTER_UIDS
    }
    return [
        replace(s, connector=writers.get(s.operator.state.operator_id))
        if s.connector is None and not s.candidates
        else s
        for s in sinks
    ]


def sinks_in(operator: OperatorInventory) -> list[Sink]:
    """Return the sink state of an operator, one entry per role; empty if it belongs to no sink."""
    states = registry.state_sinks()
    data = OperatorBytes(operator, tuple(c for s in states for c in s.classes))
    for sink in states:
        if sink.recognises(data):
            with reading_as(sink.name, data):
                return [Sink(operator=operator, data=data, connector=sink, state=sink.read(data))]
    return _sink_v2(operator, data)


def sink_of(operator: OperatorInventory) -> Sink | None:
    """Return the sink part with the committables of an operator, otherwise the part with its writers; ``None`` if it belongs to no sink."""
    return next(iter(sorted(sinks_in(operator), key=lambda s: s.state.role == "writer")), None)


def require_sink(operator: OperatorInventory) -> Sink:
    """Return the sink that an operator belongs to; see :func:`sink_of`.

    Raises
    ------
    OptionError
        The operator does not belong to a sink.
    UnknownSerializerError
        State of an unknown type hides whether the operator belongs to a sink.
    """
    sink = sink_of(operator)
    if sink is None:
        raise unknown_state(operator) or OptionError(
            f"operator {operator.label.display!r} is not a sink", hint="statetool sinks list shows the sinks"
        )
    return sink


def _sink_v2(operator: OperatorInventory, data: OperatorBytes) -> list[Sink]:
    fitting = {role: _fitting(data, name, role) for name, role in ROLES.items() if name in data.states}
    # All roles of an operator have one connector: one role may identify it if another holds too little state.
    common = set.intersection(*(set(states) for states in fitting.values())) if fitting else set()
    decoded = {name: sum(_decode_state(states[name]) for states in fitting.values()) for name in common}
    named = _most(decoded)
    return [
        _in_role(
            operator,
            data,
            role,
            states,
            named if len(named) == 1 else _most({n: _decode_state(s) for n, s in states.items()}),
        )
        for role, states in fitting.items()
    ]


def _fitting(data: OperatorBytes, name: str, role: str) -> dict[str, SinkState]:
    """Return the decoded state of each connector that can read a state, by the connector's name."""
    return _fitting_elements(name, role, _elements(data, name))


def _fitting_elements(name: str, role: str, elements: Sequence[tuple[int, int, bytes]]) -> dict[str, SinkState]:
    fitting = {}
    for connector in registry.sink_connectors():
        with suppress(StatetoolError):
            fitting[connector.name] = _READERS[name](connector, role, elements)
    return fitting


def read_elements(name: str, elements: Sequence[tuple[int, bytes]]) -> list[SinkState | None]:
    """Return each element of a state as decoded by the connector that decodes the most of them, ``None`` if there is not one such connector."""
    role = ROLES[name]
    whole = [(-1, version, raw) for version, raw in elements]
    states = _fitting_elements(name, role, whole)
    named = _most({n: _decode_state(s) for n, s in states.items()})
    if not named or any(states[n] != states[named[0]] for n in named):
        return [None] * len(elements)
    connector = next(c for c in registry.sink_connectors() if c.name == named[0])
    return [_READERS[name](connector, role, [element]) for element in whole]


def _elements(data: OperatorBytes, name: str) -> list[tuple[int, int, bytes]]:
    with reading_as("a sink", data):
        return [(subtask, *whole_versioned(value, "an element")) for subtask, value in data.values(name)]


def _decode_state(state: SinkState) -> int:
    return len(state.writers) + sum(p.undecoded is None for p in state.pending)


def _most(decoded: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of the connectors that decode the most, empty if none decodes anything."""
    most = max(decoded.values(), default=0)
    return tuple(name for name, number in decoded.items() if number == most) if most else ()


def _in_role(
    operator: OperatorInventory, data: OperatorBytes, role: str, states: Mapping[str, SinkState], named: tuple[str, ...]
) -> Sink:
    connectors = {c.name: c for c in registry.sink_connectors()}
    if len(named) == 1:
        return Sink(operator=operator, data=data, connector=connectors[named[0]], state=states[named[0]])
    # Bytes that no connector decodes are shown in the frames read by the first one, bytes that several decode alike as any of them.
    state = next(iter(states.values()), None)
    if named:
        state = states[named[0]]
    if state is None or any(states[name] != state for name in named):
        state = _unread_state(role, _elements(data, next(n for n, r in ROLES.items() if r == role)))
    return Sink(operator=operator, data=data, state=state, candidates=named)


def collector_versions(sink: Sink, *, stored: bool) -> tuple[int | None, int | None]:
    """Return the highest versions of checkpoints and of writers in a committer's state; ``None`` if there are none.

    With ``stored``, the version of an empty list does not count: Flink reads no element by it.
    """
    collectors: list[Collector] = []
    for _, version, raw in _elements(sink.data, COMMITTER_STATE) if COMMITTER_STATE in sink.data.states else ():
        if version == VERSION:
            collectors.append(read_global(raw).collector if is_global(raw) else read_collector(raw))
    checkpoints = (c.checkpoints_version for c in collectors if c.checkpoints or not stored)
    writers = (c.writers_version for whole in collectors for c in whole.checkpoints if c.writers or not stored)
    return max(checkpoints, default=None), max(writers, default=None)


def unread_pending(sink: Sink) -> Iterator[PendingCommit]:
    """Yield the elements of a sink that no connector can read, as bytes."""
    for subtask, version, raw in sink.state.unread:
        yield PendingCommit(name=UNKNOWN_NAME, status="unknown", subtask=subtask, version=version, undecoded=raw)


def _unread_state(role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    return SinkState(role=role, unread=tuple(elements), versions=frozenset(v for _, v, _ in elements))


def _read_writers(connector: SinkConnector, role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    writers, unread = [], []
    pending: list[PendingCommit] = []
    for subtask, version, raw in elements:
        if version in connector.writer_versions:
            writer = read_version(raw, version, connector.read_writer, "the state of a writer")
            writers.append((subtask, connector.summarize_writer(writer)))
            for buffered in connector.buffered(writer):
                name = buffered.name or _buffered_name(len(pending))
                pending.append(replace(buffered, name=name, subtask=subtask, version=version))
        else:
            unread.append((subtask, version, raw))
    return SinkState(
        role=role,
        pending=tuple(pending),
        writers=tuple(writers),
        unread=tuple(unread),
        versions=frozenset(v for _, v, _ in elements),
    )


def _buffered_name(index: int) -> str:
    """Return the name of a buffered record: its number among those of the operator."""
    return f"buffered-{index}"


def _read_committables(connector: SinkConnector, role: str, elements: Iterable[tuple[int, int, bytes]]) -> SinkState:
    pending: list[PendingCommit] = []
    unread = []
    for subtask, version, raw in elements:
        if version == VERSION and is_global(raw):
            state, role = read_global(raw), GLOBAL_ROLE
            if state.restored is not None:
                pending += _global_committables_of(connector, subtask, state.restored)
            pending += _committables_of(connector, subtask, state.collector)
        elif version == VERSION:
            pending += _committables_of(connector, subtask, read_collector(raw))
        elif version == LEGACY:
            legacy = read_legacy(raw)
            if _splits(connector, legacy):
                role = GLOBAL_ROLE
                pending += _global_committables_of(connector, subtask, legacy)
            else:
                pending += _legacy_committables_of(connector, subtask, legacy)
        else:
            unread.append((subtask, version, raw))
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


_READERS: Final = {
    WRITER_STATE: _read_writers,
    COMMITTER_STATE: _read_committables,
    COMPACT_STATE: _read_compacting,
}


def _committables_of(connector: SinkConnector, subtask: int, collector: Collector) -> Iterator[PendingCommit]:
    """Yield the committables of a collector."""
    for checkpoint in collector.checkpoints:
        for writer in checkpoint.writers:
            for request in writer.requests:
                yield replace(
                    _pending(connector, request.version, request.data),
                    status=STATES[request.state],
                    # Version 0 does not store the writer's subtask: the committer's subtask is used.
                    subtask=subtask if writer.subtask is None else writer.subtask,
                    checkpoint_id=checkpoint.checkpoint_id,
                    retries=request.retries,
                    version=request.version,
                )


def _legacy_committables_of(
    connector: SinkConnector, subtask: int, legacy: LegacyCommittables
) -> Iterator[PendingCommit]:
    """Yield the committables of Flink 1.13 and 1.14, which store neither their checkpoint nor their writer."""
    for raw in legacy.committables:
        pending = _pending(connector, legacy.version, raw)
        yield replace(pending, status=STATES[0], subtask=subtask, version=legacy.version)


def _splits(connector: SinkConnector, legacy: LegacyCommittables) -> bool:
    """Return True if committables of Flink 1.13 or 1.14 are those of a global committer. Its state has the same form."""
    if legacy.version not in connector.global_versions or not legacy.committables:
        return False
    try:
        for raw in legacy.committables:
            _split(connector, legacy.version, raw)
    except StatetoolError:
        return False
    return True


def _global_committables_of(
    connector: SinkConnector, subtask: int, restored: LegacyCommittables
) -> Iterator[PendingCommit]:
    """Yield the committables inside global committables, which store neither their checkpoint nor their writer."""
    if restored.version not in connector.global_versions:
        yield from (
            replace(_undecoded(restored.version, raw), status=STATES[0], subtask=subtask)
            for raw in restored.committables
        )
        return
    for raw in restored.committables:
        parts = LegacyCommittables(version=restored.version, committables=_split(connector, restored.version, raw))
        yield from _legacy_committables_of(connector, subtask, parts)


def _split(connector: SinkConnector, version: int, raw: bytes) -> tuple[bytes, ...]:
    return read_version(raw, version, connector.split_global, "a global committable")


def _undecoded(version: int, raw: bytes) -> PendingCommit:
    return PendingCommit(name=f"(version {version})", status="", subtask=-1, version=version, undecoded=raw)


def _pending(connector: SinkConnector, version: int, raw: bytes) -> PendingCommit:
    if version not in connector.committable_versions:
        return _undecoded(version, raw)
    return connector.pending(read_version(raw, version, connector.read_committable, "a committable"))


def without_committables(sink: Sink, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
    """Return the elements, by state and subtask, of a sink without the named committables.

    Raises
    ------
    UnsupportedError
        The connector does not support leaving out committables.
    """
    connector = sink.connector
    if isinstance(connector, StateSink):
        return connector.without(sink.data, names)
    if connector is None:
        raise UnsupportedError(
            f"nothing can be dropped from a sink that could be of {' or '.join(sink.candidates)}",
            hint="restore the job, and let it send or commit them",
        )
    connector.check_forgettable()
    role = "committer" if sink.state.role == GLOBAL_ROLE else sink.state.role
    name = next(n for n, r in ROLES.items() if r == role)

    def forgotten(request: Request) -> bool:
        return _pending(connector, request.version, request.data).name in names

    elements: dict[int, tuple[bytes, ...]] = {}
    buffered = 0
    for element, (subtask, value) in zip(sink.data.elements(name), sink.data.values(name), strict=True):
        version, raw = whole_versioned(value, "an element")
        data = element.data
        if name == WRITER_STATE and version in connector.writer_versions:
            writer = read_version(raw, version, connector.read_writer, "the state of a writer")
            items = connector.buffered(writer)
            dropped = frozenset(
                n for n, item in enumerate(items) if (item.name or _buffered_name(buffered + n)) in names
            )
            buffered += len(items)
            if dropped:
                data = _byte_array(write_versioned(version, connector.without_buffered(version, raw, dropped)))
        if name == COMMITTER_STATE and version == VERSION and is_global(raw):
            state = read_global(raw)
            restored = None if state.restored is None else _remaining_global(connector, state.restored, names)
            state = replace(state, restored=restored, collector=state.collector.without(forgotten))
            data = _byte_array(write_versioned(version, write_global(state)))
        elif name == COMMITTER_STATE and version == VERSION:
            data = _byte_array(write_versioned(version, write_collector(read_collector(raw).without(forgotten))))
        elif name == COMMITTER_STATE and version == LEGACY:
            legacy = read_legacy(raw)
            remaining = _remaining_global if _splits(connector, legacy) else _remaining
            data = _byte_array(write_versioned(version, write_legacy(remaining(connector, legacy, names))))
        elif name == COMPACT_STATE and _pending(connector, version, raw).name in names:
            continue
        elements[subtask] = (*elements.get(subtask, ()), data)
    return {name: elements}


def _remaining(connector: SinkConnector, legacy: LegacyCommittables, names: frozenset[str]) -> LegacyCommittables:
    remaining = (raw for raw in legacy.committables if _pending(connector, legacy.version, raw).name not in names)
    return replace(legacy, committables=tuple(remaining))


def _remaining_global(
    connector: SinkConnector, restored: LegacyCommittables, names: frozenset[str]
) -> LegacyCommittables:
    if restored.version not in connector.global_versions:
        return restored
    committables = []
    for raw in restored.committables:
        parts = LegacyCommittables(version=restored.version, committables=_split(connector, restored.version, raw))
        remaining = _remaining(connector, parts, names)
        if remaining == parts:
            committables.append(raw)
        elif remaining.committables:
            committables.append(connector.join_global(restored.version, remaining.committables))
    return replace(restored, committables=tuple(committables))


def _byte_array(data: bytes) -> bytes:
    out = Output()
    out.bytes4(data)
    return bytes(out)
