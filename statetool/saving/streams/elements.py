"""Operator state of one operator: elements from the base and from tables, and the new streams.

Elements of the base are copied without decoding, because offsets mark their ends. Follows ``DefaultOperatorStateBackendSnapshotStrategy``
and ``RoundRobinOperatorStateRepartitioner``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import ClassVar, Final

import numpy as np

from statetool.columns.pieces import Ranges, pack
from statetool.entries.joined_headers import meta_bytes
from statetool.errors import EncodeError, StatetoolError, UnsupportedError
from statetool.formats.compression import FrameWriter, stream_chunks
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.subclasses import learn_states
from statetool.formats.metadata.handles import MODES, OperatorStreamHandle, StatePartitions
from statetool.formats.operator_state import OperatorHeader, read_operator_header, write_operator_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Int64s
from statetool.saving.publish import INLINE_BYTES, Staging
from statetool.saving.streams.conversion import StateConversion
from statetool.saving.streams.keyed import key_to_text
from statetool.saving.streams.output import NewStream, StreamOutput
from statetool.saving.streams.runs import Segments, order_of_keys
from statetool.snapshot.elements import ElementStream
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED, TypeContext

#: Versions of the header: readable by Flink since 1.7, and since 1.18.
_PLAIN: Final = 5
_COMPRESSIBLE: Final = 6
_COPY_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedElements:
    """Elements of one state in one stream of the base: the range of each, and their conversion, if any."""

    state: int
    stream: Stream
    compressed: bool
    ranges: tuple[tuple[int, int], ...]
    conversion: StateConversion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementStreams:
    """New operator state streams of one operator; picklable.

    Attributes
    ----------
    header
        Bytes of their header.
    subtasks
        The subtasks that get a stream.
    kept
        Elements from the base, by new subtask.
    from_tables
        Ids of the states whose elements come from tables.
    """

    operator: str
    header: bytes
    subtasks: tuple[int, ...]
    inline_bytes: int
    kept: Mapping[int, tuple[CarriedElements, ...]]
    from_tables: frozenset[int] = frozenset()
    types: TypeContext = NOTHING_DECLARED

    #: Bytes of the subtask before each key while elements travel.
    prefix: ClassVar[int] = 2

    @property
    def parsed(self) -> OperatorHeader:
        """The parsed header."""
        return parse_operator_header(self.header, self.types)

    @property
    def kept_bytes(self) -> dict[int, int]:
        """Bytes of the elements that are not shuffled to a subtask, by the subtasks that have such elements."""
        ranges = {n: [r for kept in self.kept.get(n, ()) for r in kept.ranges] for n in self.subtasks}
        return {n: sum(end - start for start, end in of_subtask) for n, of_subtask in ranges.items() if of_subtask}

    def numbers(self, subtask: int) -> range:
        """Return the subtask, which is used in place of its key groups."""
        return range(subtask, subtask + 1)

    def owners(self, groups: Int64s) -> Int64s:
        """Return the subtask of each entry: subtasks are used in place of key groups."""
        return groups

    def write(self, subtask: int, portions: Iterable[Segments], staging: Staging, memory_bytes: int) -> NewStream:
        """Write the stream of one subtask from its elements of the base and those shuffled to it.

        Parameters
        ----------
        portions
            Portions in order.

        Raises
        ------
        EncodeError
            Two entries of a broadcast state have the same key.
        FormatError
            Damaged bytes.
        """
        header = self.parsed
        try:
            with StreamOutput(staging, "operator", inline_bytes=self.inline_bytes) as out:
                writer = _Writer(out, self.header, header)
                for kept in self.kept.get(subtask, ()):
                    writer.copy(kept)
                self._add(
                    writer, header, (s.load().entries(self.prefix) for segments in portions for s in segments.cut(1))
                )
        except StatetoolError as error:
            raise error.at(operator=self.operator) from error.__cause__
        states = tuple(
            StatePartitions(name=m.name, mode=MODES.index(m.options["OPERATOR_STATE_DISTRIBUTION_MODE"]), offsets=at)
            for m, at in zip(header.states, writer.offsets, strict=True)
        )
        return NewStream(
            subtask=subtask, handle=OperatorStreamHandle(states=states, stream=out.handle()), files=out.files
        )

    def _add(self, writer: _Writer, header: OperatorHeader, batches: Iterator[EntryBatch]) -> None:
        """Append the elements of tables. A broadcast state is one element and is kept in memory, as in Flink."""
        entries: dict[int, list[EntryBatch]] = {
            i: [] for i in sorted(self.from_tables) if header.states[i].kind == "broadcast"
        }
        for batch in batches:
            for state in np.unique(batch.state).tolist():
                if state in entries:
                    entries[state].append(batch.of_state(state))
                else:
                    writer.elements(state, batch.of_state(state))
        for state, own in entries.items():
            writer.element(state, self._map(header.states[state], concat(own)) if own else [bytes(4)])

    def _map(self, meta: StateMetaInfo, batch: EntryBatch) -> Iterator[bytes]:
        order, twin = order_of_keys(batch)
        if twin is not None:
            text = key_to_text(meta.serializers["KEY_SERIALIZER"], _bytes(batch, batch.key, batch.key_end, twin))
            hint = "aggregate the input so that each key comes once"
            raise EncodeError(f"key {text} occurs twice", hint=hint).at(state=meta.name)
        yield len(batch).to_bytes(4, "big")
        for i in order.tolist():
            yield _bytes(batch, batch.key, batch.key_end, i)
            yield _bytes(batch, batch.value, batch.value_end, i)


def _bytes(batch: EntryBatch, start: Int64s, end: Int64s, i: int) -> bytes:
    return batch.data[start[i] : end[i]].tobytes()


class _Writer:
    """Writer of elements to a stream; in a compressed stream, each element is a sequence of complete chunks."""

    def __init__(self, out: StreamOutput, raw: bytes, header: OperatorHeader) -> None:
        self.out = out
        out.write(raw)
        self.framed = FrameWriter(out.write) if header.compressed else None
        self._offsets: list[list[Int64s]] = [[] for _ in header.states]

    @property
    def offsets(self) -> list[tuple[int, ...]]:
        """Offsets of the elements of each state."""
        return [tuple(o for array in arrays for o in array.tolist()) for arrays in self._offsets]

    def element(self, state: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Append an element given in pieces."""
        self._offsets[state].append(np.array([self.out.size_bytes]))
        write = self.out.write if self.framed is None else self.framed.write
        for piece in pieces:
            write(piece)
        if self.framed is not None:
            self.framed.flush()

    def elements(self, state: int, batch: EntryBatch) -> None:
        """Append the values of a batch, one element per value."""
        if self.framed is None:
            encoded = pack(Ranges(batch.data, batch.value, batch.value_end - batch.value))
            self._offsets[state].append(self.out.size_bytes + encoded.offsets[:-1])
            self.out.write(encoded.data.data)
            return
        for i in range(len(batch)):
            self.element(state, [_bytes(batch, batch.value, batch.value_end, i)])

    def copy(self, kept: CarriedElements) -> None:
        """Append elements of the base."""
        try:
            with kept.stream.open() as f:
                elements = (_plain(f, start, end, compressed=kept.compressed) for start, end in kept.ranges)
                for pieces in elements if kept.conversion is None else convert_elements(kept.conversion, elements):
                    self.element(kept.state, pieces)
        except StatetoolError as error:
            raise error.at(file=kept.stream.file) from None


