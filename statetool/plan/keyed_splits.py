"""Cut keyed state into splits: runs of key groups of about a target size, whatever the job's parallelism was."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from statetool.errors import FormatError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, read_entries
from statetool.formats.keyed.header import write_keyed_header
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.stream import Stream
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import ChangelogPart, KeyedPart, NativePart, key_group_sizes
from statetool.plan.splits import TARGET_BYTES, ChangelogSplit, KeyedSplit, NativeSplit, RawSplit, TableSpec

_SAMPLE_BYTES: Final = 1 << 20


def plan_native(
    operator: OperatorInventory, spec: TableSpec, *, groups: frozenset[int] | None, target_bytes: int = TARGET_BYTES
) -> list[NativeSplit]:
    """Plan the splits of a table of keyed state in RocksDB databases, as if all key groups were of one size.

    Parameters
    ----------
    groups
        Key groups to read, ``None`` for all.
    """
    return [
        split
        for part in operator.native_parts
        for split in plan_database(part, spec, groups=groups, target_bytes=target_bytes)
    ]


def plan_database(
    part: NativePart, spec: TableSpec, *, groups: frozenset[int] | None = None, target_bytes: int = TARGET_BYTES
) -> list[NativeSplit]:
    """Plan the splits of the database of one subtask; as :func:`plan_native`."""
    wanted = [g for g in part.key_groups if groups is None or g in groups]
    each = part.files.size_bytes / max(1, len(part.key_groups))
    n = max(1, min(len(wanted), round(each * len(wanted) / target_bytes)))
    runs = [tuple(wanted[i * len(wanted) // n : (i + 1) * len(wanted) // n]) for i in range(n if wanted else 0)]
    return [
        NativeSplit(
            spec=spec,
            stream=part.meta,
            files=part.files,
            key_groups=run,
            subtask=part.subtask,
            size_bytes=int(each * len(run)),
        )
        for run in runs
    ]


def plan_raw_timers(
    operator: OperatorInventory, spec: TableSpec, *, groups: frozenset[int] | None, target_bytes: int = TARGET_BYTES
) -> list[RawSplit]:
    """Plan the splits of timers in raw keyed state; parameters as for :func:`plan_native`."""
    splits = []
    for part in operator.raw_parts:
        ranges = [KeyGroupRange(*g) for g in part.groups if groups is None or g[0] in groups]
        for run in batches_of(sorted(ranges, key=lambda r: r.offset), limit=target_bytes):
            splits.append(
                RawSplit(
                    spec=spec,
                    stream=part.stream,
                    key_groups=tuple(run),
                    managed=operator.managed_header_place,
                    subtask=part.subtask,
                )
            )
    return splits


def plan_keyed(
    operator: OperatorInventory, spec: TableSpec, *, groups: frozenset[int] | None, target_bytes: int = TARGET_BYTES
) -> list[KeyedSplit]:
    """Plan the splits of a table of keyed state.

    Parameters
    ----------
    groups
        Key groups to read, ``None`` for all.

    Raises
    ------
    UnsupportedError
        Keyed state that is not in a canonical stream.
    """
    return [
        split
        for part in operator.keyed_parts
        for split in plan_part(operator, part, spec, groups=groups, target_bytes=target_bytes)
    ]


def plan_part(
    operator: OperatorInventory,
    part: KeyedPart,
    spec: TableSpec,
    *,
    groups: frozenset[int] | None = None,
    target_bytes: int = TARGET_BYTES,
) -> list[KeyedSplit]:
    """Plan the splits of the stream of one subtask; as :func:`plan_keyed`."""
    ranges = [
        KeyGroupRange(number, offset, size)
        for number, offset, size in key_group_sizes(part)
        if size and (groups is None or number in groups)
    ]
    ranges.sort(key=lambda r: r.offset)
    heap = _is_heap(operator, part, ranges)
    header_bytes = min((o for o in part.offsets if o > 0), default=part.stream.size_bytes)
    return [
        KeyedSplit(
            spec=spec,
            stream=part.stream,
            header_bytes=header_bytes,
            key_groups=tuple(run),
            subtask=part.subtask,
            heap=heap,
        )
        for run in batches_of(ranges, limit=target_bytes)
    ]


def plan_changelog(
    operator: OperatorInventory, spec: TableSpec, *, groups: frozenset[int] | None, target_bytes: int = TARGET_BYTES
) -> list[ChangelogSplit]:
    """Plan the splits of a table of keyed state of the changelog state backend; parameters as for :func:`plan_native`.

    A log is read whole by each of its splits.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    return [
        split
        for part in operator.changelog_parts
        for split in plan_log(operator, part, spec, groups=groups, target_bytes=target_bytes)
    ]


