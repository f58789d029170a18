"""Plan the state of one operator from tables; runs on the driver, with schemas only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from statetool.columns.infer import infer_type
from statetool.columns.values import StateLayout
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.declaring import flink_types as flink
from statetool.java.declaring.states import element_meta, registered_name
from statetool.java.hashing.formulas import HashFormula
from statetool.saving.bootstrap.model import ElementBootstrap, KeyedBootstrap, TableSchema, need
from statetool.saving.bootstrap.recipe import ElementEncoder, RowEncoder, StateColumn, TimerColumns
from statetool.saving.bootstrap.states import PlannedTable, check_scales, is_list, key_type, one_key, plan_table
from statetool.saving.composition import StreamWriteTask
from statetool.saving.streams.elements import ElementStreams
from statetool.saving.streams.keyed import KeyedStreams
from statetool.saving.streams.runs import PRESENCE
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.elements import element_serializer
from statetool.types import TtlType
from statetool.types.declared import TypeContext
from statetool.types.options import Columns

#: Returns the hash formula of a key type whose hash code is defined in user code, ``None`` if its serializer provides it.
FormulaOf: TypeAlias = Callable[[KeyedBootstrap, Serializer], HashFormula | None]
_MOST_STATES = 32767


def keyed_job(
    label: str,
    tables: Sequence[tuple[KeyedBootstrap, TableSchema]],
    carried: KeyedHeader | None,
    *,
    parallelism: int,
    max_parallelism: int,
    inline_bytes: int,
    formula_of: FormulaOf,
    types: TypeContext,
) -> StreamWriteTask:
    """Plan the keyed state and timers of an operator, without entries of a base.

    Parameters
    ----------
    carried
        Header with the key and the carried states of a base. Its bytes stay the same if no state is added.

    Raises
    ------
    OptionError, UnknownNameError
        Types conflict, a column is missing, or a state is duplicated.
    """
    key = one_key([key_type(b, t) for b, t in tables], carried)
    planned = [plan_table(b, t, key) for b, t in tables]
    for table in planned:
        _check_last_access(table)
    metas: dict[str, StateMetaInfo] = {m.name: m for m in carried.states} if carried is not None else {}
    for meta in (m for p in planned for m in p.all_metas):
        if meta.name in metas:
            raise OptionError(f"state {meta.name!r} is declared twice", hint="declare each state in one table")
        metas[meta.name] = meta
    if len(metas) + len(planned) > _MOST_STATES:
        raise OptionError(f"{len(metas)} states in one operator", hint=f"Flink has place for {_MOST_STATES}")
    compressed = carried is not None and carried.compressed
    header = write_keyed_header(
        KeyedHeader(version=CURRENT_VERSION, compressed=compressed, key=key, states=tuple(metas.values()), size_bytes=0)
    )
    ids = {name: i for i, name in enumerate(metas)}
    streams = KeyedStreams(
        operator=label,
        header=header,
        max_parallelism=max_parallelism,
        parallelism=parallelism,
        inline_bytes=inline_bytes,
        lists=frozenset(ids[m.name] for p in planned if p.bootstrap.long for m, _ in p.metas if is_list(m)),
        from_tables=bool(tables),
        types=types,
    )
    # State ids after those of states are used for presence entries.
    presences = (PRESENCE | i for i in range(len(metas), _MOST_STATES))
    recipes = (r for p, i in zip(planned, presences, strict=False) for r in _recipes(streams, p, ids, i, formula_of))
    return StreamWriteTask(streams=streams, tables=tuple(recipes))


def _recipes(
    streams: KeyedStreams, planned: PlannedTable, ids: Mapping[str, int], presence: int, formula_of: FormulaOf
) -> Iterator[tuple[Any, RowEncoder]]:
    """Yield the recipes for the states and for the timers of a table, each with its data."""
    bootstrap = planned.bootstrap
    last_access = _last_access(bootstrap)
    recipe = RowEncoder(
        operator=streams.operator,
        header=streams.header,
        max_parallelism=streams.max_parallelism,
        key=bootstrap.key,
        namespace=bootstrap.namespace,
        key_group=bootstrap.key_group,
        formula=formula_of(bootstrap, streams.parsed.key),
        presence=presence,
        long=bootstrap.long,
        states=tuple(
            StateColumn(
                state_id=ids[m.name],
                column=column,
                last_access_ms=last_access.get(m.name, bootstrap.last_access_ms),
                tells_null=bootstrap.like is not None,
            )
            for m, column in planned.metas
        ),
        types=streams.types,
        field_names=_field_names(bootstrap.like, ["key", *(m.name for m, _ in planned.metas)]),
    )
    if planned.metas:
        yield bootstrap.data, recipe
    if planned.timers and planned.table.timers is not None:
        yield bootstrap.timers, _timer_recipe(recipe, planned, ids)


def _field_names(like: OperatorInventory | None, states: Iterable[str]) -> Columns:
    """Return the names that the compiled plan of an operator gives to fields of rows in some states (or in ``key``)."""
    if like is None:
        return ()
    wanted = [f"{name}." for name in states]
    return tuple((p, tuple(n)) for p, n in like.plan_columns.items() if any(f"{p}.".startswith(w) for w in wanted))


def state_names(tables: Sequence[tuple[KeyedBootstrap, TableSchema]]) -> frozenset[str]:
    """Return the names of all keyed states and timer queues in tables.

    Raises
    ------
    OptionError, UnknownNameError
        As :func:`keyed_job`.
    """
    if not tables:
        return frozenset()
    key = key_type(*tables[0])
    return frozenset(m.name for b, t in tables for m in plan_table(b, t, key).all_metas)


def _timer_recipe(recipe: RowEncoder, planned: PlannedTable, ids: Mapping[str, int]) -> RowEncoder:
    schema = planned.table.timers
    assert schema is not None
    key = recipe.key if set(recipe.key) <= set(schema.names) else ("key",)
    need(schema, key, "timers")
    group = recipe.key_group if recipe.key_group in schema.names else None
    return replace(
        recipe,
        key=key,
        states=(),
        key_group=group,
        namespace="namespace" if "namespace" in schema.names else None,
        timers=TimerColumns(states=tuple((d, s, ids[m.name]) for d, s, m in planned.timers)),
    )


def _check_last_access(planned: PlannedTable) -> None:
    """Refuse ``last_access_ms`` if no state uses it."""
    bootstrap = planned.bootstrap
    if bootstrap.last_access_ms is None:
        return
    if isinstance(bootstrap.states, Mapping) and any(bootstrap.states.values()):
        raise OptionError(
            "last_access_ms= can only be used with like=", hint="declare it with the state, as in statetool.value(...)"
        )
    if not any(isinstance(StateLayout(m).element.logical, TtlType) for m, _ in planned.metas):
        raise OptionError("last_access_ms= is given, but no state has a time to live", hint="omit it")


def _last_access(bootstrap: KeyedBootstrap) -> dict[str, int | None]:
    """Return the time of last access that each declared state gives to its values."""
    states = bootstrap.states if isinstance(bootstrap.states, Mapping) else {}
    return {registered_name(n, s): s.last_access_ms for n, s in states.items() if s is not None}


def element_recipes(
    streams: ElementStreams, bootstraps: Iterable[ElementBootstrap], parallelism: int
) -> tuple[tuple[Any, ElementEncoder], ...]:
    """Return each table of operator state with its recipe."""
    ids = {m.name: i for i, m in enumerate(streams.parsed.states)}
    return tuple(
        (
            b.data,
            ElementEncoder(
                operator=streams.operator,
                header=streams.header,
                parallelism=parallelism,
                state_id=ids[b.name],
                value=b.value,
                key=b.key,
                subtask=b.subtask,
                types=streams.types,
                field_names=_field_names(b.like, [b.name]),
            ),
        )
        for b in bootstraps
    )


def element_metas(tables: Iterable[tuple[ElementBootstrap, TableSchema]]) -> list[StateMetaInfo]:
    """Return the operator states (list, union, broadcast) in tables.

    Raises
    ------
    OptionError, UnknownNameError
        Types conflict, a column is missing, or a state is duplicated.
    """
    metas: dict[str, StateMetaInfo] = {}
    for bootstrap, table in tables:
        if bootstrap.name in metas:
            raise OptionError(f"operator state {bootstrap.name!r} is declared twice")
        metas[bootstrap.name] = _element_meta(bootstrap, table)
    return list(metas.values())


def _element_meta(bootstrap: ElementBootstrap, table: TableSchema) -> StateMetaInfo:
    broadcast = bootstrap.kind == "broadcast"
    others = (bootstrap.key,) if broadcast else () if bootstrap.subtask is None else (bootstrap.subtask,)
    need(table.schema, (bootstrap.value, *others), "the table")
    if bootstrap.like is not None:
        meta = bootstrap.like.operator_states.get(bootstrap.name)
        if meta is None:
            raise UnknownNameError(
                f"operator {bootstrap.like.label.display!r} has no operator state {bootstrap.name!r}",
                hint=suggest(bootstrap.name, bootstrap.like.operator_states),
            )
        if meta.kind != bootstrap.kind:
            raise OptionError(f"operator state {bootstrap.name!r} is a {meta.kind} state there")
        serializers = {bootstrap.value: element_serializer(meta)}
        if broadcast:
            serializers[bootstrap.key] = meta.serializers["KEY_SERIALIZER"]
        for column, serializer in serializers.items():
            check_scales(table.schema, column, serializer.logical)
        return meta
    value = _element_type(bootstrap.value_type, table.schema.field(bootstrap.value).type)
    key = _element_type(bootstrap.key_type, table.schema.field(bootstrap.key).type) if broadcast else None
    return element_meta(bootstrap.name, bootstrap.kind, value, key)


def _element_type(declared: str | Serializer | None, kind: pa.DataType) -> Serializer:
    return infer_type(kind) if declared is None else flink.parse_type(declared)
