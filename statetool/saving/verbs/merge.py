"""Plans that combine operators of snapshots: graft, split, merge, and move a state to another operator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from statetool.connectors.elements import OperatorBytes
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, several, suggest
from statetool.formats.metadata.handles import streams_of
from statetool.formats.metadata.model import MasterState
from statetool.java.hashing.formulas import HashFormula
from statetool.saving.composition import AddedState, OperatorChange, SourceOperator
from statetool.saving.grafts import check_in_flight
from statetool.saving.uids import id_and_uid
from statetool.saving.verbs.rescale import warn_of_chains
from statetool.saving.verbs.shared_keys import find_shared_keys
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRow(OperatorRecord):
    """One operator of the new snapshot.

    Attributes
    ----------
    action
        ``kept``: from the first snapshot, unchanged; ``grafted``: from the second one; ``merged``: the keys of both;
        ``moved``: some of its states move.
    size_bytes
        Stored bytes of its state in the snapshots that it comes from.
    """

    operator_id: str
    action: str
    max_parallelism: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The operators of the new snapshot, and the changes to the first snapshot that result in it.

    ``parted`` are grafted operators with a max parallelism that no operator of the first snapshot has. Flink does not restore a chain of
    operators with different ones correctly.
    """

    operators: tuple[MergeRow, ...]
    changes: Mapping[str, OperatorChange]

    @property
    def parted(self) -> tuple[str, ...]:
        others = {row.max_parallelism for row in self.operators if row.action != "grafted"}
        return tuple(r.operator for r in self.operators if r.action == "grafted" and r.max_parallelism not in others)

    def warn(self) -> None:
        """Warn of ``parted`` operators; for functions that users call."""
        warn_of_chains(self.parted, "has", "have", "a max parallelism that no other operator has")


def plan_graft(
    base: Inventory,
    other: Inventory,
    operators: Mapping[str, str | None],
    *,
    max_parallelism: int | None = None,
    hashes: Mapping[str, str] | None = None,
) -> MergePlan:
    """Plan to add operators of another snapshot.

    Parameters
    ----------
    operators
        New uids of operators of ``other``, ``None`` to keep the uid.

    Raises
    ------
    OptionError, UnknownNameError
        No operator is given, one does not exist, or two get the same uid.
    """
    if not operators:
        raise OptionError("nothing to graft", hint="pass operators of the other snapshot")
    changes: dict[str, OperatorChange] = {}
    rows = [_row(o, "kept") for o in base.operators.values()]
    for name, new_name in operators.items():
        operator = other.operator(name)
        uid = new_name or operator.uid or operator.state.operator_id
        if uid in changes:
            raise OptionError(f"two operators would get the uid {uid!r}", hint="give one of them another uid")
        changes[uid] = _graft(other, operator, max_parallelism, hashes)
        rows.append(_row(operator, "grafted", max_parallelism, uid))
    return MergePlan(tuple(rows), changes)


def _graft(
    other: Inventory, operator: OperatorInventory, max_parallelism: int | None, hashes: Mapping[str, str] | None
) -> OperatorChange:
    return OperatorChange(
        graft=SourceOperator(other, operator),
        max_parallelism=max_parallelism,
        formula=HashFormula.declared(hashes) if hashes else None,
    )


def plan_merge(
    first: Inventory,
    second: Inventory,
    *,
    max_parallelism: int | None = None,
    hashes: Mapping[str, str] | None = None,
) -> MergePlan:
    """Plan to merge two snapshots. Reads the keys of operators that both have.

    Parameters
    ----------
    max_parallelism
        Max parallelism of operators that only ``second`` has. Operators of both keep that of ``first``.
    hashes
        Hash formulas of keys by class, in case they move to other key groups.

    Raises
    ------
    UnsupportedError
        An operator has the same keys in both snapshots, or has operator state or coordinator state in both, or a snapshot has in-flight
        records.
    """
    for inventory in (first, second):
        check_in_flight(inventory.metadata)
    _check_master_states(first.metadata.master_states, second.metadata.master_states)
    mine = {o.state.operator_id: o for o in first.operators.values()}
    rows: dict[str, MergeRow] = {i: _row(o, "kept") for i, o in mine.items()}
    changes: dict[str, OperatorChange] = {}
    for operator in second.operators.values():
        operator_id = operator.state.operator_id
        if operator_id not in mine:
            uid = operator.uid or operator_id
            changes[uid] = _graft(second, operator, max_parallelism, hashes)
            rows[operator_id] = _row(operator, "grafted", max_parallelism)
            continue
        own = mine[operator_id]
        try:
            change = _merge_operator(own, SourceOperator(second, operator), hashes)
        except UnsupportedError as error:
            raise error.at(operator=own.label) from None
        if change is not None:
            changes[operator_id] = change
            rows[operator_id] = _row(own, "merged", None, size=_size(own) + _size(operator))
    return MergePlan(tuple(rows.values()), changes)


