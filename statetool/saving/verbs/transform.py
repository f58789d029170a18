"""Changed values of keyed states as bootstraps of a composition.

A state whose column keeps its type keeps its serializer. Any other gets the type that follows from the column, as in a bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from statetool.columns.companions import column_of_companion, needs_companion
from statetool.columns.infer import infer_state, infer_type
from statetool.columns.types import SCALE
from statetool.columns.values import StateLayout
from statetool.errors import OptionError
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.declaring.states import StateType
from statetool.saving.bootstrap import KeyedBootstrap
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types import Scalar, TtlType
from statetool.types.table_columns import state_columns

_KEY_GROUP: Final = "key_group"


def states_without_namespace(operator: OperatorInventory) -> dict[str, StateMetaInfo]:
    """Return the keyed states that are columns of the table ``keyed_state``, by name."""
    return {
        name: meta
        for name, (_, meta) in operator.keyed_states.items()
        if meta.kind != "timers" and meta.namespace is not None and meta.namespace.logical == Scalar("null")
    }


def has_ttl(meta: StateMetaInfo) -> bool:
    """Return True if the values of a state have a time to live."""
    return isinstance(StateLayout(meta).element.logical, TtlType)


def bootstrap_changes(
    operator: OperatorInventory,
    before: pa.Schema,
    after: pa.Schema,
    data: Any,
    types: Mapping[str, StateType],
) -> list[KeyedBootstrap]:
    """Return the bootstraps of a changed table: one for states that keep their serializers, and one for those with new serializers.

    Parameters
    ----------
    before, after
        Schemas of the table before and after the change.
    data
        The changed table: a ``pyarrow.Table`` or a DataFrame.
    types
        Declared types by state.

    Raises
    ------
    OptionError
        The result has no key, no companion column that a value needs, or a type that no state can have.
    """
    metas = states_without_namespace(operator)
    if "key" not in after.names:
        raise OptionError("the result has no column 'key'", hint="keep it: it identifies the key of each row")
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
    bootstraps = [replace(table, like=operator, states=unchanged)] if unchanged else []
    if retyped:
        bootstraps.append(replace(table, key_type=operator.keyed.needed_key(), states=retyped))
    if not bootstraps:
        raise OptionError("the result has no column but the key", hint="keep the columns of the states that change")
    return bootstraps


def _same(before: pa.Schema, after: pa.Schema, name: str) -> bool:
    if name not in before.names:
        return False
    # A BigDecimal can hold decimals of any precision and scale.
    any_decimal = f"{name}{SCALE}" in before.names
    old, new = before.field(name).type, after.field(name).type
    return bool(_shape(old, any_decimal=any_decimal) == _shape(new, any_decimal=any_decimal))


def _shape(kind: pa.DataType, *, any_decimal: bool = False) -> Any:
    """Return the shape of a state's values, ignoring Arrow's layout, the order of fields and nullability."""
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
    return old if _shape(before) == _shape(after) else infer_type(after)
