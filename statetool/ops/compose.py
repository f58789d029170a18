"""Put a new snapshot together: operators of an existing one, as they are or changed, and new ones.

Everything is planned and checked before the target is touched; then files are staged and ``_metadata`` is written last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from statetool.arrow.bootstrap import (
    ElementBootstrap,
    KeyedBootstrap,
    OperatorPlan,
    StreamJob,
    Table,
    plan_operator,
    state_names,
)
from statetool.arrow.gather import SubtaskStream, write_subtask
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, suggest
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, write_metadata
from statetool.formats.metadata.handles import (
    FileHandle,
    KeyedHandle,
    KeyGroupsHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
    replace_channel,
    replace_keyed,
    replace_operator,
    replace_stream,
)
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import Stream
from statetool.io import files
from statetool.ops.carry import Carrier
from statetool.ops.formulas import HashFormula, hashed, user_classes
from statetool.ops.kept import KeptElements, KeptKeyed, element_tasks, kept_metas, keyed_tasks
from statetool.ops.prove import prove_hashes
from statetool.ops.sources import joined_header, keyed_splits
from statetool.ops.uids import change_uids, find_operator
from statetool.plan.inventory import Inventory
from statetool.plan.operator import OperatorInventory
from statetool.serializers.base import Serializer
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.write.available import check_available, check_proxy
from statetool.write.declare import OperatorChange
from statetool.write.publish import Publication, StagedFile, Staging
from statetool.write.streams import INLINE_BYTES
from statetool.write.versions import Target, fitted

_CANONICAL_TAG = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A new snapshot.

    Attributes
    ----------
    base
        The snapshot that it is made from, if any.
    changes
        By uid (or operator id) in the base; others are new operators.
    removed
        Operators of the base that go.
    uids
        New uids by old ones, for what is left of the base.
    reference
        Whether files of the base are named where they are instead of copied.
    """

    base: Inventory | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)
    checkpoint_id: int | None = None
    max_parallelism: int = 128
    reference: bool = False
    inline_bytes: int = INLINE_BYTES