def _check_master_states(first: Sequence[MasterState], second: Sequence[MasterState]) -> None:
    others = {m.name: m for m in first}
    differing = [m.name for m in second if others.get(m.name) != m]
    if differing:
        raise UnsupportedError(
            f"the second snapshot has state of a master hook that the first does not have: {', '.join(differing)}",
            hint="pass the snapshot with this state first, if the other has none; otherwise they cannot be merged",
        )


def _merge_operator(
    first: OperatorInventory, other: SourceOperator, hashes: Mapping[str, str] | None
) -> OperatorChange | None:
    """Return the change that adds the state of the same operator of another snapshot; ``None`` if it has no state there."""
    second = other.operator
    added: tuple[AddedState, ...] = ()
    if second.keyed_states:
        if first.keyed_states:
            _check_keys(first, second)
        names = {name: name for name in second.keyed_states}
        added = (AddedState(source=other, names=names, declared=HashFormula.declared(hashes) if hashes else None),)
    if any(s.raw_operator is not None for s in second.state.subtasks):
        raise UnsupportedError(
            "raw operator state in the second snapshot: only the operator that wrote it can read it",
            hint="drop the operator there first (statetool drop)",
        )
    elements_from = second if _takes_elements(first, second) else None
    coordinator = _merge_coordinators(first, second)
    if not added and elements_from is None and coordinator is None:
        return None
    if first.state.fully_finished or second.state.fully_finished:
        raise UnsupportedError("the operator had finished in one of the snapshots", hint="drop it there first")
    return OperatorChange(added=added, elements_from=elements_from, coordinator=coordinator, new=False)


def _check_keys(first: OperatorInventory, second: OperatorInventory) -> None:
    shared = find_shared_keys(first, second)
    if shared.count:
        named = ", ".join(shared.first)
        more = ", ..." if shared.count > len(shared.first) else ""
        raise UnsupportedError(
            f"both snapshots have state of {several(shared.count, 'key')}: {named}{more}",
            hint="remove these keys from one snapshot, or give the operator another uid there (statetool uid)",
        )


def _takes_elements(first: OperatorInventory, second: OperatorInventory) -> bool:
    """Return True if only the second snapshot has elements of operator state.

    Raises
    ------
    UnsupportedError
        Both have elements, and they are not equal broadcast states.
    """
    mine, theirs = _elements(first), _elements(second)
    if not theirs:
        return False
    if not mine:
        return True
    if mine == theirs and {first.operator_states[name].kind for name in mine} == {"broadcast"}:
        return False
    raise UnsupportedError(
        f"both snapshots have operator state: {', '.join(sorted({*mine, *theirs}))}",
        hint="drop these states in one snapshot first (statetool drop --state), or give the operator another uid there",
    )


def _elements(operator: OperatorInventory) -> dict[str, set[bytes]]:
    """Return the distinct elements of operator states that have any. Only broadcast states are read."""
    found: dict[str, set[bytes]] = {}
    for elements in operator.elements.streams:
        for name, ranges in ((name, elements.ranges(name)) for name in elements.offsets):
            if ranges and operator.operator_states[name].kind != "broadcast":
                found.setdefault(name, set())
            elif ranges:
                with elements.stream.open() as f:
                    found.setdefault(name, set()).update(bytes(f.read_at(a, b - a)) for a, b in ranges)
    empty = {name for name, data in found.items() if data == {bytes(4)}}
    return {name: data for name, data in found.items() if name not in empty}


