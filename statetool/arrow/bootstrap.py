"""Plan how tables become the state of one operator; runs on the driver, with schemas only.

A :class:`Table` is what the user gave: a ``pyarrow.Table`` or a Spark DataFrame, which this module does not look into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

from statetool.arrow.infer import complete_state, infer_namespace, infer_state, infer_type
from statetool.arrow.types import COMPANION
from statetool.arrow.values import StateShape
from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.formats.operator_state import OperatorHeader, write_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.io.output import Output
from statetool.plan.operator import OperatorInventory
from statetool.serializers.base import Serializer
from statetool.serializers.snapshot import write_proxied
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.write import flink_types as flink
from statetool.write.declare import TIMERS_PREFIX, Kind, StateType, element_meta, keyed_meta, timer_meta
from statetool.write.recipe import PRESENCE, ElementRecipe, KeyedRecipe, StateColumn, StreamRecipe, TimerColumns
from statetool.write.streams import INLINE_BYTES

OPERATOR_PROXY: Final = 5
SERVICE_COLUMNS: Final = ("domain", "service")
_DEFAULT_SERVICE: Final = {True: "user-timers", False: "window-timers"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedBootstrap:
    """Keyed state from a table (:func:`statetool.bootstrap_keyed_state` says what the fields mean)."""

    data: Any
    key: tuple[str, ...]
    key_type: str | Serializer | None = None
    states: Mapping[str, StateType | None] | Sequence[str] | None = None
    namespace: str | None = None
    namespace_type: str | Serializer | None = None
    timers: Any = None
    like: OperatorInventory | None = None
    key_group: str | None = None
    last_access_ms: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)
    long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementBootstrap:
    """A list, union or broadcast state from a table."""

    name: str
    kind: str
    data: Any
    value_type: str | Serializer | None = None
    key_type: str | Serializer | None = None
    like: OperatorInventory | None = None
    value: str = "value"
    key: str = "key"
    subtask: str | None = None


#: How keys of a type hash: what gives their serializer its hash code, ``None`` where it has one.
HashedBy: TypeAlias = Callable[[KeyedBootstrap, Serializer], "Callable[[Serializer], Serializer] | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a bootstrap's tables look like: ``services`` are the (domain, service) of its timers."""

    schema: pa.Schema
    timers: pa.Schema | None = None
    services: tuple[tuple[str | None, str | None], ...] = ()


