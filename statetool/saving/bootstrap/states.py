"""States and timers of a table, and their types: declared, copied from an operator, or derived from columns."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from statetool.columns.companions import shows_scales
from statetool.columns.infer import complete_state, infer_namespace, infer_state, infer_type
from statetool.columns.types import COMPANION, PRESENT, SCALE, has_scales
from statetool.columns.values import StateLayout
from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.output import Output
from statetool.java.declaring import flink_types as flink
from statetool.java.declaring.states import (
    TIMERS_PREFIX,
    Kind,
    StateType,
    keyed_meta,
    python_state,
    registered_name,
    timer_meta,
)
from statetool.java.hashing.possible_keys import check_key_type
from statetool.saving.bootstrap.model import SERVICE_COLUMNS, KeyedBootstrap, TableSchema, need
from statetool.saving.bootstrap.scales import unscaled_part
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import write_proxied
from statetool.serializers.typeutils.row import RowSerializer
from statetool.snapshot.views import WINDOW_TIMERS
from statetool.types import LogicalType, Scalar, StructType, TimestampType, TtlType
from statetool.types.python_types import PythonState
from statetool.types.table_columns import state_columns

_DEFAULT_SERVICE: Final = {True: "user-timers", False: WINDOW_TIMERS}


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table: its states with their columns, and its timers."""

    bootstrap: KeyedBootstrap
    table: TableSchema
    metas: tuple[tuple[StateMetaInfo, str], ...]
    timers: tuple[tuple[str | None, str | None, StateMetaInfo], ...]

    @property
    def all_metas(self) -> tuple[StateMetaInfo, ...]:
        """Return all states, with timer queues last."""
        return (*(m for m, _ in self.metas), *(m for _, _, m in self.timers))


def is_list(meta: StateMetaInfo) -> bool:
    """Return True if each row of the long form is a list element."""
    shape = StateLayout(meta)
    return shape.kind == "list" and not shape.framed_bytes


def key_type(bootstrap: KeyedBootstrap, table: TableSchema) -> Serializer:
    """Return the type of the keys of a table.

    Raises
    ------
    OptionError, UnknownNameError
        There is no key column, no keys to take the type from, or a key type that no job can have.
    """
    need(table.schema, bootstrap.key, "the table")
    if bootstrap.like is not None:
        for header, _ in bootstrap.like.keyed_states.values():
            check_key_type(header.key)
            return header.key
        raise OptionError(f"operator {bootstrap.like.label.display!r} has no keyed state to be like")
    if bootstrap.key_type is not None:
        key = flink.parse_type(bootstrap.key_type)
    else:
        types = [infer_type(table.schema.field(c).type) for c in bootstrap.key]
        key = types[0] if len(types) == 1 else flink.tuple_of(*types)
    # PyFlink's keyBy wraps every key in a row of one field.
    key = flink.row(key) if python_states(bootstrap) and not _is_python_key(key) else key
    check_key_type(key)
    return key


def _is_python_key(key: Serializer) -> bool:
    return isinstance(key, RowSerializer) and len(key.nested) == 1


def python_states(bootstrap: KeyedBootstrap) -> tuple[tuple[str, PythonState], ...]:
    """Return the declared states of a Python operator, by the names under which they are registered."""
    declared = bootstrap.states if isinstance(bootstrap.states, Mapping) else {}
    states = ((registered_name(n, declaration), python_state(declaration)) for n, declaration in declared.items())
    return tuple((name, state) for name, state in states if state is not None)


def snapshot_bytes(serializer: Serializer) -> bytes:
    """Return a serializer's snapshot in the form of current headers, to compare serializers."""
    out = Output()
    write_proxied(out, serializer)
    return bytes(out)


def one_key(keys: Sequence[Serializer], carried: KeyedHeader | None) -> Serializer:
    """Return the common type of all keys, carried ones included.

    Raises
    ------
    OptionError
        Keys have different types.
    """
    serializers = [*([carried.key] if carried is not None else []), *keys]
    for other in serializers[1:]:
        if snapshot_bytes(other) != snapshot_bytes(serializers[0]):
            raise OptionError(
                f"keys of type {serializers[0].type_name} and of type {other.type_name} in one operator",
                hint="all keyed state of an operator has one key type; declare it with key_type= or take it with like=",
            )
    return serializers[0]


def plan_table(bootstrap: KeyedBootstrap, table: TableSchema, key: Serializer) -> PlannedTable:
    """Return the states and timers of one table.

    Raises
    ------
    OptionError, UnknownNameError
        Types conflict, a column is missing, or a column is not declared.
    """
    if bootstrap.key_group is not None:
        need(table.schema, (bootstrap.key_group,), "the table")
    if bootstrap.namespace is not None:
        need(table.schema, (bootstrap.namespace,), "the table")
    metas = _like_states(bootstrap, table) if bootstrap.like is not None else _declared_states(bootstrap, table)
    timers = () if table.timers is None else _timers(bootstrap, table, key)
    _check_key_scales(bootstrap, table, key)
    if bootstrap.like is not None:
        for meta, column in metas:
            _check_state_scales(bootstrap, table.schema, meta, column)
            if bootstrap.namespace is not None and meta.namespace is not None:
                check_scales(table.schema, bootstrap.namespace, meta.namespace.logical)
    return PlannedTable(bootstrap, table, tuple(metas), timers)


