"""Facts by which operators of two jobs are compared: from a snapshot, or from a compiled plan of a job that has not run yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statetool.errors import UnknownSerializerError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.serializers.core.base import all_parts
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.equal_types import same_described_type, snapshot_bytes
from statetool.snapshot.metadata_tables import operator_row
from statetool.types.operators import OperatorLabel

if TYPE_CHECKING:
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.serializers.core.base import Serializer
    from statetool.snapshot.inventory import Inventory
    from statetool.snapshot.operator import OperatorInventory
    from statetool.sql_plans.compiled_plan import CompiledPlan
    from statetool.sql_plans.outlines import NodeOutline

#: The id of the plan's node in the name of a SQL operator: ``GroupAggregate[4]``, ``out[5]: Writer``.
_NODE: Final = re.compile(r"\[\d+\](?=$|: \w+$)")
#: Libraries name operators by random ids: the dynamic sink of Iceberg, before its fix in its uid too.
_RANDOM: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_UID: Final = re.compile(r"\d+_(.+)")
#: Names that Flink gives to operators whose program gives none, without the numbers of plan nodes. They tell of the function, not of the operator.
_GIVEN_BY_FLINK: Final = re.compile(
    r"(Keyed ?|Co-|Legacy )*(Map|Flat Map|Filter|Process|Reduce|Interval Join|Aggregation|Batch|Async)( Broadcast)?|Co-Process.*|async wait operator"
    r"|.*Window.*\(.*|Source: .*|Sink: .*|Timestamps/Watermarks",
    re.IGNORECASE,
)
#: The kind of nodes that read tables; their operator is called ``source``.
_SOURCE: Final = "table-source-scan"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """What is known of an operator.

    Attributes
    ----------
    has_state
        Whether a job that does not have the operator loses state.
    states
        States by scope and name, ``None`` if some cannot be listed, or if the job has not run yet.
    key
        The key type, ``None`` if it is not known.
    planned_uid
        The uid in the compiled plan, empty if it is not known.
    node
        The node of the compiled plan, ``None`` if the plan is not known or does not have the operator.
    has_plan
        Whether the plan of the operator's job is known.
    has_run
        Whether the facts are those of a snapshot.
    in_chain
        The first operator of its chain in a job graph, empty if the facts are not those of one. Only the first one has an id there.
    """

    label: OperatorLabel
    has_state: bool
    states: Mapping[tuple[str, str], StateMetaInfo] | None = None
    key: Serializer | None = None
    planned_uid: str = ""
    node: NodeOutline | None = None
    has_plan: bool = False
    has_run: bool = True
    in_chain: str = ""

    @property
    def name(self) -> str:
        """The name, without the id of a plan's node and without random ids, which are others in each run."""
        return _RANDOM.sub("*", _NODE.sub("", self.label.name))

    @property
    def has_own_name(self) -> bool:
        """Whether the program named the operator, as far as the name tells."""
        return not _NODE.search(self.label.name) and _GIVEN_BY_FLINK.fullmatch(self.name) is None


def snapshot_facts(inventory: Inventory) -> list[OperatorFacts]:
    """Return the facts of a snapshot's operators; errors as for :attr:`OperatorInventory.plan_node`."""
    return [_operator_facts(operator) for operator in inventory.operators.values()]


def _operator_facts(operator: OperatorInventory) -> OperatorFacts:
    row, keyed = operator_row(operator), operator.listed_keyed
    uid, node = operator.plan_node or ("", None)
    states = {("keyed", name): meta for name, (_, meta) in keyed.items()}
    states |= {("operator", name): meta for name, meta in operator.listed_elements.items()}
    return OperatorFacts(
        label=operator.label,
        has_state=row.state_bytes + row.coordinator_bytes > 0,
        states=None if operator.unread else states,
        key=operator.keyed.key if keyed else None,
        planned_uid=uid,
        node=node,
        has_plan=operator.has_plan,
    )


def planned_facts(plan: CompiledPlan, others: Iterable[OperatorFacts] = ()) -> list[OperatorFacts]:
    """Return the facts of the operators that ``EXECUTE PLAN`` creates.

    A node of a plan becomes one or several operators, which the plan does not list. Each node has those that nodes of its kind have in
    ``others``, the operators of the other job. A node whose kind the other job does not have has the operator that is called after the kind.
    """
    from statetool.sql_plans.compiled_plan import WITH_STATE
    from statetool.sql_plans.outlines import outline_of

    #: By kind of node: the part of the uid after the node's id, and whether such operators have state.
    parts: dict[str, dict[str, bool]] = {}
    for other in others:
        uid = _UID.fullmatch(other.planned_uid)
        if uid is not None and other.node is not None:
            of_kind = parts.setdefault(other.node.kind, {})
            of_kind[uid[1]] = other.has_state or of_kind.get(uid[1], False)
    facts = []
    for number in plan.nodes:
        node = outline_of(plan, number)
        own = "source" if node.kind == _SOURCE else node.kind
        for part, has_state in parts.get(node.kind, {own: True} if own in {*WITH_STATE, "source"} else {}).items():
            planned = f"{number}_{part}"
            label = OperatorLabel(operator_id_for_uid(planned), planned)
            facts.append(
                OperatorFacts(
                    label=label, has_state=has_state, planned_uid=planned, node=node, has_plan=True, has_run=False
                )
            )
    return facts


