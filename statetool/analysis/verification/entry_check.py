"""Check entries of keyed state from any source: keys are in their key groups, and values decode.

A failing batch is halved until each failing entry is isolated and can be named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from statetool.analysis.verification.distinct_keys import DistinctKeys
from statetool.analysis.verification.problems import (
    Problem,
    Severity,
    not_shown,
    problem_of,
    reading_failed,
    severity_of,
)
from statetool.columns.values import StateLayout
from statetool.entries.form import ALL_ENTRIES, EntryRequest, KeyGroupReader
from statetool.entries.keys import split_keys
from statetool.entries.selection import TIMESTAMP_BYTES
from statetool.errors import UNREAD, DecodeError, FormatError, SnapshotNotFoundError, StatetoolError, UnsupportedError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo, check_timers
from statetool.io.cursor import Cursor
from statetool.java.hashing.formulas import HashFormula
from statetool.java.hashing.key_hash import key_groups
from statetool.java.hashing.keys import KeyHasher, decode_key
from statetool.java.hashing.possible_keys import nulls_among
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.layout import SEPARATOR
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends
from statetool.tables.kinds.elements import ElementSplit
from statetool.tables.kinds.keyed import KeyedTable
from statetool.types.display import display_value
from statetool.types.options import ReadOptions

#: Start and end of a part of each entry: its key or its namespace.
_Spans: TypeAlias = tuple[Int64s, Int64s]
#: Exact values: nothing is rounded, and values that a table would refuse are still checked.
EXACT: Final = ReadOptions(nanos="always", decimals="string", ttl="raw")


@dataclass(frozen=True, slots=True)
class ContentTask:
    """Check of one task, up to ``most`` problems; picklable. ``formula`` is the hash formula of the user's classes in a key."""

    part: KeyGroupReader | ElementSplit
    operator: str
    deep: bool
    most: int
    formula: HashFormula | None = None

    def reads(self) -> tuple[KeyGroupReader, EntryRequest] | None:
        return None if isinstance(self.part, ElementSplit) else (self.part, ALL_ENTRIES)


@dataclass(slots=True)
class ContentResult:
    """Result of a task. ``elements`` counts those of operator state; ``unknown_hash`` names a key type with an unknown hash code.

    ``missing`` is the first of the parts that could not be read because a file does not exist.
    """

    problems: list[Problem]
    entries: int = 0
    elements: int = 0
    keys: int = 0
    keys_are_estimated: bool = False
    unknown_hash: str = ""
    missing: Problem | None = None

    def copy(self) -> ContentResult:
        """Return a copy that does not change with this result."""
        return replace(self, problems=list(self.problems))