def plan_log(
    operator: OperatorInventory,
    part: ChangelogPart,
    spec: TableSpec,
    *,
    groups: frozenset[int] | None = None,
    target_bytes: int = TARGET_BYTES,
) -> list[ChangelogSplit]:
    """Plan the splits of the change log of one subtask; as :func:`plan_changelog`."""
    stream = changelog_header_stream(operator, part)
    wanted = [g for g in part.key_groups if groups is None or g in groups]
    size = sum(c.stream.size_bytes for c in part.changes)
    size += sum(b.files.size_bytes if isinstance(b, NativePart) else b.stream.size_bytes for b in part.below)
    n = max(1, min(len(wanted), round(size / target_bytes)))
    splits = []
    for i in range(n if wanted else 0):
        run = wanted[i * len(wanted) // n : (i + 1) * len(wanted) // n]
        below = [s for b in part.below for s in _splits_below(operator, b, spec, frozenset(run))]
        splits.append(
            ChangelogSplit(
                spec=spec,
                stream=stream,
                key_groups=tuple(run),
                below=tuple(below),
                changes=part.changes,
                subtask=part.subtask,
                size_bytes=size // n,
            )
        )
    return splits


def changelog_header_stream(operator: OperatorInventory, part: ChangelogPart) -> Stream:
    """Return the header of all states of a change log and of what lies below it, as a stream; its file names the log's.

    Raises
    ------
    FormatError, UnknownSerializerError
        Damaged; or nothing tells the type of the keys.
    """
    header = write_keyed_header(operator.changelog_headers[part.subtask])
    if operator.key_error is not None:
        raise operator.key_error
    file = ", ".join(dict.fromkeys(c.stream.file for c in part.changes))
    return Stream(file=file, start=0, size_bytes=len(header), inline=header)


def _splits_below(
    operator: OperatorInventory, part: KeyedPart | NativePart, spec: TableSpec, groups: frozenset[int]
) -> Sequence[KeyedSplit | NativeSplit]:
    if isinstance(part, NativePart):
        return plan_database(part, spec, groups=groups, target_bytes=sys.maxsize)
    return plan_part(operator, part, spec, groups=groups, target_bytes=sys.maxsize)


def _is_heap(operator: OperatorInventory, part: KeyedPart, ranges: list[KeyGroupRange]) -> bool:
    """Tell the layout of the heap backend from the canonical one.

    Tag 7 is canonical. Tags 3 and 12 do not tell: full RocksDB snapshots are canonical, those of the heap backend are not, so the
    first key groups are walked, which fails at once on anything else.

    Raises
    ------
    FormatError
        Neither of the two.
    """
    if part.tag == 7 or not ranges:
        return False
    sample = next(batches_of(ranges, limit=_SAMPLE_BYTES))
    header = operator.keyed_header(part)
    layout = StreamLayout(
        prefix=prefix_size(operator.state.max_parallelism), states=len(header.states), compressed=header.compressed
    )
    with part.stream.open() as f:
        try:
            read_entries(f, sample, layout)
            return False
        except FormatError as error:
            # Some wrong offsets do not make it another layout; which they are shows when the key groups are read.
            right = sum(r.size_bytes >= 4 and int.from_bytes(f.read_at(r.offset, 4), "big") == r.number for r in ranges)
            if 2 * right <= len(ranges):
                raise FormatError(
                    f"keyed state of handle tag {part.tag} in neither the canonical nor the heap layout",
                    hint="the file is damaged, or not the one that the metadata means",
                ).at(operator=operator.label, file=part.stream.file) from error
    return True