def state_contradictions(old: OperatorFacts, new: OperatorFacts, *, values: bool = True) -> Iterator[str]:
    """Yield the differences in states and keys because of which two operators cannot be the same.

    ``values``: types of values count, which a migration may change.
    """
    if old.states is None or new.states is None:
        return
    for scope, name in dict.fromkeys((*old.states, *new.states)):
        before, after = old.states.get((scope, name)), new.states.get((scope, name))
        if before is None or after is None:
            # A job has timer queues as soon as it requests a timer service.
            if "timers" not in (m.kind for m in (before, after) if m is not None):
                yield f"{scope} state {name!r} only in {'A' if after is None else 'B'}"
        elif before.kind != after.kind:
            yield f"kind of state {name!r} {before.kind}, {after.kind}"
        else:
            roles = dict.fromkeys((*before.serializers, *after.serializers))
            for role in (r for r in roles if values or r != "VALUE_SERIALIZER"):
                first, second = before.serializers.get(role), after.serializers.get(role)
                what = f"{role.removesuffix('_SERIALIZER').replace('_', ' ').lower()} type of state {name!r}"
                yield from _different_types(what, first, second)
    if old.key is not None and new.key is not None:
        yield from _different_types("key type", old.key, new.key)


def _different_types(what: str, old: Serializer | None, new: Serializer | None) -> Iterator[str]:
    if _is_same_type(old, new) is False:
        names = ("none" if s is None else s.type_name for s in (old, new))
        yield f"{what} {' -> '.join(names)}"


def _is_same_type(old: Serializer | None, new: Serializer | None) -> bool | None:
    """Return whether two types are the same, ``None`` if that is not known."""
    if old is None or new is None:
        return False
    with suppress(UnknownSerializerError):  # a key type that the snapshot does not store has no snapshot
        if snapshot_bytes(old) == snapshot_bytes(new):
            return True
    if any(isinstance(part, OpaqueSerializer) for whole in (old, new) for part in all_parts(whole)):
        return None
    same = old.type_name == new.type_name and old.logical == new.logical
    return same or same_described_type(old, new)


def other_contradictions(old: OperatorFacts, new: OperatorFacts) -> Iterator[str]:
    """Yield the differences in names and plan nodes because of which two operators are not taken for the same."""
    if old.name and new.name and old.name != new.name:
        yield f"name {old.name!r}, {new.name!r}"
    if old.node is not None and new.node is not None:
        yield from old.node.differences(new.node)
    parts = [operator.planned_uid.rpartition("_")[2] for operator in (old, new)]
    if all(parts) and parts[0] != parts[1]:
        yield f"operator of the plan node {', '.join(parts)}"
    for side, one, other in (("A", old, new), ("B", new, old)):
        if one.node is None and one.has_plan and (not other.has_run or other.node is not None):
            yield f"not in the compiled plan of {side}"


def evidence(old: OperatorFacts, new: OperatorFacts) -> Iterator[str]:
    """Yield the facts that two operators without contradictions have in common. Keys and unknown types alone are no evidence.

    Nor is a name that Flink gave, if one job is known by its graph: nothing tells there what the operator does.
    """
    common = _common_states(old, new)
    if common:
        yield f"{'state' if len(common) == 1 else 'states'} {', '.join(common)} with the same types"
    if old.name and old.name == new.name and (not (old.in_chain or new.in_chain) or old.has_own_name):
        yield f"name {old.name!r}"
    if old.node is not None and new.node is not None:
        before = "the same query" if old.node.query == new.node.query else "another query before it"
        yield f"plan node {old.node.kind} with {before}"


def _common_states(old: OperatorFacts, new: OperatorFacts) -> list[str]:
    """Return the names of the states of both, empty if a type is not known."""
    if old.states is None or new.states is None:
        return []
    both = [at for at in old.states if at in new.states]
    serializers = [(old.states[at].serializers, new.states[at].serializers) for at in both]
    types = [*((a[role], b.get(role)) for a, b in serializers for role in a), (old.key, new.key)]
    known = all(a is b is None or _is_same_type(a, b) for a, b in types)
    return [name for _, name in both] if known else []
