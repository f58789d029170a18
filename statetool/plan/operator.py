"""One operator of a snapshot: its states and types, where their bytes are.

Read from the metadata and the first bytes of streams only; needs neither numpy, Arrow nor Spark.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import cached_property

from statetool.errors import FormatError, OptionError, StatetoolError, UnknownNameError, UnknownSerializerError, suggest
from statetool.formats.channel_state import Channel, InFlightRow, channels_of, in_flight_row
from statetool.formats.described import learn_states, may_differ
from statetool.formats.keyed.change_sets import writes_alike
from statetool.formats.keyed.database_files import DatabaseFiles
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.keyed.raw_timers import is_versioned, read_raw_header
from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.metadata.handles import (
    ChangelogHandle,
    IncrementalHandle,
    KeyGroupsHandle,
    OperatorHandle,
    StreamHandle,
)
from statetool.formats.naming import check_columns, named_header, named_state
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.plan.changelog import change_sets, found_key_type, header_of, states_of, told_key_type
from statetool.plan.described import needed_headers
from statetool.plan.locate import Locator
from statetool.plan.parts import ChangelogPart, KeyedPart, NativePart, OperatorPart, RawPart, raw_group_sizes
from statetool.plan.rows import (
    FileRow,
    KeyGroupRow,
    OperatorRow,
    StateInfo,
    file_rows,
    key_group_rows,
    operator_row,
    state_info,
)
from statetool.serializers.base import Serializer
from statetool.serializers.context import reading_with
from statetool.serializers.opaque import OpaqueSerializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.options import Columns


class OperatorInventory:
    """One operator of a snapshot."""

    def __init__(
        self,
        state: OperatorState,
        uid: str,
        locator: Locator,
        given_key: Serializer | None = None,
        types: TypeContext = NOTHING_DECLARED,
    ) -> None:
        self.state = state
        self.uid = uid
        self._locator = locator
        self._given_key = given_key
        #: Why the keys of a change log cannot be read; known once its headers are.
        self.key_error: UnknownSerializerError | None = None
        #: Whether the type of the keys was found by their key groups; known once the headers are.
        self.key_found = False
        #: What is known of its types from outside of the snapshot.
        self.types = types

    @property
    def label(self) -> str:
        """The uid, or the operator id where no uid is known."""
        return self.uid or self.state.operator_id

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

    def header_below(self, part: KeyedPart | NativePart) -> KeyedHeader:
        """Read the header of what a change log stands on."""
        return self.native_header(part) if isinstance(part, NativePart) else self.keyed_header(part)

    @cached_property
    def changelog_headers(self) -> Mapping[int, KeyedHeader]:
        """By subtask, the header of all states of its change log and of what lies below it.

        Where nothing tells the type of the keys, it is one that cannot be read.
        """
        try:
            below = {p.subtask: [self.header_below(b) for b in p.below] for p in self.changelog_parts}
            with reading_with(self.types):
                states = {p.subtask: states_of(below[p.subtask], p.changes) for p in self.changelog_parts}
            key = told_key_type(
                [h for some in below.values() for h in some], [m for some in states.values() for m in some]
            )
            key = self._agreed_key(key)
        except StatetoolError as error:
            raise error.at(operator=self.label) from None
        return {subtask: header_of(some, key) for subtask, some in states.items()}

    def _agreed_key(self, told: Serializer | None) -> Serializer:
        """Return the type of the keys: told by the snapshot, given by the user, or found by the keys' key groups."""
        if told is not None and self._given_key is not None and not writes_alike(told, self._given_key):
            raise OptionError(
                f"key_types says {self._given_key.type_name}, the snapshot says {told.type_name}",
                hint="leave the operator out of key_types",
            )
        if told is not None:
            return told
        if self._given_key is not None:
            return self._given_key
        try:
            found = found_key_type([p.changes for p in self.changelog_parts], self.state.max_parallelism)
        except UnknownSerializerError as error:
            self.key_error = error.at(operator=self.label)
            return OpaqueSerializer(b"", error.message)
        self.key_found = True
        return found

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
    def raw_parts(self) -> tuple[RawPart, ...]:
        """Raw keyed state that timers are kept in, by subtask; parts without a timer service are left out."""
        parts = []
        for subtask in self.state.subtasks:
            handle = subtask.raw_keyed
            if not isinstance(handle, KeyGroupsHandle):
                continue
            stream = self._stream_of(handle.stream)
            groups = tuple(raw_group_sizes(handle.start, handle.offsets, stream))
            part = RawPart(subtask=subtask.index, groups=groups, stream=stream)
            if groups and self.raw_header(part) is not None:
                parts.append(part)
        return tuple(parts)

    @cached_property
    def own_raw_subtasks(self) -> tuple[int, ...]:
        """Subtasks whose raw keyed state is no timers: only the operator's own code knows what it is."""
        with_timers = {p.subtask for p in self.raw_parts}
        found = []
        for subtask in self.state.subtasks:
            handle = subtask.raw_keyed
            if not isinstance(handle, KeyGroupsHandle) or subtask.index in with_timers:
                continue
            stream = self._stream_of(handle.stream)
            for _, offset, size in raw_group_sizes(handle.start, handle.offsets, stream)[:1]:
                with stream.open() as f:
                    region = f.read_at(offset, size)
                    # Four zero bytes: no timer service, as Flink up to 1.3 wrote it.
                    if not is_versioned(region) and bytes(region) != bytes(4):
                        found.append(subtask.index)
        return tuple(found)

    def raw_header(self, part: RawPart) -> KeyedHeader | None:
        """Read which timers a part holds, ``None`` where they are none or it is the operator's own raw state."""
        _, offset, size = min(part.groups, key=lambda g: g[2])  # all name the same services
        place = self.managed_header_place
        known = self._read_keyed(*place).key if place is not None else None
        with part.stream.open() as f:
            region = f.read_at(offset, size)
            try:
                with reading_with(self.types):
                    return read_raw_header(region, base=part.stream.start + offset, key=known)
            except FormatError as error:
                if not is_versioned(region):
                    return None
                raise error.at(file=part.stream.file, operator=self.label) from None

    @cached_property
    def managed_header_place(self) -> tuple[Stream, int] | None:
        """Stream and size of one header of managed keyed state."""
        return next((p for s in self.state.subtasks for p in self._keyed_header_places(s)), None)

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

    def keyed_header(self, part: KeyedPart) -> KeyedHeader:
        """Read the header of a keyed part; errors name file, offset and operator."""
        end = min((o for o in part.offsets if o > 0), default=None)
        return self._read_keyed(part.stream, part.stream.size_bytes if end is None else end)

    def native_header(self, part: NativePart) -> KeyedHeader:
        """Read the header of a database; errors name file, offset and operator."""
        return self._read_keyed(part.meta, part.meta.size_bytes)

    def _read_keyed(self, stream: Stream, end: int) -> KeyedHeader:
        try:
            with stream.open() as f, reading_with(self.types):
                return read_keyed_header(Cursor(f.read_at(0, end), base=stream.start), end=end)
        except StatetoolError as error:
            raise error.at(file=stream.file, operator=self.label) from None

    def operator_header(self, part: OperatorPart) -> OperatorHeader:
        """Read the header of an operator part; errors name file, offset and operator."""
        first = self._operator_header_end(part)
        try:
            with part.stream.open() as f:
                data = f.read_at(0, min(first, part.stream.size_bytes))
            # Headers before Flink 1.5 are followed by a count, compressed data by the head of its stream:
            # neither belongs to the header, so its end is only known otherwise.
            exact = int.from_bytes(data[:4], "big") in (3, 4, 5) or bytes(data[:5]) == b"\0\0\0\6\0"
            with reading_with(self.types):
                return read_operator_header(
                    Cursor(data, base=part.stream.start), end=len(data) if exact and first == len(data) else None
                )
        except StatetoolError as error:
            raise error.at(file=part.stream.file, operator=self.label) from None

    @staticmethod
    def _operator_header_end(part: OperatorPart) -> int:
        """Return where the first element is: the header ends there or, in some releases, a little before."""
        return min((o for offsets in part.offsets.values() for o in offsets), default=part.stream.size_bytes)

    @cached_property
    def keyed_states(self) -> Mapping[str, tuple[KeyedHeader, StateMeta]]:
        """Keyed states (and timers) by name, with the header of the first subtask that has each."""
        found: dict[str, tuple[KeyedHeader, StateMeta]] = {}
        for header in self._keyed_headers():
            for raw, base in self.descriptions:
                learn_header(header, read_keyed_header(Cursor(raw, base=base), end=len(raw)))
            for meta in header.states:
                found.setdefault(meta.name, (header, meta))
        return found

    @cached_property
    def descriptions(self) -> tuple[tuple[bytes, int], ...]:
        """Headers (bytes and offset) that together describe all subclasses of POJOs; none where all subtasks agree."""
        places = {raw: (stream, end) for raw, stream, end in self._distinct_headers}
        logged = {write_keyed_header(h): h for h in self.changelog_headers.values()}

        def parse(raw: bytes) -> KeyedHeader:
            if raw in places:
                return self._read_keyed(*places[raw])
            with reading_with(self.types):
                return read_keyed_header(Cursor(raw))

        needed = needed_headers([*places, *logged], parse, learn_header)
        return tuple((raw, places[raw][0].start if raw in places else 0) for raw in needed)

    @cached_property
    def _distinct_headers(self) -> list[tuple[bytes, Stream, int]]:
        seen: dict[bytes, tuple[bytes, Stream, int]] = {}
        for subtask in self.state.subtasks:
            for stream, end in self._keyed_header_places(subtask):
                with stream.open() as f:
                    raw = bytes(f.read_at(0, min(end, stream.size_bytes)))
                seen.setdefault(raw, (raw, stream, end))
        return list(seen.values())

    def _keyed_headers(self) -> Iterable[KeyedHeader]:
        yield from self.changelog_headers.values()
        for _, stream, end in self._distinct_headers:
            yield self._read_keyed(stream, end)
        for part in self.raw_parts:
            header = self.raw_header(part)
            if header is not None:
                yield header

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

    def key_serializer(self) -> Serializer:
        """Return the serializer of the keys.

        Raises
        ------
        OptionError
            The operator has no keyed state.
        """
        for header, _ in self.keyed_states.values():
            return header.key
        raise OptionError(f"operator {self.label!r} has no keyed state, and so no type of keys")

    def value_serializer(self, name: str) -> Serializer:
        """Return the serializer of a state's values, of its elements where it is a list.

        Raises
        ------
        UnknownNameError
            The operator has no such state.
        """
        keyed, others = self.keyed_states, self.operator_states
        if name in keyed:
            meta = keyed[name][1]
            return meta.parts[0] if meta.kind == "list" and meta.parts else meta.value
        if name in others:
            return others[name].value
        raise UnknownNameError(f"operator {self.label!r} has no state {name!r}", hint=suggest(name, [*keyed, *others]))

    @cached_property
    def operator_states(self) -> Mapping[str, StateMeta]:
        """Operator states by name."""
        found: dict[str, StateMeta] = {}
        seen: set[tuple[str, ...]] = set()
        for part in self.operator_parts:
            names = tuple(part.offsets)
            if names in seen and all(n in found for n in names):
                continue
            seen.add(names)
            for meta in self.operator_header(part).states:
                found.setdefault(meta.name, meta)
        if may_differ(found.values()):
            with reading_with(self.types):
                for raw, base in self.operator_descriptions:
                    learn_states(found.values(), read_operator_header(Cursor(raw, base=base), end=len(raw)).states)
        return found

    @cached_property
    def operator_descriptions(self) -> tuple[tuple[bytes, int], ...]:
        """Headers of operator state (bytes and offset) that together describe all subclasses of POJOs; none where all agree."""
        parts: dict[bytes, OperatorPart] = {}
        for part in self.operator_parts:
            with part.stream.open() as f:
                end = min(self._operator_header_end(part), part.stream.size_bytes)
                parts.setdefault(bytes(f.read_at(0, end)), part)
        needed = needed_headers(
            list(parts),
            lambda raw: self.operator_header(parts[raw]),
            lambda mine, other: learn_states(mine.states, other.states),
        )
        sizes = {raw: self.operator_header(parts[raw]).size_bytes for raw in needed}
        return tuple((raw[: sizes[raw]], parts[raw].stream.start) for raw in needed)

    def with_columns(self, columns: Columns) -> OperatorInventory:
        """Return the operator with names for the fields of rows.

        Raises
        ------
        OptionError
            A path that leads to no row, or other than one name a field.
        """
        if not columns:
            return self
        named = copy.copy(self)
        check_columns(columns, [*self.keyed_states, *self.operator_states])
        headers = {id(h): named_header(h, columns) for h, _ in self.keyed_states.values()}
        keyed: dict[str, tuple[KeyedHeader, StateMeta]] = {}
        for name, (header, _) in self.keyed_states.items():
            header = headers[id(header)]
            keyed[name] = header, next(m for m in header.states if m.name == name)
        elements = dict(self.operator_states)
        for path, names in columns:
            elements = {n: named_state(m, path, names) for n, m in elements.items()}
        named.__dict__.update(keyed_states=keyed, operator_states=elements)
        return named

    @cached_property
    def states(self) -> tuple[StateInfo, ...]:
        """All states, keyed first; what cannot be read says why."""
        infos = [state_info(self, meta, "keyed", header.key) for header, meta in self.keyed_states.values()]
        infos += [state_info(self, meta, "operator", None) for meta in self.operator_states.values()]
        if self.own_raw_subtasks:
            infos.append(
                StateInfo(
                    operator=self.label,
                    name="(raw keyed state)",
                    scope="keyed",
                    kind="raw",
                    key_type=None,
                    namespace_type=None,
                    value_type="bytes",
                    ttl=False,
                    readable=False,
                    reason="written by the operator itself, and no timers",
                )
            )
        return tuple(infos)

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

    def in_flight_rows(self) -> list[InFlightRow]:
        """Every channel with data in flight; counts are of whole stream elements, as far as they can be told.

        Raises
        ------
        FormatError
            Buffers that do not lie where the metadata says, or that hold no records.
        """
        return [in_flight_row(c, self.label) for c in self.channels]

    def file_rows(self) -> list[FileRow]:
        """Every piece of state and where it lies."""
        return file_rows(self)

    def key_group_rows(self) -> list[KeyGroupRow]:
        """Every key group; in RocksDB's files only their numbers are known."""
        return key_group_rows(self)

    def row(self) -> OperatorRow:
        """Return the operator as a row."""
        return operator_row(self)
