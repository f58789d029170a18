"""Places outside of keyed state that may still contain data of erased keys. They are listed, not changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import StatetoolError, several
from statetool.formats.metadata.handles import ChangelogHandle
from statetool.io import files
from statetool.operations.directories.snapshots import list_snapshots
from statetool.operations.directories.survey import CHECKPOINT, SAVEPOINT
from statetool.serializers.core.base import Serializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCopy:
    """One place that may contain data of erased keys.

    Attributes
    ----------
    operator
        The operator in the new snapshot, ``None`` for places outside of it.
    place
        ``in-flight data``, ``operator state``, ``transactions``, ``raw operator state``, ``coordinator state``, ``keyed state``, ``namespace``,
        ``map keys``, ``changelog``, ``source snapshot`` or ``other snapshot``.
    name
        The state, or the path of the snapshot.
    detail
        What it contains, or why it could not be examined.
    """

    operator: str | None
    place: str
    name: str
    detail: str


def remaining_copies(inventory: Inventory, searched: Collection[str], root: str | None) -> Iterator[RemainingCopy]:
    """Yield the places that may contain data of keys that were erased from a snapshot.

    Parameters
    ----------
    searched
        Ids of the operators whose keyed state was searched.
    root
        Directory in which to look for other snapshots. Defaults to the directory that contains the snapshot, if the snapshot is named like
        a checkpoint or savepoint of Flink.
    """
    for operator in inventory.operators.values():
        yield from _in_operator(operator, is_searched=operator.state.operator_id in searched)
    yield RemainingCopy(
        operator=None, place="source snapshot", name=inventory.metadata_file, detail="it is not changed"
    )
    yield from _other_snapshots(inventory, root)


def _in_operator(operator: OperatorInventory, *, is_searched: bool) -> Iterator[RemainingCopy]:
    def copy(place: str, name: str, detail: str) -> RemainingCopy:
        return RemainingCopy(operator=operator.label, place=place, name=name, detail=detail)

    if operator.channels:
        size = sum(c.stream.size_bytes for c in operator.channels)
        yield copy(
            "in-flight data", "", f"records in {several(len(operator.channels), 'channel')}, {several(size, 'byte')}"
        )
    for name, meta in operator.listed_elements.items():
        yield copy("operator state", name, f"{meta.kind} of {meta.value.type_name}")
    for sink in sinks_and_unknown([operator]):
        yield copy("transactions", "", f"uncommitted transactions or files of a sink ({sink.state.role})")
    if "operator" in operator.unread:
        yield copy("operator state", "", f"not readable: {operator.unread['operator'].message}")
    raw = [s.index for s in operator.state.subtasks if s.raw_operator is not None]
    if raw:
        yield copy("raw operator state", "", f"of {several(len(raw), 'subtask')}, only the operator can read it")
    if operator.state.coordinator is not None:
        yield copy("coordinator state", "", "of a source or sink coordinator")
    if operator.listed_keyed and not is_searched:
        yield copy("keyed state", "", "not searched: its keys are of another type, or it was not chosen")
    if is_searched:
        key = operator.keyed.needed_key()
        for name, (_, meta) in operator.keyed_states.items():
            if meta.namespace is not None and _same_type(meta.namespace, key):
                yield copy("namespace", name, "namespaces of other keys have the type of the keys")
            if meta.kind == "map" and any(_same_type(part, key) for part in meta.parts[:1]):
                yield copy("map keys", name, "map keys of other keys have the type of the keys")
    if any(isinstance(s.managed_keyed, ChangelogHandle) for s in operator.state.subtasks):
        yield copy(
            "changelog", "", "the files of the source's changelog hold earlier values until the job truncates it"
        )


def _same_type(a: Serializer, b: Serializer) -> bool:
    return a.type_name == b.type_name


def _other_snapshots(inventory: Inventory, root: str | None) -> Iterator[RemainingCopy]:
    own = files.parent(inventory.metadata_file)
    name = own.rpartition("/")[2]
    if root is None and (SAVEPOINT.fullmatch(name) or CHECKPOINT.fullmatch(name)):
        root = files.parent(own)
    if root is None:
        detail = "unknown: pass --root DIR to look for other snapshots"
        yield RemainingCopy(operator=None, place="other snapshot", name="", detail=detail)
        return
    try:
        rows = list_snapshots(root, rebase=dict(inventory.rebase))
    except StatetoolError as error:
        yield RemainingCopy(operator=None, place="other snapshot", name=root, detail=f"unknown: {error.message}")
        return
    for row in rows:
        if files.canonical(row.path) != own:
            which = f"checkpoint id {row.checkpoint_id}" if row.complete else row.problem
            yield RemainingCopy(operator=None, place="other snapshot", name=row.path, detail=which)
