"""SQL conditions on keys and the values of their states.

The condition is evaluated on the rows of the table ``keyed_state``, by key group: when a task meets the first entry of a key group, it reads
the states that the condition names, and remembers which keys fulfil it. A key without any of these states has a row in which they are null,
also if it has only timers, windows or other states.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import Self

from statetool.columns.companions import SUFFIXES
from statetool.columns.values import decode_framed
from statetool.entries.form import EntryRequest, error_context
from statetool.errors import OptionError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.core.arrays import Int64s
from statetool.saving.streams.condition_rules import names_in
from statetool.saving.streams.filters import Bools, MaskFilter, key_bounds
from statetool.saving.streams.predicates import OPTIONS, check_columns, key_columns, matching_rows
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.keyed import KeyedTable
from statetool.tables.kinds.registry import KeyedStateKind, in_table_order
from statetool.tables.read import whole_batch
from statetool.tables.request import ScanRequest
from statetool.tables.scan import plan_table, table_states
from statetool.tables.splits import KeyedSplit

#: Bytes of the keys of evaluated key groups that a task remembers.
_REMEMBERED_BYTES: Final = 64 << 20
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Keys:
    """Encoded keys, one after another: key ``i`` has the bytes ``ends[i - 1] .. ends[i]``. ``fulfils`` is the result for each."""

    data: npt.NDArray[np.uint8]
    ends: Int64s
    fulfils: Bools

    @property
    def size_bytes(self) -> int:
        return self.data.nbytes + self.ends.nbytes + self.fulfils.nbytes

    @property
    def starts(self) -> Int64s:
        return np.concatenate([np.zeros(1, dtype=np.int64), self.ends])[:-1]


@dataclass(frozen=True, kw_only=True)
class RowFilter(MaskFilter):
    """Filter by a condition on the columns of ``keyed_state``.

    Attributes
    ----------
    keep
        Whether keys that fulfil the condition stay and all others are removed, instead of the opposite.
    schema
        The Arrow schema of the rows (IPC bytes): the key, and the states that the condition names.
    splits
        Splits of the table, from the snapshot in which the condition is evaluated.
    groups
        The key groups that may have such keys, ``None`` if unknown.
    """

    where: str
    keep: bool
    schema: bytes
    splits: tuple[KeyedSplit, ...]
    groups: frozenset[int] | None = None
    _evaluated: dict[int, _Keys] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluated": {}}

    def may_change(self, key_group: int) -> bool:
        return self.groups is None or key_group in self.groups

    def within(self, groups: frozenset[int]) -> RowFilter:
        """Return the filter for a snapshot in which only these key groups change."""
        return replace(self, groups=groups)

    def for_task(self, groups: Collection[int]) -> Self:
        """Return the filter for a task that has only entries of these key groups."""
        return replace(self, splits=tuple(self._splits_of(groups)))

    def _splits_of(self, groups: Collection[int]) -> Iterator[KeyedSplit]:
        for split in self.splits:
            source = split.source.within(groups)
            if source is not None:
                yield replace(split, source=source)

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        start, end = key_bounds(header, batch)
        ids, first = distinct(batch.data, start, end, batch.group)
        start, end, group = start[first], end[first], batch.group[first]
        fulfilled = np.zeros(len(first), dtype=np.bool_)
        known = np.zeros(len(first), dtype=np.bool_)
        for number in np.unique(group).tolist():
            own = np.flatnonzero(group == number)
            found = _look_up(self._keys_of(number), batch.data, start[own], end[own])
            known[own] = found >= 0
            fulfilled[own] = found > 0
        if not known.all():
            others = np.flatnonzero(~known)
            keys = decode_framed(header.key, batch.data, start[others], end[others], OPTIONS)
            fulfilled[others[matching_rows(rows_of_keys(key_columns(header.key, keys), self.schema), self.where)]] = (
                True
            )
        return fulfilled[ids] if self.keep else ~fulfilled[ids]

    def _keys_of(self, key_group: int) -> _Keys:
        """Return the keys of a key group that have one of the states."""
        with _lock:
            found = self._evaluated.get(key_group)
        if found is None:
            found = _concat(list(self._evaluate(key_group)))
            with _lock:
                while self._evaluated and self._size_bytes() + found.size_bytes > _REMEMBERED_BYTES:
                    del self._evaluated[next(iter(self._evaluated))]
                self._evaluated[key_group] = found
        return found

    def _size_bytes(self) -> int:
        return sum(keys.size_bytes for keys in self._evaluated.values())

    def _evaluate(self, key_group: int) -> Iterator[_Keys]:
        """Evaluate the condition for the keys of a key group that have one of the states."""
        for split in self._splits_of([key_group]):
            spec = split.spec
            request = EntryRequest(states=spec.states, whole_keys=True, memory_bytes=spec.memory_bytes)
            with error_context(split.source):
                table = KeyedTable(split.source.header(), spec.states, spec.options, None)
                for batch in split.source.batches(request) if table.metas else ():
                    keys = table.keys_of(batch, spec.states)
                    n = len(keys.start)
                    key, *states = table.keyed_columns(batch, keys)
                    rows = whole_batch(keys.group, [key, *in_table_order(states, spec, n)], spec)
                    fulfils = np.zeros(n, dtype=np.bool_)
                    fulfils[matching_rows(pa.Table.from_batches([rows]), self.where)] = True
                    yield _Keys(*gather_ranges(batch.data, keys.start, keys.end), fulfils)


def rows_of_keys(keys: pa.Table, schema_bytes: bytes) -> pa.Table:
    """Return rows of keys without states: their columns are null, and say that there is none where they cannot be."""
    schema = pa.ipc.read_schema(pa.py_buffer(schema_bytes))
    columns = {name: keys[name] for name in keys.schema.names}
    for column in schema:
        if column.name not in columns:
            absent = pa.nulls(len(keys), column.type)
            columns[column.name] = absent if column.nullable else absent.fill_null(pa.scalar(False))
    return pa.table(columns)


def gather_ranges(data: npt.NDArray[np.uint8], start: Int64s, end: Int64s) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Return ranges of bytes one after another, and the end of each."""
    sizes = end - start
    ends = np.cumsum(sizes)
    at = np.arange(int(sizes.sum())) + np.repeat(start - (ends - sizes), sizes)
    return data[at], ends


