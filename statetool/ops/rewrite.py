"""Write a snapshot again with some operators changed and the others as they are.

What :mod:`statetool.ops.rescale`, ``convert`` and ``drop`` have in common: keyed state of changed operators is dealt out again and
comes out canonical, everything else is carried over byte for byte; two-phase publishing, ``_metadata`` last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from statetool.errors import UnsupportedError
from statetool.formats.keyed.raw_timers import is_versioned, read_raw_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, write_metadata
from statetool.formats.metadata.handles import KeyedHandle, KeyGroupsHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.ops.carry import Carrier
from statetool.ops.formulas import HashFormula
from statetool.ops.jobs import CANONICAL_TAG, KeyedJob, Runner
from statetool.ops.operator_streams import OperatorStreamJob, plan_operator_streams, write_operator_stream
from statetool.ops.redeal import DealTask
from statetool.ops.sources import joined_header, keyed_splits, split_header
from statetool.plan.inventory import Inventory
from statetool.plan.operator import OperatorInventory
from statetool.plan.parts import raw_group_sizes
from statetool.write.publish import Publication, StagedFile, Staging


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRewrite:
    """What one operator becomes.

    Attributes
    ----------
    formula
        How its keys hash, where that is needed and their serializer does not know.
    without
        Names of states to leave out.
    """

    max_parallelism: int
    parallelism: int
    formula: HashFormula | None = None
    without: frozenset[str] = frozenset()


def keyed_job(operator: OperatorInventory, rewrite: OperatorRewrite) -> KeyedJob | None:
    """Plan the rewriting of an operator's keyed state, ``None`` where it has none.

    Raises
    ------
    UnsupportedError
        It cannot be read, or its subtasks do not agree.
    """
    raw = moves(operator.state, rewrite)
    joined = joined_header(operator, raw=raw, without=rewrite.without)
    if joined is None:
        return None
    tasks = [
        DealTask(
            split=split,
            state_ids=joined.state_ids[split_header(split)[0]],
            old_max=operator.state.max_parallelism,
            new_max=rewrite.max_parallelism,
            formula=rewrite.formula,
        )
        for split in keyed_splits(operator, raw=raw)
    ]
    return KeyedJob(
        operator=operator.label,
        tasks=tuple(tasks),
        header=joined.raw,
        states=tuple(m.name for m in joined.header.states),
        compressed=joined.header.compressed,
        max_parallelism=rewrite.max_parallelism,
        parallelism=rewrite.parallelism,
    )


def moves(operator: OperatorState, rewrite: OperatorRewrite) -> bool:
    """Tell whether keys move: to other key groups, or key groups to other subtasks."""
    return (rewrite.max_parallelism, rewrite.parallelism) != (operator.max_parallelism, operator.parallelism)


def check_rewrite(metadata: SnapshotMetadata, operator: OperatorInventory, rewrite: OperatorRewrite) -> None:
    """Refuse what cannot be right under new key groups or subtasks.

    Raises
    ------
    UnsupportedError
        In-flight data, an operator's own raw state, or finished subtasks where key groups or subtasks change.
    """
    state = operator.state
    if not moves(state, rewrite):
        return
    stops = "stop the job with a savepoint (flink stop) and use that: it holds no such data"
    for other in metadata.operators:
        if any(s.input_channels or s.output_channels for s in other.subtasks):
            raise UnsupportedError(
                "the checkpoint is unaligned: records in flight were dealt to the old key groups", hint=stops
            ).at(operator=other.uid or other.operator_id)
    timers = {p.subtask for p in operator.raw_parts}
    keyed = any(s.managed_keyed is not None for s in state.subtasks)
    for s in state.subtasks:
        if s.index >= rewrite.parallelism and s.raw_operator is not None:
            raise UnsupportedError(
                f"raw operator state of subtask {s.index}, which is one too many for parallelism {rewrite.parallelism}",
                hint="keep the parallelism, at least the number of subtasks that hold such state",
            ).at(operator=operator.label)
        if s.finished and (keyed or rewrite.parallelism != state.parallelism):
            raise UnsupportedError(
                f"subtask {s.index} had finished, so its place cannot be given to others", hint=stops
            ).at(operator=operator.label)
        if s.index not in timers and not _is_empty(operator, s.raw_keyed):
            raise UnsupportedError(
                "raw keyed state that is no timers: the operator itself wrote it, and only the operator can deal it out again",
                hint="leave the operator's max parallelism and parallelism as they are",
            ).at(operator=operator.label)


def _is_empty(operator: OperatorInventory, raw: KeyedHandle) -> bool:
    """Tell whether raw keyed state holds nothing: no key group was written, or timer services that are none."""
    if raw is None:
        return True
    if not isinstance(raw, KeyGroupsHandle):
        return False
    stream = operator.resolve(raw.stream)
    if stream is None or all(o < 0 for o in raw.offsets):
        return True
    with stream.open() as f:
        for _, offset, size in raw_group_sizes(raw.start, raw.offsets, stream):
            region = f.read_at(offset, size)
            if not is_versioned(region) or read_raw_header(region, base=stream.start + offset, key=None) is not None:
                return False
    return True


def rewrite_snapshot(
    inventory: Inventory,
    target: str,
    rewrites: Mapping[str, OperatorRewrite],
    runner: Runner,
    *,
    without: Collection[str] = (),
    change: Callable[[SnapshotMetadata], SnapshotMetadata] | None = None,
    checkpoint_id: int | None = None,
) -> str:
    """Write a snapshot again.

    Parameters
    ----------
    target
        Directory of the new snapshot, which must not exist.
    rewrites
        What becomes of operators, by operator id; those that are not named are carried over.
    without
        Operator ids of operators to leave out.
    change
        What is done to the new metadata before it is written.
    checkpoint_id
        The new snapshot's id, by default that of the old one.

    Returns
    -------
    str
        URI of the new metadata file.

    Raises
    ------
    TargetExistsError, UnsupportedError, FormatError
    """
    old = inventory.metadata
    by_id = {o.state.operator_id: o for o in inventory.operators.values()}
    kept = [o for o in old.operators if o.operator_id not in without]
    for state in kept:
        if state.operator_id in rewrites:
            check_rewrite(old, by_id[state.operator_id], rewrites[state.operator_id])
    work = {i: _Work.plan(by_id[i], r) for i, r in rewrites.items()}
    with Publication(target) as publication:
        staging = publication.staging
        carrier = Carrier(inventory.resolve, publication.target)
        rest = [work[o.operator_id].rest(o) if o.operator_id in work else o for o in kept]
        carrier.copy(rest, lambda streams: runner.copy_all(streams, staging))
        staged = list(carrier.staged.values())
        operators = []
        for state in map(carrier.carried, rest):
            if state.operator_id in work:
                state, files = work[state.operator_id].run(state, runner, staging)
                staged += files
            operators.append(state)
        new = replace(
            old,
            operators=tuple(operators),
            checkpoint_id=old.checkpoint_id if checkpoint_id is None else checkpoint_id,
        )
        new = _with_properties(old, new)
        return publication.commit(write_metadata(change(new) if change else new), staged)


@dataclass(frozen=True, slots=True)
class _Work:
    """The rewriting of one operator: ``streams`` are its operator state where that changes, ``moved`` whether keys move."""

    rewrite: OperatorRewrite
    moved: bool
    keyed: KeyedJob | None
    streams: list[OperatorStreamJob] | None

    @classmethod
    def plan(cls, operator: OperatorInventory, rewrite: OperatorRewrite) -> _Work:
        streams = plan_operator_streams(operator, rewrite.parallelism, without=rewrite.without)
        return cls(rewrite, moves(operator.state, rewrite), keyed_job(operator, rewrite), streams)

    def rest(self, operator: OperatorState) -> OperatorState:
        """Return what is carried over as it is."""
        return replace(
            operator,
            subtasks=tuple(
                replace(
                    s,
                    managed_keyed=None if self.keyed is not None else s.managed_keyed,
                    managed_operator=None if self.streams is not None else s.managed_operator,
                    # Timers in raw keyed state become managed ones where keys move; nothing else is in there (check_rewrite).
                    raw_keyed=None if self.moved else s.raw_keyed,
                )
                for s in operator.subtasks
            ),
        )

    def run(self, state: OperatorState, runner: Runner, staging: Staging) -> tuple[OperatorState, list[StagedFile]]:
        rewrite = self.rewrite
        kept = {s.index: s for s in state.subtasks if s.index < rewrite.parallelism}
        files: list[StagedFile] = []
        if self.streams is not None:
            for stream in runner.each(partial(write_operator_stream, staging=staging), self.streams):
                subtask = kept.get(stream.subtask, SubtaskState(index=stream.subtask))
                kept[stream.subtask] = replace(subtask, managed_operator=stream.handle)
                files += [stream.file] if stream.file is not None else []
        if self.keyed is not None and self.keyed.states:
            for new in runner.run(self.keyed, staging):
                subtask = kept.get(new.subtask, SubtaskState(index=new.subtask))
                kept[new.subtask] = replace(subtask, managed_keyed=new.handle)
                files += [new.file] if new.file is not None else []
        changed = replace(
            state,
            parallelism=rewrite.parallelism,
            max_parallelism=rewrite.max_parallelism,
            subtasks=tuple(kept[i] for i in sorted(kept)),
        )
        return changed, files


def _with_properties(old: SnapshotMetadata, new: SnapshotMetadata) -> SnapshotMetadata:
    """Call the new snapshot a savepoint, native where some state is still in a backend's own format; one that was canonical
    before keeps its properties."""
    if new.version < 4 or not (_native(old) or _native(new)):
        return new
    return replace(new, properties=savepoint_properties("native" if _native(new) else "canonical"))


def _native(metadata: SnapshotMetadata) -> bool:
    return any(is_native(s.managed_keyed) for o in metadata.operators for s in o.subtasks)


def is_native(handle: KeyedHandle) -> bool:
    """Tell whether keyed state is in a backend's own format, not in the canonical one."""
    return handle is not None and not (isinstance(handle, KeyGroupsHandle) and handle.tag == CANONICAL_TAG)