class Runner(Protocol):
    """Runs the work: in this process or on Spark."""

    @property
    def parallelism(self) -> int:
        """Parallelism of operators that do not say theirs."""
        ...

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like."""
        ...

    def streams(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[SubtaskStream]]:
        """Make the streams of each job; subtasks without records may be missing."""
        ...

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        ...


@dataclass(slots=True, kw_only=True)
class _Planned:
    """One operator that is written; ``old`` is what the base has of it, without what is replaced."""

    plan: OperatorPlan
    old: OperatorState | None
    uid: str
    keyed: list[KeptKeyed] = field(default_factory=list)
    elements: list[KeptElements] = field(default_factory=list)


def write_composition(wanted: Composition, target: str, release: Target, runner: Runner) -> str:
    """Write a new snapshot.

    Returns
    -------
    str
        URI of its metadata file.

    Raises
    ------
    TargetExistsError
        The target is there.
    OptionError, UnknownNameError, UnsupportedError
        What was asked for cannot be; nothing was written.
    EncodeError
        A value that its type cannot hold, or a key that comes twice.
    """
    Publication.check(target)
    rest, planned = _plan(wanted, runner)
    _check_ids(wanted, rest, planned)
    skeleton = _metadata(wanted, [*rest, *(p.old for p in planned if p.old is not None)])
    fitted(skeleton, release, properties=savepoint_properties())
    _check_serializers(wanted, skeleton, planned, release)
    with Publication(target) as publication:
        staging = publication.staging
        staged: list[StagedFile] = []
        carried = _carried(wanted, skeleton.operators, runner, staging, staged)
        made = _made(planned, runner, staging, staged)
        by_id = {p.old.operator_id: i for i, p in enumerate(planned) if p.old is not None}
        operators = []
        for state in carried:
            i = by_id.get(state.operator_id)
            operators.append(state if i is None else _written(planned[i], state, made[i]))
        operators += [_written(p, None, m) for p, m in zip(planned, made, strict=True) if p.old is None]
        metadata = _with_uids(wanted, _metadata(wanted, operators))
        metadata = fitted(metadata, release, properties=savepoint_properties())
        return publication.commit(write_metadata(metadata), staged)


def _metadata(wanted: Composition, operators: Sequence[OperatorState]) -> SnapshotMetadata:
    base = None if wanted.base is None else wanted.base.metadata
    if base is None:
        return SnapshotMetadata(version=3, checkpoint_id=wanted.checkpoint_id or 0, operators=tuple(operators))
    order = {o.operator_id: i for i, o in enumerate(base.operators)}
    ordered = sorted(operators, key=lambda o: order.get(o.operator_id, len(order)))
    properties = base.properties
    if properties and _native(base.operators):
        properties = savepoint_properties("native" if _native(operators) else "canonical")
    checkpoint_id = base.checkpoint_id if wanted.checkpoint_id is None else wanted.checkpoint_id
    return replace(base, operators=tuple(ordered), checkpoint_id=checkpoint_id, properties=properties)


def _native(operators: Sequence[OperatorState]) -> bool:
    return any(_is_native(s.managed_keyed) for o in operators for s in o.subtasks)


def _is_native(handle: KeyedHandle) -> bool:
    return handle is not None and not (isinstance(handle, KeyGroupsHandle) and handle.tag == _CANONICAL_TAG)


def _with_uids(wanted: Composition, metadata: SnapshotMetadata) -> SnapshotMetadata:
    return change_uids(metadata, wanted.uids) if wanted.uids else metadata


def _check_ids(wanted: Composition, rest: Sequence[OperatorState], planned: Sequence[_Planned]) -> None:
    """Refuse two operators of one id, after uids were changed."""
    olds = [*rest, *(p.old for p in planned if p.old is not None)]
    after = _with_uids(wanted, _metadata(wanted, olds)).operators
    taken = {o.operator_id: o.uid or o.operator_id for o in after}
    for p in planned:
        if p.old is None and operator_id_for_uid(p.uid) in taken:
            raise OptionError(
                f"operator {p.uid!r} is added while another one has or gets its id",
                hint="remove that one, or give it another uid",
            )


def _check_serializers(
    wanted: Composition, skeleton: SnapshotMetadata, planned: Sequence[_Planned], release: Target
) -> None:
    """Refuse serializers that the release does not have, in what is carried over and in what is written."""
    if release.release is None:
        return
    by_id = {} if wanted.base is None else {o.state.operator_id: o for o in wanted.base.operators.values()}
    for state in skeleton.operators:
        operator = by_id[state.operator_id]
        try:
            if any(s.managed_keyed is not None for s in state.subtasks):
                for header, meta in operator.keyed_states.values():
                    check_proxy(header.version, release)
                    check_available(header.key, (meta,), release)
            if any(s.managed_operator is not None for s in state.subtasks):
                check_available(None, operator.operator_states.values(), release)
        except UnsupportedError as error:
            raise error.at(operator=operator.label) from None
    for p in planned:
        try:
            if p.plan.keyed is not None:
                keyed = p.plan.keyed.keyed_header
                check_available(keyed.key, keyed.states, release)
            if p.plan.elements is not None:
                check_available(None, p.plan.elements.operator_header.states, release)
        except UnsupportedError as error:
            raise error.at(operator=p.uid) from None


# ---- planning -----------------------------------------------------------------------------------


def _plan(wanted: Composition, runner: Runner) -> tuple[list[OperatorState], list[_Planned]]:
    """Return the operators of the base that stay as they are, and those that are written."""
    base = () if wanted.base is None else wanted.base.metadata.operators
    removed = {find_operator(base, name).operator_id for name in wanted.removed}
    left = [o for o in base if o.operator_id not in removed]
    planned: list[_Planned] = []
    changed: set[str] = set()
    for name, change in wanted.changes.items():
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


def _find(operators: Sequence[OperatorState], name: str) -> OperatorState | None:
    try:
        return find_operator(operators, name)
    except UnknownNameError:
        return None


def _plan_new(uid: str, change: OperatorChange, wanted: Composition, runner: Runner) -> _Planned:
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
    return _Planned(plan=plan, old=None, uid=uid)


def _plan_change(
    operator: OperatorInventory, old: OperatorState, change: OperatorChange, wanted: Composition, runner: Runner
) -> _Planned:
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
    planned = _Planned(plan=plan, old=_without(old, keyed=keyed, elements=elements, raw_keyed=drops_raw), uid=label)
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
        raise OptionError(
            f"the hash code of {', '.join(missing)}, the type of a key, lies in user code",
            hint=f'declare it, as in hashes={{"{missing[0]}": "Objects.hash(a, b)"}}, or take it from an operator with like=',
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


# ---- writing ------------------------------------------------------------------------------------


def _carried(
    wanted: Composition,
    operators: Sequence[OperatorState],
    runner: Runner,
    staging: Staging,
    staged: list[StagedFile],
) -> list[OperatorState]:
    """Return operators of the base whose handles are right in the target."""
    if wanted.base is None:
        return list(operators)
    if wanted.reference:
        return [_referenced(o, wanted.base) for o in operators]
    carrier = Carrier(wanted.base.resolve, staging.target)
    carrier.copy(operators, lambda streams: runner.copy_all(streams, staging))
    staged += carrier.staged.values()
    return [carrier.carried(o) for o in operators]


def _referenced(operator: OperatorState, base: Inventory) -> OperatorState:
    """Name the files of an operator by where they are."""

    def absolute(handle: StreamHandle) -> StreamHandle:
        if not isinstance(handle, FileHandle | RelativeFileHandle | SegmentHandle):
            return handle
        stream = base.resolve(handle)
        assert stream is not None
        path = stream.file
        if files.is_local(path):
            path = f"file:{os.path.abspath(files.local_path(path))}"
        if isinstance(handle, SegmentHandle):
            return replace(handle, path=path)
        return FileHandle(size_bytes=handle.size_bytes, path=path)

    return replace(
        operator,
        coordinator=replace_stream(operator.coordinator, absolute),
        subtasks=tuple(
            replace(
                s,
                managed_operator=replace_operator(s.managed_operator, absolute),
                raw_operator=replace_operator(s.raw_operator, absolute),
                managed_keyed=replace_keyed(s.managed_keyed, absolute),
                raw_keyed=replace_keyed(s.raw_keyed, absolute),
                input_channels=tuple(replace_channel(h, absolute) for h in s.input_channels),
                output_channels=tuple(replace_channel(h, absolute) for h in s.output_channels),
            )
            for s in operator.subtasks
        ),
    )


@dataclass(slots=True)
class _Made:
    """Handles of one operator by subtask."""

    keyed: dict[int, KeyGroupsHandle] = field(default_factory=dict)
    elements: dict[int, OperatorStreamHandle] = field(default_factory=dict)


def _made(planned: Sequence[_Planned], runner: Runner, staging: Staging, staged: list[StagedFile]) -> list[_Made]:
    """Make the streams of all operators at once."""
    jobs, owners = [], []
    for i, p in enumerate(planned):
        for recipe, tables, kept in (
            (p.plan.keyed, p.plan.keyed_tables, p.keyed),
            (p.plan.elements, p.plan.element_tables, p.elements),
        ):
            if recipe is not None:
                jobs.append(StreamJob(recipe=recipe, tables=tuple(tables), kept=tuple(kept)))
                owners.append(i)
    made = [_Made() for _ in planned]
    for i, job, streams in zip(owners, jobs, runner.streams(jobs, staging), strict=True):
        by_subtask = {s.subtask: s for s in streams}
        for n in range(job.recipe.parallelism):
            stream = by_subtask.get(n) or write_subtask(job.recipe, staging, n, ())
            staged += stream.files
            if job.recipe.keyed:
                made[i].keyed[n] = stream.keyed_handle(job.recipe)
            else:
                made[i].elements[n] = stream.operator_handle(job.recipe)
    return made


def _written(planned: _Planned, old: OperatorState | None, made: _Made) -> OperatorState:
    plan = planned.plan
    subtasks = {s.index: s for s in old.subtasks} if old is not None else {}
    for i in made.keyed.keys() | made.elements.keys():
        subtask = subtasks.get(i, SubtaskState(index=i))
        subtasks[i] = replace(
            subtask,
            managed_keyed=made.keyed.get(i, subtask.managed_keyed),
            managed_operator=made.elements.get(i, subtask.managed_operator),
        )
    found = tuple(subtasks[i] for i in sorted(subtasks))
    if old is not None:
        return replace(old, subtasks=found)
    found = found or tuple(SubtaskState(index=i) for i in range(plan.parallelism))
    return OperatorState(
        operator_id=operator_id_for_uid(planned.uid),
        parallelism=plan.parallelism,
        max_parallelism=plan.max_parallelism,
        subtasks=found,
        uid=planned.uid,
    )
