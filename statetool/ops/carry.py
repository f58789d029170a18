"""Carry operators over into a new snapshot as they are: their files are copied, and their handles name the copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from statetool.errors import UnsupportedError
from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    RelativeFileHandle,
    StreamHandle,
    replace_channel,
    replace_keyed,
    replace_operator,
    replace_stream,
    streams_of,
)
from statetool.formats.stream import Stream
from statetool.write.publish import StagedFile

Resolve: TypeAlias = Callable[[StreamHandle], Stream | None]
#: Copies streams into the target, in the order given.
CopyAll: TypeAlias = Callable[[list[Stream]], list[StagedFile]]


@dataclass(slots=True)
class Carrier:
    """Copies the files of operators and rewrites their handles.

    Parameters
    ----------
    resolve
        Tells where the bytes of a handle are.
    """

    resolve: Resolve
    staged: dict[Stream, StagedFile] = field(default_factory=dict)

    def copy(self, operators: Iterable[OperatorState], copy_all: CopyAll) -> None:
        """Copy what lies in files, each piece once."""
        wanted: dict[Stream, None] = {}
        for handle in (h for o in operators for h in _streams(o)):
            if not isinstance(handle, ByteStreamHandle):
                stream = self.resolve(handle)
                if stream is not None and stream not in self.staged:
                    wanted[stream] = None
        streams = list(wanted)
        self.staged |= dict(zip(streams, copy_all(streams), strict=True))

    def carried(self, operator: OperatorState) -> OperatorState:
        """Return an operator that was copied, with handles relative to the new metadata."""
        return replace(
            operator,
            coordinator=replace_stream(operator.coordinator, self._moved),
            subtasks=tuple(self._subtask(s) for s in operator.subtasks),
        )

    def _subtask(self, s: SubtaskState) -> SubtaskState:
        return replace(
            s,
            managed_operator=replace_operator(s.managed_operator, self._moved),
            raw_operator=replace_operator(s.raw_operator, self._moved),
            managed_keyed=replace_keyed(s.managed_keyed, self._moved),
            raw_keyed=replace_keyed(s.raw_keyed, self._moved),
            input_channels=tuple(replace_channel(h, self._moved) for h in s.input_channels),
            output_channels=tuple(replace_channel(h, self._moved) for h in s.output_channels),
        )

    def _moved(self, handle: StreamHandle) -> StreamHandle:
        if isinstance(handle, ByteStreamHandle):
            return handle
        stream = self.resolve(handle)
        if stream is None:
            raise UnsupportedError(f"a stream handle of kind {type(handle).__name__} cannot be copied")
        file = self.staged[stream]
        return RelativeFileHandle(path=file.name, size_bytes=file.size_bytes)


def _streams(operator: OperatorState) -> Iterator[StreamHandle]:
    yield from streams_of(operator.coordinator)
    for s in operator.subtasks:
        handles = (s.managed_operator, s.raw_operator, s.managed_keyed, s.raw_keyed, *s.input_channels)
        for handle in (*handles, *s.output_channels):
            yield from streams_of(handle)
