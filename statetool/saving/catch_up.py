"""Reuse of an earlier migration of a snapshot of the same job: only what changed since then is converted.

The names of the streams that a migration writes contain a digest of their origin: the snapshot that was converted, and the conversions. They
prove that a migrated snapshot was made from a given snapshot with the same plan. Copies have other names and prove nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from statetool.entries.joined_headers import meta_bytes
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    FileHandle,
    KeyGroupsHandle,
    RelativeFileHandle,
    StreamHandle,
)
from statetool.saving.composition import EarlierMigration, OperatorChange, SourceOperator, StreamWriteTask
from statetool.saving.streams.catch_up import CatchUpStreams
from statetool.saving.streams.conversion import StateConversion
from statetool.saving.streams.keyed import CarriedEntries, KeyedStreams
from statetool.serializers.equal_types import snapshot_bytes
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory

_ORIGIN: Final = re.compile(r"\bkeyed-([0-9a-f]{32})-")
_WHOLE: Final = "migrate the later snapshot instead (statetool migrate)"


def origin_of(source: SourceOperator, conversions: Mapping[str, StateConversion]) -> str:
    """Return the digest of an operator's snapshot and of conversions of its states."""
    digest = hashlib.sha256(source.inventory.metadata_digest)
    digest.update(source.operator.state.operator_id.encode())
    for name in sorted(conversions):
        for part in (name.encode(), conversions[name].identity):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]


def with_origin(task: StreamWriteTask | None, source: SourceOperator, change: OperatorChange) -> StreamWriteTask | None:
    """Return the task that writes keyed state. The names of converted streams contain their origin, and an earlier migration is reused."""
    if task is None or not change.conversions or change.keys is not None or not isinstance(task.streams, KeyedStreams):
        return task
    label = f"keyed-{origin_of(source, change.conversions)}"
    named = replace(task, streams=replace(task.streams, label=label))
    if (
        change.earlier is None
        or task.streams.native is not None
        or not all(c.keeps_entries for c in change.conversions.values())
    ):
        return named
    return _reuse_earlier(named, change.earlier)


def _reuse_earlier(task: StreamWriteTask, earlier: EarlierMigration) -> StreamWriteTask:
    """Return a task that converts only entries that changed since an earlier migration, with the same result.

    The task stays as it is if the states of the migrated snapshot have another order, or if there is nothing to reuse.
    """
    assert isinstance(task.streams, KeyedStreams)
    after = tuple(entries for entries in task.kept if isinstance(entries, CarriedEntries))
    keyed = earlier.migrated.operator.keyed
    found = [state.key_group_bytes(keyed.context) for state in keyed.managed]
    if not after or any(state.identity() != task.streams.header for state in keyed.managed):
        return task
    return StreamWriteTask(
        streams=CatchUpStreams(
            streams=task.streams,
            before=tuple(replace(after[0], source=source) for source in earlier.before.operator.keyed.sources()),
            after=after,
            migrated=tuple(stored for stored in found if stored is not None),
            subtasks=task.streams.subtasks,
        )
    )


