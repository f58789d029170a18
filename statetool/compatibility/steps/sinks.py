"""Restore sinks: writers and committers read their state, and committers commit what is pending.

Follows ``SinkWriterStateHandler``, ``CommitterOperator`` and the serializers of each connector. Neither state names its connector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statetool.analysis.verification.named_files import check_named_files
from statetool.analysis.verification.problems import Problem
from statetool.compatibility.commits import commit_id_warnings
from statetool.compatibility.connector_versions import ignores_committable_version, ignores_writer_version
from statetool.compatibility.restore import Pair, Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import (
    Found,
    Result,
    Step,
    guarded,
    is_unknown,
    loses,
    may_change,
    note,
    refuses,
)
from statetool.compatibility.verdicts import NEW, A, Level, Remedy, Resolution
from statetool.compatibility.versioned_serializers import check_own_serializers
from statetool.connectors.sinks import WRITER_STATE, Sink, sinks_of
from statetool.connectors.tables import readable_operators
from statetool.errors import NO_FINDING, StatetoolError, sentence, several
from statetool.io.listing import FileStats
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators


def _sinks(operators: list[OperatorInventory]) -> list[Sink]:
    return sinks_of(readable_operators(operators)[0])


def _irrelevant(restore: Restore) -> str:
    # Sinks with list states of their own do not have these names: a registry of them is asked.
    stateful = [o for o in restore.old.operators.values() if o.listed_elements or "operator" in o.unread]
    return "" if stateful or restore.old.metadata.checkpoint_id == 0 else "no operator is a sink with state"


def _role(sink: Sink) -> str:
    return sink.state.role


def _connector(restore: Restore) -> Iterator[Result]:
    """X1, X5: another sink under the same uid, or an older release of it, does not read the bytes."""
    if not restore.has_snapshot:
        return
    old = {(s.operator.state.operator_id, _role(s)): s for s in _sinks([p.old for p in restore.pairs])}
    news = {
        (s.operator.state.operator_id, _role(s)): s for s in _sinks([p.new for p in restore.pairs if p.new is not None])
    }
    for pair in restore.pairs:
        assert pair.new is not None
        for (operator_id, role), sink in old.items():
            if operator_id == pair.old.state.operator_id and (new := news.get((pair.new.state.operator_id, role))):
                yield from _compare(pair, sink, new)


def _compare(pair: Pair, old: Sink, new: Sink) -> Iterator[Result]:
    names, new_names = _names(old), _names(new)
    before, after = old.state.versions, new.state.versions
    if not names or not new_names:
        if before != after:
            text = f"No connector reads the {_role(old)} state of this sink, and its versions differ from those in the new job."
            yield is_unknown("X1", text, "Restore a copy of the job from this snapshot to find out.", pair.old)
        return
    if not names & new_names:
        text = f"The sink is {' or '.join(sorted(new_names))} in the new job, and the snapshot has the {_role(old)} state of {' or '.join(sorted(names))}: Flink fails, or takes the bytes for something else."
        remedy = Remedy(
            "Let the old job finish its commits, give the new sink another uid, and leave out the state of the old one.",
            ("drop", A, NEW, "--uid", str(pair.old.label)),
        )
        yield refuses("X1", text, remedy, pair.old)
        return
    if before and after and max(before) > max(after):
        what = f"{_role(old)} state of version {max(before)} (the new job writes {max(after)}) of {old.name}"
        is_writer = _role(old) == "writer"
        if is_writer and ignores_writer_version(old.name, max(after)):
            text = f"The snapshot has {what}: the older release reads a part of it, and leaves transactions open that block readers."
            yield may_change(
                "X5", text, Remedy("List the open transactions.", ("sinks", "pending", A, "--commands")), pair.old
            )
        elif is_writer or not ignores_committable_version(old.name):
            text = f"The snapshot has {what}: an older release of the connector refuses it."
            remedy = Remedy("Use the release of the connector that wrote the snapshot, or a newer one.", is_final=True)
            yield refuses("X5", text, remedy, pair.old)


def _names(sink: Sink) -> frozenset[str]:
    return frozenset({sink.connector.name}) if sink.connector is not None else frozenset(sink.candidates)


def _own_serializers(restore: Restore) -> Iterator[Result]:
    """X18: state of writers and committers that only classes of the job read."""
    for sink in _sinks([p.old for p in restore.pairs]):
        if not _names(sink) and sink.state.versions:
            yield from check_own_serializers(restore, "X18", f"the {_role(sink)} state", sink.operator)


def _pending(restore: Restore) -> Iterator[Result]:
    """X2, X3: transactions that are not committed yet, of a committer that the new job does not have or that commits nothing."""
    for sink in _sinks(list(restore.removed)):
        count = len([p for p in sink.state.pending if p.status not in ("open", "committed") and not p.is_removal])
        if count:
            text = f"The sink of this operator has {several(count, 'uncommitted transaction or file', 'uncommitted transactions or files')}: without a committer in the new job, their records are lost."
            remedy = Remedy("Restore the old job and let it commit, or commit them by hand.", ("sinks", "pending", A))
            yield loses("X2", text, remedy, sink.operator)
    waiting: dict[str, int] = {}
    for sink in _sinks([p.old for p in restore.pairs]):
        pending = [p for p in sink.state.pending if p.expires and p.status not in ("open", "committed", "buffered")]
        if pending:
            waiting[str(sink.operator.label)] = len(pending)
    if waiting:
        count = sum(waiting.values())
        text = f"{describe_operators(list(waiting))} has {several(count, 'uncommitted transaction')}. If they expired, or the new sink does not commit them, their records are lost."
        remedy = Remedy("Look whether they can still be committed: statetool sinks check.", is_final=True)
        yield is_unknown("X7", text, remedy)


def _never_committed(restore: Restore) -> Iterator[Result]:
    """X3: KafkaSink 5.0 commits nothing unless it is exactly once (``NoopCommitter``); only such writers have state."""
    if not restore.has_snapshot:
        return
    committers = {s.operator.label: s for s in _sinks([p.old for p in restore.pairs]) if s.state.role == "committer"}
    waiting = {label: n for label, s in committers.items() if (n := sum(p.expires for p in s.state.pending))}
    for pair in restore.pairs:
        lost_state = (
            WRITER_STATE in pair.old.listed_elements
            and pair.new is not None
            and WRITER_STATE not in pair.new.listed_elements
        )
        if lost_state and waiting and any(s.name == "kafka-sink" for s in _sinks([pair.old])):
            text = f"KafkaSink of the new job is not exactly once: {several(sum(waiting.values()), 'uncommitted transaction')} of the snapshot may never be committed."
            yield loses("X3", text, "Run the job once with EXACTLY_ONCE, so that they are committed.", pair.old)


def _commit_ids(restore: Restore) -> Iterator[Result]:
    """X10: tables drop commits whose checkpoint id is not higher than those that they have."""
    for operator, warning in commit_id_warnings(restore.old, restore.new):
        yield Found(rule="X10", resolution=Resolution(Level.AS_IS, (), (warning,)), operator=operator)


def _named_files(restore: Restore) -> Iterator[Result]:
    """X11: files exist that only the state of a sink names, which the restored sink opens (``GenericWriteAheadSink``, ``FileSink``)."""
    find = FileStats()
    for operator in (p.old for p in restore.pairs):
        try:
            named, problems = check_named_files(operator, restore.old.metadata_file, find)
        except NO_FINDING:
            raise
        except StatetoolError:
            continue  # the step of operator state says what cannot be read
        for problem in problems:
            yield from _named_file(problem, operator)
        for unread in named.unread:
            if unread.may_name_state:
                text = f"Files that state {unread.state} may name are not known: {sentence(unread.reason)}"
                yield is_unknown("X11", text, operator=operator)


def _named_file(problem: Problem, operator: OperatorInventory) -> Iterator[Result]:
    text = (f"{problem.file}: " if problem.file else "") + sentence(problem.problem)
    if problem.severity == "error" and (problem.file or not problem.is_unknown):
        yield refuses("X11", text, operator=operator)
    elif problem.severity == "warning" and problem.state is None:
        yield loses("X11", text, operator=operator)
    elif problem.file or not problem.is_unknown:
        yield note("X11", text, operator=operator)
    else:
        words = f"files that only the state of {operator.label.display} names exist: {problem.problem}"
        yield Assumption(rule="X11", text=words, option="statetool sinks check")


STEP: Final = Step(
    name="sinks",
    title="Sinks",
    follows="SinkWriterStateHandler, CommitterOperator, and the serializers of each connector",
    irrelevant=_irrelevant,
    checks=(
        guarded(_connector),
        guarded(_own_serializers),
        guarded(_pending),
        guarded(_never_committed),
        _named_files,
        _commit_ids,
    ),
)
