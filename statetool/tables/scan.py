"""Plan the tables of a snapshot (schema and splits) on the driver. :mod:`statetool.tables.read` reads the splits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa

from statetool.columns.companions import SUFFIXES
from statetool.columns.map_keys import has_map
from statetool.columns.types import has_scales, table_column
from statetool.entries.ahead import in_threads_ahead, one_after_another
from statetool.entries.form import MEMORY_BYTES
from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest
from statetool.formats.channel_state import Side
from statetool.formats.key_groups import key_group_for
from statetool.formats.keyed.naming import check_columns, named_header, named_state
from statetool.io.open_files import keeping_open
from statetool.io.output import Output
from statetool.io.threads import Map, in_threads
from statetool.serializers.core.base import Serializer
from statetool.serializers.pyflink.serializer import PYTHON_STATE
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.tables.keys.equal_keys import KeyPlace, equal_keys
from statetool.tables.keys.parser import KeyTypeError, parse_key
from statetool.tables.keys.text import Key, exact_key, show_key
from statetool.tables.kinds.element_splits import plan_elements, plan_in_flight
from statetool.tables.kinds.in_flight import in_flight_columns
from statetool.tables.kinds.keyed import UNDECODED, UNDECODED_TYPE
from statetool.tables.kinds.kind import ElementKind, KeyedKind, NamedColumns, TableSpec, TableStates
from statetool.tables.kinds.registry import find_kind
from statetool.tables.read import read_split
from statetool.tables.request import ScanRequest
from statetool.tables.splits import KeyedSplit, Split
from statetool.types.options import Columns, ReadOptions

#: Stored bytes from which a table is read on several threads, and their maximum number: each keeps a batch in memory, and between kernels only one
#: of them runs.
_THREADED_BYTES: Final = 32 << 20
_MOST_THREADS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A planned read of one table."""

    schema: pa.Schema
    splits: tuple[Split, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read all splits in this process, one after another."""
        with keeping_open():
            for number, split in enumerate(one_after_another(self.splits)):
                # The reader of the first split may stop after a sample.
                yield from read_split(split, reads_on=number > 0)

    def to_table(self) -> pa.Table:
        """Read all rows into memory, large tables on several threads."""
        if len(self.splits) < 2 or sum(split.size_bytes for split in self.splits) < _THREADED_BYTES:
            return pa.Table.from_batches(self.batches(), schema=self.schema)
        threads = min(os.cpu_count() or 1, _MOST_THREADS)
        with keeping_open():
            parts = in_threads_ahead(lambda split: [*read_split(split, reads_on=True)], self.splits, threads)
            return pa.Table.from_batches(chain.from_iterable(parts), schema=self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of all rows, which can be consumed once. Memory is bounded by that of a few batches."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow stream. Each call reads the table again."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def select(self, columns: Sequence[str]) -> TableScan:
        """Return the read of some columns, in this order. The rows are the same, but states in other columns are not decoded.

        Raises
        ------
        UnknownNameError
            The table has no such column.
        """
        for name in columns:
            if name not in self.schema.names:
                raise UnknownNameError(f"no column {name!r}", hint=suggest(name, self.schema.names))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return TableScan(schema=schema, splits=tuple(_select(split, schema) for split in self.splits))


def _select(split: Split, schema: pa.Schema) -> Split:
    """Return the split for a table with these columns only."""
    spec = replace(split.spec, schema=schema.serialize().to_pybytes())
    if not isinstance(split, KeyedSplit) or UNDECODED in schema.names:
        return replace(split, spec=spec)
    if split.kind.long_form or split.kind.column_per_state:
        columns: Sequence[str | None] = ["value"] * len(spec.states) if split.kind.long_form else spec.columns
        fields = {name: {name, *(f"{name}{suffix}" for suffix in SUFFIXES)} for name in columns if name is not None}
        selected = {name for name, own in fields.items() if not own.isdisjoint(schema.names)}
        decoded = frozenset(s for s, c in zip(spec.states, columns, strict=True) if c in selected)
        spec = replace(spec, decoded=decoded)
    return replace(split, spec=spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table whose splits are planned on request: that needs the files of all subtasks, and the schema only headers."""

    schema: pa.Schema
    splits: Callable[[], Iterable[Split]]

    def scan(self) -> TableScan:
        """Plan the splits.

        Raises
        ------
        SnapshotNotFoundError
            A file does not exist.
        FormatError
            Offsets are damaged.
        """
        return TableScan(schema=self.schema, splits=tuple(self.splits()))


def table_states(operator: OperatorInventory, columns: Columns) -> TableStates:
    """Return the states of an operator with the user's field names for rows.

    Raises
    ------
    OptionError
        A path does not refer to a row, or the number of names differs from the number of fields.
    """
    check_columns(columns, [*operator.listed_keyed, *operator.listed_elements])
    headers = {id(h): named_header(h, columns) for h, _ in operator.listed_keyed.values()}
    key = next((h.key for h in headers.values()), None)
    metas = {number: {m.name: m for m in header.states} for number, header in headers.items()}
    keyed = {name: metas[id(h)][name] for name, (h, _) in operator.listed_keyed.items()}
    elements = dict(operator.listed_elements)
    for path, names in columns:
        elements = {n: named_state(m, path, names) for n, m in elements.items()}
    return TableStates(key, keyed, elements)


def column_names(operator: OperatorInventory, given: Columns) -> Columns:
    """Return the given field names after those from the operator's compiled plan, which they replace."""
    planned = {path: tuple(names) for path, names in operator.plan_columns.items()}
    return tuple({**planned, **dict(given)}.items())


def scan_table(operator: OperatorInventory, request: ScanRequest) -> TableScan:
    """Plan a table of an operator. Runs on the driver and reads only headers.

    Raises
    ------
    UnknownNameError
        The operator has no such table, state or timer service.
    OptionError
        The options do not fit the table.
    EncodeError
        A key does not have the type of the operator's keys.
    UnsupportedError
        Arrow and Spark do not support a type.
    """
    return plan_table(operator, request).scan()


def plan_table(operator: OperatorInventory, request: ScanRequest) -> TablePlan:
    """Plan the schema of a table; errors as for :func:`scan_table`, except those of its splits."""
    request = replace(
        request,
        table=registered_name(operator, request.table),
        states=None if request.states is None else tuple(registered_name(operator, n) for n in request.states),
        options=replace(request.options, columns=column_names(operator, request.options.columns)),
    )
    states = table_states(operator, request.options.columns)
    kind = find_kind(operator, request.table)
    if isinstance(kind, KeyedKind):
        return _plan_keyed(operator, request, states, kind)
    return _plan_elements(operator, request, states, kind)


def _plan_keyed(operator: OperatorInventory, request: ScanRequest, states: TableStates, kind: KeyedKind) -> TablePlan:
    options = request.options
    planned = kind.plan(operator, request, states)
    columns, column_of = planned.columns, planned.column_of
    if options.on_error == "keep_raw" and kind.keeps_raw:
        columns = [*columns, (UNDECODED, UNDECODED_TYPE)]
    schema = _schema(operator, columns, options, {"key_group": request.key_group})
    keys, groups = (None, None) if request.keys is None else encode_keys(operator, states.key, request.keys)
    spec = TableSpec(
        operator=operator.label,
        states=tuple(column_of),
        columns=tuple(column_of.values()),
        options=options,
        keys=keys,
        schema=schema.serialize().to_pybytes(),
        key_group_column=request.key_group,
        memory_bytes=request.memory_bytes,
    )

    def splits() -> Iterable[Split]:
        if not column_of:
            return ()
        sources = operator.keyed.sources(groups=groups, raw=kind.in_raw_state, target_bytes=request.target_bytes)
        return [KeyedSplit(spec=spec, kind=kind, source=s) for s in sources]

    return TablePlan(schema=schema, splits=splits)


def _plan_elements(
    operator: OperatorInventory, request: ScanRequest, states: TableStates, kind: ElementKind
) -> TablePlan:
    name = kind.state(operator, request.table)
    meta, by_subtask = states.elements[name], request.subtask or kind.every_subtask
    if request.keys is not None or request.key_group:
        raise OptionError(f"{request.table!r} is an operator state: it has no keys and no key groups")
    columns = kind.columns(meta)
    if request.options.on_error == "keep_raw":
        columns.append((UNDECODED, UNDECODED_TYPE))
    schema = _schema(operator, columns, request.options, {"subtask": by_subtask})
    spec = TableSpec(
        operator=operator.label,
        states=(name,),
        options=request.options,
        schema=schema.serialize().to_pybytes(),
        subtask_column=by_subtask,
        memory_bytes=request.memory_bytes,
    )
    # Each subtask holds a part of union state, and on restore every subtask gets the union. All subtasks hold the same broadcast state.
    one_copy = meta.kind == "broadcast" and not by_subtask
    return TablePlan(
        schema=schema,
        splits=lambda: plan_elements(operator, spec, kind, one_copy=one_copy, target_bytes=request.target_bytes),
    )


def scan_in_flight(
    operator: OperatorInventory, side: Side, record: Serializer, *, options: ReadOptions | None = None
) -> TableScan:
    """Plan the table of the in-flight data at an operator's inputs or outputs (unaligned checkpoints).

    Parameters
    ----------
    record
        Serializer of the records, which the snapshot does not store.
    """
    options = options or ReadOptions()
    schema = _schema(operator, in_flight_columns(record), options, {})
    spec = TableSpec(
        operator=operator.label,
        states=(),
        options=options,
        schema=schema.serialize().to_pybytes(),
        memory_bytes=MEMORY_BYTES,
    )
    out = Output()
    record.write_snapshot(out)
    return TableScan(schema=schema, splits=tuple(plan_in_flight(operator, spec, side, bytes(out))))


def registered_name(operator: OperatorInventory, name: str) -> str:
    """Return the registered name of a state: for states of a Python job, ``python-state-`` followed by the name in the job's code."""
    full = f"{PYTHON_STATE}{name}"
    known = (*operator.listed_keyed, *operator.listed_elements, KEYED_STATE, TIMERS, *operator.views)
    return full if name not in known and full in known else name


def _schema(
    operator: OperatorInventory, columns: NamedColumns, options: ReadOptions, added: Mapping[str, bool]
) -> pa.Schema:
    """Return the schema of a table. ``added`` says which int columns follow the others."""
    fields = [f for name, logical in columns for f in table_column(logical, options).fields(name)]
    fields += [pa.field(name, pa.int32()) for name, wanted in added.items() if wanted]
    names = Counter(f.name.lower() for f in fields)
    if twice := [name for name, count in names.items() if count > 1]:
        raise OptionError(
            f"operator {operator.label.display!r} has columns that differ at most in case: {', '.join(sorted(twice))}",
            hint="select some with states=[...], read one state at a time, or leave out companions with nanos=, decimals= or presence=",
        )
    return pa.schema(fields)


def key_forms(operator: OperatorInventory, serializer: Serializer, key: Key) -> tuple[tuple[bytes, int | None], ...]:
    """Return every form in which Flink may have written a given key, with its hash code (``None`` if user code computes it).

    Raises
    ------
    EncodeError
        Not a key of this type.
    """
    try:
        return serializer.key_forms(parse_key(exact_key(key), serializer))
    except (TypeError, AttributeError, ValueError) as e:
        if isinstance(e, StatetoolError):
            raise e.at(operator=operator.label) from None
        raise KeyTypeError.of(
            f"{show_key(key)} is not a key of type {serializer.type_name}",
            "not a value of the type",
            hint="keys are given as plain values: numbers, strings, tuples of them",
        ).at(operator=operator.label) from e


def encode_keys(
    operator: OperatorInventory, serializer: Serializer | None, keys: Sequence[Key]
) -> tuple[tuple[bytes, ...], frozenset[int]]:
    """Return the bytes of keys, and the key groups that hold them.

    Numbers are equal whatever their scale, and maps are equal whatever the order of their entries.
    """
    if serializer is None:
        return (), frozenset()
    places = [place for places in place_keys(operator, serializer, keys) for place in places]
    groups = {group for _, group in places}
    if None in groups:
        groups = set(range(operator.state.max_parallelism))
    return tuple(key for key, _ in places), frozenset(group for group in groups if group is not None)


def place_keys(
    operator: OperatorInventory,
    serializer: Serializer,
    keys: Sequence[Key],
    *,
    exact: bool = False,
    in_tasks: Map = in_threads,
) -> list[tuple[KeyPlace, ...]]:
    """Return the bytes and the key group of each form of each key. Equality is that of :func:`encode_keys`.

    The key group is ``None`` if ``hashCode()`` is user code: the key may be in any key group.

    Parameters
    ----------
    exact
        Whether a number of which the operator has a key of exactly the given scale is no other key.
    in_tasks
        Reads the keys of the operator if equal ones may have other bytes.
    """
    groups = operator.state.max_parallelism
    places = [
        tuple(
            (raw, None if hash_code is None else key_group_for(hash_code, groups))
            for raw, hash_code in key_forms(operator, serializer, key)
        )
        for key in keys
    ]
    if places and (has_scales(serializer.logical) or has_map(serializer.logical)):
        return equal_keys(operator, serializer, places, exact=exact, in_tasks=in_tasks)
    return places