def plan_catch_up(
    changes: Mapping[str, OperatorChange], before: Inventory, after: Inventory, migrated: Inventory
) -> dict[str, OperatorChange]:
    """Return the changes of a migration of ``after`` that reuse the same migration of ``before``.

    Raises
    ------
    OptionError
        ``before`` is not older than ``after``.
    UnsupportedError
        The snapshots differ in operators, max parallelism, or states or serializers of migrated operators, or it is not proved that
        ``migrated`` is the result of these changes of ``before``.
    """
    first, last = before.metadata.checkpoint_id, after.metadata.checkpoint_id
    if first >= last:
        raise OptionError(
            f"A is not older than B: checkpoint {first} and checkpoint {last}",
            hint="pass the older savepoint first: statetool catch-up MIGRATED A B DST",
        )
    ids = [{o.state.operator_id: o for o in inventory.operators.values()} for inventory in (before, after, migrated)]
    labels = {i: o.label for operators in (ids[2], ids[0], ids[1]) for i, o in operators.items()}
    for name, others in (("B", ids[1]), ("MIGRATED", ids[2])):
        if only := [labels[i].display for i in ids[0].keys() ^ others.keys()]:
            raise UnsupportedError(f"only one of A and {name} has: {', '.join(sorted(only))}", hint=_WHOLE)
        for operator_id in ids[0]:
            numbers = ids[0][operator_id].state.max_parallelism, others[operator_id].state.max_parallelism
            if numbers[0] != numbers[1]:
                raise UnsupportedError(
                    f"the max parallelism is {numbers[0]} in A and {numbers[1]} in {name}",
                    hint=f"rescale A and B before the migration (statetool rescale), or {_WHOLE}",
                ).at(operator=labels[operator_id])
    planned = {}
    for uid, change in changes.items():
        operator_id = after.operator(uid).state.operator_id
        old, new, result = (operators[operator_id] for operators in ids)
        for difference in _differences(old, new):
            raise UnsupportedError(f"{difference} between A and B", hint=_WHOLE).at(operator=new.label)
        earlier = EarlierMigration(before=SourceOperator(before, old), migrated=SourceOperator(migrated, result))
        if change.conversions.keys() & new.keyed_states.keys():
            try:
                _check_origin(earlier, change.conversions)
            except UnsupportedError as error:
                raise error.at(operator=new.label) from None
            change = replace(change, earlier=earlier)
        planned[uid] = change
    return planned


def _differences(old: OperatorInventory, new: OperatorInventory) -> Iterator[str]:
    """Yield differences of the states of an operator and their serializers."""
    headers = [o.keyed.joined_header() for o in (old, new)]
    metas = [
        {m.name: m for m in (() if header is None else header.states)} | dict(o.operator_states)
        for o, header in zip((old, new), headers, strict=True)
    ]
    for name in sorted(metas[0].keys() ^ metas[1].keys()):
        yield f"state {name!r} {'was removed' if name in metas[0] else 'was added'}"
    for name in metas[0].keys() & metas[1].keys():
        if meta_bytes(metas[0][name]) != meta_bytes(metas[1][name]):
            yield f"the serializers of state {name!r} changed"
    keys = [None if header is None else snapshot_bytes(header.key) for header in headers]
    if None not in keys and keys[0] != keys[1]:
        yield "the serializer of keys changed"


def _check_origin(earlier: EarlierMigration, conversions: Mapping[str, StateConversion]) -> None:
    """Refuse a migrated operator unless all its streams prove that they are these conversions of the earlier snapshot."""
    wanted = origin_of(earlier.before, conversions)
    for subtask in earlier.migrated.operator.state.subtasks:
        handle = subtask.managed_keyed
        if handle is None:
            continue
        found = _origin_in_name(handle.stream) if isinstance(handle, KeyGroupsHandle) else None
        if found is None:
            raise UnsupportedError(
                "it is unknown what MIGRATED was made from: its files were not written by a migration, were copied, or are not canonical",
                hint=f"pass the directory that statetool migrate --format canonical, or catch-up, wrote, or {_WHOLE}",
            )
        if found != wanted:
            raise UnsupportedError(
                "MIGRATED was not made from A with this plan",
                hint=f"pass the plan and the declarations of that migration, and the savepoint that it read, or {_WHOLE}",
            )


def _origin_in_name(handle: StreamHandle) -> str | None:
    """Return the origin in the name of a stream, ``None`` if the name has none."""
    match handle:
        case ByteStreamHandle():
            name = handle.name
        case FileHandle() | RelativeFileHandle():
            name = handle.path.rpartition("/")[2]
        case _:
            return None
    found = _ORIGIN.search(name)
    return None if found is None else found[1]
