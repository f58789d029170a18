"""New keys by a SQL expression of the old key, and of the states of the key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.companions import SUFFIXES
from statetool.columns.values import decode_framed
from statetool.entries.form import EntryRequest, error_context
from statetool.errors import OptionError
from statetool.formats.keyed.distinct import distinct
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.saving.rekeying.expressions import evaluate, names_of, result_type
from statetool.saving.streams.predicates import OPTIONS, key_columns
from statetool.saving.streams.row_predicates import check_written, gather_ranges, rows_of_keys
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.keyed import KeyedTable
from statetool.tables.kinds.registry import KeyedStateKind, in_table_order
from statetool.tables.read import whole_batch
from statetool.tables.request import ScanRequest
from statetool.tables.scan import plan_table, table_states
from statetool.tables.splits import KeyedSplit

#: Bytes of keys of evaluated key groups that a task remembers.
_REMEMBERED_BYTES: Final = 64 << 20
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """New keys by an expression of the old key alone."""

    sql: str

    def make(self, key: Serializer, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> pa.Array:
        """Return the new key of each old key."""
        return evaluate(key_columns(key, decode_framed(key, data, start, end, OPTIONS)), self.sql)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """Old keys of a key group, one after another, each up to its end, with the new ones."""

    data: Bytes
    ends: Int64s
    made: pa.Array

    @property
    def size_bytes(self) -> int:
        return self.data.nbytes + self.ends.nbytes + int(self.made.nbytes)


@dataclass(frozen=True, kw_only=True)
class RowExpression:
    """New keys by an expression of the columns of ``keyed_state``, evaluated by key group.

    Attributes
    ----------
    schema
        The Arrow schema of the rows (IPC bytes): the key, and the states that the expression names.
    kind
        The Arrow schema of the results (IPC bytes), in one column.
    splits
        Splits of the table.
    """

    sql: str
    schema: bytes
    kind: bytes
    splits: tuple[KeyedSplit, ...]
    _evaluated: dict[int, _Evaluated] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluated": {}}

    def make(self, key: Serializer, data: Bytes, start: Int64s, end: Int64s, group: Int64s) -> pa.Array:
        """Return the new key of each old key. Those without any of the states have a row in which they are null."""
        made: list[pa.Array] = []
        source = np.full(len(start), -1, dtype=np.int64)
        total = 0
        for number in np.unique(group).tolist():
            own = np.flatnonzero(group == number)
            known = self._keys_of(number)
            at = _look_up(known, data, start[own], end[own])
            found = own[at >= 0]
            source[found] = total + np.arange(len(found))
            made.append(known.made.take(as_arrow(at[at >= 0])))
            total += len(found)
        others = np.flatnonzero(source < 0)
        if len(others):
            keys = key_columns(key, decode_framed(key, data, start[others], end[others], OPTIONS))
            made.append(evaluate(rows_of_keys(keys, self.schema), self.sql))
            source[others] = total + np.arange(len(others))
        return pa.concat_arrays(made).take(as_arrow(source)) if made else pa.array([], self._kind)

    @property
    def _kind(self) -> pa.DataType:
        return pa.ipc.read_schema(pa.py_buffer(self.kind)).field(0).type

    def _keys_of(self, key_group: int) -> _Evaluated:
        with _lock:
            found = self._evaluated.get(key_group)
        if found is None:
            found = self._concat(list(self._evaluate(key_group)))
            with _lock:
                size = sum(keys.size_bytes for keys in self._evaluated.values())
                if size + found.size_bytes > _REMEMBERED_BYTES:
                    self._evaluated.clear()
                self._evaluated[key_group] = found
        return found

    def _evaluate(self, key_group: int) -> Iterator[_Evaluated]:
        for split in self.splits:
            source = split.source.within([key_group])
            if source is None:
                continue
            spec = split.spec
            request = EntryRequest(states=spec.states, whole_keys=True, memory_bytes=spec.memory_bytes)
            with error_context(source):
                table = KeyedTable(source.header(), spec.states, spec.options, None)
                for batch in source.batches(request) if table.metas else ():
                    keys = table.keys_of(batch, spec.states)
                    key, *states = table.keyed_columns(batch, keys)
                    rows = whole_batch(keys.group, [key, *in_table_order(states, spec, len(keys.start))], spec)
                    made = evaluate(pa.Table.from_batches([rows]), self.sql)
                    yield _Evaluated(*gather_ranges(batch.data, keys.start, keys.end), made)

    def _concat(self, parts: list[_Evaluated]) -> _Evaluated:
        if not parts:
            return _Evaluated(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), pa.array([], self._kind))
        before = np.cumsum([0, *(len(p.data) for p in parts)])[:-1].tolist()
        return _Evaluated(
            np.concatenate([p.data for p in parts]),
            np.concatenate([p.ends + offset for p, offset in zip(parts, before, strict=True)]),
            pa.concat_arrays([p.made for p in parts]),
        )


def _look_up(keys: _Evaluated, data: Bytes, start: Int64s, end: Int64s) -> Int64s:
    """Return the number of each range of bytes among the keys, -1 if it is none of them."""
    wanted, ends = gather_ranges(data, start, end)
    both = np.concatenate([keys.data, wanted])
    stops = np.concatenate([keys.ends, ends + len(keys.data)])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), stops])[:-1]
    ids, first = distinct(both, starts, stops, np.zeros(len(stops), dtype=np.int64))
    at = first[ids[len(keys.ends) :]]
    return np.where(at < len(keys.ends), at, -1)


def key_maker(
    operator: OperatorInventory, key: Serializer, sql: str
) -> tuple[KeyExpression | RowExpression, pa.DataType]:
    """Return what computes the new keys of an operator by a SQL expression, and the type of its results.

    Raises
    ------
    OptionError
        The expression is not valid SQL, or refers to other columns or types.
    UnsupportedError
        A state that the expression names cannot be a column.
    MissingDependencyError
        DuckDB is not installed.
    """
    used = names_of(sql)
    plain = key_columns(key, decode_framed(key, *_NOTHING, OPTIONS)).schema
    lower = {name.lower() for name in used}
    if lower <= {name.lower() for name in plain.names}:
        return KeyExpression(sql), result_type(plain, sql)
    columns = KeyedStateKind().plan(operator, ScanRequest.of(), table_states(operator, ())).column_of
    check_written(used, sql, columns)
    named = [n for n, c in columns.items() if c is not None and any((c + s).lower() in lower for s in ("", *SUFFIXES))]
    scan = plan_table(operator, ScanRequest.of(states=named, decimals=OPTIONS.decimals)).scan()
    try:
        kind = result_type(scan.schema, sql)
    except OptionError as error:
        unused = ", ".join(c for n, c in columns.items() if c is not None and n not in named)
        raise OptionError(error.message, hint=f"{error.hint}{unused and ', '}{unused}") from error.__cause__
    made = RowExpression(
        sql=sql,
        schema=scan.schema.serialize().to_pybytes(),
        kind=pa.schema([("key", kind)]).serialize().to_pybytes(),
        splits=tuple(split for split in scan.splits if isinstance(split, KeyedSplit)),
    )
    return made, kind


_NOTHING: Final = (np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
