"""Rules for SQL operators whose compiled plans are known: Flink restores rows by position, whatever their columns mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.verdicts import CheckWarning, Level, Remedy, Resolution, combine, migration_remedy
from statetool.errors import sentence
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope
from statetool.sql_plans.aggregates import (
    PlanAggregates,
    changed_key,
    changed_rows,
    changed_settings,
    changed_state,
    changed_view,
    moved_columns,
    moved_views,
    unnamed_rows,
)
from statetool.sql_plans.groups import coarser_columns

_MIGRATE: Final = migration_remedy("Write a copy of the snapshot in which the columns are matched by name.")
_MERGE: Final = migration_remedy(
    "Write a copy of the snapshot in which the accumulators of groups that become one are merged."
)
_COMPUTE: Final = migration_remedy(
    "Write a copy of the snapshot with the state of the new query, computed from the old one."
)
_KEEP_VIEWS: Final = Remedy("Keep such aggregates at their positions in the query, and add others after them.")
_NAME_ROWS: Final = Remedy(
    "Pass the plan of each snapshot's job. If you did, compare the columns of both queries yourself."
)
_KEEP_ROWS: Final = Remedy("Keep them, or drop the operator: it then starts empty.")
_KEEP_KEY: Final = Remedy("Keep the columns of the key, or drop the operator.")


def plan_resolutions(old: OperatorInventory, new: OperatorInventory | None) -> dict[tuple[Scope, str], Resolution]:
    """Return the resolutions of an operator's states, by scope and state, from the plans of both jobs. State ``""`` is the key.

    Raises
    ------
    OptionError
        A plan does not have the operator, or does not fit it.
    """
    if new is None or old.plan_aggregates is None or new.plan_aggregates is None:
        return {}
    return dict(_resolutions(old, new, old.plan_aggregates, new.plan_aggregates))


def _resolutions(
    old: OperatorInventory, new: OperatorInventory, before: PlanAggregates, after: PlanAggregates
) -> Iterator[tuple[tuple[Scope, str], Resolution]]:
    of_operator = []
    whole = changed_state(before, after)
    if whole is not None and (whole.refusal or whole.text):
        text = sentence(f"By the compiled plans, {whole.refusal or whole.text}")
        yield ("keyed", ""), combine([_may_change(text, _KEEP_ROWS if whole.refusal else _COMPUTE)])
        return
    if key := changed_key(before, after):
        key_columns = coarser_columns(before, after)
        why = f", and {key_columns}" if isinstance(key_columns, str) else ""
        remedy = _MERGE if isinstance(key_columns, tuple) else _KEEP_KEY
        of_operator.append(_may_change(f"By the compiled plans, {key}{why}.", remedy))
    for change in changed_settings(before, after):
        text = f"By the compiled plans, {change}. The state has rows that were kept by the old query, and lacks others."
        of_operator.append(_may_change(text, _KEEP_ROWS))
    if of_operator:
        yield ("keyed", ""), combine(of_operator)
    states: list[tuple[Scope, str]] = [("keyed", n) for n in old.listed_keyed if n in new.listed_keyed]
    states += [("operator", n) for n in old.listed_elements if n in new.listed_elements]
    moved = moved_views(before, after, tuple(old.listed_keyed))
    for scope, name in states:
        if name in moved and (where := moved[name]) is not None:
            text = f"By the compiled plans, the values of {name} belong to {where}."
            yield (scope, name), _may_change(text, _MIGRATE)
        elif name in moved:
            text = f"By the compiled plans, the new query has no such aggregate, and {name} may become the state of another one."
            yield (scope, name), _may_change(text, _MIGRATE)
        elif view := changed_view(before, after, name):
            yield (scope, name), _may_change(f"By the compiled plans, {view}.", _KEEP_VIEWS)
        elif unnamed := unnamed_rows(before, after, name):
            yield (scope, name), _may_change(sentence(unnamed), _NAME_ROWS)
        elif columns := moved_columns(*changed_rows(before, after, name)):
            text = f"Flink reads columns by position: {', '.join(columns)}."
            yield (scope, name), _may_change(text, _MIGRATE)


def _may_change(text: str, remedy: Remedy) -> Resolution:
    warning = CheckWarning(kind="may_change", message=text, remedy=remedy)
    return Resolution.because(Level.AS_IS, text, remedy, warning)
