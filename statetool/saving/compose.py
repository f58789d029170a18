"""Write a new snapshot from operators of an existing one, changed or unchanged, and new operators.

The whole composition is planned and checked before the target is touched. Then files are staged, the staged snapshot is proved, and
``_metadata`` is written last. A dry run does the first of these steps, and encodes (:mod:`statetool.saving.rehearsal`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from statetool.errors import OptionError, StatetoolError, UnsupportedError
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, parse_metadata, write_metadata
from statetool.formats.metadata.handles import IncrementalHandle, KeyedHandle, KeyGroupsHandle, OperatorStreamHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io import files
from statetool.saving.available import check_available
from statetool.saving.carry import FileCarrier, find_references
from statetool.saving.composition import Composition, Runner, SourceOperator, StreamWriteTask
from statetool.saving.grafts import check_readable
from statetool.saving.named_files import NamedFileCopies
from statetool.saving.operator_plan import PlannedOperator
from statetool.saving.overlap import check_outside
from statetool.saving.plan import plan_composition
from statetool.saving.publish import Publication, StagedFile, Staging
from statetool.saving.streams.kept_tables import join_handles
from statetool.saving.streams.keyed import CANONICAL_TAG
from statetool.saving.streams.output import NewStream
from statetool.saving.uids import change_uids, id_and_uid
from statetool.saving.versions import Target, convert_metadata
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.locate import METADATA_NAME
from statetool.snapshot.parsed import ParsedMetadata, opening_staged


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSnapshot:
    """A composition that was planned and checked.

    Attributes
    ----------
    skeleton
        The metadata of all operators of other snapshots, without the state that is written again.
    operators
        The operators to write.
    """

    composition: Composition
    skeleton: SnapshotMetadata
    operators: tuple[PlannedOperator, ...]
    release: Target

    @property
    def tasks(self) -> list[StreamWriteTask]:
        """The tasks that write streams."""
        return [task for p in self.operators for task in p.tasks]

    @property
    def grafts(self) -> dict[str, SourceOperator]:
        """The grafted operators by their new id."""
        return {p.old.operator_id: p.graft for p in self.operators if p.graft is not None and p.old is not None}

    def read_again(self) -> dict[Inventory | None, list[OperatorState]]:
        """Return the operators, by their snapshot and with their keyed state alone, whose entries are read and written to new streams."""
        base = {} if self.composition.base is None else self.composition.base.operators
        by_id = {o.state.operator_id: o.state for o in base.values()}
        found: dict[Inventory | None, list[OperatorState]] = {}
        for p in self.operators:
            if p.old is not None and p.keyed is not None and p.keyed.kept:
                own = by_id[p.old.operator_id] if p.graft is None else p.graft.operator.state
                snapshot = self.composition.base if p.graft is None else p.graft.inventory
                found.setdefault(snapshot, []).append(own)
        for added in (a.source for change in self.composition.changes.values() for a in change.added):
            found.setdefault(added.inventory, []).append(added.operator.state)
        return {snapshot: [_keyed_alone(o) for o in operators] for snapshot, operators in found.items()}


def plan_snapshot(
    composition: Composition,
    target: str,
    release: Target,
    runner: Runner,
    named: NamedFileCopies,
    *,
    take_over: bool = False,
) -> PlannedSnapshot:
    """Plan and check a new snapshot; errors as for :func:`write_composition`, except for values and their encoding.

    The composition of the plan names the copies of files that only state names, in ``named``.
    """
    Publication.check(target, take_over=take_over)
    for snapshot in composition.snapshots:
        check_outside(target, snapshot)
    composition = named.add_to(composition)
    unchanged, planned = plan_composition(composition, runner, release)
    _check_ids(composition, unchanged, planned)
    skeleton = _metadata(composition, [*unchanged, *(p.old for p in planned if p.old is not None)])
    convert_metadata(skeleton, release, properties=savepoint_properties())
    _check_serializers(composition, skeleton, planned, release)
    return PlannedSnapshot(composition=composition, skeleton=skeleton, operators=tuple(planned), release=release)


def rehearse_composition(
    composition: Composition, target: str, release: Target, runner: Runner, *, take_over: bool = False
) -> None:
    """Do everything that :func:`write_composition` does, except for writing; errors as there."""
    from statetool.saving.rehearsal import rehearse  # only dry runs need it

    rehearse(check_composition(composition, target, release, runner, take_over=take_over).tasks, runner, target)


def check_composition(
    composition: Composition, target: str, release: Target, runner: Runner, *, take_over: bool = False
) -> PlannedSnapshot:
    """Plan a new snapshot, and look for the files that it is made from; errors as for :func:`write_composition`, except for values."""
    named = NamedFileCopies(Publication(target, take_over=take_over).staging)
    plan = plan_snapshot(composition, target, release, runner, named, take_over=take_over)
    for found in (_by_snapshot(plan.composition, plan.skeleton.operators, plan.grafts), plan.read_again()):
        for snapshot, operators in found.items():
            if snapshot is not None:
                FileCarrier(snapshot.resolve, target).plan(operators)
    return plan


def write_composition(
    composition: Composition,
    target: str,
    release: Target,
    runner: Runner,
    *,
    take_over: bool = False,
    prove: Callable[[], object] | None = None,
) -> str:
    """Write a new snapshot.

    Parameters
    ----------
    prove
        Called when the snapshot is staged: the target opens as the new snapshot in this thread, and in no other. If it raises an error, nothing
        is published, and the staged files are removed.

    Returns
    -------
    str
        URI of its metadata file.

    Raises
    ------
    TargetExistsError
        The target exists, or another write to it may still be running.
    OptionError, UnknownNameError, UnsupportedError
        The composition is not possible; nothing was written.
    EncodeError
        A value does not fit its type, or a key is duplicated.
    """
    publication = Publication(target, take_over=take_over)
    named = NamedFileCopies(publication.staging)
    plan = plan_snapshot(composition, target, release, runner, named, take_over=take_over)
    composition = plan.composition
    with publication:
        staging = publication.staging
        staged = named.copy()
        carried = {o.operator_id: o for o in _carry(plan, runner, staging, staged)}
        results = iter(runner.run(plan.tasks, staging))
        for p in plan.operators:
            # Finished subtasks hold no state: they have neither keys nor tables.
            finished = {s.index for s in p.old.subtasks if s.finished} if p.old is not None else set()
            streams = [stream for _ in p.tasks for stream in next(results) if stream.subtask not in finished]
            staged += [file for s in streams for file in s.files]
            written = _write(p, None if p.old is None else carried[p.old.operator_id], streams)
            carried[written.operator_id] = written
        operators = list(carried.values())
        metadata = _with_uids(composition, _metadata(composition, operators))
        properties = savepoint_properties("native" if _native(operators) else "canonical")
        metadata = convert_metadata(metadata, release, properties=properties)
        data = write_metadata(metadata)
        _prove(composition, publication.target, data, prove)
        return publication.commit(data, staged)


def _prove(composition: Composition, target: str, data: bytes, prove: Callable[[], object] | None) -> None:
    """Call ``prove``, and warn of commit ids, while the target opens as the staged snapshot."""
    base = None if composition.base is None else composition.base.metadata
    checkpoint_id = composition.new_checkpoint_id
    low_id = base is None or checkpoint_id < base.checkpoint_id or not checkpoint_id
    if prove is None and not low_id:
        return
    file = files.join(target, METADATA_NAME)
    metadata = parse_metadata(data, file=file)
    with opening_staged(ParsedMetadata(file=file, metadata=metadata, published=False)):
        if prove is not None:
            prove()
        if low_id:
            _warn_of_commit_ids(composition, target, metadata)


def _warn_of_commit_ids(composition: Composition, target: str, metadata: SnapshotMetadata) -> None:
    """Warn of sinks that commit by checkpoint id if the id of the new snapshot is too low for them."""
    if not any(s.managed_operator is not None for o in metadata.operators for s in o.subtasks):
        return
    from statetool.connectors.commit_ids import commit_id_rows

    try:
        rows = commit_id_rows(Inventory(target).operators.values(), metadata.checkpoint_id)
    except StatetoolError as error:
        warnings.warn(f"which checkpoint ids the sinks of {target} have committed is unknown: {error}", stacklevel=2)
        return
    uids = {operator_id_for_uid(uid): uid for uid in (*composition.changes, *composition.uids.values())}
    for row in rows:
        if row.is_problem and row.commits_by_id:
            warnings.warn(f"{uids.get(row.operator, row.operator)}: {row.message}", stacklevel=2)


def _metadata(composition: Composition, operators: Sequence[OperatorState]) -> SnapshotMetadata:
    base = None if composition.base is None else composition.base.metadata
    checkpoint_id = composition.new_checkpoint_id
    if base is None:
        return SnapshotMetadata(version=3, checkpoint_id=checkpoint_id, operators=tuple(operators))
    order = {o.operator_id: i for i, o in enumerate(base.operators)}
    ordered = sorted(operators, key=lambda o: order.get(o.operator_id, len(order)))
    properties = base.properties
    if properties and (_native(base.operators) or _native(operators)):
        properties = savepoint_properties("native" if _native(operators) else "canonical")
    return replace(base, operators=tuple(ordered), checkpoint_id=checkpoint_id, properties=properties)


def _native(operators: Sequence[OperatorState]) -> bool:
    return any(is_native(s.managed_keyed) for o in operators for s in o.subtasks)


def is_native(handle: KeyedHandle) -> bool:
    """Return True if keyed state is in a backend's native format, not the canonical one."""
    return handle is not None and not (isinstance(handle, KeyGroupsHandle) and handle.tag == CANONICAL_TAG)


