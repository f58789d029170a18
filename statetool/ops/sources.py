"""The keyed state of an operator as entries, whatever backend wrote it: canonical and heap streams, RocksDB databases."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from statetool.arrow.changelog import read_changelog
from statetool.errors import FormatError, StatetoolError, UnsupportedError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, is_larger, open_large, read_entries
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header, write_keyed_header
from statetool.formats.keyed.heap_walk import heap_windows
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.ranges import batches_of
from statetool.formats.keyed.raw_entries import read_raw_timers
from statetool.formats.keyed.raw_timers import read_raw_header
from statetool.formats.state_meta import PRIORITY_QUEUE
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.ops.headers import JoinedHeader, join_headers, written_header
from statetool.plan.keyed_splits import plan_changelog, plan_keyed, plan_native, plan_raw_timers
from statetool.plan.operator import OperatorInventory
from statetool.plan.splits import ChangelogSplit, KeyedSplit, NativeSplit, RawSplit, TableSpec
from statetool.serializers.context import reading_with
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

SourceSplit: TypeAlias = KeyedSplit | NativeSplit | ChangelogSplit | RawSplit
BATCH_BYTES: Final = 8 << 20
#: Bytes in front of the key of a timer: its timestamp.
_TIMESTAMP: Final = 8
#: Compressed bytes are read a fraction at a time.
_COMPRESSED_SHARE: Final = 4


def keyed_splits(operator: OperatorInventory, *, raw: bool = False) -> list[SourceSplit]:
    """Plan the splits of all keyed state of an operator.

    Parameters
    ----------
    raw
        Whether timers in raw keyed state are taken too, as managed ones.

    Raises
    ------
    UnsupportedError
        Keyed state of a kind that cannot be read.
    """
    spec = TableSpec(
        operator=operator.label,
        table="state",
        states=(),
        options=ReadOptions(),
        max_parallelism=operator.state.max_parallelism,
        types=operator.types,
    )
    planned: list[SourceSplit] = [
        *plan_keyed(operator, spec, groups=None),
        *plan_native(operator, spec, groups=None),
        *plan_changelog(operator, spec, groups=None),
        *(plan_raw_timers(operator, spec, groups=None) if raw else ()),
    ]
    covered = {p.subtask for p in operator.keyed_parts} | {p.subtask for p in operator.native_parts}
    covered |= {p.subtask for p in operator.changelog_parts}
    for s in operator.state.subtasks:
        if s.managed_keyed is not None and s.index not in covered:
            raise UnsupportedError(
                f"keyed state of kind {type(s.managed_keyed).__name__} cannot be rewritten",
                hint="take a canonical savepoint of the job (flink savepoint --type canonical) and use that",
            ).at(operator=operator.label)
    return planned


def joined_header(
    operator: OperatorInventory, *, raw: bool = False, without: Collection[str] = ()
) -> JoinedHeader | None:
    """Return the header of an operator's new keyed streams, ``None`` where it has no keyed state.

    Raises
    ------
    UnsupportedError
        Two subtasks describe a state differently.
    """
    places = [
        (part.stream, min((o for o in part.offsets if o > 0), default=part.stream.size_bytes))
        for part in operator.keyed_parts
    ]
    places += [(part.meta, part.meta.size_bytes) for part in operator.native_parts]
    headers: dict[bytes, KeyedHeader] = {}
    try:
        for stream, end in places:
            found = _header_bytes(stream, end)
            headers.setdefault(found, _parse(found, stream.start, operator.types))
        for header in operator.changelog_headers.values():
            headers.setdefault(write_keyed_header(header), header)
        for part in operator.raw_parts if raw else ():
            timers = operator.raw_header(part)
            if timers is not None:
                headers.setdefault(written_header(timers), timers)
        return join_headers(list(headers.items()), without=without) if headers else None
    except StatetoolError as error:
        raise error.at(operator=operator.label) from None


def split_header(split: SourceSplit) -> tuple[bytes, KeyedHeader]:
    """Return the header of a split's stream: its bytes and what they say.

    Raises
    ------
    FormatError
        Damaged.
    """
    types = split.spec.types
    if isinstance(split, RawSplit):
        key = None
        if split.managed is not None:
            managed, size = split.managed
            key = _parse(_header_bytes(managed, size), managed.start, types).key
        # All key groups name the same services.
        least = min(split.key_groups, key=lambda g: g.size_bytes)
        with split.stream.open() as f, reading_with(types):
            region = f.read_at(least.offset, least.size_bytes)
            header = read_raw_header(region, base=split.stream.start + least.offset, key=key)
        if header is None:
            raise FormatError("a key group of raw keyed state without the timers that others have").at(
                file=split.stream.file, offset=split.stream.start + least.offset
            )
        return write_keyed_header(header), header
    end = split.header_bytes if isinstance(split, KeyedSplit) else split.stream.size_bytes
    raw = _header_bytes(split.stream, end)
    return raw, _parse(raw, split.stream.start, types)


def _header_bytes(stream: Stream, end: int) -> bytes:
    with stream.open() as f:
        return bytes(f.read_at(0, end))


@lru_cache(maxsize=64)
def _parse(raw: bytes, base: int, types: TypeContext) -> KeyedHeader:
    """Parse a header, once for all splits of its stream."""
    with reading_with(types):
        return read_keyed_header(Cursor(raw, base=base), end=len(raw))


def read_split_entries(split: SourceSplit, header: KeyedHeader, batch_bytes: int = BATCH_BYTES) -> Iterator[EntryBatch]:
    """Read a split in batches of about ``batch_bytes``; a larger key group comes in windows.

    Raises
    ------
    FormatError
        Damaged bytes; with file, offset and key group.
    """
    prefix = prefix_size(split.spec.max_parallelism)
    if isinstance(split, NativeSplit):
        names = [m.name for m in header.states]
        yield from read_native(
            split.files, header, names, split.key_groups, prefix=prefix, whole_keys=False, batch_bytes=batch_bytes
        )
        return
    if isinstance(split, ChangelogSplit):
        spec = replace(split.spec, states=tuple(m.name for m in header.states))
        yield from read_changelog(replace(split, spec=spec), header)
        return
    if isinstance(split, RawSplit):
        with split.stream.open() as f:
            yield from read_raw_timers(f, split.key_groups, header)
        return
    heap = header if split.heap else None
    layout = StreamLayout(prefix=prefix, states=len(header.states), compressed=header.compressed, heap=heap)
    limit = batch_bytes // _COMPRESSED_SHARE if header.compressed else batch_bytes
    with split.stream.open() as f:
        for groups in batches_of(split.key_groups, limit=limit):
            if len(groups) > 1 or not is_larger(f, groups[0], layout, batch_bytes):
                yield read_entries(f, groups, layout)
            elif heap is not None:
                yield from heap_windows(f, groups[0], heap, window=batch_bytes)
            else:
                with open_large(f, groups[0], layout) as large:
                    yield from large.windows(batch_bytes)


def key_starts(batch: EntryBatch, header: KeyedHeader) -> Int64s:
    """Return where the key starts in each entry: in timers it is behind their timestamp."""
    timers = np.array([m.backend_type == PRIORITY_QUEUE for m in header.states], dtype=np.bool_)
    return batch.key + np.where(timers[batch.state], _TIMESTAMP, 0)
