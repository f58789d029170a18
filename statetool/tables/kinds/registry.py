"""Registry of the kinds of tables: a new kind is a class here and a line in :data:`KINDS`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from statetool.columns.values import StateLayout
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, suggest
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.state_meta import StateMetaInfo, check_timers
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS, timer_names
from statetool.snapshot.views import (
    ASYNC_QUEUE,
    EVENT_QUEUE,
    EVENTS,
    MATCHES,
    MERGED,
    NFA,
    NODES,
    WAITING,
    WINDOWS,
    lookup_queue,
    window_states,
)
from statetool.tables.kinds.elements import element_columns
from statetool.tables.kinds.keyed import Columns, KeyedTable
from statetool.tables.kinds.kind import (
    ElementKind,
    KeyedKind,
    KeyedPlan,
    KeyedRows,
    NamedColumns,
    TableKind,
    TableSpec,
    TableStates,
)
from statetool.tables.kinds.matches import match_columns, match_rows
from statetool.tables.kinds.timer_times import TIMER_TIME
from statetool.tables.kinds.waiting import (
    call_columns,
    call_rows,
    event_columns,
    event_rows,
    event_type,
    lookup_columns,
    lookup_rows,
)
from statetool.tables.kinds.windows import WINDOW_COLUMNS, window_columns, window_rows
from statetool.tables.request import ScanRequest
from statetool.types import LogicalType, Scalar
from statetool.types.options import ReadOptions
from statetool.types.table_columns import state_columns


@dataclass(frozen=True, slots=True)
class KeyedStateKind(KeyedKind):
    """``keyed_state``: one row per key, with a column for each state without a namespace."""

    whole_keys: ClassVar[bool] = True
    column_per_state: ClassVar[bool] = True
    follows_keys: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == KEYED_STATE

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        operator.check_listed("keyed")
        names = _void_states(operator, states.keyed, request.states)
        column_of = state_columns(_void_states(operator, states.keyed, None))
        columns = [
            ("key", states.key_type),
            *((column_of[n], StateLayout(states.keyed[n]).column_type(request.options)) for n in names),
        ]
        return KeyedPlan({n: column_of[n] for n in names}, columns)

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        n, groups, (key, *states) = table.keyed_rows(batch, spec.states)
        yield n, groups, [key, *in_table_order(states, spec, n)]


@dataclass(frozen=True, slots=True)
class TimersKind(KeyedKind):
    """``timers``: one row per timer of the operator's timer services."""

    stored_by_key: ClassVar[bool] = False
    in_raw_state: ClassVar[bool] = True
    keeps_raw: ClassVar[bool] = False
    follows_keys: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == TIMERS

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        operator.check_listed("keyed")
        timers = {name: meta for name, meta in states.keyed.items() if meta.kind == "timers"}
        for name in request.states or ():
            if name not in timers:
                raise UnknownNameError(
                    f"operator {operator.label.display!r} has no timers {name!r}", hint=suggest(name, timers)
                ).at(operator=operator.label)
        chosen = list(timers if request.states is None else request.states)
        columns = [
            ("key", states.key_type),
            *_timer_namespace(operator, [timers[name] for name in chosen]),
            ("timestamp", Scalar("int64")),
            ("time", TIMER_TIME),
            ("domain", Scalar("string")),
            ("service", Scalar("string")),
        ]
        return KeyedPlan(dict.fromkeys(chosen), columns)

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        for name in spec.states:
            if name in table.metas:
                n, groups, columns = table.timer_rows(batch, name)
                yield n, groups, [*columns, *timer_columns(name, n)]


@dataclass(frozen=True, slots=True)
class StateKind(KeyedKind):
    """One keyed state in its long form: one row per value, list element or map entry."""

    follows_keys: ClassVar[bool] = True
    long_form: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return operator.state_table(table)[0] == "keyed"

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        _, name = operator.state_table(request.table)
        if request.subtask:
            raise OptionError("only operator state has a subtask column")
        return KeyedPlan({name: name}, _long_columns(states.key_type, states.keyed[name]))

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        for name in spec.states:
            if name in table.metas:
                yield from table.long_rows(batch, name)