def _with_uids(composition: Composition, metadata: SnapshotMetadata) -> SnapshotMetadata:
    return change_uids(metadata, composition.uids) if composition.uids else metadata


def _check_ids(
    composition: Composition, unchanged: Sequence[OperatorState], planned: Sequence[PlannedOperator]
) -> None:
    """Refuse two operators with the same id after uids were changed."""
    olds = [*unchanged, *(p.old for p in planned if p.old is not None and p.graft is None)]
    after = _with_uids(composition, _metadata(composition, olds)).operators
    taken = {o.operator_id: o.uid or o.operator_id for o in after}
    for p in planned:
        if (p.old is None or p.graft is not None) and id_and_uid(p.uid)[0] in taken:
            raise OptionError(
                f"cannot add operator {p.uid!r}: another operator has or gets its id",
                hint="remove that one, or give it another uid",
            )


def _check_serializers(
    composition: Composition, skeleton: SnapshotMetadata, planned: Sequence[PlannedOperator], release: Target
) -> None:
    """Refuse serializers that the target release does not have, in carried and new state."""
    if release.release is None:
        return
    by_id = {} if composition.base is None else {o.state.operator_id: o for o in composition.base.operators.values()}
    by_id |= {p.old.operator_id: p.graft.operator for p in planned if p.graft is not None and p.old is not None}
    # Table files that an operator keeps have states of the new header, which is checked below.
    written = {p.old.operator_id for p in planned if p.old is not None and p.keyed is not None}
    for state in skeleton.operators:
        carried = _without_keyed(state) if state.operator_id in written else state
        check_readable(by_id[state.operator_id], carried, release)
    for p in planned:
        try:
            for task in p.tasks:
                new = task.streams.parsed
                check_available(new.key if isinstance(new, KeyedHeader) else None, new.states, release)
        except UnsupportedError as error:
            raise error.at(operator=p.uid) from None


