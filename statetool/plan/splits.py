"""Cut a table's bytes into splits: runs of key groups of about a target size, whatever the job's parallelism was."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import FormatError
from statetool.formats.channel_state import Channel, Side
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import KeyGroupRange, StreamLayout, batches_of, read_entries
from statetool.formats.keyed.change_sets import ChangeSet
from statetool.formats.keyed.database_files import DatabaseFiles
from statetool.formats.keyed.header import write_keyed_header
from statetool.formats.stream import Stream
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import ChangelogPart, KeyedPart, NativePart, key_group_sizes
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.options import ReadOptions

TARGET_BYTES: Final = 64 << 20
MEMORY_BYTES: Final = 128 << 20
_SAMPLE_BYTES: Final = 1 << 20
TableKind = Literal["keyed_state", "state", "timers", "windows", "operator_state", "in_flight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What a read wants; the same for all of its splits.

    ``states`` are the names of the states involved (for timers those of the timer states). ``keys`` are encoded keys to
    keep. ``schema`` is the table's Arrow schema (IPC bytes), which what is read from every stream must agree with. ``types``
    are what the user declared: a task reads serializers as the driver did. ``descriptions`` are headers (bytes and offset) that
    describe the subclasses that not all subtasks know.
    """

    operator: str
    table: TableKind
    states: tuple[str, ...]
    options: ReadOptions
    max_parallelism: int
    keys: tuple[bytes, ...] | None = None
    schema: bytes = b""
    key_group_column: bool = False
    subtask_column: bool = False
    memory_bytes: int = MEMORY_BYTES
    types: TypeContext = NOTHING_DECLARED
    descriptions: tuple[tuple[bytes, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSplit:
    """Some key groups of one stream; picklable and self-contained."""

    spec: TableSpec
    stream: Stream
    header_bytes: int
    key_groups: tuple[KeyGroupRange, ...]
    subtask: int
    heap: bool = False

    @property
    def size_bytes(self) -> int:
        return sum(g.size_bytes for g in self.key_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSplit:
    """Some elements of one operator state of one subtask; ``starts`` and ``ends`` are where each is in the stream.

    The first ``header_bytes`` of the stream hold its header.
    """

    spec: TableSpec
    stream: Stream
    header_bytes: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    subtask: int

    @property
    def size_bytes(self) -> int:
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSplit:
    """Some key groups of one database; ``stream`` is its keyed header, ``size_bytes`` an estimate."""

    spec: TableSpec
    stream: Stream
    files: DatabaseFiles
    key_groups: tuple[int, ...]
    subtask: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSplit:
    """Raw timers of some key groups; ``managed`` is stream and size of a header of the operator's managed state."""

    spec: TableSpec
    stream: Stream
    key_groups: tuple[KeyGroupRange, ...]
    managed: tuple[Stream, int] | None
    subtask: int

    @property
    def size_bytes(self) -> int:
        return sum(g.size_bytes for g in self.key_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogSplit:
    """Some key groups of one subtask of the changelog state backend: change sets on top of what was materialized.

    ``stream`` is a keyed header of all states, made for the split. ``size_bytes`` is an estimate.
    """

    spec: TableSpec
    stream: Stream
    key_groups: tuple[int, ...]
    below: tuple[KeyedSplit | NativeSplit, ...]
    changes: tuple[ChangeSet, ...]
    subtask: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSplit:
    """Channels of one subtask whose buffers lie in one stream; ``record`` is the snapshot of the records' serializer."""

    spec: TableSpec
    stream: Stream
    channels: tuple[Channel, ...]
    record: bytes
    subtask: int

    @property
    def size_bytes(self) -> int:
        return self.stream.size_bytes


Split = KeyedSplit | OperatorSplit | NativeSplit | RawSplit | ChangelogSplit | InFlightSplit


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
        for run in _runs(sorted(ranges, key=lambda r: r.offset), target_bytes):
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
        for run in _runs(ranges, target_bytes)
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


def plan_in_flight(operator: OperatorInventory, spec: TableSpec, side: Side, record: bytes) -> list[InFlightSplit]:
    """Plan the splits of the data in flight at the inputs or outputs of an operator: by subtask and stream."""
    found: dict[tuple[int, Stream], list[Channel]] = {}
    for channel in operator.channels:
        if channel.side == side:
            found.setdefault((channel.subtask, channel.stream), []).append(channel)
    return [
        InFlightSplit(spec=spec, stream=stream, channels=tuple(channels), record=record, subtask=subtask)
        for (subtask, stream), channels in found.items()
    ]


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


def _runs(ranges: Iterable[KeyGroupRange], target_bytes: int) -> Iterable[list[KeyGroupRange]]:
    run: list[KeyGroupRange] = []
    size = 0
    for r in ranges:
        if run and size + r.size_bytes > target_bytes:
            yield run
            run, size = [], 0
        run.append(r)
        size += r.size_bytes
    if run:
        yield run


def plan_operator_state(
    operator: OperatorInventory, spec: TableSpec, *, one_copy: bool, target_bytes: int = TARGET_BYTES
) -> list[OperatorSplit]:
    """Plan the splits of an operator state, cut at elements; of the first subtask alone where all hold the same.

    Raises
    ------
    FormatError
        An offset outside of the stream.
    """
    (name,) = spec.states
    splits = []
    for part in operator.operator_parts:
        offsets = part.offsets.get(name)
        if not offsets:
            continue
        bounds = sorted({o for some in part.offsets.values() for o in some})
        if bounds[-1] > part.stream.size_bytes or bounds[0] < 0:
            raise FormatError(f"an offset of operator state is outside of {part.stream.size_bytes} bytes").at(
                file=part.stream.file, operator=operator.label, state=name
            )
        end_of = dict(zip(bounds, [*bounds[1:], part.stream.size_bytes], strict=True))
        for run in _element_runs([(o, end_of[o]) for o in offsets], target_bytes):
            splits.append(
                OperatorSplit(
                    spec=spec,
                    stream=part.stream,
                    header_bytes=bounds[0],
                    starts=tuple(start for start, _ in run),
                    ends=tuple(end for _, end in run),
                    subtask=part.subtask,
                )
            )
        if one_copy:
            break
    return splits


def _element_runs(elements: list[tuple[int, int]], target_bytes: int) -> Iterable[list[tuple[int, int]]]:
    run: list[tuple[int, int]] = []
    size = 0
    for start, end in elements:
        if run and size + end - start > target_bytes:
            yield run
            run, size = [], 0
        run.append((start, end))
        size += end - start
    if run:
        yield run
