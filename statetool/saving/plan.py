"""Plan a new snapshot without touching the target: which operators of a base stay unchanged, and how the others are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from statetool.errors import (
    DecodeError,
    FormatError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    nearest,
    suggest,
    warn,
)
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.metadata import OperatorState
from statetool.java.hashing.formulas import HashFormula
from statetool.saving.bootstrap.model import KeyedBootstrap
from statetool.saving.bootstrap.release import for_release
from statetool.saving.catch_up import with_origin
from statetool.saving.composition import Composition, OperatorChange, Runner, SourceOperator
from statetool.saving.decision import Decision, in_same_form, warn_of_other_backend
from statetool.saving.grafts import check_source, grafted_state
from statetool.saving.operator_plan import DescribedTables, ElementPlan, KeyedPlan, Layout, PlannedOperator
from statetool.saving.plan_checks import check_change, check_moves, check_names, prove_moves
from statetool.saving.streams.databases import has_databases
from statetool.saving.uids import find_operator
from statetool.saving.versions import Target
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.uids import find_all
from statetool.snapshot.unflushed_lists import UNFLUSHED
from statetool.types.declared import NOTHING_DECLARED

#: Minimum similarity (of ``nearest``) at which a name may be a typo for another.
_TYPING_ERROR: Final = 0.7


def plan_composition(
    composition: Composition, runner: Runner, release: Target
) -> tuple[list[OperatorState], list[PlannedOperator]]:
    """Return the unchanged operators of the base, and the operators to write for the target release.

    Raises
    ------
    OptionError, UnknownNameError, UnsupportedError
        The composition is not possible.
    """
    base = () if composition.base is None else composition.base.metadata.operators
    removed = {find_operator(base, name).operator_id for name in composition.removed}
    remaining = [o for o in base if o.operator_id not in removed]
    planned: list[PlannedOperator] = []
    changed: set[str] = set()
    for name, requested in composition.changes.items():
        try:
            change = replace(requested, bootstraps=tuple(for_release(b, release) for b in requested.bootstraps))
            if composition.native is not None:
                change = replace(change, form=composition.native)
            tables = [(b, runner.describe(b)) for b in change.bootstraps]
            old = _find(remaining, name)
            for added in change.added:
                if added.source.inventory is not composition.base:
                    check_source(added.source, release)
            if requested.new and old is not None:
                raise OptionError(f"operator {name!r} already exists", hint="omit new=True to change it")
            if change.graft is not None:
                planned.append(_plan_graft(name, old, change, change.graft, tables, composition, release))
                continue
            if old is None:
                if _find(base, name) is None:
                    existing = {} if composition.base is None else composition.base.operators
                    _check_meant(name, requested, existing)
                planned.append(_plan_new(name, change, tables, composition, runner, release))
                continue
            if old.operator_id in changed:
                raise OptionError(f"operator {name!r} is changed twice, under two names")
            changed.add(old.operator_id)
            assert composition.base is not None
            source = SourceOperator(composition.base, composition.base.operator(name))
            planned.append(_plan_change(source.operator.label, old, change, tables, composition, source, release))
        except StatetoolError as error:
            raise error.at(operator=name) from error.__cause__
    unchanged = {o.operator_id: o for o in remaining if o.operator_id not in changed}
    if composition.base is not None:
        for operator in composition.base.operators.values():
            if operator.state.operator_id not in unchanged:
                continue
            form = composition.native if operator.keyed.managed else None
            # Flink cannot restore unflushed lists as they are stored.
            if form is not None or (operator.elements.are_unflushed and _can_rewrite(operator)):
                old = unchanged.pop(operator.state.operator_id)
                source = SourceOperator(composition.base, operator)
                planned.append(
                    _plan_change(operator.label, old, OperatorChange(form=form), [], composition, source, release)
                )
    return list(unchanged.values()), planned


def _can_rewrite(operator: OperatorInventory) -> bool:
    """Return True if lists with wrong offsets can be written with right ones; otherwise warn that they stay as they are."""
    try:
        return bool(operator.elements.streams)
    except (FormatError, DecodeError, UnsupportedError) as error:
        warn(
            f"{operator.label.display} is carried as it is stored, and Flink will not restore it: {UNFLUSHED}. Its elements cannot be "
            f"decoded ({error}). Pass the job's jar (--jar) or declare their classes (--declare), and run: statetool convert SRC DST"
        )
        return False


def _find(operators: Sequence[OperatorState], name: str) -> OperatorState | None:
    try:
        return find_operator(operators, name, exact=True)
    except UnknownNameError:
        return None


def _check_meant(uid: str, change: OperatorChange, base: Mapping[str, OperatorInventory]) -> None:
    """Refuse to add an operator that should exist, or whose name may be a typo for one of the base."""
    if change.new:
        return
    near = nearest(uid.lower(), [name.lower() for name in base], cutoff=_TYPING_ERROR)
    likes = [b.like.state for b in change.bootstraps if b.like is not None]
    by_name = find_all([o.label for o in base.values()], uid)
    meant = [
        operator.label
        for name, operator in base.items()
        if name.lower() in near or operator.state in likes or operator.label in by_name
    ]
    if meant:
        raise UnknownNameError(
            f"no operator has the uid {uid!r}, but there is {' and '.join(repr(o.display) for o in meant)}",
            hint=f"did you mean {' or '.join(meant)}? A typo in the uid would add a new operator instead of changing the existing one. "
            f"To add an operator, call with_operator({uid!r}, ..., new=True)",
        )
    if change.new is False:
        raise UnknownNameError(f"no operator has the uid {uid!r}", hint=suggest(uid, base))


def _plan_new(
    uid: str, change: OperatorChange, tables: DescribedTables, composition: Composition, runner: Runner, release: Target
) -> PlannedOperator:
    if change.dropped_states or change.renames:
        known = [] if composition.base is None else list(composition.base.operators)
        raise UnknownNameError(f"cannot change states of operator {uid!r}: it does not exist", hint=suggest(uid, known))
    if not uid:
        raise OptionError("the uid of an operator is empty", hint="pass the uid by which Flink finds the state")
    max_parallelism = change.max_parallelism or composition.max_parallelism
    parallelism = change.parallelism or min(max_parallelism, runner.parallelism)
    check_max_parallelism(max_parallelism, parallelism)
    if any(isinstance(bootstrap, KeyedBootstrap) for bootstrap in change.bootstraps):
        change = in_same_form(change, None, composition, release, uid)
    layout = Layout.of(uid, change, tables, composition, NOTHING_DECLARED, max_parallelism, parallelism)
    return layout.planned(None, KeyedPlan.of(layout, tables).task(None), ElementPlan.of(layout, tables).task(None))


def _plan_graft(
    name: str,
    old: OperatorState | None,
    change: OperatorChange,
    graft: SourceOperator,
    tables: DescribedTables,
    composition: Composition,
    release: Target,
) -> PlannedOperator:
    """Plan an operator of another snapshot, which keeps its bytes if its key groups stay."""
    if old is not None:
        raise OptionError(
            f"operator {name!r} already exists",
            hint="remove it first, graft the other one under another uid, or merge the two snapshots",
        )
    check_source(graft, release)
    number = change.max_parallelism or graft.operator.state.max_parallelism
    parallelism = change.parallelism or min(graft.operator.state.parallelism, number)
    check_max_parallelism(number, parallelism)
    proof = prove_moves(graft.operator, number, change.formula or HashFormula.declared({}))
    change = replace(change, max_parallelism=number, parallelism=parallelism, formula=proof.formula)
    state = grafted_state(composition, name, graft)
    return replace(_plan_change(name, state, change, tables, composition, graft, release), graft=graft)


def _plan_change(
    label: str,
    old: OperatorState,
    change: OperatorChange,
    tables: DescribedTables,
    composition: Composition,
    source: SourceOperator,
    release: Target,
) -> PlannedOperator:
    """Plan a change of an operator of the base, or of another snapshot; ``old`` is the operator under its new name."""
    operator = source.operator
    max_parallelism = change.max_parallelism or old.max_parallelism
    parallelism = change.parallelism or old.parallelism
    rekeys = change.keys is not None or change.recomputed is not None
    check_moves(source.inventory.metadata, operator, max_parallelism, parallelism, rekeys=rekeys)
    check_change(operator, old, change)

    def decide(change: OperatorChange) -> Decision:
        layout = Layout.of(label, change, tables, composition, operator.types, max_parallelism, parallelism)
        return Decision(operator, old, change, layout, KeyedPlan.of(layout, tables), ElementPlan.of(layout, tables))

    if composition.form == "canonical" and change.filter is not None and has_databases(operator):
        change = replace(change, form="canonical")
    decision = decide(change)
    check_names(operator, label, change, decision.keyed.gone, decision.elements.gone)
    if decision.writes_keyed:
        decision = decide(in_same_form(change, operator, composition, release, label))
    elif change.graft is not None:
        warn_of_other_backend(operator, composition.base_forms, label)
    return decision.layout.planned(
        decision.carried,
        with_origin(decision.keyed_task, source, change) if decision.writes_keyed else decision.in_place,
        decision.elements.task(operator) if decision.writes_elements else None,
    )