@dataclass(frozen=True, slots=True)
class WindowsKind(KeyedKind):
    """``windows``: one row per key and window, with all state of the window."""

    view: ClassVar[str | None] = WINDOWS
    whole_keys: ClassVar[bool] = True
    column_per_state: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == WINDOWS and WINDOWS in operator.views

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        keyed = states.keyed
        names = window_states(keyed)
        column_of = state_columns(names, WINDOW_COLUMNS)
        namespace = keyed[names[0]].namespace
        assert namespace is not None
        columns = window_columns(states.key_type, namespace)
        columns += [(column_of[n], StateLayout(keyed[n]).column_type(request.options)) for n in names]
        merged = dict.fromkeys(n for n in MERGED if n in keyed)
        return KeyedPlan({**column_of, **merged}, columns)

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        n, groups, head, states = window_rows(table, batch, spec.states)
        yield n, groups, [*head, *in_table_order(states, spec, n)]


@dataclass(frozen=True, slots=True)
class MatchesKind(KeyedKind):
    """``matches``: one row per started match of complex event processing."""

    view: ClassVar[str | None] = MATCHES
    whole_keys: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == MATCHES and MATCHES in operator.views

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        names = (NFA, EVENTS, next(name for name in NODES if name in states.keyed))
        columns = match_columns(states.key_type, event_type(StateLayout(states.keyed[EVENTS])))
        return KeyedPlan({n: n for n in names}, columns)

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        event = event_type(table.shapes[EVENTS])
        _, groups, columns = table.keyed_rows(batch, spec.states)
        yield match_rows(groups, columns, event, spec.options)


@dataclass(frozen=True, slots=True)
class WaitingEventsKind(KeyedKind):
    """``waiting`` of complex event processing: events before the watermark."""

    view: ClassVar[str | None] = WAITING

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == WAITING and WAITING in operator.views and ASYNC_QUEUE not in operator.listed_elements

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        columns = event_columns(states.key_type, StateLayout(states.keyed[EVENT_QUEUE]))
        return KeyedPlan({EVENT_QUEUE: EVENT_QUEUE}, columns)

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        if EVENT_QUEUE in table.metas:
            for _, groups, columns in table.long_rows(batch, EVENT_QUEUE):
                yield event_rows(groups, columns)


@dataclass(frozen=True, slots=True)
class WaitingLookupsKind(KeyedKind):
    """``waiting`` of a SQL join: rows whose look-ups have not returned."""

    view: ClassVar[str | None] = WAITING

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == WAITING and _lookup_queue(operator) is not None

    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        name = _lookup_queue(operator)
        assert name is not None
        return KeyedPlan({name: name}, lookup_columns(states.key_type, StateLayout(states.keyed[name])))

    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        (name,) = spec.states
        if name in table.metas:
            for _, groups, columns in table.long_rows(batch, name):
                yield lookup_rows(groups, columns, spec.options)


def _lookup_queue(operator: OperatorInventory) -> str | None:
    return lookup_queue({name: meta for name, (_, meta) in operator.listed_keyed.items()})


@dataclass(frozen=True, slots=True)
class WaitingCallsKind(ElementKind):
    """``waiting`` of asynchronous I/O: calls that have not returned."""

    every_subtask: ClassVar[bool] = True

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return table == WAITING and WAITING in operator.views and ASYNC_QUEUE in operator.listed_elements

    def state(self, operator: OperatorInventory, table: str) -> str:
        return ASYNC_QUEUE

    def columns(self, meta: StateMetaInfo) -> NamedColumns:
        return call_columns(meta.value)

    def rows(self, columns: Columns, options: ReadOptions) -> Columns:
        return call_rows(columns, options)


