"""Check the bytes of keyed and operator state: entries that can be walked, keys in their key groups, values that decode.

Runs in a task, on one split. A batch that fails is halved until the failing entries stand alone, so that each is named.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.arrow.changelog import read_changelog
from statetool.arrow.decode import find_ends
from statetool.arrow.keyed import KeyedTable
from statetool.arrow.keys import SplitKeys, split_keys
from statetool.arrow.operator_state import operator_rows
from statetool.arrow.values import StateShape
from statetool.errors import DecodeError, StatetoolError, UnknownSerializerError, UnsupportedError
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import (
    KeyGroupRange,
    StreamLayout,
    batches_of,
    is_larger,
    open_large,
    read_entries,
)
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.raw_entries import read_raw_timers
from statetool.formats.keyed.raw_timers import read_raw_header
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.ops.hashing import Int64s, KeyHasher, decode_key, distinct
from statetool.ops.problems import Problem, Severity, problem_of
from statetool.plan.splits import ChangelogSplit, KeyedSplit, NativeSplit, OperatorSplit, RawSplit, Split
from statetool.serializers.context import reading_with
from statetool.write.key_hash import key_groups

_BATCH_BYTES: Final = 8 << 20
_LARGE_BYTES: Final = 64 << 20
_COMPRESSED_SHARE: Final = 4
_TIMESTAMP_BYTES: Final = 8
_KEY_TEXT: Final = 60


@dataclass(frozen=True, slots=True)
class ContentTask:
    """One split to check; picklable. ``most`` problems are looked for."""

    split: Split
    deep: bool
    most: int


@dataclass(slots=True)
class ContentResult:
    """What was found in a split. ``unknown_hash`` names a key type whose hash code is not known."""

    problems: list[Problem]
    entries: int = 0
    keys: int = 0
    unknown_hash: str = ""


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


def _check_of(task: ContentTask, split: KeyedSplit | NativeSplit | RawSplit | ChangelogSplit) -> _KeyedCheck:
    match split:
        case ChangelogSplit():
            return _LogCheck(task, split)
        case NativeSplit():
            return _NativeCheck(task, split)
        case RawSplit():
            return _RawCheck(task, split)
        case KeyedSplit():
            return _StreamCheck(task, split)


class _KeyedCheck(ABC):
    """Check of some key groups of one subtask."""

    def __init__(self, task: ContentTask, split: KeyedSplit | NativeSplit | RawSplit | ChangelogSplit) -> None:
        self.task = task
        self.spec = split.spec
        self.file = split.stream.file
        self.subtask = split.subtask
        self.result = ContentResult([])

    def add(self, error: StatetoolError, *, state: str | None = None, severity: Severity = "error") -> None:
        if isinstance(error, UnknownSerializerError | UnsupportedError):
            severity = "note"  # nothing is known to be wrong where nothing can be known
        self.result.problems.append(
            problem_of(
                error,
                severity=severity,
                operator=self.spec.operator,
                subtask=self.subtask,
                state=state,
                file=self.file,
            )
        )

    @property
    def full(self) -> bool:
        return len(self.result.problems) >= self.task.most

    @abstractmethod
    def run(self, f: OpenStream) -> None:
        """Check the split; errors of a single key group become problems."""

    def start(self, header: KeyedHeader) -> None:
        """Make ready for batches of streams with this header."""
        self.header = header
        self.hasher = KeyHasher(self.header.key)
        names = [m.name for m in self.header.states]
        self.table = KeyedTable(self.header, names, self.spec.options, None)

    def batch(self, batch: EntryBatch) -> None:
        """Check entries; raises nothing."""
        self.result.entries += len(batch)
        found: list[tuple[StateMeta, EntryBatch, Int64s, Int64s]] = []
        for number, meta in enumerate(self.header.states):
            entries = batch.of_state(number)
            if not len(entries):
                continue
            for some, start, end in self.keys(entries, meta):
                found.append((meta, some, start, end))
                if meta.kind != "timers":
                    self.twins(some, meta)
                if self.task.deep:
                    self.values(some, meta)
        if found:
            self.hashes(batch, found)

    def keys(self, entries: EntryBatch, meta: StateMeta) -> list[tuple[EntryBatch, Int64s, Int64s]]:
        """Return the entries whose keys fit their serializers, with where the job's own key is in each."""
        good: list[tuple[EntryBatch, Int64s, Int64s]] = []

        def split(some: EntryBatch) -> None:
            if meta.kind == "timers":
                for _ in [self.table.timer_rows(some, meta.name)]:
                    start = some.key + _TIMESTAMP_BYTES
                    key = self.header.key
                    good.append((some, start, find_ends(key.program(), key.skip, some.data, start, some.key_end)))
                return
            parts: SplitKeys = split_keys(some, self.header.key, meta)
            good.append((some, parts.key, parts.key_end))

        self.isolated(entries, meta, split)
        return good

    def isolated(self, entries: EntryBatch, meta: StateMeta, check: Callable[[EntryBatch], None]) -> None:
        """Call ``check`` with entries, and with ever fewer around those that it raises for."""
        if self.full:
            return
        try:
            check(entries)
        except StatetoolError as error:
            if len(entries) == 1:
                self.failed(entries, meta, error)
                return
            middle = len(entries) // 2
            self.isolated(entries.take(np.arange(middle)), meta, check)
            self.isolated(entries.take(np.arange(middle, len(entries))), meta, check)

    def failed(self, entry: EntryBatch, meta: StateMeta, error: StatetoolError) -> None:
        """Tell damage from what only Arrow cannot hold (a lone surrogate, a date beyond its range)."""
        if error.where.offset is None:
            error = error.at(offset=int(entry.key[0]))
        if error.where.file is None:
            error = entry.locate(error)
        fine = meta.kind != "timers" and decodes_plainly(StateShape(meta), entry)
        if fine:
            error.message = f"fine as it is, but no table can show it: {error.message}"
        self.add(error, state=meta.name, severity="note" if fine else "error")

    def twins(self, entries: EntryBatch, meta: StateMeta) -> None:
        ids, first = distinct(entries.data, entries.key, entries.key_end, entries.group)
        if len(first) == len(ids):
            return
        for i in np.flatnonzero(np.bincount(ids)[ids] > 1).tolist():
            if i not in first and not self.full:
                error = DecodeError("a second entry with the same key").at(offset=int(entries.key[i]))
                self.add(entries.locate(error), state=meta.name)

    def values(self, entries: EntryBatch, meta: StateMeta) -> None:
        """Decode keys, namespaces and values to their last byte."""
        if meta.kind == "timers":
            return

        def decode(some: EntryBatch) -> None:
            for _ in self.table.long_rows(some, meta.name):
                pass

        self.isolated(entries, meta, decode)

    def hashes(self, batch: EntryBatch, found: list[tuple[StateMeta, EntryBatch, Int64s, Int64s]]) -> None:
        """Check that keys lie in the key groups of their hash codes."""
        if self.result.unknown_hash:
            return
        start = np.concatenate([s for _, _, s, _ in found])
        end = np.concatenate([e for _, _, _, e in found])
        group = np.concatenate([b.group for _, b, _, _ in found])
        _, first = distinct(batch.data, start, end, group)
        start, end, group = start[first], end[first], group[first]
        states = np.repeat(np.arange(len(found)), [len(b) for _, b, _, _ in found])[first]
        codes = np.zeros(len(first), dtype=np.int64)
        known = np.ones(len(first), dtype=np.bool_)
        try:
            codes = self.hasher.hashes(batch.data, start, end)
        except UnsupportedError as error:
            self.result.unknown_hash = f"{self.header.key.type_name}: {error.message}"
            return
        except StatetoolError:
            for i in range(len(first)):
                try:
                    codes[i] = self.header.key.hash_code(decode_key(self.header.key, batch.data, start[i], end[i]))
                except StatetoolError as error:
                    known[i] = False
                    error = error.at(offset=int(start[i]))
                    self.add(batch.locate(error), state=found[states[i]][0].name)
        right = key_groups(codes, self.spec.max_parallelism)
        self.result.keys += int(known.sum())
        for i in np.flatnonzero(known & (right != group)).tolist():
            if self.full:
                return
            text = repr(decode_key(self.header.key, batch.data, int(start[i]), int(end[i])))
            text = text if len(text) <= _KEY_TEXT else f"{text[:_KEY_TEXT]}..."
            words = f"key {text} lies in key group {int(group[i])}, its hash code belongs to {int(right[i])}"
            wrong = batch.locate(DecodeError(words).at(offset=int(start[i])))
            wrong.where = replace(wrong.where, key_group=None)
            self.add(wrong, state=found[states[i]][0].name)