def _merge_coordinators(first: OperatorInventory, second: OperatorInventory) -> bytes | None:
    """Return the coordinator state of the second snapshot if only that has one.

    Raises
    ------
    UnsupportedError
        Both have coordinator state, and it differs.
    """
    mine, theirs = (OperatorBytes(first).coordinator or b""), (OperatorBytes(second).coordinator or b"")
    if not theirs or mine == theirs:
        return None
    if mine:
        raise UnsupportedError(
            "both snapshots have coordinator state (of a source)",
            hint="give the source another uid in one snapshot (statetool uid), or drop it there",
        )
    return theirs


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The operators of both new snapshots, by their ids."""

    first: tuple[MergeRow, ...]
    second: tuple[MergeRow, ...]

    def removed(self, rows: Sequence[MergeRow]) -> frozenset[str]:
        """Return the operators that one of the new snapshots does not have."""
        return frozenset(r.operator_id for r in (*self.first, *self.second)) - {r.operator_id for r in rows}


def plan_split(inventory: Inventory, operators: Iterable[str], both: Collection[str] = ()) -> SplitPlan:
    """Plan to split a snapshot in two: ``operators`` go to the second snapshot, all others stay in the first.

    Parameters
    ----------
    both
        Operators that both snapshots get.

    Raises
    ------
    UnknownNameError, OptionError
        An operator does not exist or is given twice, or a snapshot would have no operator.
    UnsupportedError
        The snapshot has in-flight records.
    """
    check_in_flight(inventory.metadata)
    moved = {inventory.operator(name).state.operator_id for name in operators}
    shared = {inventory.operator(name).state.operator_id for name in both}
    twice = [o.label.display for o in inventory.operators.values() if o.state.operator_id in moved & shared]
    if twice:
        raise OptionError(f"operator {twice[0]} is given both as moved and as shared", hint="pass it once")
    rows = {o.state.operator_id: o for o in inventory.operators.values()}
    first = tuple(_row(o, "kept") for i, o in rows.items() if i not in moved)
    second = tuple(_row(o, "kept") for i, o in rows.items() if i in moved | shared)
    if not moved or len(moved) == len(rows):
        raise OptionError(
            "one of the two snapshots would have no operators of its own",
            hint="pass operators of the second job, but not all",
        )
    return SplitPlan(first, second)


def plan_move_state(
    inventory: Inventory,
    source: str,
    target: str,
    states: Mapping[str, str | None],
    *,
    hashes: Mapping[str, str] | None = None,
) -> MergePlan:
    """Plan to move keyed states to another operator of the same snapshot.

    Parameters
    ----------
    states
        New names of states, ``None`` to keep the name.

    Raises
    ------
    UnknownNameError
        The operator or the state does not exist.
    OptionError
        Nothing moves, both operators are the same, or the target has a state with the name.
    UnsupportedError
        A state is not keyed, or the operators have different key types.
    """
    old, new = inventory.operator(source), inventory.operator(target)
    if old.state.operator_id == new.state.operator_id:
        raise OptionError("both operators are the same", hint="rename a state with SavepointWriter.rename_state")
    if not states:
        raise OptionError("nothing to move", hint="pass states of the operator")
    names = {name: new_name or name for name, new_name in states.items()}
    for name, new_name in names.items():
        if name not in old.keyed_states and name in old.operator_states:
            raise UnsupportedError(f"state {name!r} is operator state, which has no keys", hint="move keyed states")
        if name not in old.keyed_states:
            raise UnknownNameError(
                f"operator {old.label.display!r} has no keyed state {name!r}", hint=suggest(name, old.keyed_states)
            )
        if new_name in {*new.keyed_states, *new.operator_states} or list(names.values()).count(new_name) > 1:
            raise OptionError(
                f"operator {new.label.display!r} would have two states {new_name!r}", hint="pass another new name"
            )
    changes = {
        old.state.operator_id: OperatorChange(dropped_states=frozenset(names)),
        new.state.operator_id: OperatorChange(
            added=(
                AddedState(
                    source=SourceOperator(inventory, old),
                    names=names,
                    declared=HashFormula.declared(hashes) if hashes else None,
                ),
            )
        ),
    }
    rows = [_row(o, "moved" if o in (old, new) else "kept") for o in inventory.operators.values()]
    return MergePlan(tuple(rows), changes)


def _row(
    operator: OperatorInventory,
    action: str,
    max_parallelism: int | None = None,
    name: str | None = None,
    *,
    size: int | None = None,
) -> MergeRow:
    state = operator.state
    return MergeRow(
        operator=name or operator.label,
        operator_id=id_and_uid(name)[0] if name else state.operator_id,
        action=action,
        max_parallelism=max_parallelism or state.max_parallelism,
        size_bytes=_size(operator) if size is None else size,
    )


def _size(operator: OperatorInventory) -> int:
    handles = (h for s in operator.state.subtasks for h in (s.managed_keyed, s.raw_keyed, s.managed_operator))
    return sum(stream.size_bytes for handle in handles for stream in streams_of(handle))
