"""Where the state of subtasks lies: its pieces, by subtask, with their streams resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from statetool.errors import FormatError
from statetool.formats.keyed.change_sets import ChangeSet
from statetool.formats.keyed.database_files import DatabaseFiles
from statetool.formats.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedPart:
    """Keyed state of one subtask in a stream with an offset for each key group from ``start`` on."""

    subtask: int
    tag: int
    start: int
    offsets: tuple[int, ...]
    stream: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePart:
    """Keyed state of one subtask in a RocksDB database: ``key_groups`` is what belongs to the subtask."""

    subtask: int
    tag: int
    key_groups: range
    meta: Stream
    files: DatabaseFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPart:
    """Raw keyed state of one subtask: ``(key group, offset, bytes)`` of what was written."""

    subtask: int
    groups: tuple[tuple[int, int, int], ...]
    stream: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogPart:
    """Keyed state of one subtask as change sets on top of what was materialized; ``key_groups`` is what belongs to the subtask."""

    subtask: int
    key_groups: range
    below: tuple[KeyedPart | NativePart, ...]
    changes: tuple[ChangeSet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """Operator state of one subtask; ``offsets`` by state name."""

    subtask: int
    offsets: Mapping[str, tuple[int, ...]]
    stream: Stream


def key_group_sizes(part: KeyedPart) -> list[tuple[int, int, int]]:
    """Return ``(key group, offset, bytes)``, in file order for the non-empty ones; empty ones have 0 bytes.

    Raises
    ------
    FormatError
        An offset outside of the stream.
    """
    starts = sorted({o for o in part.offsets if o > 0})
    if starts and starts[-1] > part.stream.size_bytes:
        raise FormatError(
            f"key-group offset {starts[-1]} is beyond the {part.stream.size_bytes} bytes of the stream"
        ).at(file=part.stream.file)
    used = [o for o in part.offsets if o > 0]
    if len(used) != len(starts):
        raise FormatError("two key groups start at the same offset").at(file=part.stream.file)
    end_of = dict(zip(starts, [*starts, part.stream.size_bytes][1:], strict=True))
    return [(part.start + i, o, end_of[o] - o if o > 0 else 0) for i, o in enumerate(part.offsets)]


def raw_group_sizes(start: int, offsets: tuple[int, ...], stream: Stream) -> list[tuple[int, int, int]]:
    """Return ``(key group, offset, bytes)`` of the key groups of raw keyed state that were written.

    Raises
    ------
    FormatError
        An offset outside of the stream.
    """
    written = sorted(o for o in offsets if o != -1)
    if written and (written[0] < 0 or written[-1] > stream.size_bytes or len(set(written)) != len(written)):
        raise FormatError(
            f"offsets of key groups from {written[0]} to {written[-1]}, one twice or outside of {stream.size_bytes} bytes"
        ).at(file=stream.file)
    end_of = dict(zip(written, [*written, stream.size_bytes][1:], strict=True))
    return [(start + i, o, end_of[o] - o) for i, o in enumerate(offsets) if o != -1]


def element_ends(part: OperatorPart) -> dict[int, int]:
    """Return where the element ends that starts at each offset of operator state, in the order of the stream.

    Raises
    ------
    FormatError
        An offset outside of the stream.
    """
    starts = sorted({o for offsets in part.offsets.values() for o in offsets})
    if starts and not 0 <= starts[0] <= starts[-1] <= part.stream.size_bytes:
        raise FormatError(f"an offset of operator state is outside of {part.stream.size_bytes} bytes").at(
            file=part.stream.file
        )
    return dict(pairwise([*starts, part.stream.size_bytes]))
