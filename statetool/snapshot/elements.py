"""The operator state of one operator: the ranges of its elements, and its states by name over all subtasks. Reads headers only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from statetool.entries.form import OperatorReadContext
from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.subclasses import learn_states, may_differ
from statetool.formats.metadata import OperatorState
from statetool.formats.operator_state import OperatorHeader, read_header_before, read_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.snapshot.needed_headers import needed_headers
from statetool.snapshot.unflushed_lists import (
    MOST_BYTES,
    follows_chunks,
    is_compressed_stream,
    may_be_unflushed,
    rewrite_stream,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementStream:
    """Operator state of one subtask; ``offsets`` of elements by state name."""

    subtask: int
    offsets: Mapping[str, tuple[int, ...]]
    stream: Stream

    @property
    def first(self) -> int:
        """Offset of the first element: the end of the header or, in some releases, slightly before it."""
        first = min((o for offsets in self.offsets.values() for o in offsets), default=self.stream.size_bytes)
        return min(first, self.stream.size_bytes)

    def ends(self) -> dict[int, int]:
        """Return the end offset of each element by its start offset, in stream order.

        Raises
        ------
        FormatError
            An offset is outside of the stream.
        """
        try:
            return element_ends(self.offsets, self.stream.size_bytes)
        except FormatError as error:
            raise error.at(file=self.stream.file) from None

    def ranges(self, state: str) -> tuple[tuple[int, int], ...]:
        """Return the start and end offsets of a state's elements; errors as for :meth:`ends`."""
        ends = self.ends()
        return tuple((o, ends[o]) for o in self.offsets.get(state, ()))


def element_ends(offsets: Mapping[str, tuple[int, ...]], size_bytes: int) -> dict[int, int]:
    """Return the end offset of each element of a stream by its start offset.

    Parameters
    ----------
    offsets
        Start offsets of the elements by state name.
    size_bytes
        Size of the stream.

    Raises
    ------
    FormatError
        An offset is outside of the stream.
    """
    starts = sorted({o for of_state in offsets.values() for o in of_state})
    if starts and not 0 <= starts[0] <= starts[-1] <= size_bytes:
        raise FormatError(f"an offset of operator state is outside of {size_bytes} bytes")
    return dict(pairwise([*starts, size_bytes]))