def check_scales(schema: pa.Schema, column: str, logical: LogicalType, own: Container[str] = ()) -> None:
    """Refuse a decimal column that may have lost the scales of the ``BigDecimal`` s it was read from.

    Parameters
    ----------
    own
        State columns, without companions.

    Raises
    ------
    OptionError
        Names the ways to give the scales.
    """
    scale = column + SCALE
    kind = schema.field(column).type
    path = unscaled_part(kind, logical)
    if path is None or (scale in schema.names and scale not in own):
        return
    part = f"{path} in column {column!r}" if path else f"column {column!r}"
    raise OptionError(
        f"{part} is decimal(38,18): the scale of each BigDecimal is not known",
        hint=f"keep the column {scale!r} beside it, or read it with decimals='string', or cast it to text or to DECIMAL(p, s) of the scale",
    )


def _check_key_scales(bootstrap: KeyedBootstrap, table: TableSchema, key: Serializer) -> None:
    if not has_scales(key.logical):
        return
    kinds = [f.type for f in key.logical.fields] if isinstance(key.logical, StructType) else []
    for schema in filter(None, (table.schema, table.timers)):
        names = bootstrap.key if set(bootstrap.key) <= set(schema.names) else ("key",)
        for name, kind in [(names[0], key.logical)] if len(names) == 1 else zip(names, kinds, strict=False):
            if name in schema.names:
                check_scales(schema, name, kind)


def _check_state_scales(bootstrap: KeyedBootstrap, schema: pa.Schema, meta: StateMetaInfo, column: str) -> None:
    shape = StateLayout(meta)
    own = () if bootstrap.states is None else bootstrap.states
    try:
        if not bootstrap.long:
            check_scales(schema, column, shape.logical, own)
            return
        check_scales(schema, column, shape.element.logical)
        if shape.user_key is not None and "map_key" in schema.names:
            check_scales(schema, "map_key", shape.user_key.logical)
    except StatetoolError as error:
        raise error.at(state=meta.name) from error.__cause__


def _state_columns(bootstrap: KeyedBootstrap, schema: pa.Schema, known: Container[str] = ()) -> list[str]:
    """Return the columns that no other argument names, without companions of timestamps that are not ``known`` as states."""
    others = {*bootstrap.key, bootstrap.key_group, bootstrap.namespace}
    stamps = {field.name for field in schema if pa.types.is_timestamp(field.type)}
    others |= {f"{n}{COMPANION}" for n in stamps if f"{n}{COMPANION}" not in known}
    # User-made decimals, of another type, may be next to a state whose name ends like that of a companion.
    decimals = {field.name for field in schema if shows_scales(field.type)}
    others |= {f"{n}{SCALE}" for n in decimals if f"{n}{SCALE}" not in known}
    return [n for n in schema.names if n not in others]


def _declared_states(bootstrap: KeyedBootstrap, table: TableSchema) -> list[tuple[StateMetaInfo, str]]:
    schema = table.schema
    declared = bootstrap.states
    if bootstrap.long:
        return _declare_long(bootstrap, schema)
    if declared is None:
        columns = _state_columns(bootstrap, schema)
        need(schema, columns, "the table")
        declared = {n: infer_state(schema.field(n).type) for n in columns}
    if not isinstance(declared, Mapping):
        raise OptionError("states= must be a mapping of names to types", hint="pass like= to give a list of names")
    if not declared and table.timers is None:
        raise OptionError("no states", hint="declare some with states={name: statetool.value(...)}")
    typed = {name: _check_declaration(name, declaration) for name, declaration in declared.items()}
    need(schema, (declaration.column or name for name, declaration in typed.items()), "the table")
    namespace = _namespace(bootstrap, schema)
    states = []
    for name, declaration in typed.items():
        column = declaration.column or name
        try:
            states.append((keyed_meta(name, complete_state(declaration, schema.field(column).type), namespace), column))
        except StatetoolError as error:
            raise error.at(state=name) from error.__cause__
    return states


def _check_declaration(name: str, declaration: object) -> StateType:
    if not isinstance(declaration, StateType):
        raise OptionError(f"state {name!r} is declared by {declaration!r}", hint='as in statetool.value("BIGINT")')
    return declaration


def _declare_long(bootstrap: KeyedBootstrap, schema: pa.Schema) -> list[tuple[StateMetaInfo, str]]:
    """Return the only state of a table in the long form; undeclared types follow from its columns."""
    assert isinstance(bootstrap.states, Mapping)
    ((name, declaration),) = bootstrap.states.items()
    need(schema, ("value",), "the table")
    column = schema.field("value").type
    if declaration is None:
        kind: Kind = "map" if "map_key" in schema.names else "list" if "list_index" in schema.names else "value"
        declaration = StateType(kind=kind)
    if declaration.element is None:
        declaration = replace(declaration, element=infer_type(column))
        if declaration.kind == "map":
            need(schema, ("map_key",), "the table")
            declaration = replace(declaration, user_key=infer_type(schema.field("map_key").type))
    needed = {"map": ("map_key",), "list": ("list_index",)}.get(declaration.kind, ())
    need(schema, needed, "the table")
    return [(keyed_meta(name, declaration, _namespace(bootstrap, schema)), "value")]


