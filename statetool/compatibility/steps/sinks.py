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
from statetool.connectors.layouts.file_sink import REQUESTS_STATE, Bucket
from statetool.connectors.layouts.kafka_sink import EXPLICIT, KafkaWriter
from statetool.connectors.sinks import COMPACT_STATE, GLOBAL_ROLE, WRITER_STATE, Sink, collector_versions, sinks_of
from statetool.connectors.tables import readable_operators
from statetool.errors import NO_FINDING, StatetoolError, sentence, several
from statetool.io.listing import FileStats
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

_KEEP_NAMES: Final = Remedy(
    "Keep the naming strategy POOLING, or give the new sink another uid after the old one has committed.", is_final=True
)


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
    for pair, old, new in _in_both_jobs(restore):
        yield from _compare(pair, old, new)


def _in_both_jobs(restore: Restore) -> Iterator[tuple[Pair, Sink, Sink]]:
    """Yield the operators of sinks that both snapshots have, in each of their roles."""
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
                yield pair, sink, new


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


def _transactional_ids(restore: Restore) -> Iterator[Result]:
    """X4, X6: writers of KafkaSink get their transactions back by ownership and prefix (``TransactionOwnership``, ``ExactlyOnceKafkaWriter``)."""
    for pair, old, new in _in_both_jobs(restore):
        before, after = ([w for _, w in s.state.writers if isinstance(w, KafkaWriter)] for s in (old, new))
        if not before or not after:
            continue
        owners, new_owners = ({w.transaction_ownership for w in writers} for writers in (before, after))
        if EXPLICIT in owners and EXPLICIT not in new_owners and None not in new_owners:
            text = "The writers of the snapshot name their transactions by POOLING, and those of the new job by INCREMENTING: KafkaSink does not switch back."
            yield refuses("X4", text, _KEEP_NAMES, pair.old)
        elif None in owners and EXPLICIT in new_owners:
            text = "The snapshot is of a KafkaSink before 4.0, and the new job names its transactions by POOLING: KafkaSink does not know which transactions each writer owns."
            remedy = Remedy("Run the job once with INCREMENTING, and take a savepoint of it.", is_final=True)
            yield refuses("X4", text, remedy, pair.old)
        prefixes, new_prefixes = ({w.transactional_id_prefix for w in writers} for writers in (before, after))
        if not prefixes & new_prefixes:
            text = (
                f"The transactional id prefix is {', '.join(sorted(new_prefixes))} in the new job, and {', '.join(sorted(prefixes))} in the snapshot:"
                " transactions that other subtasks left open stay until they time out, and block readers until then."
            )
            remedy = Remedy("List the open transactions.", ("sinks", "pending", A, "--commands"))
            yield may_change("X6", text, remedy, pair.old)


def _collectors(restore: Restore) -> Iterator[Result]:
    """X8: committers before some patches take the bytes of any version of what is in a collector (``CommittableCollectorSerializer``)."""
    for pair, old, new in _in_both_jobs(restore):
        before, after = collector_versions(old, stored=True), collector_versions(new, stored=False)
        newer = [
            (was, now)
            for was, now in zip(before, after, strict=True)
            if was is not None and now is not None and was > now
        ]
        if newer:
            was, now = newer[-1]
            text = f"The committer of the snapshot stores its committables in format {was}, and that of the new job in {now}: an older release of Flink takes the bytes for something else, and fails."
            remedy = Remedy("Use the release of Flink that wrote the snapshot, or a newer one.", is_final=True)
            yield refuses("X8", text, remedy, pair.old)