class ElementInventory:
    """The operator state of one operator."""

    def __init__(self, state: OperatorState, read_context: OperatorReadContext) -> None:
        self._state = state
        self._read_context = read_context

    @cached_property
    def streams(self) -> tuple[ElementStream, ...]:
        """The stream of each subtask that has one, with the right offsets of elements.

        Raises
        ------
        FormatError, DecodeError, UnsupportedError
            Stored offsets are wrong, and the elements cannot be decoded.
        """
        left = MOST_BYTES
        streams = []
        for stored in self._stored_streams:
            stream = self._rewrite(stored, left) if stored.subtask in self._unflushed else stored
            if stream is not stored:
                left -= stream.stream.size_bytes
            streams.append(stream)
        return tuple(streams)

    @property
    def are_unflushed(self) -> bool:
        """Whether stored offsets are wrong (:mod:`statetool.snapshot.unflushed_lists`), so that Flink cannot restore the state."""
        return bool(self._unflushed)

    @cached_property
    def _unflushed(self) -> frozenset[int]:
        """The subtasks with wrong offsets. Reads only compressed streams, and the first bytes of one of the others."""
        found = set()
        for stored in self._stored_streams:
            if not may_be_unflushed(stored.offsets):
                continue
            if not is_compressed_stream(stored.stream):
                break  # a job writes all streams with the same option
            if follows_chunks(stored.stream, stored.offsets) and not self._are_right(stored):
                found.add(stored.subtask)
        return frozenset(found)

    def _are_right(self, stored: ElementStream) -> bool:
        """Return True if the only state of a stream has elements whose sizes are multiples of a chunk, at their stored offsets."""
        if sum(map(bool, stored.offsets.values())) > 1 or any(len(set(o)) < len(o) for o in stored.offsets.values()):
            return False
        try:
            return self._rewrite(stored, MOST_BYTES) is stored
        except StatetoolError:
            return False

    def _rewrite(self, stored: ElementStream, most_bytes: int) -> ElementStream:
        try:
            header = self.header(stored)
            found = rewrite_stream(
                stored.stream, header, stored.offsets, self._read_context.types, most_bytes=most_bytes
            )
        except StatetoolError as error:
            raise error.at(operator=self._read_context.operator) from None
        return stored if found is None else replace(stored, stream=found[0], offsets=found[1])

    @cached_property
    def _stored_streams(self) -> tuple[ElementStream, ...]:
        streams = []
        for subtask in sorted(self._state.subtasks, key=lambda s: s.index):
            handle = subtask.managed_operator
            stream = None if handle is None else self._read_context.resolve(handle.stream)
            if handle is not None and stream is not None:
                offsets = {s.name: s.offsets for s in handle.states}
                streams.append(ElementStream(subtask=subtask.index, offsets=offsets, stream=stream))
        return tuple(streams)

    def header(self, elements: ElementStream) -> OperatorHeader:
        """Read the header of a stream. Errors name the file, offset and operator."""
        try:
            with elements.stream.open() as f:
                data = f.read_at(0, elements.first)
            header = read_header_before(data, self._read_context.types, base=elements.stream.start)
            if unknown := elements.offsets.keys() - {m.name for m in header.states}:
                raise FormatError(
                    f"the metadata has elements of a state {min(unknown)!r}, which their stream does not describe"
                )
            return header
        except StatetoolError as error:
            raise error.at(file=elements.stream.file, operator=self._read_context.operator) from None

    def headers(self) -> Iterator[tuple[ElementStream, OperatorHeader]]:
        """Yield each stream, as it is stored, with its header, except streams whose states were all read from earlier streams."""
        read_names: set[tuple[str, ...]] = set()
        described: set[str] = set()
        for elements in self._stored_streams:
            names = tuple(elements.offsets)
            if names in read_names and described.issuperset(names):
                continue
            read_names.add(names)
            header = self.header(elements)
            described |= {m.name for m in header.states}
            yield elements, header

    @cached_property
    def states(self) -> Mapping[str, StateMetaInfo]:
        """States by name."""
        states: dict[str, StateMetaInfo] = {}
        for _, header in self.headers():
            for meta in header.states:
                states.setdefault(meta.name, meta)
        if may_differ(states.values()):
            for raw, base in self.descriptions:
                learn_states(states.values(), self._parse(raw, base).states)
        return states

    def _parse(self, raw: bytes, base: int) -> OperatorHeader:
        return read_operator_header(Cursor(raw, base=base), self._read_context.types, end=len(raw))

    def undescribed_in(self, other: Mapping[bytes, int]) -> tuple[tuple[bytes, int], ...]:
        """Return the headers of another snapshot (bytes and offset) with subclasses that this snapshot does not describe."""
        states = [meta for _, header in self.headers() for meta in header.states]
        for raw, base in self.descriptions:
            learn_states(states, self._parse(raw, base).states)
        return tuple((raw, base) for raw, base in other.items() if learn_states(states, self._parse(raw, base).states))

    @cached_property
    def _by_header(self) -> dict[bytes, ElementStream]:
        """The first stream with each distinct header (and the bytes between header and elements)."""
        by_header: dict[bytes, ElementStream] = {}
        for elements in self._stored_streams:
            with elements.stream.open() as f:
                by_header.setdefault(bytes(f.read_at(0, elements.first)), elements)
        return by_header

    @cached_property
    def stored_headers(self) -> Mapping[bytes, int]:
        """The distinct headers, each with its offset in the file."""
        return {
            raw[: self.header(elements).size_bytes]: elements.stream.start for raw, elements in self._by_header.items()
        }

    @cached_property
    def descriptions(self) -> tuple[tuple[bytes, int], ...]:
        """Headers (bytes and offset) that together describe all subclasses of POJOs. Empty if all headers agree.

        Headers learned from another snapshot come last: what the snapshot itself describes takes precedence.
        """
        by_header = self._by_header
        needed = needed_headers(
            list(by_header),
            lambda raw: self.header(by_header[raw]),
            lambda mine, other: learn_states(mine.states, other.states),
        )
        sizes = {raw: self.header(by_header[raw]).size_bytes for raw in needed}
        own = tuple((raw[: sizes[raw]], by_header[raw].stream.start) for raw in needed)
        return (*own, *self._read_context.learned_elements)