def _concat(parts: Sequence[_Keys]) -> _Keys:
    if not parts:
        return _Keys(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))
    before = np.cumsum([0, *(len(p.data) for p in parts)])[:-1].tolist()
    return _Keys(
        np.concatenate([p.data for p in parts]),
        np.concatenate([p.ends + offset for p, offset in zip(parts, before, strict=True)]),
        np.concatenate([p.fulfils for p in parts]),
    )


def _look_up(keys: _Keys, data: npt.NDArray[np.uint8], start: Int64s, end: Int64s) -> Int64s:
    """Return 1 for each range of bytes that is a key with a positive result, 0 for other keys, and -1 if it is none of the keys."""
    wanted, ends = gather_ranges(data, start, end)
    both = _concat([keys, _Keys(wanted, ends, np.zeros(len(ends), dtype=np.bool_))])
    count = len(keys.ends)
    ids, first = distinct(both.data, both.starts, both.ends, np.zeros(len(both.ends), dtype=np.int64))
    at = first[ids[count:]]
    return np.where(at < count, both.fulfils[at].astype(np.int64), -1)


def row_filter(operator: OperatorInventory, where: str, *, keep: bool) -> RowFilter:
    """Return the filter for a condition on the columns of an operator's ``keyed_state``.

    Raises
    ------
    OptionError
        The condition is not valid SQL, or refers to other columns or types.
    UnsupportedError
        A state that the condition names cannot be a column.
    """
    states = table_states(operator, ())
    columns = KeyedStateKind().plan(operator, ScanRequest.of(), states).column_of
    used = names_in(where)
    check_written(used, where, columns)
    lower = {name.lower() for name in used}
    named = [n for n, c in columns.items() if c is not None and any((c + s).lower() in lower for s in ("", *SUFFIXES))]
    scan = plan_table(operator, ScanRequest.of(states=named, decimals=OPTIONS.decimals)).scan()
    try:
        check_columns(scan.schema, where)
    except OptionError as error:
        unused = ", ".join(c for n, c in columns.items() if c is not None and n not in named)
        raise OptionError(error.message, hint=f"{error.hint}{unused and ', '}{unused}") from error.__cause__
    return RowFilter(
        where=where,
        keep=keep,
        schema=scan.schema.serialize().to_pybytes(),
        splits=tuple(split for split in scan.splits if isinstance(split, KeyedSplit)),
    )


def check_written(used: Collection[str], where: str, columns: Mapping[str, str | None]) -> None:
    """Refuse a name that may mean several states, whose names differ only in case, unless it is exactly that of a column."""
    for name in sorted(used):
        similar = [state for state in columns if state.lower() == name.lower()]
        if len(similar) > 1 and name not in columns.values():
            raise OptionError(
                f"the condition {where!r} names {name!r}, which may be any of the states {', '.join(map(repr, similar))}",
                hint=f"their columns are {', '.join(str(columns[state]) for state in similar)}",
            )
