"""Finished tasks: operators and subtasks that had finished when the snapshot was taken, and jobs that were drained.

Follows ``VertexFinishedStateChecker`` and ``FinishedOperatorSubtaskState`` (Flink 1.14 and later).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from statetool.compatibility.job_graph import JobGraph, JobVertex
from statetool.compatibility.restore import Restore
from statetool.compatibility.steps.step import (
    Result,
    Step,
    fails_later,
    guarded,
    is_unknown,
    loses,
    may_change,
    note,
    refuses,
)
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.sources import source_of
from statetool.errors import several
from statetool.formats.metadata import OperatorState
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

Finish = Literal["running", "partly finished", "finished"]
_DRAINED: Final = "Terminate Savepoint"
#: State of the writer of a sink with a committer, in some patches of these releases.
_END_OF_INPUT: Final = "end_of_input_state"
_WITH_END_OF_INPUT: Final = frozenset({"1.19", "1.20", "2.0"})


def finish_of(state: OperatorState | None) -> Finish:
    """Return how much of an operator has finished. An operator that the snapshot does not have counts as running."""
    if state is None:
        return "running"
    if state.fully_finished:
        return "finished"
    return "partly finished" if any(s.finished for s in state.subtasks) else "running"


def _finished(restore: Restore) -> list[OperatorInventory]:
    return [o for o in restore.old.operators.values() if finish_of(o.state) != "running"]


def _is_drained(restore: Restore) -> bool:
    return restore.properties is not None and restore.properties.type_name == _DRAINED


def _irrelevant(restore: Restore) -> str:
    if _finished(restore) or _is_drained(restore):
        return ""
    if any(_END_OF_INPUT in o.listed_elements for o in restore.old.operators.values()):
        return ""
    return "no task has finished, and the job was not drained"


def _drop(restore: Restore, operators: list[OperatorInventory]) -> Remedy:
    words = [word for o in operators for word in ("--uid", str(o.label))]
    return Remedy(
        "Leave out the state of the finished operators: they start again from the beginning.", ("drop", A, NEW, *words)
    )


def _mixed_chains(restore: Restore) -> Iterator[Result]:
    """F1: all operators of a chain must have finished to the same degree; operators that are new in the chain count as running."""
    finished = _finished(restore)
    if not finished:
        return
    graph = restore.options.graph
    if graph is not None and restore.has_snapshot:
        yield from _check_vertices(restore, graph, finished)
        return
    shown = describe_operators([str(o.label) for o in finished])
    if restore.new is None or not (restore.added or restore.removed):
        text = f"Tasks of {shown} have finished. If the new job chains them with other operators than the old one did, Flink refuses to restore."
        yield is_unknown(
            "F1", text, Remedy("Pass a savepoint of the new job and its job graph (--graph).", is_final=True)
        )
        return
    changed = describe_operators([str(o.label) for o in (*restore.added, *restore.removed)])
    text = (
        f"Tasks of {shown} have finished, and the operators of the job changed ({changed}). If one of these is chained with them, Flink refuses"
        " to restore, also with --allowNonRestoredState: mixed operator finished state."
    )
    remedy = _drop(restore, finished)
    yield is_unknown(
        "F1", text, Remedy(f"Pass the job graph of the new job with --graph. {remedy.text}", remedy.command)
    )


def _check_vertices(restore: Restore, graph: JobGraph, finished: list[OperatorInventory]) -> Iterator[Result]:
    """Check the vertices of the new job as ``VertexFinishedStateChecker`` does: F1 inside a vertex, F2 and F3 between vertices."""
    assert restore.new is not None
    old = {p.new.state.operator_id: p.old for p in restore.pairs if p.new is not None}
    chains = graph.chains(restore.new.operators.values())
    known = {o.state.operator_id for chain in chains.values() for o in chain}
    states: dict[str, set[Finish]] = {}
    for vertex_id, chain in chains.items():
        states[vertex_id] = {
            finish_of(old[o.state.operator_id].state if o.state.operator_id in old else None) for o in chain
        }
        if len(states[vertex_id]) > 1:
            shown = ", ".join(sorted(states[vertex_id]))
            text = f"{describe_operators([str(o.label) for o in chain])} are chained, and have finished to different degrees ({shown}): Flink refuses with mixed operator finished state, also with --allowNonRestoredState."
            of_chain = [old[o.state.operator_id] for o in chain if o.state.operator_id in old]
            first = next(o for o in of_chain if finish_of(o.state) != "running")
            yield refuses("F1", text, _drop(restore, [o for o in of_chain if finish_of(o.state) != "running"]), first)
    for pair in restore.pairs:
        if pair.new is not None and pair.old in finished and pair.new.state.operator_id not in known:
            text = f"The job graph does not show the chain of {pair.old.label.display}, of which tasks have finished."
            yield is_unknown("F1", text, "Compare its chain in both jobs.", pair.old)
    for vertex in graph.vertices.values():
        yield from _check_inputs(restore, vertex, states, finished)


def _check_inputs(
    restore: Restore, vertex: JobVertex, states: dict[str, set[Finish]], finished: list[OperatorInventory]
) -> Iterator[Result]:
    own = states.get(vertex.vertex_id, set())
    if len(own) != 1 or own == {"running"}:
        return
    for edge in vertex.inputs:
        before = states.get(edge.source, {"running"})
        whole = before == {"finished"}
        if own == {"finished"} and not whole:
            rule, text = "F2", "has finished, and a vertex before it has not"
        elif (
            own == {"partly finished"}
            and not whole
            and not (edge.strategy in ("FORWARD", "RESCALE") and before == {"partly finished"})
        ):
            rule, text = (
                "F3",
                f"has partly finished, and the vertex before it (by {edge.strategy.lower()}) has not finished",
            )
        else:
            continue
        yield refuses(
            rule, f"The vertex {' -> '.join(vertex.names)} {text}: Flink refuses to restore.", _drop(restore, finished)
        )


def _never_runs(restore: Restore) -> Iterator[Result]:
    """F4: an operator that has finished does not run again (``FINISHED_ON_RESTORE``), whatever its source now has."""
    finished = [p.old for p in restore.pairs if p.old.state.fully_finished]
    if finished:
        text = (
            f"{describe_operators([str(o.label) for o in finished])} had finished when the snapshot was taken: Flink does not start"
            f" {'it' if len(finished) == 1 else 'them'} again, so new input is not read."
        )
        yield loses("F4", text[0].upper() + text[1:], _drop(restore, finished), finished[0])


def _drained(restore: Restore) -> Iterator[Result]:
    """F5: ``stop --drain`` fires all windows and event-time timers before the savepoint."""
    if _is_drained(restore):
        text = "The savepoint was taken by stop --drain: windows and event-time timers fired early, so results after a restore are partial."
        yield may_change("F5", text, "Restore an earlier checkpoint, or stop the job without --drain.")


def _end_of_input(restore: Restore) -> Iterator[Result]:
    """F6: a writer of a sink with a committer takes no record if all it restores says that its input has ended (``SinkWriterOperator`` of FLINK-25920)."""
    for pair in restore.pairs:
        if _END_OF_INPUT not in pair.old.listed_elements:
            continue
        ended: dict[int, bool] = {}
        for subtask, value in OperatorBytes(pair.old).values(_END_OF_INPUT):
            ended[subtask] = bool(value) and ended.get(subtask, True)
        count = sum(ended.values())
        knows_it = pair.new is not None and restore.has_snapshot and _END_OF_INPUT in pair.new.listed_elements
        may_know_it = not restore.has_snapshot and (not restore.releases or _WITH_END_OF_INPUT & {*restore.releases})
        text = f"The input of {several(count, 'subtask')} of the writer had ended ({_END_OF_INPUT})"
        remedy = Remedy(
            f"Leave out the state {_END_OF_INPUT}.",
            ("drop", A, NEW, "--uid", str(pair.old.label), "--state", _END_OF_INPUT),
        )
        if count and knows_it:
            yield fails_later(
                "F6", f"{text}: the first record fails with Received element after endOfInput.", remedy, pair.old
            )
        elif count and may_know_it:
            text += ": Flink 2.0.0 and some patches of 1.19 and 1.20 fail at the first record with Received element after endOfInput, the others ignore it."
            yield is_unknown("F6", text, remedy, pair.old)


def _bounded_kafka(restore: Restore) -> Iterator[Result]:
    """F7: a bounded KafkaSource that is restored never ends (FLINK-31006)."""
    for pair in restore.pairs:
        if finish_of(pair.old.state) == "partly finished":
            source = source_of(pair.old)
            if source is not None and source.name == "kafka-source":
                yield note("F7", "A bounded KafkaSource that is restored never ends (FLINK-31006).", None, pair.old)


STEP: Final = Step(
    name="finished",
    title="Finished tasks",
    follows="VertexFinishedStateChecker",
    irrelevant=_irrelevant,
    checks=(_mixed_chains, _never_runs, _drained, guarded(_end_of_input), guarded(_bounded_kafka)),
)