def _folders(restore: Restore) -> Iterator[Result]:
    """X12, X13: buckets of FileSink have the path that they were opened with (``FileWriterBucketState``)."""
    for pair, old, new in _in_both_jobs(restore):
        before, after = ([w for _, w in s.state.writers if isinstance(w, Bucket)] for s in (old, new))
        folders, new_folders = ({_output_path(b) for b in buckets} for buckets in (before, after))
        if not folders or not new_folders or folders & new_folders:
            continue
        text = f"The sink wrote to {', '.join(sorted(folders))}, and the savepoint of the new job is of one that writes to {', '.join(sorted(new_folders))}"
        is_open = any(b.in_progress is not None or b.pending for b in before)
        if is_open and {_file_system(f) for f in folders}.isdisjoint(map(_file_system, new_folders)):
            text += ". If the job that is restored does so too, it cannot read what the snapshot has of open files: Flink fails with Unexpected magic number."
            remedy = Remedy("Let the old job finish its files, and give the new sink another uid.")
            yield is_unknown("X13", text, remedy, pair.old)
        else:
            yield note("X12", f"{text}: Flink goes on with open files in the old folder.", operator=pair.old)


def _output_path(bucket: Bucket) -> str:
    """Return the path that a file sink was built with: the path of a bucket without its id."""
    return bucket.bucket_path.rstrip("/").removesuffix(bucket.bucket_id).rstrip("/") or "/"


def _file_system(path: str) -> str:
    scheme = path.partition(":/")[0] if ":/" in path else "file"
    return "s3" if scheme in ("s3a", "s3n", "s3p") else scheme


def _global_committers(restore: Restore) -> Iterator[Result]:
    """X9: a global committer waits for the committables of as many subtasks as there were (FLINK-37747)."""
    if restore.releases and restore.releases[0].startswith("2.") and restore.releases[0] != "2.0":
        return
    grown = {p.old.state.operator_id for p, after in restore.parallelism_changes if after > p.old.state.parallelism}
    sinks = _sinks([p.old for p in restore.pairs])
    parts = [s for s in sinks if _role(s) in ("writer", "committer") and s.operator.state.operator_id in grown]
    for sink in sinks if parts else ():
        if _role(sink) == GLOBAL_ROLE and sink.state.pending:
            text = f"The parallelism of {parts[0].operator.label.display} grows, and the global committer has {several(len(sink.state.pending), 'committable')}: patches of Flink before FLINK-37747 wait for more without end, and commit nothing."
            remedy = Remedy(
                "Use a patch of Flink with FLINK-37747, or restore with the old parallelism until the first checkpoint.",
                is_final=True,
            )
            yield is_unknown("X9", text, remedy, sink.operator)


def _compaction(restore: Restore) -> Iterator[Result]:
    """X14: FileSink without compaction has no operators for the files that were to be compacted, unless it is told so."""
    for old in restore.removed:
        if COMPACT_STATE in old.listed_elements or REQUESTS_STATE in old.listed_elements:
            text = "The operator compacts files of FileSink, and the new job does not have it: files that it has not compacted yet are in its state only."
            remedy = Remedy(
                "Call disableCompact() of the sink's builder, which keeps operators for this state.", is_final=True
            )
            yield (loses if restore.options.skips_state else refuses)("X14", text, remedy, old)


def _buffered(restore: Restore) -> Iterator[Result]:
    """X15: a restored writer first sends the requests that it had accepted (``AsyncSinkWriter``)."""
    for sink in _sinks([p.old for p in restore.pairs]):
        count = sum(p.status == "buffered" for p in sink.state.pending)
        if count and _role(sink) == "writer":
            text = f"The writer sends {several(count, 'buffered request')} of the snapshot first, to the target of the new job."
            yield note("X15", text, Remedy("Look at them.", ("sinks", "pending", A)), sink.operator)


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
    find = FileStats(forgets=True)
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
        guarded(_transactional_ids),
        guarded(_collectors),
        guarded(_folders),
        guarded(_global_committers),
        _compaction,
        guarded(_buffered),
        guarded(_own_serializers),
        guarded(_pending),
        guarded(_never_committed),
        _named_files,
        _commit_ids,
    ),
)
