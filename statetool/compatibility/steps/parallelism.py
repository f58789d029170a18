"""Assign key groups: parallelism and max parallelism of each operator.

Follows ``Checkpoints.loadAndValidateCheckpoint``, ``StateAssignmentOperation.checkParallelismPreconditions`` and
``KeyGroupRangeAssignment``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Found,
    Result,
    Step,
    guarded,
    is_always_relevant,
    is_unknown,
    loses,
    may_change,
    note,
    per_pair,
)
from statetool.compatibility.stream_code import check_max_parallelism
from statetool.compatibility.traced_states import traced_limit
from statetool.compatibility.verdicts import NEW, A, Level, Remedy, Resolution
from statetool.connectors.sinks import COMMITTER_STATE, WRITER_STATE
from statetool.connectors.sources import READER_STATE
from statetool.errors import NO_FINDING, StatetoolError, sentence, several
from statetool.formats.key_groups import default_max_parallelism
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.flink_calls import set_max_parallelisms
from statetool.types.operators import describe_operators

_ASK: Final = " With the job graph of the new job (--graph), the check is exact."

#: List states whose elements any subtask may have.
_DEALT_OUT: Final = (READER_STATE, WRITER_STATE, COMMITTER_STATE)


def _limits(restore: Restore, pair: Pair) -> Iterator[Result]:
    """P1, P2, P3: a max parallelism that the job sets must be that of the snapshot, and the parallelism must not be above it."""
    resolution = _parallelism(restore, pair)
    if resolution is not None:
        yield Found(rule="P1", resolution=resolution, operator=pair.old)


def _parallelism(restore: Restore, pair: Pair) -> Resolution | None:
    old, new = pair.old, pair.new
    before = old.state.max_parallelism
    parallelism, given = restore.parallelism_of(pair), restore.options.set_max_parallelism
    after = given if given is not None else None if new is None else new.state.max_parallelism
    if parallelism is not None and parallelism > before:
        reason = f"The job has parallelism {parallelism}, the savepoint max parallelism {before}."
        wanted = max(after or 0, default_max_parallelism(parallelism))
        remedy = _rescale(restore.old, old, wanted, "Lower the parallelism of the job")
        return Resolution.because(Level.INCOMPATIBLE, reason, remedy)
    if given is not None and given != before and before > 1:
        reason = f"The savepoint has max parallelism {before}, and the job sets {given}: Flink refuses to restore."
        return Resolution.because(
            Level.INCOMPATIBLE, reason, _rescale(restore.old, old, given, "Do not set it in the job")
        )
    if given is None and (limit := traced_limit(restore, pair)) is not None:
        reason = f"The savepoint has max parallelism {before}, and the code of the new job sets {limit}: Flink refuses to restore."
        return Resolution.because(Level.INCOMPATIBLE, reason, _rescale_all(restore, limit))
    if after is None or before == after or given is not None or new is None:
        return None
    # If the job does not set it, Flink uses the snapshot's value. The job's savepoint does not show whether the job set it.
    is_joined = bool(_added_to(restore, pair))  # P5
    unless = ", unless an operator that is new in its chain has another one" if is_joined else ""
    unset = after == default_max_parallelism(new.state.parallelism)
    return Resolution.because(
        Level.UNKNOWN if unset else Level.INCOMPATIBLE,
        f"The savepoint has max parallelism {before}, the job {after}. If the job sets {after} explicitly,"
        f" Flink refuses to restore; otherwise Flink keeps {before}{unless}.",
        _rescale(restore.old, old, after, f"Set {before} in the job" if is_joined else "Do not set it in the job"),
    )


def _rescale(snapshot: Inventory, operator: OperatorInventory, max_parallelism: int, otherwise: str) -> Remedy:
    """Return the remedy to move the keys of an operator, if they can move."""
    # Loads Arrow, which takes long.
    from statetool.saving.verbs.rescale import plan_rescale

    try:
        plan_rescale(snapshot, {operator.state.operator_id: max_parallelism}).check()
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return Remedy(
            f"{otherwise}. statetool cannot write a copy with max parallelism {max_parallelism}: {sentence(error.message)}"
        )
    text = f"{otherwise}, or write a copy with max parallelism {max_parallelism}."
    return Remedy(text, ("rescale", A, NEW, "--uid", f"{operator.label}={max_parallelism}"))


def _rescale_all(restore: Restore, limit: int) -> Remedy:
    """Return the remedy against a max parallelism that code sets for some operators. Which others are in their chains is not known.

    Operators for which a job sets no number take that of the snapshot, so all can have it, unless code sets another one somewhere.
    """
    # Loads Arrow, which takes long.
    from statetool.saving.verbs.rescale import plan_rescale

    classes = restore.job.classes
    source = None if classes is None else classes.new.source
    own = {o.state.operator_id: o for o in restore.old.operators.values()}
    fixed = [o for o in own.values() if o.state.max_parallelism == 1]
    others = {i: limit for i, o in own.items() if o not in fixed}
    parallelism = max((restore.options.parallelism or 1, *(own[i].state.parallelism for i in others)))
    numbers = set() if source is None else set(set_max_parallelisms(source.flink_calls()))
    if numbers != {str(limit)} or parallelism > limit:
        text = "Do not set it in the job, or pass a savepoint of the new job (B): check then names the operators to rescale."
        return Remedy(text, is_final=True)
    try:
        plan_rescale(restore.old, others).check()
    except NO_FINDING:
        raise
    except StatetoolError as error:
        text = f"Do not set it in the job. statetool cannot write a copy with max parallelism {limit}: {sentence(error.message)}"
        return Remedy(text, is_final=True)
    text = f"Do not set it in the job, or write a copy in which all operators have max parallelism {limit}: they keep it if the job sets no other one."
    kept = [word for o in fixed for word in ("--except", str(o.label))]
    return Remedy(text, ("rescale", A, NEW, "--max-parallelism", str(limit), *kept), is_final=True)


def _given(restore: Restore) -> Iterator[Result]:
    """P3: the run that made B may have another parallelism than production."""
    if restore.options.parallelism is None:
        numbers = sorted({o.state.parallelism for o in restore.new.operators.values()}) if restore.new else []
        if not restore.has_snapshot:
            text = "the parallelism of each operator is not above its max parallelism in the snapshot, and the job sets no other max parallelism"
        else:
            shown = ", ".join(map(str, numbers))
            text = f"the job runs with the parallelism of B ({shown}) and sets no other max parallelism"
        yield Assumption(rule="P3", text=text, option="--parallelism and --max-parallelism")


def _in_chains(restore: Restore) -> Iterator[Result]:
    """P4: of the operators of a chain, the max parallelism applied last counts, and keyed state is cut by it (FLINK-40113)."""
    if restore.options.set_max_parallelism is not None:
        return
    graph = restore.options.graph
    if not restore.has_snapshot and graph is None:
        yield from _in_unknown_chains(restore)
        return
    for group in _possible_chains(restore):
        numbers = sorted({o.state.max_parallelism for o in group})
        keyed = [o for o in group if any(s.managed_keyed is not None for s in o.state.subtasks)]
        if len(numbers) < 2 or not keyed:
            continue
        wanted = max(o.state.max_parallelism for o in keyed)
        others = [o for o in group if o.state.max_parallelism != wanted]
        if len(keyed) == len(group) and graph is None:
            continue  # An exchange by key is before each of them, and ends the chain.
        chained = "They are chained" if graph is not None else "If the new job chains them"
        text = (
            f"{describe_operators([str(o.label) for o in group])} have different max parallelisms in the snapshot"
            f" ({', '.join(map(str, numbers))}). {chained}, Flink uses the one that it meets last for all, and does not find the keys of"
            f" {describe_operators([str(o.label) for o in keyed])} (FLINK-40113)."
        )
        options = [word for o in others for word in ("--uid", f"{o.label}={wanted}")]
        remedy = Remedy(
            f"Set max parallelism {wanted} in the job, or write a copy in which all of them have it.{_ASK if graph is None else ''}",
            ("rescale", A, NEW, *options),
        )
        yield (may_change if graph is None else loses)("P4", text[0].upper() + text[1:], remedy, keyed[0])


def _in_unknown_chains(restore: Restore) -> Iterator[Result]:
    """Apply P4 to a job that is not known. Its chains are those of the old job, unless its parallelism differs.

    Flink gives all operators of a chain one parallelism and one max parallelism: it did not chain those that differ.
    """
    states = [p.old for p in restore.pairs if p.old.state.max_parallelism > 1]
    keyed = {id(o) for o in states if any(s.managed_keyed is not None for s in o.state.subtasks)}
    apart = [
        (o, other)
        for o in states
        for other in states
        if id(o) in keyed and id(other) not in keyed and o.state.max_parallelism != other.state.max_parallelism
    ]
    if not apart:
        return
    joined = [pair for pair in apart if len({o.state.parallelism for o in pair}) == 2]
    if restore.options.parallelism is not None and joined:
        labels = dict.fromkeys(str(o.label) for pair in joined for o in pair)
        text = (
            f"{describe_operators(list(labels))} have different parallelisms and max parallelisms in the snapshot. With one parallelism, the"
            " new job may chain them: Flink then uses one max parallelism for all, and may not find keys (FLINK-40113)."
        )
        remedy = Remedy(
            "Pass the job graph of the new job with --graph, or set one max parallelism in the job.", is_final=True
        )
        yield is_unknown("P4", text[0].upper() + text[1:], remedy)
    else:
        text = (
            "operators with different max parallelisms are not chained in the new job, as they were not in the old one"
        )
        yield Assumption(rule="P4", text=text, option="--graph")


def _possible_chains(restore: Restore) -> list[list[OperatorInventory]]:
    """Return the operators that the new job chains; without its job graph, those that it may chain."""
    pairs = [p for p in restore.pairs if p.old.state.max_parallelism > 1]
    graph = restore.options.graph
    groups: dict[object, list[OperatorInventory]] = {}
    for pair in pairs:
        if graph is not None:
            vertex = graph.vertex_of(pair.old) or (None if pair.new is None else graph.vertex_of(pair.new))
            groups.setdefault(pair.old.label if vertex is None else vertex.vertex_id, []).append(pair.old)
        else:
            # All operators of a chain have the parallelism and the max parallelism of their vertex.
            at = pair.old.state if pair.new is None else pair.new.state
            alike = None if pair.new is None else at.max_parallelism
            groups.setdefault((at.parallelism, alike), []).append(pair.old)
    return list(groups.values())


def _added_to_chains(restore: Restore) -> Iterator[Result]:
    """P5: an operator that is new in a chain has the default max parallelism, and Flink takes it for the whole chain."""
    for pair in restore.pairs:
        added = _added_to(restore, pair)
        if pair.new is not None and added:
            parallelism = restore.parallelism_of(pair) or pair.new.state.parallelism
            default, before = default_max_parallelism(parallelism), pair.old.state.max_parallelism
            text = (
                f"{describe_operators([str(o.label) for o in added])} may be new in the chain of this operator. With parallelism {parallelism}, the"
                f" default max parallelism is {default}, the snapshot has {before}: unless the job sets it, Flink takes {default} for"
                " the whole chain, and fails or does not find keys."
            )
            text = f"{text[0].upper()}{text[1:]}"
            yield is_unknown("P5", text, f"Set max parallelism {before} in the job.", pair.old)


def _added_to(restore: Restore, pair: Pair) -> list[OperatorInventory]:
    """Return the operators that may be new in the chain of an operator with keyed state, and whose default max parallelism is not its own."""
    old, new = pair.old.state, pair.new
    if new is None or not restore.has_snapshot or restore.options.set_max_parallelism is not None:
        return []
    if not any(s.managed_keyed is not None for s in old.subtasks):
        return []
    default = default_max_parallelism(restore.parallelism_of(pair) or new.state.parallelism)
    is_set = new.state.max_parallelism == old.max_parallelism and restore.options.parallelism is None
    if default == old.max_parallelism or is_set:
        return []
    return [o for o in restore.added if _may_be_chained(restore, o, new)]


def _may_be_chained(restore: Restore, operator: OperatorInventory, other: OperatorInventory) -> bool:
    graph = restore.options.graph
    if any(s.managed_keyed is not None for s in operator.state.subtasks):
        return False  # An exchange by key is before it, and ends the chain.
    if graph is None:
        return operator.state.parallelism == other.state.parallelism
    vertices = graph.vertex_of(operator), graph.vertex_of(other)
    return None in vertices or vertices[0] == vertices[1]


def _lists(restore: Restore) -> Iterator[Result]:
    """P6: elements of list states are dealt out evenly when the parallelism changes (``RoundRobinOperatorStateRepartitioner``)."""
    changed = [
        p.old for p, _ in restore.parallelism_changes if any(m.kind == "list" for m in p.old.listed_elements.values())
    ]
    if changed:
        text = f"The parallelism changes, and Flink deals out the elements of list states evenly: {several(len(changed), 'operator')}, among them {changed[0].label.display}. A function that expects its own elements sees others."
        yield note("P6", text)


STEP: Final = Step(
    name="parallelism",
    title="Parallelism and key groups",
    follows="Checkpoints, StateAssignmentOperation, KeyGroupRangeAssignment",
    irrelevant=is_always_relevant,
    checks=(per_pair(_limits), guarded(check_max_parallelism), _given, _in_chains, guarded(_added_to_chains), _lists),
)
