"""Files that only operator state names: those that connectors declare, and those of state handles in list states of ``JavaSerializer``.

Flink's metadata names neither. A restored job fails, or loses records, if they are gone: pending records of write-ahead sinks, parts of file
sinks, manifests of Iceberg. Sinks of Paimon and Hudi name files relative to a table that their state does not name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from statetool.connectors import registry
from statetool.connectors.connector import StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.file_sink import REQUESTS_STATE, count_requests
from statetool.connectors.model import NamedFile
from statetool.connectors.sinks import COMMITTER_STATE, COMPACT_STATE, WRITER_STATE, Sink, sinks_in
from statetool.connectors.state_handles import handles_in, has_java_values, read_object, rename_files
from statetool.errors import NO_FINDING, SnapshotNotFoundError, StatetoolError, several
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import FileHandle
from statetool.formats.state_meta import StateMetaInfo
from statetool.snapshot.operator import OperatorInventory

_SINK_V2: Final = frozenset({WRITER_STATE, COMMITTER_STATE, COMPACT_STATE})


@dataclass(frozen=True, slots=True)
class UnreadState:
    """State that may name files and cannot be decoded. ``may_name_state``: also files in directories of checkpoints."""

    state: str
    reason: str
    may_name_state: bool


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that the state of one operator names, and the states whose files are not known."""

    files: tuple[NamedFile, ...] = ()
    unread: tuple[UnreadState, ...] = ()

    @property
    def of_state(self) -> tuple[NamedFile, ...]:
        """The files in directories of checkpoints, of which copies of the snapshot need copies."""
        return tuple(file for file in self.files if file.is_state)


@cache
def file_states() -> frozenset[str]:
    """Return the names of the states in which connectors name files."""
    return _SINK_V2.union(*(sink.file_states for sink in registry.state_sinks()))


@cache
def states_of_handles() -> frozenset[str]:
    """Return the names of the states in which connectors name files in directories of checkpoints."""
    return frozenset(name for sink in registry.state_sinks() if sink.keeps_state_files for name in sink.file_states)


def named_files(operator: OperatorInventory) -> NamedFiles:
    """Return the files that the state of an operator names. State is only read if it may name files."""
    names = state_names(operator.state)
    if not names:
        return NamedFiles()
    found: list[NamedFile] = []
    unread: list[UnreadState] = []
    try:
        java = _java_states(operator)
        sinks = sinks_in(operator) if names & file_states() else []
    except NO_FINDING:
        raise
    except StatetoolError as error:
        # State that cannot be listed is reported where it is read. Here only its names are known.
        hidden = sorted(names & file_states())
        return NamedFiles(unread=tuple(UnreadState(name, str(error), name in states_of_handles()) for name in hidden))
    for sink in sinks:
        found += _files_of(sink)
        unread += _unread_states(sink)
    data = OperatorBytes(operator)
    unread += _requests_in(names, data)
    for state in sorted(java.keys() - _declared(sinks)):
        try:
            found += (
                NamedFile(path=h.path, size_bytes=h.size_bytes, is_state=True, subtask=element.subtask, state=state)
                for element in data.elements(state)
                for h in handles_in(read_object(element.data))
                if h.path is not None
            )
        except NO_FINDING:
            raise
        except StatetoolError as error:
            unread.append(UnreadState(state, str(error), may_name_state=True))
    return NamedFiles(files=tuple(found), unread=tuple(unread))


def find_named_file(operator: OperatorInventory, file: NamedFile) -> str | None:
    """Return the place of a file in a directory of checkpoints, which may have moved, or ``None`` if it does not exist."""
    try:
        place = operator.resolve(FileHandle(path=file.path, size_bytes=file.size_bytes or 0))
    except SnapshotNotFoundError:
        return None
    return None if place is None else place.file


def elements_with_files(
    operator: OperatorInventory, places: Mapping[str, str]
) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
    """Return the elements, by state and subtask, of the states that name files in directories of checkpoints, with new paths of the files.

    Elements that cannot be decoded stay as they are: :func:`named_files` names their states.

    Parameters
    ----------
    places
        New path of each file by that in state.

    Raises
    ------
    UnsupportedError
        Some state cannot be written with other paths.
    """
    elements: dict[str, Mapping[int, tuple[bytes, ...]]] = {}
    data = OperatorBytes(operator)
    for state in _java_states(operator):
        of_subtask: dict[int, tuple[bytes, ...]] = defaultdict(tuple)
        changed = False
        for element in data.elements(state):
            written = rename_files(element.data, places) if _has_files(element.data) else element.data
            changed |= written != element.data
            of_subtask[element.subtask] += (written,)
        if changed:
            elements[state] = dict(of_subtask)
    return elements


def state_names(state: OperatorState) -> frozenset[str]:
    """Return the names of the states of an operator's subtasks by the metadata."""
    handles = (s.managed_operator for s in state.subtasks if s.managed_operator is not None)
    return frozenset(partitions.name for handle in handles for partitions in handle.states)


def _requests_in(names: frozenset[str], data: OperatorBytes) -> Iterator[UnreadState]:
    """Yield the state of an operator that compacts files, if it has requests: they name parts of a file sink."""
    if REQUESTS_STATE not in names:
        return
    try:
        listed = data.values(REQUESTS_STATE) if REQUESTS_STATE in data.states else ()
        requests = sum(count_requests(element) for _, element in listed)
        reason = f"{several(requests, 'request')} of a compaction not decoded" if requests else ""
    except NO_FINDING:
        raise
    except StatetoolError as error:
        reason = str(error)
    if reason:
        yield UnreadState(REQUESTS_STATE, reason, may_name_state=False)


def _java_states(operator: OperatorInventory) -> Mapping[str, StateMetaInfo]:
    return {name: meta for name, meta in operator.operator_states.items() if has_java_values(meta)}


def _has_files(data: bytes) -> bool:
    try:
        return any(handle.path is not None for handle in handles_in(read_object(data)))
    except NO_FINDING:
        raise
    except StatetoolError:
        return False


def _declared(sinks: list[Sink]) -> frozenset[str]:
    """Return the states that connectors declare."""
    return frozenset(name for s in sinks for name in getattr(s.connector, "file_states", ()))


def _files_of(sink: Sink) -> Iterator[NamedFile]:
    if sink.connector is not None:
        for file in sink.connector.files(sink.state):
            yield file if file.subtask is None or file.subtask >= 0 else replace(file, subtask=None)


def _unread_states(sink: Sink) -> Iterator[UnreadState]:
    connector = sink.connector
    if isinstance(connector, StateSink):
        if sink.state.unread and connector.file_states:
            reason = f"{several(len(sink.state.unread), 'element')} cannot be decoded"
            yield UnreadState(connector.file_states[0], reason, connector.keeps_state_files)
    elif connector is None and (sink.state.unread or sink.state.pending or sink.state.writers):
        yield UnreadState(
            WRITER_STATE if sink.state.role == "writer" else COMMITTER_STATE,
            "its sink is not known",
            may_name_state=False,
        )
