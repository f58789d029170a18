"""Plan a new snapshot: which operators of an existing one stay as they are, and how the others are written. Touches no target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from statetool.arrow.bootstrap import ElementBootstrap, KeyedBootstrap, OperatorPlan, plan_operator, state_names
from statetool.arrow.release import for_release
from statetool.errors import OptionError, StatetoolError, UnknownNameError, UnsupportedError, suggest
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.metadata import OperatorState, SubtaskState
from statetool.formats.state_meta import StateMeta
from statetool.ops.composition import Composition, Runner
from statetool.ops.formulas import HashFormula, hashed, user_classes
from statetool.ops.kept import KeptElements, KeptKeyed, element_tasks, kept_metas, keyed_tasks
from statetool.ops.prove import prove_hashes
from statetool.ops.sources import joined_header, keyed_splits
from statetool.ops.uids import find_operator
from statetool.plan.operator import OperatorInventory
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.write.declare import OperatorChange
from statetool.write.versions import Target


@dataclass(slots=True, kw_only=True)
class PlannedOperator:
    """One operator that is written; ``old`` is what the base has of it, without what is replaced."""

    plan: OperatorPlan
    old: OperatorState | None
    uid: str
    keyed: list[KeptKeyed] = field(default_factory=list)
    elements: list[KeptElements] = field(default_factory=list)


def plan_composition(
    wanted: Composition, runner: Runner, release: Target
) -> tuple[list[OperatorState], list[PlannedOperator]]:
    """Return the operators of the base that stay as they are, and those that are written so that a release reads them.

    Raises
    ------
    OptionError, UnknownNameError, UnsupportedError
        What was asked for cannot be.
    """
    base = () if wanted.base is None else wanted.base.metadata.operators
    removed = {find_operator(base, name).operator_id for name in wanted.removed}
    left = [o for o in base if o.operator_id not in removed]
    planned: list[PlannedOperator] = []
    changed: set[str] = set()
    for name, given in wanted.changes.items():
        change = _for_release(name, given, release)
        old = _find(left, name)
        if old is None:
            planned.append(_plan_new(name, change, wanted, runner))
            continue
        if old.operator_id in changed:
            raise OptionError(f"operator {name!r} is changed twice, under two names")
        changed.add(old.operator_id)
        assert wanted.base is not None
        planned.append(_plan_change(wanted.base.operator(name), old, change, wanted, runner))
    return [o for o in left if o.operator_id not in changed], planned


def _for_release(uid: str, change: OperatorChange, release: Target) -> OperatorChange:
    try:
        return replace(change, bootstraps=tuple(for_release(b, release) for b in change.bootstraps))
    except StatetoolError as error:
        raise error.at(operator=uid) from error.__cause__


def _find(operators: Sequence[OperatorState], name: str) -> OperatorState | None:
    try:
        return find_operator(operators, name)
    except UnknownNameError:
        return None


def _plan_new(uid: str, change: OperatorChange, wanted: Composition, runner: Runner) -> PlannedOperator:
    if change.without or change.renames:
        known = [] if wanted.base is None else list(wanted.base.operators)
        raise UnknownNameError(f"no operator {uid!r} whose states could be changed", hint=suggest(uid, known))
    if not uid:
        raise OptionError("an operator without a uid", hint="the uid is what Flink finds the state by")
    max_parallelism = change.max_parallelism or wanted.max_parallelism
    parallelism = change.parallelism or min(max_parallelism, runner.parallelism)
    check_max_parallelism(max_parallelism, parallelism)
    plan = plan_operator(
        uid,
        [(b, runner.describe(b)) for b in change.bootstraps],
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        inline_bytes=wanted.inline_bytes,
        hashed_by=_hashed_by,
        types=_types(change.bootstraps, NOTHING_DECLARED),
    )
    return PlannedOperator(plan=plan, old=None, uid=uid)


def _plan_change(
    operator: OperatorInventory, old: OperatorState, change: OperatorChange, wanted: Composition, runner: Runner
) -> PlannedOperator:
    label = operator.label
    for what, given, has in (
        ("max parallelism", change.max_parallelism, old.max_parallelism),
        ("parallelism", change.parallelism, old.parallelism),
    ):
        if given is not None and given != has:
            raise OptionError(
                f"operator {label!r} has {what} {has}, not {given}",
                hint="statetool.rescale changes it; leave it out here",
            )
    if old.fully_finished and change.bootstraps:
        raise OptionError(f"operator {label!r} had finished: Flink restores no state of it")
    if any(s.finished for s in old.subtasks):
        raise UnsupportedError(
            "some subtasks had finished, and hold no state from then on",
            hint="let the job finish, or take a savepoint before it does",
        ).at(operator=label)
    tables = [(b, runner.describe(b)) for b in change.bootstraps]
    keyed_names = state_names([(b, t) for b, t in tables if isinstance(b, KeyedBootstrap)])
    element_names = {b.name for b, _ in tables if isinstance(b, ElementBootstrap)}
    known = {*operator.keyed_states, *operator.operator_states}
    for name in (*change.without, *change.renames):
        if name not in known:
            raise UnknownNameError(f"operator {label!r} has no state {name!r}", hint=suggest(name, known))
    touched = {*change.without, *change.renames}
    stay = known - change.without - keyed_names - element_names - change.renames.keys()
    for name in change.renames.values():
        if name in stay or list(change.renames.values()).count(name) > 1:
            raise OptionError(f"operator {label!r} would have two states {name!r}")
    keyed = bool(keyed_names) or bool(touched & operator.keyed_states.keys())
    elements = bool(element_names) or bool(touched & operator.operator_states.keys())
    gone = change.without | keyed_names
    drops_raw = _drops_raw_timers(operator, gone | change.renames.keys())
    joined = joined_header(operator, without=gone) if keyed else None
    header = None
    if joined is not None:
        header = replace(joined.header, states=tuple(_renamed(m, change.renames) for m in joined.header.states))
    metas = kept_metas(operator, without=change.without | element_names) if elements else []
    plan = plan_operator(
        label,
        tables,
        parallelism=old.parallelism,
        max_parallelism=old.max_parallelism,
        carried=header if header is not None and (header.states or keyed_names) else None,
        carried_elements=[_renamed(m, change.renames) for m in metas],
        inline_bytes=wanted.inline_bytes,
        hashed_by=_hashed_by,
        types=_types(change.bootstraps, operator.types),
    )
    planned = PlannedOperator(
        plan=plan, old=_without(old, keyed=keyed, elements=elements, raw_keyed=drops_raw), uid=label
    )
    if keyed:
        planned.keyed = keyed_tasks(operator, without=gone, parallelism=old.parallelism)
    if plan.elements is not None:
        ids = {m.name: i for i, m in enumerate(plan.elements.operator_header.states)}
        planned.elements = element_tasks(operator, {m.name: ids[change.renames.get(m.name, m.name)] for m in metas})
    return planned


def _types(bootstraps: Sequence[KeyedBootstrap | ElementBootstrap], base: TypeContext) -> TypeContext:
    """Return what is known of classes beside their snapshots: from the operator that new state is like, or that it is put to."""
    return next((b.like.types for b in bootstraps if b.like is not None), base)


def _hashed_by(bootstrap: KeyedBootstrap, key: Serializer) -> Callable[[Serializer], Serializer] | None:
    """Find how keys hash: as declared, or as the keys of the operator that they are like prove.

    Raises
    ------
    OptionError, UnsupportedError
        Nothing says it.
    """
    classes = user_classes(key)
    if not classes:
        return None
    declared = HashFormula.declared(bootstrap.hashes)
    formula: HashFormula | None = declared
    if bootstrap.like is not None:
        formula = prove_hashes(keyed_splits(bootstrap.like), key, declared).formula
    elif missing := [name for name in classes if declared.of(name) is None]:
        example = "avro[1, 10]()" if isinstance(classes[missing[0]], AvroSerializer) else "Objects.hash(a, b)"
        raise OptionError(
            f"the hash code of {', '.join(missing)}, the type of a key, lies in user code",
            hint=f'declare it, as in hashes={{"{missing[0]}": "{example}"}}, or take it from an operator with like=',
        )
    return None if formula is None else partial(_hashed, formula)


def _hashed(formula: HashFormula, key: Serializer) -> Serializer:
    return hashed(key, formula)


def _renamed(meta: StateMeta, renames: Mapping[str, str]) -> StateMeta:
    return replace(meta, name=renames[meta.name]) if meta.name in renames else meta


def _drops_raw_timers(operator: OperatorInventory, gone: Collection[str]) -> bool:
    """Tell whether all timers in raw keyed state (RocksDB with timers on heap) are replaced or removed.

    Raises
    ------
    UnsupportedError
        Some of them are, and others would stay.
    """
    raw = {m.name for p in operator.raw_parts if (h := operator.raw_header(p)) is not None for m in h.states}
    if not raw & set(gone):
        return False
    if raw - set(gone):
        raise UnsupportedError(
            f"some of the timers that lie together in raw keyed state: {', '.join(sorted(raw & set(gone)))}",
            hint="replace all timers of the operator, or none",
        ).at(operator=operator.label)
    return True


def _without(old: OperatorState, *, keyed: bool, elements: bool, raw_keyed: bool) -> OperatorState:
    def emptied(s: SubtaskState) -> SubtaskState:
        return replace(
            s,
            managed_keyed=None if keyed else s.managed_keyed,
            managed_operator=None if elements else s.managed_operator,
            raw_keyed=None if raw_keyed else s.raw_keyed,
        )

    return replace(old, subtasks=tuple(emptied(s) for s in old.subtasks))