def _namespace(bootstrap: KeyedBootstrap, schema: pa.Schema) -> Serializer:
    if bootstrap.namespace_type is not None:
        return flink.parse_type(bootstrap.namespace_type)
    if bootstrap.namespace is None:
        return flink.VOID_NAMESPACE
    return infer_namespace(schema.field(bootstrap.namespace).type)


def _like_states(bootstrap: KeyedBootstrap, table: TableSchema) -> list[tuple[StateMetaInfo, str]]:
    like = bootstrap.like
    assert like is not None
    known = {name: meta for name, (_, meta) in like.keyed_states.items() if meta.kind != "timers"}
    column_of = state_columns(
        n for n, m in known.items() if m.namespace is not None and m.namespace.logical == Scalar("null")
    )
    if isinstance(bootstrap.states, Mapping) and not bootstrap.long:
        raise OptionError("cannot specify both like= and declared states", hint="pass states= as a list of names")
    if bootstrap.states is not None:
        names = list(bootstrap.states)
    else:
        state_of = {column: state for state, column in column_of.items()}
        companions = {n for column, state in state_of.items() for n in _companions(column, known[state])}
        others = companions - set(known) | {f"{n}{SCALE}" for n in bootstrap.key}
        columns = _state_columns(bootstrap, table.schema, state_of.keys() - companions)
        names = [state_of.get(n, n) for n in columns if n not in others]
    for name in names:
        if name not in known:
            raise UnknownNameError(
                f"operator {like.label.display!r} has no keyed state {name!r}", hint=suggest(name, known)
            )
    metas = [known[n] for n in names]
    if bootstrap.long:
        needed = {"map": ("map_key",), "list": ("list_index",)}.get(metas[0].kind, ())
        need(table.schema, ("value", *(needed if metas[0].kind == "map" or is_list(metas[0]) else ())), "the table")
        return [(metas[0], "value")]
    columns = [column_of.get(n, n) for n in names]
    need(table.schema, columns, "the table")
    namespaces = {snapshot_bytes(m.namespace) for m in metas if m.namespace is not None}
    if len(namespaces) > 1:
        raise OptionError(
            "states with namespaces of different types in one table", hint="pass one table per namespace type"
        )
    return list(zip(metas, columns, strict=True))


def _companions(column: str, meta: StateMetaInfo) -> set[str]:
    """Return the possible companion names of a state's column."""
    shape = StateLayout(meta)
    logical = shape.element.logical
    logical = logical.value if isinstance(logical, TtlType) else logical
    keeps_nanos = isinstance(logical, TimestampType) and logical.unit == "ns"
    kept = {COMPANION: keeps_nanos, SCALE: has_scales(shape.logical), PRESENT: shape.holds_null}
    return {f"{column}{suffix}" for suffix, is_kept in kept.items() if is_kept}


def _check_timer_columns(bootstrap: KeyedBootstrap, schema: pa.Schema) -> None:
    """Refuse unknown columns in a table of timers: a misspelled ``domain`` would create different timers."""
    known = [*bootstrap.key, "key", "timestamp", "namespace", *SERVICE_COLUMNS, bootstrap.key_group]
    shown = {"time", *(f"{name}{suffix}" for name in known for suffix in (COMPANION, SCALE))}
    for name in schema.names:
        if name not in known and name not in shown:
            raise UnknownNameError(
                f"a table of timers has no column {name!r}", hint=suggest(name, [n for n in known if n is not None])
            )


def _timers(
    bootstrap: KeyedBootstrap, table: TableSchema, key: Serializer
) -> tuple[tuple[str | None, str | None, StateMetaInfo], ...]:
    schema = table.timers
    assert schema is not None
    need(schema, ("timestamp",), "timers")
    _check_timer_columns(bootstrap, schema)
    namespace = flink.VOID_NAMESPACE
    if "namespace" in schema.names:
        namespace = infer_namespace(schema.field("namespace").type)
    known = {m.name: m for _, m in bootstrap.like.keyed_states.values()} if bootstrap.like is not None else {}
    timers = []
    for domain, service in table.services:
        meta = timer_meta(
            "event" if domain is None else domain,
            _DEFAULT_SERVICE[namespace is flink.VOID_NAMESPACE] if service is None else service,
            key,
            namespace,
        )
        timers.append((domain, service, known.get(meta.name, meta)))
    if set(SERVICE_COLUMNS) <= set(schema.names):
        # Empty queues are replaced too: the table contains all timers of the operator in ``like``.
        names = {m.name for _, _, m in timers}
        for meta in known.values():
            if meta.kind == "timers" and meta.name not in names:
                domain, _, service = meta.name.removeprefix(TIMERS_PREFIX).partition("_")
                timers.append((domain, service, meta))
    return tuple(timers)
