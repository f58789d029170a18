"""Operators of another snapshot: what has to agree with the new snapshot before their bytes can become part of it.

Follows ``StateAssignmentOperation`` (max parallelism), ``CheckpointCoordinator`` (checkpoint ids after a restore) and
``SharedStateRegistry`` (files of incremental checkpoints).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import replace

from statetool.errors import OptionError, UnsupportedError
from statetool.formats.metadata import OperatorState, SnapshotMetadata
from statetool.formats.metadata.handles import ChangelogHandle, IncrementalHandle, KeyedHandle
from statetool.saving.available import check_available, check_proxy
from statetool.saving.composition import AddedState, Composition, SourceOperator
from statetool.saving.uids import id_and_uid
from statetool.saving.versions import RELEASES, Target
from statetool.snapshot.operator import OperatorInventory


def grafted_state(composition: Composition, name: str, graft: SourceOperator) -> OperatorState:
    """Return the operator under its new name, as the metadata of the new snapshot describe it.

    Raises
    ------
    OptionError
        The new snapshot gets a lower checkpoint id than the operator's files have.
    """
    operator_id, uid = id_and_uid(name)
    state = replace(graft.operator.state, operator_id=operator_id, uid=uid)
    newest = max((h.checkpoint_id or 0 for h in _numbered(state)), default=0)
    if newest > composition.new_checkpoint_id:
        raise OptionError(
            f"checkpoint id {composition.new_checkpoint_id} is lower than {newest}, that of the operator's files",
            hint=f"pass checkpoint_id={newest} (--checkpoint-id {newest}) or more, or leave it out: "
            "Flink would not use its new checkpoints of the operator before it reaches that id",
        )
    taken = {
        backend
        for operator in (() if composition.base is None else composition.base.metadata.operators)
        for backend in _backend_ids(operator)
    }
    # Files of an older checkpoint that a regional checkpoint refers to are copied like all others.
    subtasks = tuple(replace(s, ref_checkpoint_id=None) for s in state.subtasks)
    return _separate_backends(replace(state, subtasks=subtasks), taken)


def _numbered(operator: OperatorState) -> Iterator[IncrementalHandle | ChangelogHandle]:
    """Yield the keyed handles that store a checkpoint id."""
    for handle in (s.managed_keyed for s in operator.subtasks):
        if isinstance(handle, ChangelogHandle):
            yield handle
            yield from (h for h in handle.materialized if isinstance(h, IncrementalHandle))
        elif isinstance(handle, IncrementalHandle):
            yield handle


def _backend_ids(operator: OperatorState) -> Iterator[str]:
    return (h.backend_id for h in _numbered(operator) if isinstance(h, IncrementalHandle))


def _separate_backends(operator: OperatorState, taken: Collection[str]) -> OperatorState:
    """Give databases a new backend id if another operator has theirs.

    Flink before 1.15 registers files under the backend id and their name, so two copies of one database would share them.
    """
    if not set(_backend_ids(operator)) & set(taken):
        return operator

    def renamed(handle: KeyedHandle) -> KeyedHandle:
        if isinstance(handle, ChangelogHandle):
            return replace(handle, materialized=tuple(map(renamed, handle.materialized)))
        if isinstance(handle, IncrementalHandle):
            return replace(
                handle, backend_id=str(uuid.uuid5(uuid.NAMESPACE_OID, handle.backend_id + operator.operator_id))
            )
        return handle

    subtasks = tuple(replace(s, managed_keyed=renamed(s.managed_keyed)) for s in operator.subtasks)
    return replace(operator, subtasks=subtasks)


def check_in_flight(metadata: SnapshotMetadata) -> None:
    """Refuse a snapshot with in-flight records: they belong to the channels between all operators of its job.

    Raises
    ------
    UnsupportedError
    """
    for operator in metadata.operators:
        if any(s.input_channels or s.output_channels for s in operator.subtasks):
            raise UnsupportedError(
                "the checkpoint is unaligned: its in-flight records belong to the job that wrote it",
                hint="stop the job with a savepoint (flink stop) and use that: it holds no such data",
            ).at(operator=operator.uid or operator.operator_id)


def check_source(source: SourceOperator, release: Target) -> None:
    """Refuse an operator that the reader of the new snapshot could not restore.

    Raises
    ------
    UnsupportedError
        The other snapshot has in-flight records, or a serializer or a version of Kryo that the release of the new snapshot does not have,
        or that release is unknown and older than those that are known.
    """
    metadata = source.inventory.metadata
    check_in_flight(metadata)
    if release.release is None and metadata.version == release.metadata_version:
        return
    reader = release if release.release is not None else _newest_release(release.metadata_version)
    check_readable(source.operator, source.operator.state, reader)


def _newest_release(metadata_version: int) -> Target:
    """Return the newest release that writes a metadata version.

    Raises
    ------
    UnsupportedError
        Only older releases than those that are known write it.
    """
    names = [name for name, (version, _) in RELEASES.items() if version <= metadata_version]
    if not names:
        raise UnsupportedError(
            f"metadata version {metadata_version}: it is unknown which release of Flink reads the new snapshot, and what it can read",
            hint=f"name the release of the job (--flink, flink_version=), one of {', '.join(RELEASES)}",
        )
    return Target(names[-1], *RELEASES[names[-1]])


def check_readable(operator: OperatorInventory, state: OperatorState, release: Target) -> None:
    """Refuse serializers that a release does not have, in the part ``state`` of an operator.

    Raises
    ------
    UnsupportedError
    """
    try:
        if any(s.managed_keyed is not None for s in state.subtasks):
            for header, meta in operator.keyed_states.values():
                check_proxy(header.version, release)
                check_available(header.key, (meta,), release)
        if any(s.managed_operator is not None for s in state.subtasks):
            check_available(None, operator.operator_states.values(), release)
    except UnsupportedError as error:
        raise error.at(operator=operator.label) from None


def check_added(operator: OperatorInventory, added: AddedState) -> None:
    """Refuse to combine keyed state of two operators if one of them has state that only its own code can read.

    Raises
    ------
    UnsupportedError
        Some keyed state is raw, or a subtask had finished.
    """
    for one in (operator, added.source.operator):
        if one.keyed.own_raw_subtasks:
            raise UnsupportedError(
                "raw keyed state without timers: only the operator that wrote it can read it",
                hint="give the operator another uid, so that its state is not combined with other state",
            ).at(operator=one.label)
        if any(s.finished for s in one.state.subtasks):
            raise UnsupportedError(
                "some subtasks have finished and hold no state",
                hint="let the job finish, or take a savepoint before it does",
            ).at(operator=one.label)
