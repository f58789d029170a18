"""Plan how tables become the keyed state and the timers of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from statetool.arrow.bootstrap.model import HashedBy, KeyedBootstrap, OperatorPlan, Table, need
from statetool.arrow.bootstrap.states import PlannedTable, is_list, key_type, one_key, planned_table
from statetool.errors import OptionError
from statetool.formats.keyed.header import CURRENT_VERSION, KeyedHeader, write_keyed_header
from statetool.formats.state_meta import StateMeta
from statetool.write.declare import registered_name
from statetool.write.recipe import PRESENCE, KeyedRecipe, StateColumn, StreamRecipe, TimerColumns


def plan_keyed(
    plan: OperatorPlan,
    tables: Sequence[tuple[KeyedBootstrap, Table]],
    carried: KeyedHeader | None,
    inline_bytes: int,
    hashed_by: HashedBy,
) -> None:
    """Put the recipes for keyed state and timers into the plan of an operator; ``carried`` is the header of what is kept.

    Raises
    ------
    OptionError, UnknownNameError
        As :func:`statetool.arrow.bootstrap.plan_operator`.
    """
    key = one_key([key_type(b, t) for b, t in tables], carried)
    planned = [planned_table(b, t, key) for b, t in tables]
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
    joined = {ids[m.name] for p in planned if p.bootstrap.long for m, _ in p.metas if is_list(m)}
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


def _timer_recipe(recipe: KeyedRecipe, planned: PlannedTable, ids: Mapping[str, int]) -> KeyedRecipe:
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


def _last_access(bootstrap: KeyedBootstrap, name: str) -> int | None:
    states = bootstrap.states if isinstance(bootstrap.states, Mapping) else {}
    declared = next((one for given, one in states.items() if registered_name(given, one) == name), None)
    return bootstrap.last_access_ms if declared is None else declared.last_access_ms
