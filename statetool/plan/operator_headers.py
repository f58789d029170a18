"""The headers of an operator's streams: the first bytes of each, which describe its states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from statetool.errors import FormatError, OptionError, StatetoolError, UnknownSerializerError
from statetool.formats.described import learn_states
from statetool.formats.keyed.change_sets import writes_alike
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.keyed.raw_timers import is_versioned, read_raw_header
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.plan.changelog import found_key_type, header_of, states_of, told_key_type
from statetool.plan.described import needed_headers
from statetool.plan.locate import Locator
from statetool.plan.operator_parts import OperatorParts
from statetool.plan.parts import KeyedPart, NativePart, OperatorPart, RawPart, raw_group_sizes
from statetool.serializers.base import Serializer
from statetool.serializers.context import reading_with
from statetool.serializers.opaque import OpaqueSerializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext


class OperatorHeaders(OperatorParts):
    """What the streams of an operator say of themselves.

    Parameters
    ----------
    given_key
        The type of the keys, where the user says it.
    """

    def __init__(
        self,
        state: OperatorState,
        uid: str,
        locator: Locator,
        given_key: Serializer | None = None,
        types: TypeContext = NOTHING_DECLARED,
    ) -> None:
        super().__init__(state, uid, locator, types)
        self._given_key = given_key
        #: Why the keys of a change log cannot be read; known once its headers are.
        self.key_error: UnknownSerializerError | None = None
        #: Whether the type of the keys was found by their key groups; known once the headers are.
        self.key_found = False

    def keyed_header(self, part: KeyedPart) -> KeyedHeader:
        """Read the header of a keyed part; errors name file, offset and operator."""
        end = min((o for o in part.offsets if o > 0), default=None)
        return self._read_keyed(part.stream, part.stream.size_bytes if end is None else end)

    def native_header(self, part: NativePart) -> KeyedHeader:
        """Read the header of a database; errors name file, offset and operator."""
        return self._read_keyed(part.meta, part.meta.size_bytes)

    def header_below(self, part: KeyedPart | NativePart) -> KeyedHeader:
        """Read the header of what a change log stands on."""
        return self.native_header(part) if isinstance(part, NativePart) else self.keyed_header(part)

    def _read_keyed(self, stream: Stream, end: int) -> KeyedHeader:
        try:
            with stream.open() as f, reading_with(self.types):
                return read_keyed_header(Cursor(f.read_at(0, end), base=stream.start), end=end)
        except StatetoolError as error:
            raise error.at(file=stream.file, operator=self.label) from None

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

    def _keyed_headers(self) -> Iterable[KeyedHeader]:
        yield from self.changelog_headers.values()
        for _, stream, end in self._distinct_headers:
            yield self._read_keyed(stream, end)
        for part in self.raw_parts:
            header = self.raw_header(part)
            if header is not None:
                yield header

    @cached_property
    def _distinct_headers(self) -> list[tuple[bytes, Stream, int]]:
        seen: dict[bytes, tuple[bytes, Stream, int]] = {}
        for subtask in self.state.subtasks:
            for stream, end in self._keyed_header_places(subtask):
                with stream.open() as f:
                    raw = bytes(f.read_at(0, min(end, stream.size_bytes)))
                seen.setdefault(raw, (raw, stream, end))
        return list(seen.values())

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
