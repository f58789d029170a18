"""Rows of the metadata tables: operators, states, files, key groups, channels with in-flight data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import UnknownNameError, suggest
from statetool.formats.channel_state import InFlightRow, in_flight_row
from statetool.formats.metadata import SubtaskState
from statetool.formats.metadata.handles import Handle, streams_of
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator, as in ``statetool info``."""

    operator: str
    name: str
    uid: str
    operator_id: str
    parallelism: int
    max_parallelism: int
    subtasks: int
    fully_finished: bool
    coordinator_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow(OperatorRecord):
    """One stream of a subtask's state, in a file or inline."""

    subtask: int
    slot: str
    path: str
    start: int
    size_bytes: int
    inline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupRow(OperatorRecord):
    """One key group of one subtask. ``size_bytes`` is its size on disk without headers, 0 if it is empty.

    If it is mixed with other key groups (RocksDB files), offset and size are not known.
    """

    subtask: int
    key_group: int
    offset: int | None
    size_bytes: int | None


def operator_row(operator: OperatorInventory) -> OperatorRow:
    """Return the operator as a row."""
    return OperatorRow(
        operator=operator.label,
        name=operator.label.name,
        uid=operator.uid,
        operator_id=operator.state.operator_id,
        parallelism=operator.state.parallelism,
        max_parallelism=operator.state.max_parallelism,
        subtasks=len(operator.state.subtasks),
        fully_finished=operator.state.fully_finished,
        coordinator_bytes=coordinator_bytes(operator),
        state_bytes=sum(size for subtask in operator.state.subtasks for _, size in slot_bytes(subtask)),
    )


def coordinator_bytes(operator: OperatorInventory) -> int:
    """Return the size of the state of an operator's coordinator."""
    return sum(stream.size_bytes for stream in streams_of(operator.state.coordinator))


def slot_bytes(subtask: SubtaskState) -> Iterator[tuple[str, int]]:
    """Yield the slots of a subtask with the size of each handle, by the metadata alone."""
    for slot, handle in _slots(subtask):
        yield slot, sum(stream.size_bytes for stream in streams_of(handle))


def file_rows(operator: OperatorInventory) -> list[FileRow]:
    """Return every stream of state with its location."""
    rows = []
    for subtask in operator.state.subtasks:
        for slot, handle in _slots(subtask):
            for stream_handle in streams_of(handle):
                stream = operator.resolve(stream_handle)
                if stream is not None:
                    rows.append(
                        FileRow(
                            operator=operator.label,
                            subtask=subtask.index,
                            slot=slot,
                            path=stream.file,
                            start=stream.start,
                            size_bytes=stream.size_bytes,
                            inline=stream.inline is not None,
                        )
                    )
    return rows


def key_group_rows(operator: OperatorInventory) -> list[KeyGroupRow]:
    """Return every key group of managed state. For databases and changelogs, only the key group numbers are known."""
    return [
        KeyGroupRow(
            operator=operator.label,
            subtask=stored.place.subtask,
            key_group=place.key_group,
            offset=place.offset,
            size_bytes=place.size_bytes,
        )
        for stored in operator.keyed.managed
        for place in stored.key_groups()
    ]


def _slots(subtask: SubtaskState) -> tuple[tuple[str, Handle], ...]:
    """Return the handles of a subtask, with the names of their slots."""
    return (
        ("managed operator", subtask.managed_operator),
        ("raw operator", subtask.raw_operator),
        ("managed keyed", subtask.managed_keyed),
        ("raw keyed", subtask.raw_keyed),
        *(("input channel", h) for h in subtask.input_channels),
        *(("output channel", h) for h in subtask.output_channels),
    )


def in_flight_rows(operator: OperatorInventory) -> list[InFlightRow]:
    """Return every channel with in-flight data. Counts cover complete stream elements, as far as they can be determined.

    Raises
    ------
    FormatError
        Buffers are not at the offsets in the metadata, or do not hold records.
    """
    return [in_flight_row(c, operator.label) for c in operator.channels]


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table about a snapshot: the dataclass of its rows, and a function that returns an operator's rows."""

    record: type[Any]
    rows: Callable[[OperatorInventory], Sequence[Any]]


METADATA_TABLES: Final[Mapping[str, MetadataTable]] = {
    "operators": MetadataTable(OperatorRow, lambda operator: [operator_row(operator)]),
    "states": MetadataTable(StateInfo, lambda operator: operator.states),
    "files": MetadataTable(FileRow, file_rows),
    "key_groups": MetadataTable(KeyGroupRow, key_group_rows),
    "in_flight": MetadataTable(InFlightRow, in_flight_rows),
}


def metadata_rows(table: str, operators: Iterable[OperatorInventory]) -> list[Any]:
    """Return the rows of one of :data:`METADATA_TABLES` as records.

    Raises
    ------
    UnknownNameError
        The table does not exist.
    """
    if table not in METADATA_TABLES:
        raise UnknownNameError(f"no metadata table {table!r}", hint=suggest(table, METADATA_TABLES))
    return [row for operator in operators for row in METADATA_TABLES[table].rows(operator)]
