"""Plan how tables become the operator state (list, union, broadcast) of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from statetool.arrow.bootstrap.model import ElementBootstrap, OperatorPlan, Table, need
from statetool.arrow.infer import infer_type
from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.formats.operator_state import OperatorHeader, write_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.serializers.base import Serializer
from statetool.write import flink_types as flink
from statetool.write.declare import element_meta
from statetool.write.recipe import ElementRecipe, StreamRecipe

OPERATOR_PROXY: Final = 5


def plan_elements(
    plan: OperatorPlan,
    tables: Sequence[tuple[ElementBootstrap, Table]],
    carried: Sequence[StateMeta],
    inline_bytes: int,
) -> None:
    """Put the recipes for operator state into the plan of an operator; ``carried`` are the states that are kept.

    Raises
    ------
    OptionError, UnknownNameError
        As :func:`statetool.arrow.bootstrap.plan_operator`.
    """
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
    need(table.schema, (bootstrap.value, *others), "the table")
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
