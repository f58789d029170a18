"""Timers in raw keyed state: those that the RocksDB backend kept on the heap, and those of Flink 1.5 and older.

All other raw keyed state belongs to the user's operator, and only that operator can read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

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
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, even_batches_of, offset_ranges
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.stream import OpenStream, Stream, begin, whole
from statetool.formats.timers.raw_timers import MARK_BYTES, is_versioned, read_raw_header

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

#: Bytes that Flink up to 1.3 wrote for an operator without timer services: their number, 0.
_NO_SERVICE = bytes(4)


class RawTimerFormat:
    """Stored form of raw keyed state that starts like timers do."""

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        return place.raw and _Raw(place, read_context).timer_header() is not None

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        return [StoredTimers(place, read_context) for place in places]


def is_own_state(place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
    """Return True if raw keyed state of no form contains state of the operator."""
    return not isinstance(place.handle, KeyGroupsHandle | None) or _Raw(place, read_context).holds_own_state()


class _Raw:
    """Raw keyed state of one subtask, with timers or other data."""

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> None:
        self.read_context = read_context
        self.ranges: list[KeyGroupRange] = []
        self.stream = read_context.stream(None)
        if isinstance(place.handle, KeyGroupsHandle):
            self.stream = read_context.stream(place.handle.stream)
            self.ranges = offset_ranges(place.handle.start, place.handle.offsets, self.stream, nothing=-1)

    def timer_header(self) -> KeyedHeader | None:
        """Return the header of its timers, ``None`` if it has none or belongs to the operator."""
        if not self.ranges:
            return None
        least = min(self.ranges, key=lambda r: r.size_bytes)  # all have the same services
        with self.stream.open() as f:
            region = f.read_at(least.offset, least.size_bytes)
            try:
                return _header_of(
                    region, self.stream.start + least.offset, self.read_context.managed(), self.read_context.context
                )
            except FormatError as error:
                if not is_versioned(region):
                    self._check_groups(f)
                    return None
                raise error.at(file=self.stream.file, operator=self.read_context.operator) from None

    def _check_groups(self, f: OpenStream) -> None:
        """Refuse timers of some key groups beside other data."""
        for r in self.ranges:
            if is_versioned(f.read_at(r.offset, min(r.size_bytes, MARK_BYTES))):
                text = "this key group has timers, and another one has other data in raw keyed state"
                raise FormatError(text, hint="one of their offsets is damaged").at(
                    file=self.stream.file,
                    offset=self.stream.start + r.offset,
                    operator=self.read_context.operator,
                    key_group=r.number,
                )

    def holds_own_state(self) -> bool:
        with self.stream.open() as f:
            for r in self.ranges:
                region = f.read_at(r.offset, r.size_bytes)
                if not is_versioned(region) and bytes(region) != _NO_SERVICE:
                    return True
        return False


def _header_of(
    region: memoryview, base: int, managed: tuple[bytes, int] | None, context: KeyedContext
) -> KeyedHeader | None:
    key = None if managed is None else header_of_task(*managed, context).key
    return read_raw_header(region, context.types, base=base, key=key)


class StoredTimers(StoredState):
    """Timers of one subtask."""

    def __init__(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> None:
        super().__init__(place, read_context)
        self._raw = _Raw(place, read_context)

    def key_groups(self) -> Iterator[KeyGroupLocation]:
        for r in sorted(self._raw.ranges, key=lambda r: r.number):
            yield KeyGroupLocation(key_group=r.number, offset=r.offset, size_bytes=r.size_bytes)

    def identity(self) -> bytes:
        # The end of service names is only known after reading.
        return f"timers of {self.place.subtask}".encode()

    @cached_property
    def _header(self) -> KeyedHeader:
        header = self._raw.timer_header()
        assert header is not None
        return header

    def header(self) -> KeyedHeader:
        return self._header

    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterator[KeyGroupReader]:
        ranges = [r for r in self._raw.ranges if groups is None or r.number in groups]
        for run in even_batches_of(ranges, limit=target_bytes):
            yield TimerSource(
                context=context,
                subtask=self.place.subtask,
                stream=self._raw.stream,
                ranges=tuple(run),
                managed=self.read_context.managed(),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerSource:
    """Timers of some key groups; ``managed`` is a header (bytes and offset) of managed state, if any."""

    context: KeyedContext
    subtask: int
    stream: Stream
    ranges: tuple[KeyGroupRange, ...]
    managed: tuple[bytes, int] | None

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

    def within(self, key_groups: Collection[int]) -> TimerSource | None:
        ranges = tuple(r for r in self.ranges if r.number in key_groups)
        return replace(self, ranges=ranges) if ranges else None

    def header(self) -> KeyedHeader:
        least = min(self.ranges, key=lambda r: r.size_bytes)
        with error_context(self), self.stream.open() as f:
            region = f.read_at(least.offset, least.size_bytes)
            header = _header_of(region, self.stream.start + least.offset, self.managed, self.context)
            if header is None:
                raise FormatError("a key group of raw keyed state without the timers that others have").at(
                    offset=self.stream.start + least.offset, key_group=least.number
                )
            return header

    def begin(self, request: EntryRequest) -> bool:
        begin(whole([self.stream]))
        return True

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        from statetool.formats.timers.raw_entries import read_raw_timers

        header = self.header()
        with error_context(self), self.stream.open() as f:
            yield from read_raw_timers(f, self.ranges, header, self.context.types)

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield nothing: there are no checksums."""
        return iter(())


_: StateFormat = RawTimerFormat()
