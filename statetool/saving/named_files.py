"""Copies of the files in directories of checkpoints that only operator state names, and state that names the copies.

State has absolute paths. The states of an operator are therefore written again, byte for byte but for the paths. A file that does not exist
keeps its path: a write-ahead sink deletes its files when it has sent their records, and a restored one asks whether it has.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from statetool.connectors.named_files import NamedFiles, elements_with_files, find_named_file, named_files
from statetool.errors import FormatError, UnknownNameError, several
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import OperatorStreamHandle
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.io.listing import stat
from statetool.io.threads import in_threads
from statetool.saving.bootstrap.model import ElementBootstrap
from statetool.saving.carry import flink_uri
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.streams.elements import element_streams
from statetool.saving.uids import find_operator
from statetool.snapshot.operator import OperatorInventory

if TYPE_CHECKING:
    from statetool.snapshot.inventory import Inventory

#: Requests for sizes that are in flight together.
_THREADS: Final = 16


def named_streams(operator: OperatorInventory) -> dict[str, Stream]:
    """Return the files to copy with the state of an operator, by their path in state. Missing ones are left out.

    Raises
    ------
    FormatError
        A file is shorter than the state says.
    """
    return _streams(operator, named_files(operator))


def _streams(operator: OperatorInventory, named: NamedFiles) -> dict[str, Stream]:
    places = [(file, place) for file in named.of_state if (place := find_named_file(operator, file)) is not None]
    streams: dict[str, Stream] = {}
    stats = in_threads(stat, [place for _, place in places], threads=_THREADS)
    for (file, place), found in zip(places, stats, strict=True):
        if found is None:
            continue
        if file.size_bytes is not None and found.size_bytes < file.size_bytes:
            words = f"the file has {found.size_bytes} bytes, the state that names it says {file.size_bytes}"
            raise FormatError(words, hint="run statetool verify to find the damage").at(
                file=place, operator=operator.label, state=file.state
            )
        size = found.size_bytes
        streams[file.path] = Stream(file=place, start=0, size_bytes=size, file_bytes=size)
    return streams


def _warn(operator: OperatorInventory, named: NamedFiles, streams: Mapping[str, Stream]) -> None:
    missing = [f.path for f in named.of_state if f.path not in streams]
    if missing:
        words = f"{several(len(missing), 'file')} that only its state names are not there to copy, such as {missing[0]}"
        warnings.warn(
            f"{operator.label.display}: {words}: unless the sink has sent their records, they are lost", stacklevel=2
        )
    for unread in named.unread:
        if unread.may_name_state:
            words = f"files that state {unread.state!r} may name are not copied, and stay needed: {unread.reason}"
            warnings.warn(f"{operator.label.display}: {words}", stacklevel=2)


@dataclass(slots=True)
class NamedFileCopies:
    """The copies that a write makes of files that only state names."""

    staging: Staging
    #: By the name of each copy in the target.
    streams: dict[str, Stream] = field(default_factory=dict)
    _names: dict[Stream, str] = field(default_factory=dict)

    def elements(
        self, operator: OperatorInventory, gone: Collection[str] = ()
    ) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
        """Return the elements, by state and subtask, of the states of an operator that name files, with the paths of their copies.

        Parameters
        ----------
        gone
            States that are left out or replaced: their files are not copied.

        Warns
        -----
        UserWarning
            Some files do not exist, or are not known.
        """
        named = named_files(operator)
        named = replace(
            named,
            files=tuple(file for file in named.files if file.state not in gone),
            unread=tuple(state for state in named.unread if state.state not in gone),
        )
        streams = _streams(operator, named)
        _warn(operator, named, streams)
        if not streams:
            return {}
        return elements_with_files(operator, {path: self._place(stream) for path, stream in streams.items()})

    def _place(self, stream: Stream) -> str:
        if stream not in self._names:
            name = self._names[stream] = self.staging.new_name("named")
            self.streams[name] = stream
        return files.join(flink_uri(self.staging.target), self._names[stream])

    def copy(self) -> list[StagedFile]:
        """Copy the files, once the write has begun."""
        return list(in_threads(lambda item: self.staging.copy_as(item[1], item[0]), list(self.streams.items())))

    def add_to(self, composition: Composition) -> Composition:
        """Return a composition whose operators name the copies."""
        if composition.reference:
            return composition
        changes = dict(composition.changes)
        base = () if composition.base is None else composition.base.metadata.operators
        removed = {find_operator(base, name).operator_id for name in composition.removed}
        names = {}
        for name in changes:
            with contextlib.suppress(UnknownNameError):  # the name of a new operator
                names[find_operator(base, name, exact=True).operator_id] = name
        inventory = {} if composition.base is None else composition.base.operators
        for operator in inventory.values():
            operator_id = operator.state.operator_id
            if operator_id not in removed:
                self._add(changes, names.get(operator_id, operator_id), operator)
        for name, change in composition.changes.items():
            if change.graft is not None:
                self._add(changes, name, change.graft.operator)
        return replace(composition, changes=changes)

    def _add(self, changes: dict[str, OperatorChange], name: str, operator: OperatorInventory) -> None:
        change = changes.get(name, OperatorChange(new=False))
        gone = {*change.dropped_states, *change.elements, *_replaced(change)}
        if elements := self.elements(change.elements_from or operator, gone):
            changes[name] = replace(change, moved_elements=elements)


def _replaced(change: OperatorChange) -> Iterator[str]:
    """Yield the operator states that get new elements from tables."""
    yield from (b.name for b in change.bootstraps if isinstance(b, ElementBootstrap))


@dataclass(frozen=True, slots=True)
class WrittenElements:
    """Operator state of a copied snapshot that is written again: its handles by operator id and subtask, and their files."""

    handles: Mapping[str, Mapping[int, OperatorStreamHandle]]
    files: tuple[StagedFile, ...]

    def without(self, operator: OperatorState) -> OperatorState:
        """Return an operator without the operator state that is written again."""
        return _with_handles(operator, dict.fromkeys(self.handles.get(operator.operator_id, ())))

    def added_to(self, operator: OperatorState) -> OperatorState:
        """Return an operator with the operator state that is written again."""
        return _with_handles(operator, self.handles.get(operator.operator_id, {}))


def write_elements(inventory: Inventory, copies: NamedFileCopies) -> WrittenElements:
    """Write the operator state that names files again, with the paths of their copies."""
    handles: dict[str, dict[int, OperatorStreamHandle]] = {}
    staged: list[StagedFile] = []
    for operator in inventory.operators.values():
        if not (elements := copies.elements(operator)):
            continue
        state = operator.state
        streams = element_streams(operator, label=operator.label, parallelism=state.parallelism, new_elements=elements)
        assert streams is not None
        own = handles[state.operator_id] = {}
        for subtask in (s.index for s in state.subtasks if s.managed_operator is not None):
            new = streams.write(subtask, (), copies.staging, 0)
            assert isinstance(new.handle, OperatorStreamHandle)
            own[subtask] = new.handle
            staged += new.files
    return WrittenElements(handles, tuple(staged))


def _with_handles(operator: OperatorState, handles: Mapping[int, OperatorStreamHandle | None]) -> OperatorState:
    subtasks = (replace(s, managed_operator=handles[s.index]) if s.index in handles else s for s in operator.subtasks)
    return replace(operator, subtasks=tuple(subtasks)) if handles else operator