def _by_snapshot(
    composition: Composition, operators: Sequence[OperatorState], grafts: Mapping[str, SourceOperator]
) -> dict[Inventory | None, list[OperatorState]]:
    """Return operators by the snapshot whose files their handles name."""
    by_snapshot: dict[Inventory | None, list[OperatorState]] = {}
    for operator in operators:
        graft = grafts.get(operator.operator_id)
        by_snapshot.setdefault(composition.base if graft is None else graft.inventory, []).append(operator)
    return by_snapshot


def _keyed_alone(operator: OperatorState) -> OperatorState:
    """Return an operator with its keyed state only."""
    keyed = (
        SubtaskState(index=s.index, managed_keyed=s.managed_keyed, raw_keyed=s.raw_keyed) for s in operator.subtasks
    )
    return replace(operator, subtasks=tuple(keyed), coordinator=None)


def _without_keyed(operator: OperatorState) -> OperatorState:
    """Return an operator without its managed keyed state."""
    return replace(operator, subtasks=tuple(replace(s, managed_keyed=None) for s in operator.subtasks))


def _carry(plan: PlannedSnapshot, runner: Runner, staging: Staging, staged: list[StagedFile]) -> list[OperatorState]:
    """Return the carried operators of the base and of other snapshots, with handles for the target."""
    carried: list[OperatorState] = []
    for snapshot, own in _by_snapshot(plan.composition, plan.skeleton.operators, plan.grafts).items():
        if snapshot is None:
            carried += own
        elif plan.composition.reference:
            carried += [find_references(o, snapshot.resolve) for o in own]
        else:
            carrier = FileCarrier(snapshot.resolve, staging.target)
            carrier.copy(own, partial(runner.copy_all, staging=staging))
            staged += carrier.staged.values()
            carried += map(carrier.carried, own)
    return carried


def _write(planned: PlannedOperator, old: OperatorState | None, streams: Sequence[NewStream]) -> OperatorState:
    subtasks = {} if old is None else {s.index: s for s in old.subtasks}
    if not streams and old is None:
        subtasks = {i: SubtaskState(index=i) for i in range(planned.parallelism)}
    for stream in streams:
        subtask = subtasks.get(stream.subtask, SubtaskState(index=stream.subtask))
        if isinstance(stream.handle, OperatorStreamHandle):
            subtask = replace(subtask, managed_operator=stream.handle)
        else:
            handle, kept = stream.handle, subtask.managed_keyed
            if isinstance(handle, IncrementalHandle) and isinstance(kept, IncrementalHandle):
                handle = join_handles(kept, handle)
            subtask = replace(subtask, managed_keyed=handle)
            if stream.raw is not None:
                subtask = replace(subtask, raw_keyed=stream.raw)
        subtasks[stream.subtask] = subtask
    new_subtasks = tuple(subtasks[i] for i in sorted(subtasks))
    if old is not None:
        return replace(old, subtasks=new_subtasks)
    operator_id, uid = id_and_uid(planned.uid)
    return OperatorState(
        operator_id=operator_id,
        parallelism=planned.parallelism,
        max_parallelism=planned.max_parallelism,
        subtasks=new_subtasks,
        uid=uid,
    )
