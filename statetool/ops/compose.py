"""Put a new snapshot together: operators of an existing one, as they are or changed, and new ones.

Everything is planned and checked before the target is touched; then files are staged and ``_metadata`` is written last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from statetool.arrow.bootstrap import StreamJob
from statetool.arrow.gather import write_subtask
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, write_metadata
from statetool.formats.metadata.handles import KeyedHandle, KeyGroupsHandle, OperatorStreamHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.ops.carry import Carrier, referenced
from statetool.ops.compose_plan import PlannedOperator, plan_composition
from statetool.ops.composition import Composition, Runner
from statetool.ops.uids import change_uids, id_and_uid
from statetool.write.available import check_available, check_proxy
from statetool.write.publish import Publication, StagedFile, Staging
from statetool.write.versions import Target, fitted

_CANONICAL_TAG: Final = 7


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
    rest, planned = plan_composition(wanted, runner, release)
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


def _check_ids(wanted: Composition, rest: Sequence[OperatorState], planned: Sequence[PlannedOperator]) -> None:
    """Refuse two operators of one id, after uids were changed."""
    olds = [*rest, *(p.old for p in planned if p.old is not None)]
    after = _with_uids(wanted, _metadata(wanted, olds)).operators
    taken = {o.operator_id: o.uid or o.operator_id for o in after}
    for p in planned:
        if p.old is None and id_and_uid(p.uid)[0] in taken:
            raise OptionError(
                f"operator {p.uid!r} is added while another one has or gets its id",
                hint="remove that one, or give it another uid",
            )


def _check_serializers(
    wanted: Composition, skeleton: SnapshotMetadata, planned: Sequence[PlannedOperator], release: Target
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
        return [referenced(o, wanted.base.resolve) for o in operators]
    carrier = Carrier(wanted.base.resolve, staging.target)
    carrier.copy(operators, lambda streams: runner.copy_all(streams, staging))
    staged += carrier.staged.values()
    return [carrier.carried(o) for o in operators]


@dataclass(slots=True)
class _Made:
    """Handles of one operator by subtask."""

    keyed: dict[int, KeyGroupsHandle] = field(default_factory=dict)
    elements: dict[int, OperatorStreamHandle] = field(default_factory=dict)


def _made(
    planned: Sequence[PlannedOperator], runner: Runner, staging: Staging, staged: list[StagedFile]
) -> list[_Made]:
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


def _written(planned: PlannedOperator, old: OperatorState | None, made: _Made) -> OperatorState:
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
    operator_id, uid = id_and_uid(planned.uid)
    return OperatorState(
        operator_id=operator_id,
        parallelism=plan.parallelism,
        max_parallelism=plan.max_parallelism,
        subtasks=found,
        uid=uid,
    )
