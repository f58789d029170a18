"""In-flight data: the buffers of an unaligned checkpoint go back to the channels that they came from.

Follows ``StateAssignmentOperation``, ``TaskStateAssignment``, ``SubtaskStateMapper`` and ``RecoveredChannelStateHandler``. No type is stored
with the buffers. Savepoints and aligned checkpoints have none, so a savepoint is always a way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.compatibility.job_graph import JobGraph
from statetool.compatibility.record_types import Exchange, has_same_streams, read_exchanges
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, guarded, is_unknown, loses, may_change, note, refuses
from statetool.compatibility.verdicts import Remedy
from statetool.errors import several
from statetool.formats.metadata.handles import AnyChannelHandle
from statetool.snapshot.operator import OperatorInventory

_SAVEPOINT: Final = Remedy(
    "Take a savepoint, or an aligned checkpoint, of the old job: it has no in-flight data.", is_final=True
)


def _handles(operator: OperatorInventory) -> list[AnyChannelHandle]:
    return [h for s in operator.state.subtasks for h in (*s.input_channels, *s.output_channels)]


def _bytes(operator: OperatorInventory) -> int:
    return sum(h.size_bytes for h in _handles(operator))


def _irrelevant(restore: Restore) -> str:
    if any(_handles(o) for o in restore.old.operators.values()):
        return ""
    return "the snapshot has no in-flight data"


def _changed(restore: Restore) -> Iterator[Result]:
    """U1, U2, U5: the chains and exchanges next to in-flight data must be those of the old job."""
    pairs = [p for p in restore.pairs if _handles(p.old)]
    graph = restore.options.graph
    if graph is not None and restore.has_snapshot:
        for pair in pairs:
            yield from _in_graph(restore, graph, pair)
        return
    changes = []
    if restore.added or restore.removed:
        changes.append(f"{several(len(restore.added) + len(restore.removed), 'operator')} added or removed")
    changes += [
        f"{p.old.label.display} with parallelism {after} instead of {p.old.state.parallelism}"
        for p, after in restore.parallelism_changes
    ][:3]
    if not changes and _is_same_code(restore):
        text = "the job is built with the same arguments, so its chains, exchanges and records are the same: both jars have the same classes"
        yield Assumption(rule="U5", text=text, option="a savepoint instead of this checkpoint")
        return
    if not changes and (found := _exchanges(restore, pairs)):
        yield from _records(found)
        return
    if not changes or not pairs:
        text = "The checkpoint has in-flight data. If the new job has other chains, exchanges or record types next to it, Flink refuses to restore, or reads records wrongly."
        remedy = Remedy(f"{_SAVEPOINT.text} Or pass the job graph of the new job with --graph.", is_final=True)
        yield is_unknown("U5", text, remedy)
        return
    size = sum(_bytes(p.old) for p in pairs)
    text = (
        f"The checkpoint has {several(size, 'byte')} of in-flight data of {several(len(pairs), 'operator')}, and the job changed"
        f" ({', '.join(changes)}): Flink may refuse to restore, or read records wrongly."
    )
    remedy = Remedy(f"{_SAVEPOINT.text} Or pass the job graph of the new job with --graph.", is_final=True)
    yield is_unknown("U1", text, remedy)


def _exchanges(restore: Restore, pairs: list[Pair]) -> list[Exchange]:
    """Return how the new job reads the in-flight data of all operators; none if the code does not tell."""
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return []
    if not has_same_streams(*((*s.flink_calls(), *s.own_calls()) for s in (classes.old.source, classes.new.source))):
        return []
    found = [exchange for pair in pairs for exchange in read_exchanges(pair.old, classes)]
    return [] if any(exchange.reading is None for exchange in found) else found


def _records(exchanges: list[Exchange]) -> Iterator[Result]:
    """U4, U5: the new job reads records of the types that the code of both jobs names."""
    for exchange in exchanges:
        names = " or ".join(exchange.types)
        if exchange.reading == "garbled":
            text = f"The records in flight are of the type {names}, and the new job reads other bytes for them: it fails, or loses the records after them."
            yield refuses("U4", text, _SAVEPOINT, exchange.operator)
        elif exchange.reading == "other":
            text = f"The records in flight are of the type {names}, and the new job reads other values in their fields."
            yield may_change("U4", text, _SAVEPOINT, exchange.operator)
    types = ", ".join(dict.fromkeys(name for exchange in exchanges for name in exchange.types)) or "watermarks"
    text = f"the records in flight are of the types that the code of the jobs names and that fit ({types}), and the jobs are built with the same arguments"
    yield Assumption(rule="U5", text=text, option="a savepoint instead of this checkpoint")


def _is_same_code(restore: Restore) -> bool:
    classes = restore.job.classes
    if classes is None or classes.old.source is None or classes.new.source is None:
        return False
    return classes.old.source.has_same_classes(classes.new.source)


def _in_graph(restore: Restore, graph: JobGraph, pair: Pair) -> Iterator[Result]:
    assert pair.new is not None
    old, vertex = pair.old, graph.vertex_of(pair.new)
    if vertex is None:
        yield is_unknown(
            "U1", "The job graph does not show the chain of an operator with in-flight data.", _SAVEPOINT, old
        )
        return
    has_input = any(s.input_channels for s in old.state.subtasks)
    has_output = any(s.output_channels for s in old.state.subtasks)
    if has_input and vertex.vertex_id != pair.new.state.operator_id:
        text = "The operator has in-flight data and is not the first of its chain any more: Flink refuses (topology changes)."
        yield refuses("U1", text, _SAVEPOINT, old)
    is_last = bool(graph.outputs(vertex.vertex_id)) and graph.is_last(pair.new)
    if has_output and is_last is False:
        text = "The operator has in-flight data for others and is not the last of its chain any more: Flink refuses (topology changes)."
        yield refuses("U1", text, _SAVEPOINT, old)
    elif has_output and is_last is None:
        text = "The operator has in-flight data for others, and the job graph does not show whether it is still the last of its chain."
        yield is_unknown("U1", text, _SAVEPOINT, old)
    changes = {p.old.label for p, _ in restore.parallelism_changes}
    edges = (*(vertex.inputs if has_input else ()), *(graph.outputs(vertex.vertex_id) if has_output else ()))
    pointwise = sorted({e.strategy.lower() for e in edges if e.is_pointwise})
    if pointwise and old.label in changes:
        text = f"The parallelism of an operator with in-flight data changes, and its exchange ({', '.join(pointwise)}) cannot be rescaled: Flink refuses."
        yield refuses("U2", text, _SAVEPOINT, old)
    elif old.label in changes:
        sources = [e.source for e in vertex.inputs]
        if len(sources) > len(set(sources)):
            text = "Two exchanges lead from one vertex to another, and their in-flight data is rescaled: Flink maps it wrongly (FLINK-40269)."
            yield loses("U6", text, _SAVEPOINT, old)
    yield Assumption(
        rule="U4",
        text="the types of records between operators with in-flight data did not change",
        option="a savepoint instead of this checkpoint",
    )


def _removed(restore: Restore) -> Iterator[Result]:
    """U8: in-flight data of an operator that is left out is lost."""
    if restore.options.skips_state:
        for old in restore.removed:
            if _handles(old):
                text = f"Its {several(_bytes(old), 'byte')} of in-flight data are lost, too."
                yield loses("U8", text, _SAVEPOINT, old)


def _dropped_by_configuration(restore: Restore) -> Iterator[Result]:
    """U10: a configuration can drop the in-flight data of one checkpoint."""
    config = restore.options.config
    key = "execution.state-recovery.without-channel-state.checkpoint-id"
    if config is not None and config.number(key) == restore.old.metadata.checkpoint_id:
        yield loses(
            "U10",
            f"{config.name(key)} drops the in-flight records of this checkpoint.",
            "Remove it from the configuration.",
        )


def _other_release(restore: Restore) -> Iterator[Result]:
    """U9: Flink does not promise that another minor release reads in-flight data."""
    yield note("U9", "Flink promises to restore in-flight data in the same minor release only.", _SAVEPOINT)


STEP: Final = Step(
    name="channels",
    title="In-flight data",
    follows="StateAssignmentOperation, TaskStateAssignment, SubtaskStateMapper",
    irrelevant=_irrelevant,
    checks=(guarded(_changed), _removed, _dropped_by_configuration, _other_release),
)