class EntryCheck:
    """Check of one source of entries."""

    def __init__(self, task: ContentTask, source: KeyGroupReader) -> None:
        self.task = task
        self.context = source.context
        self.file = source.file
        self.subtask = source.subtask
        self.result = ContentResult([])
        self.distinct = DistinctKeys()

    def add(self, error: StatetoolError, *, state: str | None = None, severity: Severity = "error") -> None:
        severity = severity_of(error, severity)
        self.result.problems.append(
            problem_of(
                error,
                severity=severity,
                operator=self.context.operator,
                subtask=self.subtask,
                state=state,
                file=self.file,
            )
        )

    def lost(self, error: StatetoolError, *, state: str | None = None) -> None:
        """Add the reason why a whole piece of state could not be read."""
        place = {"operator": self.context.operator, "subtask": self.subtask, "state": state, "file": self.file}
        problem = reading_failed(error, **place)
        if isinstance(error, SnapshotNotFoundError):
            self.result.missing = self.result.missing or problem
        else:
            self.result.problems.append(problem)

    @property
    def full(self) -> bool:
        return len(self.result.problems) >= self.task.most

    def start(self, header: KeyedHeader) -> None:
        """Prepare for batches of streams with this header."""
        self.header = header
        self.hasher = KeyHasher(self.header.key, self.task.formula)
        names = [m.name for m in self.header.states]
        self.table = KeyedTable(self.header, names, EXACT, None)
        self.layouts = [self._layout(number, meta) for number, meta in enumerate(self.header.states)]

    def _layout(self, number: int, meta: StateMetaInfo) -> Hashable:
        """Return a value that is equal for states whose keys and values are decoded alike."""
        shape = self.table.shapes.get(meta.name)
        if shape is None or shape.packed is not None or meta.namespace is None:
            return number
        parts = (meta.namespace, shape.element, *(() if shape.user_key is None else (shape.user_key,)))
        decoders = tuple((part.program(), part.logical, part.none_is_value) for part in parts)
        return meta.kind, shape.kind, shape.framed_bytes, meta.namespace.null_form(), decoders

    def batch(self, batch: EntryBatch) -> None:
        """Check entries, without raising an error."""
        self.result.entries += len(batch)
        checked: list[tuple[EntryBatch, Int64s, Int64s]] = []
        alike: dict[Hashable, list[int]] = defaultdict(list)
        for number in batch.states():
            alike[self.layouts[number]].append(number)
        for numbers in alike.values():
            together = self.together(batch.of_states(numbers)) if len(numbers) > 1 else None
            if together is not None:
                checked.append(together)
                continue
            for number in numbers:
                checked += self.state(self.header.states[number], batch.of_state(number))
        if checked:
            self.hashes(batch, checked)

    def together(self, entries: EntryBatch) -> tuple[EntryBatch, Int64s, Int64s] | None:
        """Check the entries of several states of the same layout. Return them with the start and end of the job's key in each.

        Returns ``None`` if an entry fails: the states have to be checked one by one.
        """
        meta = self.header.states[entries.state[0]]
        try:
            keys = split_keys(entries, self.header.key, meta)
            assert meta.namespace is not None
            if len(nulls_among(self.header.key, entries.data, keys.key, keys.key_end)):
                return None
            if len(nulls_among(meta.namespace, entries.data, keys.namespace, keys.namespace_end)):
                return None
            state_and_group = entries.group * len(self.header.states) + entries.state
            _, first = distinct(entries.data, entries.key, entries.key_end, state_and_group)
            if len(first) < len(entries):
                return None
            if self.task.deep:
                for _ in self.table.long_rows_of(entries, keys, meta.name):
                    pass
        except StatetoolError:
            return None
        return entries, keys.key, keys.key_end

    def state(self, meta: StateMetaInfo, entries: EntryBatch) -> list[tuple[EntryBatch, Int64s, Int64s]]:
        """Check the entries of one state. Return those whose keys can be split, with the start and end of the job's key in each."""
        readable = self.keys(entries, meta)
        for part, _, _ in readable:
            if meta.kind != "timers":
                self.duplicates(part, meta)
            if self.task.deep:
                self.values(part, meta)
        return readable

    def keys(self, entries: EntryBatch, meta: StateMetaInfo) -> list[tuple[EntryBatch, Int64s, Int64s]]:
        """Return the entries whose keys fit their serializers, and the start and end of the job's key in each."""
        readable: list[tuple[EntryBatch, Int64s, Int64s]] = []

        def split(batch: EntryBatch) -> None:
            if meta.kind == "timers":
                self.table.timer_rows(batch, meta.name)
                start, key = batch.key + TIMESTAMP_BYTES, self.header.key
                end = find_ends(key.program(), key.skip, batch.data, start, batch.key_end)
                self.nulls(batch, meta, (start, end), (end, batch.key_end))
                readable.append((batch, start, end))
                return
            keys = split_keys(batch, self.header.key, meta)
            self.nulls(batch, meta, (keys.key, keys.key_end), (keys.namespace, keys.namespace_end))
            readable.append((batch, keys.key, keys.key_end))

        self.isolated(entries, meta, split, keys=True)
        return readable

    def nulls(self, entries: EntryBatch, meta: StateMetaInfo, key: _Spans, namespace: _Spans) -> None:
        """Find entries with a null key or namespace, which Flink's heap tables and timers reject."""
        what = "a timer" if meta.kind == "timers" else "an entry"
        in_namespace = check_timers(meta).nested[1] if meta.kind == "timers" else meta.namespace
        for name, serializer, spans in (("key", self.header.key, key), ("namespace", in_namespace, namespace)):
            if serializer is None or self.full:
                continue
            null_entries = nulls_among(serializer, entries.data, *spans)
            if len(null_entries):
                more = f", and {len(null_entries) - 1} more" if len(null_entries) > 1 else ""
                error = DecodeError(f"{what} with a null {name}{more}: Flink cannot store it")
                self.add(entries.locate(error.at(offset=int(entries.key[null_entries[0]]))), state=meta.name)

    def isolated(
        self, entries: EntryBatch, meta: StateMetaInfo, check: Callable[[EntryBatch], None], *, keys: bool = False
    ) -> None:
        """Call ``check`` with entries; if it raises, call it with their halves, down to single entries.

        ``keys``: ``check`` splits keys. If their type is unknown, none of these entries is read.
        """
        if self.full:
            return
        try:
            check(entries)
        except StatetoolError as error:
            if keys and isinstance(error, UNREAD) and not isinstance(error, FormatError):
                self.lost(error, state=meta.name)
                return
            if len(entries) == 1:
                self.failed(entries, meta, error)
                return
            middle = len(entries) // 2
            self.isolated(entries.take(np.arange(middle)), meta, check, keys=keys)
            self.isolated(entries.take(np.arange(middle, len(entries))), meta, check, keys=keys)

    def failed(self, entry: EntryBatch, meta: StateMetaInfo, error: StatetoolError) -> None:
        """Distinguish damage from values that only Arrow cannot hold (a lone surrogate, a date beyond its range)."""
        if error.where.offset is None:
            error = error.at(offset=int(entry.key[0]))
        if error.where.file is None:
            error = entry.locate(error)
        decodable = meta.kind != "timers" and decodes_plainly(self.header.key, meta, entry)
        if decodable:
            error.message = not_shown(error.message)
        self.add(error, state=meta.name, severity="note" if decodable else "error")

    def duplicates(self, entries: EntryBatch, meta: StateMetaInfo) -> None:
        """Find entries with the key, namespace and user key of an earlier entry."""
        ids, first = distinct(entries.data, entries.key, entries.key_end, entries.group)
        if len(first) == len(ids):
            return
        for i in np.flatnonzero(np.bincount(ids)[ids] > 1).tolist():
            if i not in first and not self.full:
                error = DecodeError("a second entry with the same key").at(offset=int(entries.key[i]))
                self.add(entries.locate(error), state=meta.name)

    def values(self, entries: EntryBatch, meta: StateMetaInfo) -> None:
        """Decode keys, namespaces and values to their last byte."""
        if meta.kind == "timers":
            return

        def decode(batch: EntryBatch) -> None:
            for _, _, columns in self.table.long_rows(batch, meta.name):
                # The long form shows them, but keyed_state does not.
                if any(name == "map_key" and array.null_count for name, _, array in columns):
                    raise DecodeError("a map with a null key")

        self.isolated(entries, meta, decode)

    def hashes(self, batch: EntryBatch, checked: list[tuple[EntryBatch, Int64s, Int64s]]) -> None:
        """Check that keys are in the key groups of their hash codes."""
        if self.result.unknown_hash:
            return
        start = np.concatenate([s for _, s, _ in checked])
        end = np.concatenate([e for _, _, e in checked])
        group = np.concatenate([b.group for b, _, _ in checked])
        _, first = distinct(batch.data, start, end, group)
        start, end, group = start[first], end[first], group[first]
        states = np.concatenate([b.state for b, _, _ in checked])[first]
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
                    codes[i] = self.hasher.hashed.hash_code(decode_key(self.header.key, batch.data, start[i], end[i]))
                except StatetoolError as error:
                    known[i] = False
                    error = error.at(offset=int(start[i]))
                    self.add(batch.locate(error), state=self.header.states[states[i]].name)
        expected = key_groups(codes, self.context.max_parallelism)
        self.distinct.add(batch, start[known], end[known])
        for i in np.flatnonzero(known & (expected != group)).tolist():
            if self.full:
                return
            text = display_value(
                decode_key(self.header.key, batch.data, int(start[i]), int(end[i])), self.header.key.logical
            )
            words = f"key {text} is in key group {int(group[i])}, its hash code belongs to {int(expected[i])}"
            if self.task.formula is not None:
                words += f" (if it is {self.task.formula}, as for the first keys)"
            wrong = batch.locate(DecodeError(words).at(offset=int(start[i])))
            wrong.where = replace(wrong.where, key_group=None)
            # A formula that fits a sample may be wrong for keys that differ in other fields.
            self.add(
                wrong, state=self.header.states[states[i]].name, severity="warning" if self.task.formula else "error"
            )


def decodes_plainly(key: Serializer, meta: StateMetaInfo, entry: EntryBatch) -> bool:
    """Return True if the parts of one entry's key and its value decode to their last byte by the ``decode`` of their serializers."""
    shape = StateLayout(meta)
    data = entry.data.data
    try:
        keys = split_keys(entry, key, meta)
        parts = [(key, keys.key, keys.key_end), (meta.namespace, keys.namespace, keys.namespace_end)]
        if meta.kind == "map":
            parts.append((shape.user_key, keys.user_key, entry.key_end))
        for serializer, start, end in parts:
            c = Cursor(data, int(start[0]), int(end[0]))
            if serializer is not None:
                serializer.decode(c)
            if c.left:
                return False
        c = Cursor(data, int(entry.value[0]), int(entry.value_end[0]))
        if shape.kind == "map" and shape.user_key is not None and c.bool():
            return c.left == 0
        element = shape.packed or shape.element
        element.decode(c)
        while shape.kind == "list" and not shape.framed_bytes and c.left:
            if c.u1() != SEPARATOR:
                return False
            element.decode(c)
    except StatetoolError:
        return False
    return c.left == 0