@dataclass(frozen=True, slots=True)
class ElementsKind(ElementKind):
    """One operator state: one row per list element or broadcast entry."""

    def matches(self, operator: OperatorInventory, table: str) -> bool:
        return operator.state_table(table)[0] == "operator"

    def state(self, operator: OperatorInventory, table: str) -> str:
        return operator.state_table(table)[1]

    def columns(self, meta: StateMetaInfo) -> NamedColumns:
        return element_columns(meta)

    def rows(self, columns: Columns, options: ReadOptions) -> Columns:
        return columns


ELEMENTS: Final = ElementsKind()
#: A table is of the first kind that matches. Tables of single states come last, because views and summary tables take precedence.
KINDS: Final[tuple[TableKind, ...]] = (
    WindowsKind(),
    MatchesKind(),
    WaitingCallsKind(),
    WaitingLookupsKind(),
    WaitingEventsKind(),
    KeyedStateKind(),
    TimersKind(),
    StateKind(),
    ELEMENTS,
)


def find_kind(operator: OperatorInventory, table: str) -> TableKind:
    """Return the kind of a table of an operator.

    Raises
    ------
    UnknownNameError
        The operator has no such table.
    """
    return next(kind for kind in KINDS if kind.matches(operator, table))


def in_table_order(columns: Columns, spec: TableSpec, n: int) -> Columns:
    """Sort the columns of states in the order of the table. A state that does not exist in this stream is null."""
    states = list(columns)
    undecoded = [states.pop()] if spec.options.on_error == "keep_raw" else []
    by_name = {name: (logical, array) for name, logical, array in states}
    nothing = (Scalar("null"), pa.nulls(n))
    columns = [(c, *by_name.get(s, nothing)) for s, c in zip(spec.states, spec.columns, strict=True) if c is not None]
    return [*columns, *undecoded]


def timer_columns(state: str, n: int) -> Columns:
    """Return the columns ``domain`` and ``service`` of timers."""
    domain, service = timer_names(state)
    return [
        ("domain", Scalar("string"), pa.array([domain] * n, type=pa.string())),
        ("service", Scalar("string"), pa.array([service] * n, type=pa.string())),
    ]


def _void_states(
    operator: OperatorInventory, metas: Mapping[str, StateMetaInfo], states: Sequence[str] | None
) -> list[str]:
    """Return the states without a namespace, which form the columns of ``keyed_state``."""
    void = [n for n, m in metas.items() if m.namespace is not None and m.namespace.logical == Scalar("null")]
    for name in states or ():
        if name not in metas:
            raise UnknownNameError(
                f"operator {operator.label.display!r} has no keyed state {name!r}", hint=suggest(name, void)
            ).at(operator=operator.label)
        if name not in void:
            raise OptionError(
                f"state {name!r} has a namespace, so it is not in keyed_state", hint=f"read it with op.state({name!r})"
            )
    return void if states is None else list(states)


def _timer_namespace(operator: OperatorInventory, timers: Sequence[StateMetaInfo]) -> NamedColumns:
    """Return the column of namespaces, if any. It is null for services without a namespace (process table functions have both kinds)."""
    kinds = {check_timers(m).nested[1].logical for m in timers} - {Scalar("null")}
    if len(kinds) > 1:
        raise UnsupportedError(
            "the timer services of the operator have namespaces of different types",
            hint="read some of them: states=[...] of " + ", ".join(m.name for m in timers),
        ).at(operator=operator.label)
    return [("namespace", kind) for kind in kinds]


def _long_columns(key: LogicalType, meta: StateMetaInfo) -> NamedColumns:
    shape = StateLayout(meta)
    columns = [("key", key)]
    if meta.namespace is not None and meta.namespace.logical != Scalar("null"):
        columns.append(("namespace", meta.namespace.logical))
    if shape.kind == "list" and not shape.framed_bytes:
        columns.append(("list_index", Scalar("int64")))
    if shape.kind == "map" and shape.user_key is not None:
        columns.append(("map_key", shape.user_key.logical))
    return [*columns, ("value", shape.item.logical)]
