"""The operator state of one operator: where its elements lie, and its states by name over all subtasks. Reads headers only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from statetool.entries.form import Surroundings
from statetool.errors import FormatError, StatetoolError
from statetool.formats.metadata import OperatorState
from statetool.formats.operator_state import OperatorHeader, read_header_before, read_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import Stream
from statetool.formats.subclasses import learn_states, may_differ
from statetool.io.cursor import Cursor
from statetool.snapshot.needed_headers import needed_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementStream:
    """Operator state of one subtask; ``offsets`` of elements by state name."""

    subtask: int
    offsets: Mapping[str, tuple[int, ...]]
    stream: Stream

    @property
    def first(self) -> int:
        """Where the first element is: the header ends there or, in some releases, a little before."""
        first = min((o for offsets in self.offsets.values() for o in offsets), default=self.stream.size_bytes)
        return min(first, self.stream.size_bytes)

    def ends(self) -> dict[int, int]:
        """Return where the element ends that starts at each offset, in the order of the stream.

        Raises
        ------
        FormatError
            An offset outside of the stream.
        """
        starts = sorted({o for offsets in self.offsets.values() for o in offsets})
        if starts and not 0 <= starts[0] <= starts[-1] <= self.stream.size_bytes:
            raise FormatError(f"an offset of operator state is outside of {self.stream.size_bytes} bytes").at(
                file=self.stream.file
            )
        return dict(pairwise([*starts, self.stream.size_bytes]))

    def ranges(self, state: str) -> tuple[tuple[int, int], ...]:
        """Return where the elements of a state start and end; errors as those of :meth:`ends`."""
        ends = self.ends()
        return tuple((o, ends[o]) for o in self.offsets.get(state, ()))


class ElementInventory:
    """The operator state of one operator."""

    def __init__(self, state: OperatorState, around: Surroundings) -> None:
        self._state = state
        self._around = around

    @cached_property
    def streams(self) -> tuple[ElementStream, ...]:
        """The stream of each subtask that has one."""
        found = []
        for subtask in sorted(self._state.subtasks, key=lambda s: s.index):
            handle = subtask.managed_operator
            stream = None if handle is None else self._around.resolve(handle.stream)
            if handle is not None and stream is not None:
                offsets = {s.name: s.offsets for s in handle.states}
                found.append(ElementStream(subtask=subtask.index, offsets=offsets, stream=stream))
        return tuple(found)

    def header(self, part: ElementStream) -> OperatorHeader:
        """Read the header of a stream; errors name file, offset and operator."""
        try:
            with part.stream.open() as f:
                data = f.read_at(0, part.first)
            header = read_header_before(data, self._around.types, base=part.stream.start)
            if unknown := part.offsets.keys() - {m.name for m in header.states}:
                raise FormatError(
                    f"the metadata has elements of a state {min(unknown)!r}, which their stream does not describe"
                )
            return header
        except StatetoolError as error:
            raise error.at(file=part.stream.file, operator=self._around.operator) from None

    def headers(self) -> Iterator[tuple[ElementStream, OperatorHeader]]:
        """Read the headers of streams that have other states than those before."""
        seen: set[tuple[str, ...]] = set()
        known: set[str] = set()
        for part in self.streams:
            names = tuple(part.offsets)
            if names in seen and known.issuperset(names):
                continue
            seen.add(names)
            header = self.header(part)
            known |= {m.name for m in header.states}
            yield part, header

    @cached_property
    def states(self) -> Mapping[str, StateMeta]:
        """States by name."""
        found: dict[str, StateMeta] = {}
        for _, header in self.headers():
            for meta in header.states:
                found.setdefault(meta.name, meta)
        if may_differ(found.values()):
            for raw, base in self.descriptions:
                other = read_operator_header(Cursor(raw, base=base), self._around.types, end=len(raw))
                learn_states(found.values(), other.states)
        return found

    @cached_property
    def descriptions(self) -> tuple[tuple[bytes, int], ...]:
        """Headers (bytes and offset) that together describe all subclasses of POJOs; none where all agree."""
        parts: dict[bytes, ElementStream] = {}
        for part in self.streams:
            with part.stream.open() as f:
                parts.setdefault(bytes(f.read_at(0, part.first)), part)
        needed = needed_headers(
            list(parts),
            lambda raw: self.header(parts[raw]),
            lambda mine, other: learn_states(mine.states, other.states),
        )
        sizes = {raw: self.header(parts[raw]).size_bytes for raw in needed}
        return tuple((raw[: sizes[raw]], parts[raw].stream.start) for raw in needed)
