"""A fictitious stored form of keyed state: everything that a form needs, in one file.

A stream begins with ``TOY!``, the length of a canonical header, and the header. Each key group follows as JSON lines
``[state, key, value]``, with bytes in hex.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from statetool.entries.form import (
    ALL_ENTRIES,
    EntryRequest,
    KeyedContext,
    KeyedHandleRef,
    KeyGroupLocation,
    KeyGroupReader,
    OperatorReadContext,
    StateFormat,
    StoredState,
    error_context,
)
from statetool.entries.headers import header_of_task
from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.entries import EntryBatch, Region
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of, offset_ranges
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.stream import Stream

MAGIC = b"TOY!"
_HEAD = struct.Struct(">4si")


class ToyForm:
    """Stored form of streams that begin with the magic."""

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        if place.raw or not isinstance(place.handle, KeyGroupsHandle):
            return False
        stream = read_context.stream(place.handle.stream)
        return stream.size_bytes >= _HEAD.size and _read(stream, 0, len(MAGIC)) == MAGIC

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        return [StoredToy(place, read_context) for place in places]


class StoredToy(StoredState):
    """One stream."""

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> None:
        super().__init__(place, read_context)
        assert isinstance(place.handle, KeyGroupsHandle)
        stream = read_context.stream(place.handle.stream)
        ranges = offset_ranges(place.handle.start, place.handle.offsets, stream, nothing=0)
        self._all = ToySource(context=read_context.context, subtask=place.subtask, stream=stream, ranges=tuple(ranges))

    def key_groups(self) -> Iterator[KeyGroupLocation]:
        for r in self._all.ranges:
            yield KeyGroupLocation(key_group=r.number, offset=r.offset, size_bytes=r.size_bytes)

    def identity(self) -> bytes:
        return self._all.raw_header()

    def header(self) -> KeyedHeader:
        return self._all.header()

    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterator[KeyGroupReader]:
        for run in batches_of(
            [r for r in self._all.ranges if groups is None or r.number in groups], limit=target_bytes
        ):
            yield replace(self._all, context=context, ranges=tuple(run))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToySource:
    """Some key groups of a stream."""

    context: KeyedContext
    subtask: int
    stream: Stream
    ranges: tuple[KeyGroupRange, ...]

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def kernels(self) -> tuple[str, ...]:
        return ()

    @property
    def is_canonical(self) -> bool:
        return False

    @property
    def reads_by_key(self) -> bool:
        return False

    def group_sizes(self) -> Mapping[int, int]:
        return {r.number: r.size_bytes for r in self.ranges}

    def raw_header(self) -> bytes:
        _, size = _HEAD.unpack(_read(self.stream, 0, _HEAD.size))
        return _read(self.stream, _HEAD.size, size)

    def header(self) -> KeyedHeader:
        with error_context(self):
            return header_of_task(self.raw_header(), self.stream.start + _HEAD.size, self.context)

    def begin(self, request: EntryRequest) -> bool:
        return True

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        for r in self.ranges:
            with error_context(self):
                yield self._group(r)

    def _group(self, r: KeyGroupRange) -> EntryBatch:
        try:
            lines = [json.loads(line) for line in _read(self.stream, r.offset, r.size_bytes).splitlines()]
            pieces = [bytes.fromhex(text) for _, key, value in lines for text in (key, value)]
        except ValueError as error:
            raise FormatError(f"no line of a toy: {error}").at(offset=r.offset, key_group=r.number) from None
        ends = np.array([0, *accumulate(map(len, pieces))], np.int64)
        return EntryBatch(
            data=np.frombuffer(b"".join(pieces), np.uint8),
            state=np.array([state for state, _, _ in lines], np.int64),
            group=np.full(len(lines), r.number, np.int64),
            key=ends[:-1:2],
            key_end=ends[1::2],
            value=ends[1::2],
            value_end=ends[2::2],
            regions=(Region(0, r.offset, r.number, compressed=False),),
            file=self.file,
        )

    def within(self, key_groups: Collection[int]) -> ToySource | None:
        ranges = tuple(r for r in self.ranges if r.number in key_groups)
        return replace(self, ranges=ranges) if ranges else None

    def checksum_errors(self) -> Iterator[StatetoolError]:
        return iter(())


def _read(stream: Stream, offset: int, size: int) -> bytes:
    with stream.open() as f:
        return bytes(f.read_at(offset, size))


def toy_stream(
    header: bytes, sources: Iterable[KeyGroupReader], groups: Iterable[int]
) -> tuple[bytes, tuple[int, ...]]:
    """Write entries as a stream of this form; return it and the offsets of its key groups."""
    lines: dict[int, list[bytes]] = {}
    for batch in (b for s in sources for b in s.batches()):
        for i in range(len(batch)):
            key = bytes(batch.data[batch.key[i] : batch.key_end[i]]).hex()
            value = bytes(batch.data[batch.value[i] : batch.value_end[i]]).hex()
            line = json.dumps([int(batch.state[i]), key, value]).encode() + b"\n"
            lines.setdefault(int(batch.group[i]), []).append(line)
    out = bytearray(_HEAD.pack(MAGIC, len(header)) + header)
    offsets = []
    for group in groups:
        offsets.append(len(out) if group in lines else 0)
        out += b"".join(lines.get(group, []))
    return bytes(out), tuple(offsets)


_: StateFormat = ToyForm()
