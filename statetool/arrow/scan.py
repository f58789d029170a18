"""Tables of a snapshot as Arrow: schema and splits on the driver, record batches in tasks.

:func:`scan_table` plans a table; :func:`read_split` reads one of its splits, anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.batches import bounded
from statetool.arrow.changelog import read_changelog
from statetool.arrow.in_flight import in_flight_columns, in_flight_rows
from statetool.arrow.keyed import UNDECODED, UNDECODED_TYPE, Columns, KeyedTable, flatten
from statetool.arrow.merge import mergeable, merged
from statetool.arrow.operator_state import operator_columns, operator_rows
from statetool.arrow.spill import dealt, key_hashes, spilled
from statetool.arrow.types import column_fields
from statetool.arrow.values import StateShape
from statetool.errors import (
    EncodeError,
    FormatError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    suggest,
)
from statetool.formats.channel_state import Side
from statetool.formats.described import may_differ
from statetool.formats.key_groups import key_group_for, prefix_size
from statetool.formats.keyed.canonical import (
    BATCH_BYTES,
    KeyGroupRange,
    StreamLayout,
    batches_of,
    is_larger,
    open_large,
    read_entries,
)
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.heap_walk import heap_windows
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.raw_entries import read_raw_timers
from statetool.formats.keyed.raw_timers import read_raw_header
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.io.memory import keep_freed_memory
from statetool.io.output import Output
from statetool.plan.operator import OperatorInventory
from statetool.plan.splits import (
    TARGET_BYTES,
    ChangelogSplit,
    InFlightSplit,
    KeyedSplit,
    NativeSplit,
    OperatorSplit,
    RawSplit,
    Split,
    TableSpec,
    plan_changelog,
    plan_in_flight,
    plan_keyed,
    plan_native,
    plan_operator_state,
    plan_raw_timers,
)
from statetool.serializers.base import Serializer
from statetool.serializers.context import reading_with
from statetool.types import LogicalType, Scalar
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

TIMERS_PREFIX: Final = "_timer_state/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A planned read of one table."""

    schema: pa.Schema
    splits: tuple[Split, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read all splits here, one after another."""
        for split in self.splits:
            yield from read_split(split)


def scan_table(
    operator: OperatorInventory,
    table: str,
    *,
    states: Sequence[str] | None = None,
    options: ReadOptions | None = None,
    keys: Sequence[Any] | None = None,
    key_group: bool = False,
    subtask: bool = False,
    split_bytes: int = TARGET_BYTES,
    memory_bytes: int | None = None,
) -> TableScan:
    """Plan a table of an operator; runs on the driver and reads headers only.

    Parameters
    ----------
    table
        ``keyed_state``, ``timers``, or the name of a state (its long form).
    states
        Of ``keyed_state``: the states wanted; others are skipped undecoded.
    keys
        Plain key values to keep: only their key groups are read.
    key_group, subtask
        Add the column ``key_group`` (keyed tables) or ``subtask`` (operator state; of union and broadcast state,
        every subtask's copy is shown then).
    split_bytes
        Bytes of a split on disk, about.
    memory_bytes
        Key groups above this are put together by way of local disk.

    Raises
    ------
    UnknownNameError, OptionError, UnsupportedError
    """
    options = _resolve(options or ReadOptions())
    operator = operator.with_columns(options.columns)
    spec = TableSpec(
        operator=operator.label,
        table="keyed_state",
        states=(),
        options=options,
        max_parallelism=operator.state.max_parallelism,
        key_group_column=key_group,
        subtask_column=subtask,
        types=operator.types,
    )
    if memory_bytes is not None:
        spec = replace(spec, memory_bytes=memory_bytes)
    if states is not None and table != "keyed_state":
        raise OptionError("states= selects columns of the table keyed_state only")
    if table not in ("keyed_state", "timers") and table in operator.operator_states:
        if keys is not None or key_group:
            raise OptionError(f"{table!r} is an operator state: it has no keys and no key groups")
        return _scan_operator_state(operator, spec, table, split_bytes)
    if subtask:
        raise OptionError("only operator state has a subtask column")
    spec = replace(spec, descriptions=operator.descriptions)
    spec, columns = _keyed_columns(operator, spec, table, states)
    groups = None
    if keys is not None:
        encoded, groups = _encode_keys(operator, keys)
        spec = replace(spec, keys=encoded)
    fields = [f for name, logical in columns for f in column_fields(name, logical, options)]
    if key_group:
        fields.append(pa.field("key_group", pa.int32()))
    schema = _schema(fields, operator.label)
    spec = replace(spec, schema=schema.serialize().to_pybytes())
    if not spec.states:
        return TableScan(schema=schema, splits=())
    keyed = plan_keyed(operator, spec, groups=groups, target_bytes=split_bytes)
    native = plan_native(operator, spec, groups=groups, target_bytes=split_bytes)
    raw = plan_raw_timers(operator, spec, groups=groups, target_bytes=split_bytes) if spec.table == "timers" else []
    changelog = plan_changelog(operator, spec, groups=groups, target_bytes=split_bytes)
    return TableScan(schema=schema, splits=(*keyed, *native, *raw, *changelog))


def _resolve(options: ReadOptions) -> ReadOptions:
    if options.ttl == "hide_expired" and options.now_ms is None:
        return replace(options, now_ms=int(time.time() * 1000))
    return options


def _schema(fields: list[pa.Field], operator: str) -> pa.Schema:
    names = [f.name.lower() for f in fields]
    if twice := {n for n in names if names.count(n) > 1}:
        raise OptionError(
            f"operator {operator!r} has columns that differ at most in case: {', '.join(sorted(twice))}",
            hint="select some with states=[...] or read one state at a time",
        )
    return pa.schema(fields)


def _keyed_columns(
    operator: OperatorInventory, spec: TableSpec, table: str, states: Sequence[str] | None
) -> tuple[TableSpec, list[tuple[str, LogicalType]]]:
    metas = {name: meta for name, (_, meta) in operator.keyed_states.items()}
    key = _key_type(operator)
    if table == "keyed_state":
        names = _void_states(operator, metas, states)
        columns = [("key", key), *((n, StateShape(metas[n]).logical) for n in names)]
        if spec.options.on_error == "keep_raw":
            columns.append((UNDECODED, UNDECODED_TYPE))
        return replace(spec, table="keyed_state", states=tuple(names)), columns
    if table == "timers":
        timers = tuple(n for n, m in metas.items() if m.kind == "timers")
        columns = [("key", key)]
        if timers:
            columns += _timer_namespace(operator, [metas[n] for n in timers])
        columns += [("timestamp", Scalar("int64")), ("domain", Scalar("string")), ("service", Scalar("string"))]
        return replace(spec, table="timers", states=timers), columns
    meta = metas.get(table)
    if meta is None or meta.kind == "timers":
        known = [*metas, *operator.operator_states, "keyed_state", "timers"]
        raise UnknownNameError(f"operator {operator.label!r} has no state {table!r}", hint=suggest(table, known)).at(
            operator=operator.label
        )
    columns = _long_columns(key, meta)
    if spec.options.on_error == "keep_raw":
        columns.append((UNDECODED, UNDECODED_TYPE))
    return replace(spec, table="state", states=(table,)), columns


def _key_type(operator: OperatorInventory) -> LogicalType:
    for header, _ in operator.keyed_states.values():
        return header.key.logical
    return Scalar("null")


def _void_states(operator: OperatorInventory, metas: dict[str, StateMeta], states: Sequence[str] | None) -> list[str]:
    void = [n for n, m in metas.items() if m.namespace is not None and m.namespace.logical == Scalar("null")]
    if states is None:
        return void
    if isinstance(states, str):
        raise OptionError("states= takes a list of names, not one string")
    for name in states:
        if name not in metas:
            raise UnknownNameError(
                f"operator {operator.label!r} has no keyed state {name!r}", hint=suggest(name, void)
            ).at(operator=operator.label)
        if name not in void:
            raise OptionError(
                f"state {name!r} has a namespace and no place in keyed_state", hint=f"read it with op.state({name!r})"
            )
    return list(states)


def _timer_namespace(operator: OperatorInventory, timers: list[StateMeta]) -> list[tuple[str, LogicalType]]:
    kinds = {m.value.children()[1][1].logical for m in timers}
    if len(kinds) > 1:
        raise UnsupportedError("the timer services of the operator have namespaces of different types").at(
            operator=operator.label
        )
    (kind,) = kinds
    return [] if kind == Scalar("null") else [("namespace", kind)]


def _long_columns(key: LogicalType, meta: StateMeta) -> list[tuple[str, LogicalType]]:
    shape = StateShape(meta)
    columns = [("key", key)]
    if meta.namespace is not None and meta.namespace.logical != Scalar("null"):
        columns.append(("namespace", meta.namespace.logical))
    if shape.kind == "list" and not shape.framed_bytes:
        columns.append(("list_index", Scalar("int64")))
    if shape.kind == "map" and shape.user_key is not None:
        columns.append(("map_key", shape.user_key.logical))
    return [*columns, ("value", shape.element.logical)]


def _encode_keys(operator: OperatorInventory, keys: Sequence[Any]) -> tuple[tuple[bytes, ...], frozenset[int]]:
    """Return the bytes of keys, and the key groups that they lie in."""
    serializer = next((h.key for h, _ in operator.keyed_states.values()), None)
    if serializer is None:
        return (), frozenset()
    encoded: list[bytes] = []
    groups: set[int] = set()
    for value in keys:
        try:
            forms = serializer.key_forms(value)
        except (TypeError, AttributeError, ValueError) as e:
            if isinstance(e, StatetoolError):
                raise e.at(operator=operator.label) from None
            raise EncodeError(
                f"{value!r} is not a key of type {serializer.type_name}",
                hint="keys are given as plain values: numbers, strings, tuples of them",
            ).at(operator=operator.label) from e
        for raw, hash_code in forms:
            encoded.append(raw)
            # A hash that lies in user code may mean any key group.
            groups |= (
                set(range(operator.state.max_parallelism))
                if hash_code is None
                else {key_group_for(hash_code, operator.state.max_parallelism)}
            )
    return tuple(encoded), frozenset(groups)


def _scan_operator_state(operator: OperatorInventory, spec: TableSpec, name: str, split_bytes: int) -> TableScan:
    meta = operator.operator_states[name]
    spec = replace(spec, table="operator_state", states=(name,))
    if may_differ([meta]):
        spec = replace(spec, descriptions=operator.operator_descriptions)
    columns = operator_columns(meta)
    if spec.options.on_error == "keep_raw":
        columns.append((UNDECODED, UNDECODED_TYPE))
    fields = [f for n, t in columns for f in column_fields(n, t, spec.options)]
    if spec.subtask_column:
        fields.append(pa.field("subtask", pa.int32()))
    one_copy = meta.kind in ("union", "broadcast") and not spec.subtask_column
    if meta.kind == "union":
        # Each subtask holds its own part; what is redistributed to all is their union.
        one_copy = False
    schema = _schema(fields, operator.label)
    spec = replace(spec, schema=schema.serialize().to_pybytes())
    splits = plan_operator_state(operator, spec, one_copy=one_copy, target_bytes=split_bytes)
    return TableScan(schema=schema, splits=tuple(splits))


def scan_in_flight(
    operator: OperatorInventory, side: Side, record: Serializer, *, options: ReadOptions | None = None
) -> TableScan:
    """Plan the table of the data in flight at an operator's inputs or outputs (unaligned checkpoints).

    Parameters
    ----------
    record
        Serializer of the records: the snapshot does not name it.
    """
    options = _resolve(options or ReadOptions())
    fields = [f for n, t in in_flight_columns(record) for f in column_fields(n, t, options)]
    schema = _schema(fields, operator.label)
    spec = TableSpec(
        operator=operator.label,
        table="in_flight",
        states=(),
        options=options,
        max_parallelism=operator.state.max_parallelism,
        schema=schema.serialize().to_pybytes(),
        types=operator.types,
    )
    out = Output()
    record.write_snapshot(out)
    return TableScan(schema=schema, splits=tuple(plan_in_flight(operator, spec, side, bytes(out))))


# ---- in a task ----------------------------------------------------------------------------------


def read_split(split: Split) -> Iterator[pa.RecordBatch]:
    """Read the rows of one split; batches have at most 65,536 rows and 32 MiB (or one row that is larger).

    Raises
    ------
    FormatError
        Damaged bytes; with file, offset, operator, state and key group.
    """
    keep_freed_memory()
    batches = _read(split)
    while True:
        # Set for each step alone: between them the caller's context is in force.
        with reading_with(split.spec.types):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _read(split: Split) -> Iterator[pa.RecordBatch]:
    try:
        if isinstance(split, OperatorSplit):
            for n, columns in operator_rows(split):
                extra = [("subtask", np.full(n, split.subtask))] if split.spec.subtask_column else []
                yield from _record_batches(n, columns, split.spec, extra)
            return
        if isinstance(split, InFlightSplit):
            for n, columns in in_flight_rows(split):
                yield from _record_batches(n, columns, split.spec, [])
            return
        if isinstance(split, NativeSplit):
            yield from _read_native(split)
            return
        if isinstance(split, RawSplit):
            yield from _read_raw_timers(split)
            return
        if isinstance(split, ChangelogSplit):
            yield from _read_changelog(split)
            return
        with split.stream.open() as f:
            yield from _read_keyed(f, split)
    except StatetoolError as error:
        raise error.at(operator=split.spec.operator, file=split.stream.file) from None


def _read_keyed(f: OpenStream, split: KeyedSplit) -> Iterator[pa.RecordBatch]:
    spec = split.spec
    header = _parse_header(bytes(f.read_at(0, split.header_bytes)), split.stream.start, spec.types, spec.descriptions)
    table = KeyedTable(header, spec.states, spec.options, spec.keys)
    layout = StreamLayout(
        prefix=prefix_size(spec.max_parallelism),
        states=len(header.states),
        compressed=header.compressed,
        heap=header if split.heap else None,
    )
    for groups in batches_of(split.key_groups, limit=BATCH_BYTES // (4 if layout.compressed else 1)):
        for batch in _entries(f, groups, layout, table, spec):
            yield from _rows(batch, table, spec)


def _read_native(split: NativeSplit) -> Iterator[pa.RecordBatch]:
    spec = split.spec
    with split.stream.open() as f:
        header = _parse_header(
            bytes(f.read_at(0, split.stream.size_bytes)), split.stream.start, spec.types, spec.descriptions
        )
    table = KeyedTable(header, spec.states, spec.options, spec.keys)
    prefix = prefix_size(spec.max_parallelism)
    whole_keys = spec.table == "keyed_state"
    keys = None if spec.table == "timers" else spec.keys  # timers start with their timestamp
    for batch in read_native(
        split.files, header, spec.states, split.key_groups, prefix=prefix, whole_keys=whole_keys, keys=keys
    ):
        yield from _rows(batch, table, spec)


def _read_raw_timers(split: RawSplit) -> Iterator[pa.RecordBatch]:
    spec = split.spec
    key = None
    if split.managed is not None:
        stream, size = split.managed
        with stream.open() as managed:
            key = _parse_header(bytes(managed.read_at(0, size)), stream.start, spec.types, spec.descriptions).key
    with split.stream.open() as f:
        first = min(split.key_groups, key=lambda g: g.size_bytes)
        base = split.stream.start + first.offset
        with reading_with(spec.types):
            header = read_raw_header(f.read_at(first.offset, first.size_bytes), base=base, key=key)
        if header is None:
            return
        table = KeyedTable(header, spec.states, spec.options, spec.keys)
        for batch in read_raw_timers(f, split.key_groups, header, spec.types):
            yield from _rows(batch, table, spec)


def _read_changelog(split: ChangelogSplit) -> Iterator[pa.RecordBatch]:
    spec = split.spec
    with split.stream.open() as f:
        header = _parse_header(
            bytes(f.read_at(0, split.stream.size_bytes)), split.stream.start, spec.types, spec.descriptions
        )
    table = KeyedTable(header, spec.states, spec.options, spec.keys)
    for batch in read_changelog(split, header):
        yield from _rows(batch, table, spec)


def _entries(f: OpenStream, groups: list[Any], layout: StreamLayout, table: KeyedTable, spec: TableSpec) -> Any:
    if len(groups) > 1 or not is_larger(f, groups[0], layout, spec.memory_bytes):
        yield read_entries(f, groups, layout)
        return
    if layout.heap is not None:
        yield from _large_heap_group(f, groups[0], layout.heap, table, spec)
        return
    with open_large(f, groups[0], layout) as group:
        if spec.table != "keyed_state":
            yield from group.windows()
            return
        sections = mergeable(group.sections(), table)
        if sections is not None:
            yield from merged(group, sections, table, memory_bytes=spec.memory_bytes)
        else:
            yield from spilled(group, table, memory_bytes=spec.memory_bytes)


def _large_heap_group(
    f: OpenStream, group: KeyGroupRange, header: KeyedHeader, table: KeyedTable, spec: TableSpec
) -> Iterator[EntryBatch]:
    windows = heap_windows(f, group, header, window=max(1 << 20, spec.memory_bytes // 8))
    if spec.table != "keyed_state":
        yield from windows
        return
    plain = StreamLayout(prefix=prefix_size(spec.max_parallelism), states=len(header.states), compressed=False)
    hashes = partial(key_hashes, table=table)
    yield from dealt(windows, hashes, group.number, plain, group.size_bytes, memory_bytes=spec.memory_bytes)


def _rows(batch: EntryBatch, table: KeyedTable, spec: TableSpec) -> Iterator[pa.RecordBatch]:
    if spec.table == "keyed_state":
        yield from _finish(*table.keyed_rows(batch, spec.states), table, spec)
        return
    for name in spec.states:
        if name not in table.metas:
            continue
        if spec.table == "state":
            for n, groups, columns in table.long_rows(batch, name):
                yield from _finish(n, groups, columns, table, spec)
        else:
            n, groups, columns = table.timer_rows(batch, name)
            domain, _, service = name.removeprefix(TIMERS_PREFIX).partition("_")
            columns += [
                ("domain", Scalar("string"), pa.array([domain] * n, type=pa.string())),
                ("service", Scalar("string"), pa.array([service] * n, type=pa.string())),
            ]
            yield from _finish(n, groups, columns, table, spec)


def _finish(
    n: int, groups: npt.NDArray[np.int64], columns: Columns, table: KeyedTable, spec: TableSpec
) -> Iterator[pa.RecordBatch]:
    extra = [("key_group", groups)] if spec.key_group_column else []
    if spec.table == "keyed_state":
        columns = _in_order(columns, spec, table, n)
    yield from _record_batches(n, columns, spec, extra)


def _in_order(columns: Columns, spec: TableSpec, table: KeyedTable, n: int) -> Columns:
    """Put columns in the order of the table; a state that this stream does not have is null."""
    by_name = {name: (logical, array) for name, logical, array in columns}
    ordered: Columns = [columns[0]]
    for name in spec.states:
        if name in by_name:
            ordered.append((name, *by_name[name]))
        else:
            ordered.append((name, Scalar("null"), pa.nulls(n)))
    if UNDECODED in by_name:
        ordered.append((UNDECODED, *by_name[UNDECODED]))
    return ordered


def _record_batches(
    n: int, columns: Columns, spec: TableSpec, extra: list[tuple[str, npt.NDArray[Any]]]
) -> Iterator[pa.RecordBatch]:
    if n == 0:
        return
    arrays, fields = flatten(columns, spec.options)
    for name, values in extra:
        arrays.append(pa.array(values.astype(np.int32)))
        fields.append(pa.field(name, pa.int32()))
    batch = _agreeing(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), spec)
    yield from bounded(batch)


def _agreeing(batch: pa.RecordBatch, spec: TableSpec) -> pa.RecordBatch:
    """Return the batch in the table's schema; a state that this subtask does not have is null.

    Raises
    ------
    FormatError
        A state has another type here than in the subtask that the schema came from.
    """
    schema = pa.ipc.read_schema(pa.py_buffer(spec.schema))
    if batch.schema.equals(schema):
        return batch
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = []
    for field in schema:
        array = found.get(field.name)
        if array is None or (pa.types.is_null(array.type) and not pa.types.is_null(field.type)):
            array = pa.nulls(batch.num_rows, field.type)
        if not array.type.equals(field.type):
            raise FormatError(
                f"column {field.name!r} has type {array.type} in this subtask and {field.type} in another one",
                hint="read the subtasks' states apart, or leave the state out with states=[...]",
            )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@lru_cache(maxsize=64)
def _parse_header(
    raw: bytes, base: int, types: TypeContext, descriptions: tuple[tuple[bytes, int], ...]
) -> KeyedHeader:
    with reading_with(types):
        header = read_keyed_header(Cursor(raw, base=base), end=len(raw))
        for other, at in descriptions:
            learn_header(header, read_keyed_header(Cursor(other, base=at), end=len(other)))
    return header


__all__ = ["Split", "TableScan", "read_split", "scan_in_flight", "scan_table"]
