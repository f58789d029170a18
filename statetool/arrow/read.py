"""Read the splits of tables, in tasks or wherever: bytes in, record batches out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.batches import bounded
from statetool.arrow.changelog import read_changelog
from statetool.arrow.in_flight import in_flight_rows
from statetool.arrow.keyed import Columns, KeyedTable, flatten
from statetool.arrow.merge import mergeable, merged
from statetool.arrow.operator_state import operator_rows
from statetool.arrow.spill import dealt, key_hashes, spilled
from statetool.errors import (
    FormatError,
    StatetoolError,
)
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, is_larger, open_large, read_entries
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.heap_walk import heap_windows
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.ranges import BATCH_BYTES, KeyGroupRange, batches_of
from statetool.formats.keyed.raw_entries import read_raw_timers
from statetool.formats.keyed.raw_timers import read_raw_header
from statetool.formats.stream import OpenStream
from statetool.io.cursor import Cursor
from statetool.io.memory import keep_freed_memory
from statetool.plan.splits import (
    ChangelogSplit,
    InFlightSplit,
    KeyedSplit,
    NativeSplit,
    OperatorSplit,
    RawSplit,
    Split,
    TableSpec,
)
from statetool.serializers.context import reading_with
from statetool.types import Scalar
from statetool.types.declared import TypeContext

TIMERS_PREFIX: Final = "_timer_state/"


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
        yield from _finish(*table.keyed_rows(batch, spec.states), spec)
        return
    for name in spec.states:
        if name not in table.metas:
            continue
        if spec.table == "state":
            for n, groups, columns in table.long_rows(batch, name):
                yield from _finish(n, groups, columns, spec)
        else:
            n, groups, columns = table.timer_rows(batch, name)
            domain, _, service = name.removeprefix(TIMERS_PREFIX).partition("_")
            columns += [
                ("domain", Scalar("string"), pa.array([domain] * n, type=pa.string())),
                ("service", Scalar("string"), pa.array([service] * n, type=pa.string())),
            ]
            yield from _finish(n, groups, columns, spec)


def _finish(n: int, groups: npt.NDArray[np.int64], columns: Columns, spec: TableSpec) -> Iterator[pa.RecordBatch]:
    extra = [("key_group", groups)] if spec.key_group_column else []
    if spec.table == "keyed_state":
        columns = _in_order(columns, spec, n)
    yield from _record_batches(n, columns, spec, extra)


def _in_order(columns: Columns, spec: TableSpec, n: int) -> Columns:
    """Put columns in the order of the table; a state that this stream does not have is null."""
    key, *states = columns
    undecoded = [states.pop()] if spec.options.on_error == "keep_raw" else []
    by_name = {name: (logical, array) for name, logical, array in states}
    nothing = (Scalar("null"), pa.nulls(n))
    return [key, *((c, *by_name.get(s, nothing)) for s, c in zip(spec.states, spec.columns, strict=True)), *undecoded]


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
