"""Plan the tables of a snapshot: schema and splits, on the driver; :mod:`statetool.arrow.read` reads the splits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from statetool.arrow.in_flight import in_flight_columns
from statetool.arrow.keyed import UNDECODED, UNDECODED_TYPE
from statetool.arrow.operator_state import operator_columns
from statetool.arrow.read import read_split
from statetool.arrow.types import column_fields
from statetool.arrow.values import StateShape
from statetool.errors import (
    EncodeError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    suggest,
)
from statetool.formats.channel_state import Side
from statetool.formats.described import may_differ
from statetool.formats.key_groups import key_group_for
from statetool.formats.state_meta import StateMeta
from statetool.io.output import Output
from statetool.plan.element_splits import plan_in_flight, plan_operator_state
from statetool.plan.keyed_splits import plan_changelog, plan_keyed, plan_native, plan_raw_timers
from statetool.plan.operator import OperatorInventory
from statetool.plan.splits import TARGET_BYTES, Split, TableSpec
from statetool.plan.state_tables import KEYED_STATE, TIMERS
from statetool.serializers.base import Serializer
from statetool.serializers.pyflink import PYTHON_STATE
from statetool.types import LogicalType, Scalar
from statetool.types.options import ReadOptions
from statetool.types.table_columns import state_columns


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
        Of ``keyed_state``: the states wanted; others are skipped undecoded. Of ``timers``: the names of timer states.
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
    table = _registered(operator, table)
    if states is not None and not isinstance(states, str):
        states = [_registered(operator, name) for name in states]
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
    if states is not None and table not in (KEYED_STATE, TIMERS):
        raise OptionError("states= selects columns of the table keyed_state, and services of timers, only")
    state = None
    if table not in (KEYED_STATE, TIMERS):
        scope, state = operator.state_table(table)
        if scope == "operator":
            if keys is not None or key_group:
                raise OptionError(f"{table!r} is an operator state: it has no keys and no key groups")
            return _scan_operator_state(operator, spec, state, split_bytes)
    if subtask:
        raise OptionError("only operator state has a subtask column")
    spec = replace(spec, descriptions=operator.descriptions)
    spec, columns = (
        _keyed_columns(operator, spec, state, states) if table != TIMERS else _timer_columns(operator, spec, states)
    )
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


def _registered(operator: OperatorInventory, name: str) -> str:
    """Return the name under which a state is registered; a Python job gave its states shorter ones."""
    full = f"{PYTHON_STATE}{name}"
    known = (*operator.keyed_states, *operator.operator_states, "keyed_state", "timers")
    return full if name not in known and full in known else name


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
    operator: OperatorInventory, spec: TableSpec, state: str | None, states: Sequence[str] | None
) -> tuple[TableSpec, list[tuple[str, LogicalType]]]:
    metas = {name: meta for name, (_, meta) in operator.keyed_states.items()}
    key = _key_type(operator)
    if state is None:
        names = _void_states(operator, metas, states)
        column_of = state_columns(_void_states(operator, metas, None))
        columns = [("key", key), *((column_of[n], StateShape(metas[n]).logical) for n in names)]
        if spec.options.on_error == "keep_raw":
            columns.append((UNDECODED, UNDECODED_TYPE))
        spec = replace(spec, table="keyed_state", states=tuple(names), columns=tuple(column_of[n] for n in names))
        return spec, columns
    columns = _long_columns(key, metas[state])
    if spec.options.on_error == "keep_raw":
        columns.append((UNDECODED, UNDECODED_TYPE))
    return replace(spec, table="state", states=(state,)), columns


def _timer_columns(
    operator: OperatorInventory, spec: TableSpec, states: Sequence[str] | None
) -> tuple[TableSpec, list[tuple[str, LogicalType]]]:
    timers = {name: meta for name, (_, meta) in operator.keyed_states.items() if meta.kind == "timers"}
    if states is not None:
        timers = {name: timers[name] for name in _known_timers(operator, list(timers), states)}
    columns = [("key", _key_type(operator))]
    if timers:
        columns += _timer_namespace(operator, list(timers.values()))
    columns += [("timestamp", Scalar("int64")), ("domain", Scalar("string")), ("service", Scalar("string"))]
    return replace(spec, table="timers", states=tuple(timers)), columns


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


def _known_timers(operator: OperatorInventory, timers: Sequence[str], states: Sequence[str]) -> list[str]:
    if isinstance(states, str):
        raise OptionError("states= takes a list of names, not one string")
    for name in states:
        if name not in timers:
            raise UnknownNameError(
                f"operator {operator.label!r} has no timers {name!r}", hint=suggest(name, timers)
            ).at(operator=operator.label)
    return list(states)


def _timer_namespace(operator: OperatorInventory, timers: list[StateMeta]) -> list[tuple[str, LogicalType]]:
    """Return the column of the namespaces; timers of services without one have null there (process table functions have both)."""
    kinds = {m.value.children()[1][1].logical for m in timers} - {Scalar("null")}
    if len(kinds) > 1:
        raise UnsupportedError(
            "the timer services of the operator have namespaces of different types",
            hint="read some of them: states=[...] of " + ", ".join(m.name for m in timers),
        ).at(operator=operator.label)
    return [("namespace", kind) for kind in kinds]


def _long_columns(key: LogicalType, meta: StateMeta) -> list[tuple[str, LogicalType]]:
    shape = StateShape(meta)
    columns = [("key", key)]
    if meta.namespace is not None and meta.namespace.logical != Scalar("null"):
        columns.append(("namespace", meta.namespace.logical))
    if shape.kind == "list" and not shape.framed_bytes:
        columns.append(("list_index", Scalar("int64")))
    if shape.kind == "map" and shape.user_key is not None:
        columns.append(("map_key", shape.user_key.logical))
    return [*columns, ("value", shape.item.logical)]


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