class _StreamCheck(_KeyedCheck):
    """Check of key groups of a stream."""

    def __init__(self, task: ContentTask, split: KeyedSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        split = self.split
        self.start(_header(f, split.header_bytes))
        self.layout = StreamLayout(
            prefix=prefix_size(self.spec.max_parallelism),
            states=len(self.header.states),
            compressed=self.header.compressed,
            heap=self.header if split.heap else None,
        )
        limit = _BATCH_BYTES // (_COMPRESSED_SHARE if self.header.compressed else 1)
        for groups in batches_of(split.key_groups, limit=limit):
            self.groups(f, groups)

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

    def batches(self, f: OpenStream, groups: list[KeyGroupRange]) -> Iterator[EntryBatch]:
        if self.layout.heap is None and len(groups) == 1 and is_larger(f, groups[0], self.layout, _LARGE_BYTES):
            with open_large(f, groups[0], self.layout) as group:
                yield from group.windows()
        else:
            yield read_entries(f, groups, self.layout)


class _NativeCheck(_KeyedCheck):
    """Check of key groups of a RocksDB database."""

    def __init__(self, task: ContentTask, split: NativeSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        split = self.split
        self.start(_header(f, split.stream.size_bytes))
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


class _LogCheck(_KeyedCheck):
    """Check of key groups of a change log on top of what was materialized."""

    def __init__(self, task: ContentTask, split: ChangelogSplit) -> None:
        super().__init__(task, split)
        self.split = split

    def run(self, f: OpenStream) -> None:
        self.start(_header(f, self.split.stream.size_bytes))
        spec = replace(self.spec, states=tuple(m.name for m in self.header.states))
        for batch in read_changelog(replace(self.split, spec=spec), self.header):
            self.batch(batch)
            if self.full:
                return


class _RawCheck(_KeyedCheck):
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
                key = _header(managed, size).key
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


def _header(f: OpenStream, size: int) -> KeyedHeader:
    raw = bytes(f.read_at(0, size))
    return read_keyed_header(Cursor(raw, base=f.stream.start), end=size)


def decodes_plainly(shape: StateShape, entry: EntryBatch) -> bool:
    """Tell whether the value of one entry decodes to its last byte by the readable reference of its serializer."""
    c = Cursor(entry.data.data, int(entry.value[0]), int(entry.value_end[0]))
    try:
        if shape.kind == "map" and shape.user_key is not None and c.bool():
            return True
        shape.element.decode(c)
        while shape.kind == "list" and not shape.framed_bytes and c.left:
            if c.u1() != 0x2C:
                return False
            shape.element.decode(c)
    except StatetoolError:
        return False
    return c.left == 0


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
                        operator=split.spec.operator,
                        subtask=split.subtask,
                        state=name,
                        file=split.stream.file,
                    )
                )
            else:
                middle = (first + stop) // 2
                left += [(middle, stop), (first, middle)]
    return result
