"""Check the bytes of a split of keyed or operator state; runs in a task.

Key groups that cannot be walked, and elements that cannot be decoded, are found one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from statetool.arrow.changelog import read_changelog
from statetool.arrow.operator_state import operator_rows
from statetool.errors import StatetoolError
from statetool.formats.compression import stream_chunks
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, is_larger, open_large, read_entries
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.keyed.raw_entries import read_raw_timers
from statetool.formats.keyed.raw_timers import read_raw_header
from statetool.formats.operator_state import read_operator_header
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.ops.entry_check import ContentResult, ContentTask, EntryCheck
from statetool.ops.problems import Problem, problem_of, severity_of
from statetool.plan.splits import ChangelogSplit, KeyedSplit, NativeSplit, OperatorSplit, RawSplit
from statetool.serializers.context import reading_with

_BATCH_BYTES: Final = 8 << 20
_LARGE_BYTES: Final = 64 << 20
_COMPRESSED_SHARE: Final = 4
#: In the layout of the heap backend a key group starts with its number, which is never compressed.
_GROUP_NUMBER_BYTES: Final = 4


def check_contents(task: ContentTask) -> ContentResult:
    """Check one split."""
    with reading_with(task.split.spec.types):
        return _check(task)


def _check(task: ContentTask) -> ContentResult:
    split = task.split
    if isinstance(split, OperatorSplit):
        return _check_elements(task, split)
    check = _check_of(task, split)
    try:
        with split.stream.open() as f:
            check.run(f)
    except StatetoolError as error:
        check.add(error)
    return check.result


def _check_of(task: ContentTask, split: KeyedSplit | NativeSplit | RawSplit | ChangelogSplit) -> EntryCheck:
    match split:
        case ChangelogSplit():
            return _LogCheck(task, split)
        case NativeSplit():
            return _NativeCheck(task, split)
        case RawSplit():
            return _RawCheck(task, split)
        case KeyedSplit():
            return _StreamCheck(task, split)


class _StreamCheck(EntryCheck):
    """Check of key groups of a stream."""

    def __init__(self, task: ContentTask, split: KeyedSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        split = self.split
        self.start(_header(f, split.header_bytes, self.spec.descriptions))
        self.layout = StreamLayout(
            prefix=prefix_size(self.spec.max_parallelism),
            states=len(self.header.states),
            compressed=self.header.compressed,
            heap=self.header if split.heap else None,
        )
        limit = _BATCH_BYTES // (_COMPRESSED_SHARE if self.header.compressed else 1)
        for groups in batches_of(split.key_groups, limit=limit):
            self.groups(f, groups)
        if self.task.deep and self.header.compressed:
            for group in split.key_groups:
                self.checksums(f, group)

    def groups(self, f: OpenStream, groups: list[KeyGroupRange]) -> None:
        """Check key groups; those that cannot be walked are found one by one."""
        if self.full:
            return
        try:
            for batch in self.batches(f, groups):
                self.batch(batch)
        except StatetoolError as error:
            if len(groups) == 1:
                self.add(error)
                return
            middle = len(groups) // 2
            self.groups(f, groups[:middle])
            self.groups(f, groups[middle:])

    def checksums(self, f: OpenStream, group: KeyGroupRange) -> None:
        """Compare checksums, of which Flink writes one for each 64 KiB and reads none."""
        head = _GROUP_NUMBER_BYTES if self.split.heap else 0
        try:
            check_sums(f, group.offset + head, group.size_bytes - head)
        except StatetoolError as error:
            self.add(error.at(key_group=group.number))

    def batches(self, f: OpenStream, groups: list[KeyGroupRange]) -> Iterator[EntryBatch]:
        if self.layout.heap is None and len(groups) == 1 and is_larger(f, groups[0], self.layout, _LARGE_BYTES):
            with open_large(f, groups[0], self.layout) as group:
                yield from group.windows()
        else:
            yield read_entries(f, groups, self.layout)


class _NativeCheck(EntryCheck):
    """Check of key groups of a RocksDB database."""

    def __init__(self, task: ContentTask, split: NativeSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        split = self.split
        self.start(_header(f, split.stream.size_bytes, self.spec.descriptions))
        prefix = prefix_size(self.spec.max_parallelism)
        for meta in self.header.states:
            try:
                found = read_native(
                    split.files, self.header, [meta.name], split.key_groups, prefix=prefix, whole_keys=False
                )
                for batch in found:
                    self.batch(batch)
            except StatetoolError as error:
                self.add(error, state=meta.name)
            if self.full:
                return


class _LogCheck(EntryCheck):
    """Check of key groups of a change log on top of what was materialized."""

    def __init__(self, task: ContentTask, split: ChangelogSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        self.start(_header(f, self.split.stream.size_bytes, self.spec.descriptions))
        spec = replace(self.spec, states=tuple(m.name for m in self.header.states))
        for batch in read_changelog(replace(self.split, spec=spec), self.header):
            self.batch(batch)
            if self.full:
                return


class _RawCheck(EntryCheck):
    """Check of timers in raw keyed state."""

    def __init__(self, task: ContentTask, split: RawSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        split = self.split
        key = None
        if split.managed is not None:
            stream, size = split.managed
            with stream.open() as managed:
                key = _header(managed, size, self.spec.descriptions).key
        for group in split.key_groups:
            try:
                region = f.read_at(group.offset, group.size_bytes)
                header = read_raw_header(region, base=split.stream.start + group.offset, key=key)
                if header is not None:
                    self.start(header)
                    for batch in read_raw_timers(f, [group], header):
                        self.batch(batch)
            except StatetoolError as error:
                self.add(error.at(key_group=group.number))
            if self.full:
                return


def check_sums(f: OpenStream, offset: int, size: int) -> None:
    """Uncompress a region and compare its checksums.

    Raises
    ------
    FormatError
        Damaged, or a checksum that does not fit.
    """
    if size == 0:
        return
    chunks = stream_chunks(lambda at, n: f.read_at(offset + at, n), size, base=f.stream.start + offset, checked=True)
    for _ in chunks:
        pass


def _header(f: OpenStream, size: int, descriptions: tuple[tuple[bytes, int], ...]) -> KeyedHeader:
    raw = bytes(f.read_at(0, size))
    header = read_keyed_header(Cursor(raw, base=f.stream.start), end=size)
    for other, base in descriptions:
        learn_header(header, read_keyed_header(Cursor(other, base=base), end=len(other)))
    return header


def _check_elements(task: ContentTask, split: OperatorSplit) -> ContentResult:
    """Decode the elements of one operator state."""
    result = ContentResult([])
    (name,) = split.spec.states
    left = [(0, len(split.starts))]
    while left and len(result.problems) < task.most:
        first, stop = left.pop()
        some = replace(split, starts=split.starts[first:stop], ends=split.ends[first:stop])
        try:
            n = sum(n for n, _ in operator_rows(some))
            result.entries += n
        except StatetoolError as error:
            if stop - first == 1:
                result.problems.append(
                    problem_of(
                        error,
                        severity=severity_of(error),
                        operator=split.spec.operator,
                        subtask=split.subtask,
                        state=name,
                        file=split.stream.file,
                    )
                )
            else:
                middle = (first + stop) // 2
                left += [(middle, stop), (first, middle)]
    if not result.problems:
        result.problems += _element_checksums(split, name)
    return result


def _element_checksums(split: OperatorSplit, name: str) -> list[Problem]:
    try:
        with split.stream.open() as f:
            header = read_operator_header(Cursor(f.read_at(0, split.header_bytes), base=split.stream.start))
            if header.compressed and split.starts:
                start = min(split.starts)
                check_sums(f, start, max(split.ends) - start)
    except StatetoolError as error:
        return [
            problem_of(error, operator=split.spec.operator, subtask=split.subtask, state=name, file=split.stream.file)
        ]
    return []
