"""Where the state of one operator lies: its pieces by subtask, from the handles of the metadata alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from statetool.errors import FormatError, StatetoolError
from statetool.formats.channel_state import Channel, channels_of
from statetool.formats.keyed.database_files import DatabaseFiles
from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.metadata.handles import (
    ChangelogHandle,
    IncrementalHandle,
    KeyGroupsHandle,
    OperatorHandle,
    StreamHandle,
)
from statetool.formats.stream import Stream
from statetool.plan.changelog import change_sets
from statetool.plan.locate import Locator
from statetool.plan.parts import ChangelogPart, KeyedPart, NativePart, OperatorPart
from statetool.serializers.context import reading_with
from statetool.types.declared import NOTHING_DECLARED, TypeContext


class OperatorParts:
    """The pieces of an operator's state; what they hold is not looked at."""

    def __init__(self, state: OperatorState, uid: str, locator: Locator, types: TypeContext = NOTHING_DECLARED) -> None:
        self.state = state
        self.uid = uid
        self._locator = locator
        #: What is known of its types from outside of the snapshot.
        self.types = types

    @property
    def label(self) -> str:
        """The uid, or the operator id where no uid is known."""
        return self.uid or self.state.operator_id

    def resolve(self, handle: StreamHandle) -> Stream | None:
        """Return where the bytes of a stream handle are, ``None`` where there are none."""
        return self._locator.resolve(handle)

    def _stream_of(self, handle: StreamHandle) -> Stream:
        stream = self._locator.resolve(handle)
        if stream is None:
            # An empty segment of merged files.
            return Stream(file=self._locator.metadata_file, start=0, size_bytes=0, inline=b"")
        return stream

    @cached_property
    def keyed_parts(self) -> tuple[KeyedPart, ...]:
        """Keyed state in streams with key-group offsets, by subtask.

        Raises
        ------
        FormatError
            A handle of another kind.
        """
        parts = []
        for subtask in self.state.subtasks:
            handle = subtask.managed_keyed
            if handle is None or isinstance(handle, IncrementalHandle | ChangelogHandle):
                continue
            if not isinstance(handle, KeyGroupsHandle):
                raise FormatError(f"a handle of kind {type(handle).__name__} in the place of keyed state").at(
                    operator=self.label, file=self._locator.metadata_file
                )
            parts.append(self.keyed_part(subtask.index, handle))
        return tuple(sorted(parts, key=lambda p: p.start))

    def keyed_part(self, subtask: int, handle: KeyGroupsHandle) -> KeyedPart:
        """Return where the stream of a handle is; errors name the operator."""
        try:
            stream = self._locator.resolve(handle.stream)
        except StatetoolError as error:
            raise error.at(operator=self.label) from None
        if stream is None:
            raise FormatError("keyed state without a stream").at(operator=self.label, file=self._locator.metadata_file)
        return KeyedPart(subtask=subtask, tag=handle.tag, start=handle.start, offsets=handle.offsets, stream=stream)

    @cached_property
    def native_parts(self) -> tuple[NativePart, ...]:
        """Keyed state in RocksDB databases, by subtask."""
        parts = [
            self.native_part(subtask.index, subtask.managed_keyed)
            for subtask in self.state.subtasks
            if isinstance(subtask.managed_keyed, IncrementalHandle)
        ]
        return tuple(sorted(parts, key=lambda p: p.key_groups.start))

    def native_part(self, subtask: int, handle: IncrementalHandle) -> NativePart:
        """Return where the database of a handle is; errors name the operator."""
        try:
            meta = self._stream_of(handle.meta)
            files = tuple((name, self._stream_of(s)) for name, s in (*handle.shared, *handle.private))
        except StatetoolError as error:
            raise error.at(operator=self.label) from None
        return NativePart(
            subtask=subtask,
            tag=handle.tag,
            key_groups=range(handle.start, handle.start + handle.count),
            meta=meta,
            files=DatabaseFiles(name=meta.file, files=files),
        )

    @cached_property
    def changelog_parts(self) -> tuple[ChangelogPart, ...]:
        """Keyed state of the changelog state backend, by subtask."""
        parts = [
            self._changelog_part(subtask.index, subtask.managed_keyed)
            for subtask in self.state.subtasks
            if isinstance(subtask.managed_keyed, ChangelogHandle)
        ]
        return tuple(sorted(parts, key=lambda p: p.key_groups.start))

    def _changelog_part(self, subtask: int, handle: ChangelogHandle) -> ChangelogPart:
        below: list[KeyedPart | NativePart] = []
        for part in handle.materialized:
            if isinstance(part, IncrementalHandle):
                below.append(self.native_part(subtask, part))
            elif isinstance(part, KeyGroupsHandle):
                below.append(self.keyed_part(subtask, part))
            else:
                raise FormatError(f"a handle of kind {type(part).__name__} below a change log").at(
                    operator=self.label, file=self._locator.metadata_file
                )
        try:
            with reading_with(self.types):
                changes = change_sets(handle, self._locator.resolve, self._locator.metadata_file)
        except StatetoolError as error:
            raise error.at(operator=self.label) from None
        return ChangelogPart(
            subtask=subtask,
            key_groups=range(handle.start, handle.start + handle.count),
            below=tuple(below),
            changes=changes,
        )

    @cached_property
    def operator_parts(self) -> tuple[OperatorPart, ...]:
        """Managed operator state by subtask."""
        parts = []
        for subtask in sorted(self.state.subtasks, key=lambda s: s.index):
            part = self._operator_part(subtask.index, subtask.managed_operator)
            if part is not None:
                parts.append(part)
        return tuple(parts)

    def _operator_part(self, subtask: int, handle: OperatorHandle) -> OperatorPart | None:
        if handle is None:
            return None
        stream = self._locator.resolve(handle.stream)
        if stream is None:
            return None
        return OperatorPart(subtask=subtask, offsets={s.name: s.offsets for s in handle.states}, stream=stream)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels with data in flight (unaligned checkpoints), by subtask."""
        try:
            return tuple(
                c
                for s in sorted(self.state.subtasks, key=lambda s: s.index)
                for c in channels_of(s, self._locator.resolve)
            )
        except StatetoolError as error:
            raise error.at(operator=self.label, file=self._locator.metadata_file) from None

    def _keyed_header_places(self, subtask: SubtaskState) -> Iterable[tuple[Stream, int]]:
        handle = subtask.managed_keyed
        if isinstance(handle, KeyGroupsHandle):
            stream = self._locator.resolve(handle.stream)
            if stream is not None:
                yield stream, min((o for o in handle.offsets if o > 0), default=stream.size_bytes)
        elif isinstance(handle, IncrementalHandle):
            stream = self._locator.resolve(handle.meta)
            if stream is not None:
                yield stream, stream.size_bytes

    @cached_property
    def managed_header_place(self) -> tuple[Stream, int] | None:
        """Stream and size of one header of managed keyed state."""
        return next((p for s in self.state.subtasks for p in self._keyed_header_places(s)), None)
