"""Changes to the values of keyed states, by SQL expressions or by a function of tables, as tables of a composition.

A state whose column keeps its type keeps its serializer. Any other gets the type that follows from the column, as in a bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from statetool.declaring.states import StateType
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.snapshot.state_tables import KEYED_STATE
from statetool.types import Scalar, TtlType
from statetool.types.options import DecimalsMode
from statetool.types.table_columns import state_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from statetool.api.operator import Operator
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.saving.bootstrap import KeyedBootstrap
    from statetool.serializers.base import Serializer

Transformation: TypeAlias = "Mapping[str, str] | Callable[[Any], Any]"
_KEY_GROUP = "key_group"


class TransformOptions(TypedDict, total=False):
    """Options of :meth:`statetool.Operator.transform`."""

    states: Sequence[str] | None
    where: str | None
    types: Mapping[str, StateType] | None
    decimals: DecimalsMode


def transformed(
    operator: Operator,
    spark: Any,
    change: Transformation,
    *,
    states: Sequence[str] | None = None,
    where: str | None = None,
    types: Mapping[str, StateType] | None = None,
    decimals: DecimalsMode = "decimal",
) -> tuple[KeyedBootstrap, ...]:
    """Return the tables of a transformation; see :meth:`statetool.api.edits.Edits.transform`."""
    metas = {
        n: m
        for n, (_, m) in operator.inventory.keyed_states.items()
        if m.kind != "timers" and m.namespace is not None and m.namespace.logical == Scalar("null")
    }
    for name in (*(states or ()), *(types or ())):
        if name not in metas:
            raise UnknownNameError(f"operator {operator.name!r} has no state {name!r}", hint=suggest(name, metas))
    if callable(change):
        if where is not None:
            raise OptionError(
                "where= goes with expressions",
                hint="a function changes the rows it likes and returns all: keys that it leaves out lose these states",
            )
        before, after, data = _by_function(operator, spark, change, states, decimals)
    else:
        if states is not None:
            raise OptionError("states= goes with a function", hint="expressions name their states")
        before, after, data = _by_expressions(operator, metas, change, where, decimals)
    return tuple(_bootstraps(operator, metas, before, after, data, types or {}))


def _by_function(
    operator: Operator, spark: Any, change: Callable[[Any], Any], states: Sequence[str] | None, decimals: DecimalsMode
) -> tuple[pa.Schema, pa.Schema, Any]:
    if spark is None:
        import pyarrow as pa

        table = operator.to_arrow(KEYED_STATE, states=states, ttl="raw", decimals=decimals, key_group=True)
        data = change(table)
        if not isinstance(data, pa.Table):
            raise OptionError(
                f"the function returns {type(data).__name__}, not a table",
                hint="without a session it gets a pyarrow.Table and returns one; open the savepoint with spark=",
            )
        return table.schema, data.schema, data
    from statetool.spark.schema import arrow_schema

    frame = operator.keyed_state(states, ttl="raw", decimals=decimals, key_group=True)
    data = change(frame)
    if not hasattr(data, "mapInArrow"):
        raise OptionError(f"the function returns {type(data).__name__}, not a DataFrame")
    return arrow_schema(frame), arrow_schema(data), data


def _by_expressions(
    operator: Operator,
    metas: Mapping[str, StateMetaInfo],
    change: Mapping[str, str],
    where: str | None,
    decimals: DecimalsMode,
) -> tuple[pa.Schema, pa.Schema, Any]:
    from statetool.columns.companions import SUFFIXES, state_of_companion
    from statetool.spark.schema import arrow_schema
    from statetool.spark.transform import apply_expressions

    column_of = state_columns(metas)
    for name in change:
        if name not in metas and state_of_companion(name, metas) is None:
            raise UnknownNameError(f"operator {operator.name!r} has no state {name!r}", hint=suggest(name, metas))
    if not change:
        raise OptionError("nothing to change", hint='as in {"balance": "CAST(balance AS DECIMAL(20, 4))"}')
    # An expression refers to columns by name in its text, and a star may refer to all.
    text = " ".join((*change.values(), where or "")).lower()
    needed = [
        n
        for n in metas
        if n in change
        or column_of[n].lower() in text
        or "*" in text
        or any(f"{n}{suffix}" in change for suffix in SUFFIXES)
    ]
    frame = operator.keyed_state(needed, ttl="raw", decimals=decimals, key_group=True)
    timed = [n for n in needed if metas[n].kind not in ("list", "map") and _ttl(metas[n])]
    columns = {column_of.get(n, n): sql for n, sql in change.items()}
    own = {column_of[n] for n in needed}
    companions = {f"{n}{suffix}" for n in ("key", *own) for suffix in SUFFIXES} - own
    data = apply_expressions(frame, columns, where, [column_of[n] for n in timed], companions & set(frame.columns))
    return arrow_schema(frame), arrow_schema(data), data


def _ttl(meta: StateMetaInfo) -> bool:
    from statetool.columns.values import StateLayout

    return isinstance(StateLayout(meta).element.logical, TtlType)


def _bootstraps(
    operator: Operator,
    metas: Mapping[str, StateMetaInfo],
    before: pa.Schema,
    after: pa.Schema,
    data: Any,
    types: Mapping[str, StateType],
) -> list[KeyedBootstrap]:
    """Return one table for states that keep their serializers, and one for those with new serializers."""
    from statetool.columns.companions import column_of_companion, needs_companion
    from statetool.columns.infer import infer_state
    from statetool.saving.bootstrap import KeyedBootstrap

    if "key" not in after.names:
        raise OptionError("the result has no column 'key'", hint="keep it: it says whose state the others are")
    state_of = {column: state for state, column in state_columns(metas).items()}
    companions: set[str] = set()
    for companion in dict.fromkeys((*before.names, *after.names)):
        found = column_of_companion(companion, after, known=companion in before.names)
        if found is None or state_of.get(companion, companion) in metas:
            continue
        column, kept, instead = found
        if companion in after.names:
            companions.add(companion)
        elif column in before.names and needs_companion(companion, after.field(column).type):
            raise OptionError(
                f"the result has no column {companion!r}, without which {column!r} would lose {kept}",
                hint=f"keep it, or {instead}",
            )
    unchanged: list[str] = []
    retyped: dict[str, StateType] = {}
    for column in after.names:
        state = state_of.get(column, column)
        if column in ("key", _KEY_GROUP) or column in companions:
            continue
        if state in metas and state not in types and _same(before, after, column):
            unchanged.append(state)
            continue
        kind = after.field(column).type
        if state in types:
            state_type = types[state]
        elif state in metas:
            if column not in before.names:
                raise OptionError(
                    f"the result has state {state!r}, which the function was not given",
                    hint="name it in states=, so that its serializer is known, or its type in types=",
                )
            state_type = _state_type(metas[state], before.field(column).type, kind)
        else:
            state_type = infer_state(kind)
        retyped[state] = replace(state_type, column=column)
    table = KeyedBootstrap(data=data, key=("key",), key_group=_KEY_GROUP if _KEY_GROUP in after.names else None)
    bootstraps = [replace(table, like=operator.inventory, states=unchanged)] if unchanged else []
    if retyped:
        bootstraps.append(replace(table, key_type=operator.inventory.keyed.needed_key(), states=retyped))
    if not bootstraps:
        raise OptionError("the result has no column but the key", hint="keep the columns of the states that change")
    return bootstraps


def _same(before: pa.Schema, after: pa.Schema, name: str) -> bool:
    from statetool.columns.companions import SCALE

    if name not in before.names:
        return False
    # A BigDecimal can hold decimals of any precision and scale.
    any_decimal = f"{name}{SCALE}" in before.names
    old, new = before.field(name).type, after.field(name).type
    return bool(_shape(old, any_decimal=any_decimal) == _shape(new, any_decimal=any_decimal))


def _shape(kind: pa.DataType, *, any_decimal: bool = False) -> Any:
    """Return the shape of a state's values, ignoring Arrow's layout, the order of fields and nullability."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _shape(kind.value_type, any_decimal=any_decimal)
    if pa.types.is_decimal(kind) and any_decimal:
        return "decimal"
    if pa.types.is_map(kind):
        return "map", *(_shape(part, any_decimal=any_decimal) for part in (kind.key_type, kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list", _shape(kind.value_type, any_decimal=any_decimal)
    if pa.types.is_struct(kind):
        fields = ((field.name, _shape(field.type, any_decimal=any_decimal)) for field in kind)
        return "struct", sorted(fields, key=lambda part: part[0])
    if pa.types.is_timestamp(kind):
        return "timestamp", kind.tz is not None
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def _state_type(meta: StateMetaInfo, before: pa.DataType, after: pa.DataType) -> StateType:
    """Return the state's type for a column of another type. A key or element with an unchanged type keeps its serializer."""
    import pyarrow as pa

    from statetool.columns.values import StateLayout

    shape = StateLayout(meta)
    kind: Any = meta.kind
    is_kind = {"list": pa.types.is_list, "map": pa.types.is_map}.get(kind)
    if is_kind is not None and not is_kind(after):
        raise OptionError(f"a {kind} state from a column of type {after}").at(state=meta.name)
    user_key = None
    if kind == "map":
        assert shape.user_key is not None
        user_key = _serializer_for(shape.user_key, before.key_type, after.key_type)
        before, after = before.item_type, after.item_type
    elif kind == "list":
        before, after = before.value_type, after.value_type
    element, ttl = shape.item, isinstance(shape.element.logical, TtlType)
    if ttl:
        if not pa.types.is_struct(after) or {"last_access", "value"} - {f.name for f in after}:
            raise OptionError(
                f"values with a time to live from a column of type {after}",
                hint="they are structs of last_access and value, as ttl='raw' shows them",
            ).at(state=meta.name)
        before, after = before.field("value").type, after.field("value").type
        element = dict(element.children())["value"]
    return StateType(kind=kind, element=_serializer_for(element, before, after), user_key=user_key, ttl=ttl)


def _serializer_for(old: Serializer, before: pa.DataType, after: pa.DataType) -> Serializer:
    from statetool.columns.infer import infer_type

    return old if _shape(before) == _shape(after) else infer_type(after)