@dataclass(slots=True, kw_only=True)
class OperatorPlan:
    """How the state of one operator is made; each recipe stands beside the table that it is for."""

    uid: str
    parallelism: int
    max_parallelism: int
    keyed: StreamRecipe | None = None
    keyed_tables: list[tuple[Any, KeyedRecipe]] = field(default_factory=list)
    elements: StreamRecipe | None = None
    element_tables: list[tuple[Any, ElementRecipe]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJob:
    """The keyed state, or the operator state, of one operator: what its streams are made of.

    ``kept`` are tasks that read records of state that stays (:mod:`statetool.ops.kept`).
    """

    recipe: StreamRecipe
    tables: tuple[tuple[Any, KeyedRecipe | ElementRecipe], ...]
    kept: tuple[Any, ...] = ()


def plan_operator(
    uid: str,
    bootstraps: Sequence[tuple[KeyedBootstrap | ElementBootstrap, Table]],
    *,
    parallelism: int,
    max_parallelism: int,
    carried: KeyedHeader | None = None,
    carried_elements: Sequence[StateMeta] = (),
    inline_bytes: int = INLINE_BYTES,
    hashed_by: HashedBy | None = None,
    types: TypeContext = NOTHING_DECLARED,
) -> OperatorPlan:
    """Plan an operator.

    Parameters
    ----------
    hashed_by
        Tells how keys of a bootstrap hash whose hash code lies in user code.
    types
        What is known of classes that serializer snapshots do not describe.
    carried
        Header with the key and the states that are kept from an existing savepoint.

    Raises
    ------
    OptionError
        Types that do not go together, columns that are missing, states that come twice.
    """
    plan = OperatorPlan(uid=uid, parallelism=parallelism, max_parallelism=max_parallelism)
    try:
        keyed = [(b, t) for b, t in bootstraps if isinstance(b, KeyedBootstrap)]
        if keyed or carried is not None:
            _plan_keyed(plan, keyed, carried, inline_bytes, hashed_by or (lambda _, __: None))
        elements = [(b, t) for b, t in bootstraps if isinstance(b, ElementBootstrap)]
        if elements or carried_elements:
            _plan_elements(plan, elements, carried_elements, inline_bytes)
    except StatetoolError as error:
        raise error.at(operator=uid) from error.__cause__
    return _with_types(plan, types)


def _with_types(plan: OperatorPlan, types: TypeContext) -> OperatorPlan:
    plan.keyed = plan.keyed and replace(plan.keyed, types=types)
    plan.elements = plan.elements and replace(plan.elements, types=types)
    plan.keyed_tables = [(data, replace(recipe, types=types)) for data, recipe in plan.keyed_tables]
    plan.element_tables = [(data, replace(recipe, types=types)) for data, recipe in plan.element_tables]
    return plan


def state_names(tables: Sequence[tuple[KeyedBootstrap, Table]]) -> frozenset[str]:
    """Return the names of all keyed states and timer queues that tables make.

    Raises
    ------
    OptionError, UnknownNameError
        As :func:`plan_operator`.
    """
    if not tables:
        return frozenset()
    key = _key_type(*tables[0])
    planned = [_planned(b, t, key) for b, t in tables]
    return frozenset(m.name for p in planned for m in (*(m for m, _ in p.metas), *(m for _, _, m in p.timers)))


# ---- keyed state --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Planned:
    """One table: its states with their columns, and its timers."""

    bootstrap: KeyedBootstrap
    table: Table
    metas: tuple[tuple[StateMeta, str], ...]
    timers: tuple[tuple[str | None, str | None, StateMeta], ...]


def _plan_keyed(
    plan: OperatorPlan,
    tables: Sequence[tuple[KeyedBootstrap, Table]],
    carried: KeyedHeader | None,
    inline_bytes: int,
    hashed_by: HashedBy,
) -> None:
    key = _one_key([_key_type(b, t) for b, t in tables], carried)
    planned = [_planned(b, t, key) for b, t in tables]
    metas: dict[str, StateMeta] = {m.name: m for m in carried.states} if carried is not None else {}
    for p in planned:
        for meta in (*(m for m, _ in p.metas), *(m for _, _, m in p.timers)):
            if meta.name in metas:
                raise OptionError(f"state {meta.name!r} is declared twice", hint="each state comes from one table")
            metas[meta.name] = meta
    if len(metas) > 32767:
        raise OptionError(f"{len(metas)} states in one operator", hint="Flink has place for 32767")
    header = write_keyed_header(
        KeyedHeader(version=CURRENT_VERSION, compressed=False, key=key, states=tuple(metas.values()), size_bytes=0)
    )
    ids = {name: i for i, name in enumerate(metas)}
    joined = {ids[m.name] for p in planned if p.bootstrap.long for m, _ in p.metas if _is_list(m)}
    plan.keyed = StreamRecipe(
        joined=frozenset(joined),
        operator=plan.uid,
        header=header,
        keyed=True,
        max_parallelism=plan.max_parallelism,
        parallelism=plan.parallelism,
        inline_bytes=inline_bytes,
    )
    for i, p in enumerate(planned):
        recipe = KeyedRecipe(
            operator=plan.uid,
            header=header,
            max_parallelism=plan.max_parallelism,
            parallelism=plan.parallelism,
            key=p.bootstrap.key,
            namespace=p.bootstrap.namespace,
            key_group=p.bootstrap.key_group,
            hashed=None if p.bootstrap.key_group is not None else hashed_by(p.bootstrap, key),
            presence=PRESENCE + i,
            long=p.bootstrap.long,
            states=tuple(
                StateColumn(state_id=ids[m.name], column=column, last_access_ms=_last_access(p.bootstrap, m.name))
                for m, column in p.metas
            ),
        )
        if p.metas:
            plan.keyed_tables.append((p.bootstrap.data, recipe))
        if p.timers and p.table.timers is not None:
            plan.keyed_tables.append((p.bootstrap.timers, _timer_recipe(recipe, p, ids)))


def _is_list(meta: StateMeta) -> bool:
    return meta.kind == "list" and not StateShape(meta).framed_bytes


def _timer_recipe(recipe: KeyedRecipe, planned: _Planned, ids: Mapping[str, int]) -> KeyedRecipe:
    schema = planned.table.timers
    assert schema is not None
    key = recipe.key if set(recipe.key) <= set(schema.names) else ("key",)
    _need(schema, key, "timers")
    group = recipe.key_group if recipe.key_group in schema.names else None
    return replace(
        recipe,
        key=key,
        states=(),
        key_group=group,
        namespace="namespace" if "namespace" in schema.names else None,
        timers=TimerColumns(states=tuple((d, s, ids[m.name]) for d, s, m in planned.timers)),
    )


def _last_access(bootstrap: KeyedBootstrap, name: str) -> int | None:
    declared = bootstrap.states.get(name) if isinstance(bootstrap.states, Mapping) else None
    return bootstrap.last_access_ms if declared is None else declared.last_access_ms


def _key_type(bootstrap: KeyedBootstrap, table: Table) -> Serializer:
    _need(table.schema, bootstrap.key, "the table")
    if bootstrap.like is not None:
        for header, _ in bootstrap.like.keyed_states.values():
            return header.key
        raise OptionError(f"operator {bootstrap.like.label!r} has no keyed state to be like")
    if bootstrap.key_type is not None:
        return flink.parse_type(bootstrap.key_type)
    parts = [infer_type(table.schema.field(c).type) for c in bootstrap.key]
    return parts[0] if len(parts) == 1 else flink.tuple_of(*parts)


def snapshot_bytes(serializer: Serializer) -> bytes:
    """Return a serializer's snapshot, which tells it from others."""
    out = Output()
    write_proxied(out, serializer)
    return bytes(out)


def _one_key(keys: Sequence[Serializer], carried: KeyedHeader | None) -> Serializer:
    found = [*([carried.key] if carried is not None else []), *keys]
    for other in found[1:]:
        if snapshot_bytes(other) != snapshot_bytes(found[0]):
            raise OptionError(
                f"keys of type {found[0].type_name} and of type {other.type_name} in one operator",
                hint="all keyed state of an operator has one key type; declare it with key_type= or take it with like=",
            )
    return found[0]


def _planned(bootstrap: KeyedBootstrap, table: Table, key: Serializer) -> _Planned:
    if bootstrap.key_group is not None:
        _need(table.schema, (bootstrap.key_group,), "the table")
    if bootstrap.namespace is not None:
        _need(table.schema, (bootstrap.namespace,), "the table")
    metas = _like_states(bootstrap, table) if bootstrap.like is not None else _declared_states(bootstrap, table)
    timers = () if table.timers is None else _timers(bootstrap, table, key)
    return _Planned(bootstrap, table, tuple(metas), timers)


def _state_columns(bootstrap: KeyedBootstrap, schema: pa.Schema) -> list[str]:
    """Return the columns that no other argument names; companions of timestamps belong to their column."""
    others = {*bootstrap.key, bootstrap.key_group, bootstrap.namespace}
    others |= {f"{n}{COMPANION}" for n in schema.names if pa.types.is_timestamp(schema.field(n).type)}
    return [n for n in schema.names if n not in others]


def _declared_states(bootstrap: KeyedBootstrap, table: Table) -> list[tuple[StateMeta, str]]:
    schema = table.schema
    declared = bootstrap.states
    if bootstrap.long:
        return _declared_long(bootstrap, schema)
    if declared is None:
        declared = {n: infer_state(schema.field(n).type) for n in _state_columns(bootstrap, schema)}
    if not isinstance(declared, Mapping):
        raise OptionError("states= is a mapping of names to types", hint="only with like= may it be a list of names")
    if not declared and table.timers is None:
        raise OptionError("no states", hint="declare some with states={name: statetool.value(...)}")
    namespace = _namespace(bootstrap, schema)
    found = []
    for name, one in declared.items():
        if not isinstance(one, StateType):
            raise OptionError(f"state {name!r} is declared by {one!r}", hint='as in statetool.value("BIGINT")')
        column = one.column or name
        _need(schema, (column,), "the table")
        try:
            found.append((keyed_meta(name, complete_state(one, schema.field(column).type), namespace), column))
        except StatetoolError as error:
            raise error.at(state=name) from error.__cause__
    return found


def _declared_long(bootstrap: KeyedBootstrap, schema: pa.Schema) -> list[tuple[StateMeta, str]]:
    """Return the only state of a table in the long form; what is not declared follows from its columns."""
    assert isinstance(bootstrap.states, Mapping)
    ((name, one),) = bootstrap.states.items()
    _need(schema, ("value",), "the table")
    column = schema.field("value").type
    if one is None:
        kind: Kind = "map" if "map_key" in schema.names else "list" if "list_index" in schema.names else "value"
        one = StateType(kind=kind)
    if one.element is None:
        one = replace(one, element=infer_type(column))
        if one.kind == "map":
            _need(schema, ("map_key",), "the table")
            one = replace(one, user_key=infer_type(schema.field("map_key").type))
    needed = {"map": ("map_key",), "list": ("list_index",)}.get(one.kind, ())
    _need(schema, needed, "the table")
    return [(keyed_meta(name, one, _namespace(bootstrap, schema)), "value")]


def _namespace(bootstrap: KeyedBootstrap, schema: pa.Schema) -> Serializer:
    if bootstrap.namespace_type is not None:
        return flink.parse_type(bootstrap.namespace_type)
    if bootstrap.namespace is None:
        return flink.VOID_NAMESPACE
    return infer_namespace(schema.field(bootstrap.namespace).type)


def _like_states(bootstrap: KeyedBootstrap, table: Table) -> list[tuple[StateMeta, str]]:
    like = bootstrap.like
    assert like is not None
    known = {name: meta for name, (_, meta) in like.keyed_states.items() if meta.kind != "timers"}
    if isinstance(bootstrap.states, Mapping) and not bootstrap.long:
        raise OptionError("both like= and declared states", hint="with like=, states= is a list of names")
    if bootstrap.states is not None:
        names = list(bootstrap.states)
    else:
        names = _state_columns(bootstrap, table.schema)
    for name in names:
        if name not in known:
            raise UnknownNameError(f"operator {like.label!r} has no keyed state {name!r}", hint=suggest(name, known))
    found = [known[n] for n in names]
    if bootstrap.long:
        needed = {"map": ("map_key",), "list": ("list_index",)}.get(found[0].kind, ())
        _need(table.schema, ("value", *(needed if found[0].kind == "map" or _is_list(found[0]) else ())), "the table")
        return [(found[0], "value")]
    _need(table.schema, names, "the table")
    spaces = {snapshot_bytes(m.namespace) for m in found if m.namespace is not None}
    if len(spaces) > 1:
        raise OptionError("states with namespaces of different types in one table", hint="give each a table of its own")
    return [(m, m.name) for m in found]


def _timers(
    bootstrap: KeyedBootstrap, table: Table, key: Serializer
) -> tuple[tuple[str | None, str | None, StateMeta], ...]:
    schema = table.timers
    assert schema is not None
    _need(schema, ("timestamp",), "timers")
    namespace = flink.VOID_NAMESPACE
    if "namespace" in schema.names:
        namespace = infer_namespace(schema.field("namespace").type)
    known = {m.name: m for _, m in bootstrap.like.keyed_states.values()} if bootstrap.like is not None else {}
    found = []
    for domain, service in table.services:
        meta = timer_meta(
            domain or "event",
            service or _DEFAULT_SERVICE[namespace is flink.VOID_NAMESPACE],
            key,
            namespace,
        )
        found.append((domain, service, known.get(meta.name, meta)))
    if set(SERVICE_COLUMNS) <= set(schema.names):
        # Queues without a timer are replaced as well: the table holds all timers of the operator that it is like.
        names = {m.name for _, _, m in found}
        for meta in known.values():
            if meta.kind == "timers" and meta.name not in names:
                domain, _, service = meta.name.removeprefix(TIMERS_PREFIX).partition("_")
                found.append((domain, service, meta))
    return tuple(found)


def checked_services(rows: Iterable[Mapping[str, str | None]]) -> tuple[tuple[str | None, str | None], ...]:
    """Return the (domain, service) of rows in an order of their own; absent columns are ``None``.

    Raises
    ------
    OptionError
        A column is there and has a null.
    """
    found = []
    for row in rows:
        if None in row.values():
            raise OptionError(f"a timer without {' and '.join(k for k, v in row.items() if v is None)}")
        found.append((row.get("domain"), row.get("service")))
    return tuple(sorted(found, key=lambda pair: (pair[0] or "", pair[1] or "")))


def _need(schema: pa.Schema, columns: Iterable[str], what: str) -> None:
    for name in columns:
        if schema.names.count(name) != 1:
            raise UnknownNameError(
                f"{what} {'has no column' if name not in schema.names else 'has two columns'} {name!r}",
                hint=suggest(name, schema.names),
            )


# ---- operator state -----------------------------------------------------------------------------


def _plan_elements(
    plan: OperatorPlan,
    tables: Sequence[tuple[ElementBootstrap, Table]],
    carried: Sequence[StateMeta],
    inline_bytes: int,
) -> None:
    metas = {m.name: m for m in carried}
    for bootstrap, table in tables:
        if bootstrap.name in metas:
            raise OptionError(f"operator state {bootstrap.name!r} is declared twice")
        metas[bootstrap.name] = _element_meta(bootstrap, table)
    # On the wire broadcast states follow all others, and ids are positions there.
    ordered = sorted(metas.values(), key=lambda m: m.kind == "broadcast")
    header = OperatorHeader(version=OPERATOR_PROXY, compressed=False, states=tuple(ordered), size_bytes=0)
    raw = write_operator_header(header, version=OPERATOR_PROXY)
    ids = {m.name: i for i, m in enumerate(ordered)}
    plan.elements = StreamRecipe(
        operator=plan.uid,
        header=raw,
        keyed=False,
        max_parallelism=plan.max_parallelism,
        parallelism=plan.parallelism,
        inline_bytes=inline_bytes,
        carried_whole=frozenset(ids[m.name] for m in carried if m.kind == "broadcast"),
    )
    for bootstrap, _ in tables:
        recipe = ElementRecipe(
            operator=plan.uid,
            header=raw,
            parallelism=plan.parallelism,
            state_id=ids[bootstrap.name],
            value=bootstrap.value,
            key=bootstrap.key,
            subtask=bootstrap.subtask,
        )
        plan.element_tables.append((bootstrap.data, recipe))


def _element_meta(bootstrap: ElementBootstrap, table: Table) -> StateMeta:
    broadcast = bootstrap.kind == "broadcast"
    others = (bootstrap.key,) if broadcast else () if bootstrap.subtask is None else (bootstrap.subtask,)
    _need(table.schema, (bootstrap.value, *others), "the table")
    if bootstrap.like is not None:
        meta = bootstrap.like.operator_states.get(bootstrap.name)
        if meta is None:
            raise UnknownNameError(
                f"operator {bootstrap.like.label!r} has no operator state {bootstrap.name!r}",
                hint=suggest(bootstrap.name, bootstrap.like.operator_states),
            )
        if meta.kind != bootstrap.kind:
            raise OptionError(f"operator state {bootstrap.name!r} is a {meta.kind} state there")
        return meta
    value = _element_type(bootstrap.value_type, table.schema.field(bootstrap.value).type)
    key = _element_type(bootstrap.key_type, table.schema.field(bootstrap.key).type) if broadcast else None
    return element_meta(bootstrap.name, bootstrap.kind, value, key)


def _element_type(declared: str | Serializer | None, kind: pa.DataType) -> Serializer:
    return infer_type(kind) if declared is None else flink.parse_type(declared)