def _plain(f: OpenStream, start: int, end: int, *, compressed: bool) -> Iterator[bytes | memoryview]:
    """Read an element in pieces, uncompressed."""
    if not compressed:
        for at in range(start, end, _COPY_BYTES):
            yield f.read_at(at, min(_COPY_BYTES, end - at))
    elif start < end:
        for chunk in stream_chunks(lambda at, n: f.read_at(start + at, n), end - start, base=f.stream.start + start):
            yield chunk.data


def convert_elements(
    conversion: StateConversion, elements: Iterable[Iterable[bytes | memoryview]]
) -> Iterator[list[bytes | memoryview]]:
    """Convert elements, a few megabytes at a time."""
    pending: list[bytes] = []
    size = 0
    for pieces in elements:
        pending.append(b"".join(pieces))
        size += len(pending[-1])
        if size > _COPY_BYTES:
            yield from _convert_together(conversion, pending)
            pending, size = [], 0
    yield from _convert_together(conversion, pending)


def _convert_together(conversion: StateConversion, pending: Sequence[bytes]) -> Iterator[list[bytes | memoryview]]:
    if pending:
        ends = np.cumsum([len(element) for element in pending])
        data = np.frombuffer(b"".join(pending), dtype=np.uint8)
        converted = conversion.elements(data, np.concatenate([[0], ends[:-1]]), ends)
        for i in range(len(converted)):
            yield [converted.value(i)]


