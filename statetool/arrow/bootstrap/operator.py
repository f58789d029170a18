"""Plan how tables become the state of one operator; runs on the driver, with schemas only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statetool.arrow.bootstrap.elements import plan_elements
from statetool.arrow.bootstrap.keyed import plan_keyed
from statetool.arrow.bootstrap.model import ElementBootstrap, HashedBy, KeyedBootstrap, OperatorPlan, Table
from statetool.arrow.bootstrap.states import key_type, planned_table, python_states
from statetool.errors import StatetoolError
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMeta
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.write.publish import INLINE_BYTES


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
            plan_keyed(plan, keyed, carried, inline_bytes, hashed_by or (lambda _, __: None))
        elements = [(b, t) for b, t in bootstraps if isinstance(b, ElementBootstrap)]
        if elements or carried_elements:
            plan_elements(plan, elements, carried_elements, inline_bytes)
    except StatetoolError as error:
        raise error.at(operator=uid) from error.__cause__
    python = tuple(p for b, _ in keyed for p in python_states(b))
    return _with_types(plan, replace(types, python=(*types.python, *python)) if python else types)


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
    key = key_type(*tables[0])
    planned = [planned_table(b, t, key) for b, t in tables]
    return frozenset(m.name for p in planned for m in (*(m for m, _ in p.metas), *(m for _, _, m in p.timers)))