def element_streams(
    operator: OperatorInventory | None,
    tables: Sequence[StateMetaInfo] = (),
    *,
    label: str,
    parallelism: int,
    without: Collection[str] = (),
    renames: Mapping[str, str] = MappingProxyType({}),
    new_elements: Mapping[str, Mapping[int, tuple[bytes, ...]]] = MappingProxyType({}),
    conversions: Mapping[str, StateConversion] = MappingProxyType({}),
    inline_bytes: int = INLINE_BYTES,
    types: TypeContext = NOTHING_DECLARED,
) -> ElementStreams | None:
    """Describe the new operator state streams of an operator; ``None`` if no state is left.

    Parameters
    ----------
    operator, tables
        The operator of the base, if any, and the states that come from tables.
    without, renames, new_elements, conversions
        Changes to states of the base, as in :class:`~statetool.saving.composition.OperatorChange`.

    Raises
    ------
    UnsupportedError, FormatError
        Two subtasks have different metadata for a state, or an offset is outside its stream.
    """
    streams = () if operator is None else operator.elements.streams
    headers = [] if operator is None else [operator.elements.header(p) for p in streams]
    old = _join_headers(headers, without)
    # On the wire, broadcast states follow all others, and ids are indexes there.
    converted = (conversions[m.name].meta if m.name in conversions else m for m in old)
    metas = [*(replace(m, name=renames.get(m.name, m.name)) for m in converted), *tables]
    metas.sort(key=lambda m: m.kind == "broadcast")
    if not metas:
        return None
    ids = {m.name: i for i, m in enumerate(metas)}
    compressed = any(h.compressed for h in headers)
    version = _COMPRESSIBLE if compressed else _PLAIN
    header = OperatorHeader(version=version, compressed=compressed, states=tuple(metas), size_bytes=0)
    shrinks = any(p.subtask >= parallelism for p in streams)
    grows = operator is not None and parallelism > operator.state.parallelism
    given = {subtask for of_state in new_elements.values() for subtask in of_state} - {p.subtask for p in streams}
    subtasks = tuple(range(parallelism) if tables or given or shrinks or grows else (p.subtask for p in streams))
    kept: dict[int, tuple[CarriedElements, ...]] = {}
    for meta in old:
        state = ids[renames.get(meta.name, meta.name)]
        stored = _stored_elements(state, meta.name, zip(streams, headers, strict=True))
        if meta.name in new_elements:
            stored = [(subtask, _in_memory(state, data)) for subtask, data in new_elements[meta.name].items() if data]
        for subtask, elements in _deal_to_subtasks(meta.kind, stored, subtasks, shrinks=shrinks):
            kept[subtask] = (*kept.get(subtask, ()), replace(elements, conversion=conversions.get(meta.name)))
    return ElementStreams(
        operator=label,
        header=write_operator_header(header, version=version),
        subtasks=subtasks,
        inline_bytes=inline_bytes,
        kept=kept,
        from_tables=frozenset(ids[m.name] for m in tables),
        types=types,
    )


def _stored_elements(
    state: int, name: str, streams: Iterable[tuple[ElementStream, OperatorHeader]]
) -> list[tuple[int, CarriedElements]]:
    """Return the elements of a state in each stream, with the subtask."""
    return [
        (p.subtask, CarriedElements(state=state, stream=p.stream, compressed=h.compressed, ranges=ranges))
        for p, h in streams
        if (ranges := p.ranges(name))
    ]


def _in_memory(state: int, elements: Sequence[bytes]) -> CarriedElements:
    """Return elements in a new stream, one after another."""
    ends = list(accumulate(map(len, elements), initial=0))
    stream = Stream(file="(given)", start=0, size_bytes=ends[-1], inline=b"".join(elements))
    return CarriedElements(state=state, stream=stream, compressed=False, ranges=tuple(pairwise(ends)))


def _join_headers(headers: Sequence[OperatorHeader], without: Collection[str]) -> list[StateMetaInfo]:
    """Return the states of all subtasks except those to drop."""
    for other in headers:
        for header in headers:
            learn_states(header.states, other.states)
    metas: dict[str, StateMetaInfo] = {}
    described: dict[str, bytes] = {}
    for meta in (m for h in headers for m in h.states if m.name not in without):
        metas.setdefault(meta.name, meta)
        raw = meta_bytes(meta)
        if described.setdefault(meta.name, raw) != raw:
            raise UnsupportedError("two subtasks describe this operator state differently").at(state=meta.name)
    return list(metas.values())


def _deal_to_subtasks(
    kind: str, stored: Sequence[tuple[int, CarriedElements]], subtasks: Sequence[int], *, shrinks: bool
) -> Iterator[tuple[int, CarriedElements]]:
    """Yield the elements of one state with their new subtask; ``stored`` has them with their old one."""
    if kind == "broadcast":
        # Every subtask gets a copy, including new ones: Flink before 1.14 restores nothing in a subtask without a copy.
        own = dict(stored)
        yield from ((i, own.get(i, stored[0][1])) for i in (subtasks if stored else ()))
    elif kind == "list" and shrinks:
        # Evenly, like Flink: the first subtasks get one element more.
        share, extra = divmod(sum(len(elements.ranges) for _, elements in stored), len(subtasks))
        subtask, room = 0, share + (extra > 0)
        for _, elements in stored:
            ranges = elements.ranges
            while ranges:
                if not room:
                    subtask += 1
                    room = share + (subtask < extra)
                yield subtask, replace(elements, ranges=ranges[:room])
                ranges, room = ranges[room:], max(0, room - len(ranges))
    else:
        for subtask, elements in stored:
            yield subtask % len(subtasks) if shrinks else subtask, elements


@lru_cache(maxsize=64)
def parse_operator_header(raw: bytes, types: TypeContext) -> OperatorHeader:
    """Parse the header of operator state streams; equal bytes are parsed once."""
    return read_operator_header(Cursor(raw), types, end=len(raw))
