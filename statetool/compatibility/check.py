"""Check of a snapshot against a snapshot of the new job, a release of Flink, or both: all steps of a restore, in Flink's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from statetool.compatibility.backends import backend_of
from statetool.compatibility.classes.trial import NewClasses
from statetool.compatibility.releases import kryo_of, writers_of
from statetool.compatibility.restore import Restore, RestoreOptions
from statetool.compatibility.running.flink_jars import FlinkJars, find_flink_jars
from statetool.compatibility.running.summary import RunOptions
from statetool.compatibility.states import BACKENDS, Job, merge_verdicts
from statetool.compatibility.step_verdicts import Assumption, Kind, Status, StepFinding, StepVerdict, worst_status
from statetool.compatibility.steps.order import STEPS
from statetool.compatibility.steps.step import Found, Result, StateFound, Step, findings_of
from statetool.compatibility.verdicts import STARTS_EMPTY, Check, OperatorVerdict, StateVerdict, combine, worst
from statetool.errors import NO_FINDING, OptionError, StatetoolError, sentence
from statetool.saving.versions import WIDEST, parse_release
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope
from statetool.types.declared import ClassSource, TypeContext


def check_inventories(
    old: Inventory,
    new: Inventory | None,
    flink: str | None,
    backend: str | None,
    new_classes: ClassSource | None = None,
    options: RestoreOptions | None = None,
) -> Check:
    """Check whether a snapshot is restored. The parameters are those of :func:`statetool.check`.

    Parameters
    ----------
    new_classes
        The classes of the new job, if its jar is known. All values that depend on them are then read.
    """
    options = RestoreOptions() if options is None else options
    if new is None and flink is None and new_classes is None:
        raise OptionError(
            "nothing to check against",
            hint="give a snapshot of the new job (B), its jar (--jar-b, other_jars=) or its release (--flink 2.3, flink_version='2.3')",
        )
    if backend is not None and backend not in BACKENDS:
        raise OptionError(f"backend={backend!r} is not one of {', '.join(BACKENDS)}")
    if new is not None:
        old, new = old.with_names_of(new), new.with_names_of(old)
    releases = _releases(new, flink)
    jars = _flink_jars(options.run, releases, new_classes)
    if jars is not None:
        flink, releases = jars.release, (jars.release,)
    if new is not None and new.metadata.version <= WIDEST:
        # It does not show its Kryo. If its release is not known either, the step of metadata assumes that of the old job.
        new = new.with_types(replace(new.types, kryo=kryo_of(releases) or old.types.kryo))
    known_backend, may_be_forst = backend_of(new, backend, options.config, releases)
    classes, is_assumed = None, new is None
    if new_classes is not None:
        new = with_new_classes(old, new, flink, new_classes)
        classes = NewClasses(old.types, new.types, known_backend)
    job = Job(
        backend=known_backend,
        may_be_forst=may_be_forst,
        releases=releases,
        kryo=_kryo(new, releases),
        classes=classes,
    )
    if jars is None or options.run is None or classes is None:
        return _run(Restore(old, new, job, options))
    from statetool.compatibility.running.runner import Runner  # most checks need no JVM

    runner = Runner.of(options.run, jars, classes, is_assumed=is_assumed)
    try:
        return replace(_run(Restore(old, new, job, options, runner)), run=runner.summary())
    finally:
        runner.close()


def _flink_jars(run: RunOptions | None, releases: tuple[str, ...], classes: ClassSource | None) -> FlinkJars | None:
    """Return Flink's jars if the classes of the new job are run."""
    if run is None:
        return None
    if classes is None:
        raise OptionError("--run needs the jar of the new job", hint="pass --jar-b FILE (other_jars=)")
    return find_flink_jars(run.flink_home, releases)


def _run(restore: Restore) -> Check:
    results: list[Result] = []
    steps: list[StepVerdict] = []
    for step in STEPS:
        try:
            reason = step.irrelevant(restore)
            of_step = [] if reason else list(step.run(restore))
        except NO_FINDING:
            raise
        except StatetoolError as error:
            if not any(s.step == "files" and s.status == "not" for s in steps):
                raise
            # Files are missing, as the first step says: state in them cannot be read.
            steps.append(_unread_step(step, error))
            continue
        results += of_step
        steps.append(_step_verdict(step, reason, of_step))
    whole = combine(r.resolution for r in results if isinstance(r, Found) and r.operator is None)
    operators = tuple(_operators(restore, results))
    verdict = worst([whole.level.verdict, *(o.verdict for o in operators)])
    first = next((o for o in operators if o.verdict == verdict), None)
    reason = whole.reason if whole.level.verdict == verdict != "fully" else ""
    if not reason and first is not None and verdict != "fully":
        reason = first.named_reason
    return Check(
        verdict=verdict,
        reason=reason,
        operators=operators,
        causes=whole.causes,
        snapshot_warnings=whole.warnings,
        steps=tuple(steps),
    )


def _unread_step(step: Step, error: StatetoolError) -> StepVerdict:
    finding = StepFinding(
        rule="M6", kind="unknown", operator=None, state=None, text=sentence(error.message), remedy=sentence(error.hint)
    )
    return StepVerdict(step=step.name, status="unknown", findings=(finding,))


def _step_verdict(step: Step, reason: str, results: Sequence[Result]) -> StepVerdict:
    if reason:
        return StepVerdict(step=step.name, status="not_relevant", reason=reason)
    assumptions = tuple(dict.fromkeys(r for r in results if isinstance(r, Assumption)))
    findings = tuple(f for r in results if isinstance(r, Found | StateFound) for f in findings_of(r))
    statuses: list[Status] = [*(_status(f.kind) for f in findings), *(("assumed",) if assumptions else ())]
    return StepVerdict(step=step.name, status=worst_status(statuses), assumptions=assumptions, findings=findings)


def _status(kind: Kind) -> Status:
    return "proved" if kind == "note" else kind


def _operators(restore: Restore, results: Iterable[Result]) -> Iterator[OperatorVerdict]:
    """Yield the verdict on each operator, from the results of all steps."""
    own: dict[str, list[Found]] = {}
    states: dict[str, list[StateFound]] = {}
    for result in results:
        if isinstance(result, Found) and result.operator is not None:
            own.setdefault(result.operator.state.operator_id, []).append(result)
        elif isinstance(result, StateFound):
            states.setdefault(result.operator.state.operator_id, []).append(result)
    for operator in (*restore.old.operators.values(), *restore.added):
        operator_id = operator.state.operator_id
        yield _operator_verdict(operator, own.get(operator_id, ()), states.get(operator_id, ()))


def _operator_verdict(
    operator: OperatorInventory, own: Iterable[Found], states: Iterable[StateFound]
) -> OperatorVerdict:
    resolution = combine(f.resolution for f in own)
    by_state: dict[tuple[Scope, str], list[StateVerdict]] = {}
    for state in states:
        by_state.setdefault((state.scope, state.verdict.name), []).append(state.verdict)
    verdicts = tuple(merge_verdicts(found) for found in by_state.values())
    return OperatorVerdict(
        uid=operator.label,
        verdict=worst([resolution.level.verdict, *(s.verdict for s in verdicts)]),
        reason=resolution.reason,
        remedy=resolution.remedy,
        causes=resolution.causes,
        states=verdicts,
        warnings=resolution.warnings,
        is_new=any(c.reason == STARTS_EMPTY for c in resolution.causes),
    )


def with_new_classes(old: Inventory, new: Inventory | None, flink: str | None, classes: ClassSource) -> Inventory:
    """Return the snapshot of the new job, read with its classes. Without one, return what the old job's states become with these classes.

    Parameters
    ----------
    flink
        Release of the new job. Defaults to that of the snapshot.
    """
    types = TypeContext(source=classes, tried=True, python=old.types.python)
    if new is not None:
        return new.with_types(types)
    kryo = kryo_of(_releases(old, flink)) or old.types.kryo
    return old.with_types(replace(types, kryo=kryo, renewed=True, former=old.types.source, former_kryo=old.types.kryo))


def _releases(new: Inventory | None, flink: str | None) -> tuple[str, ...]:
    """Return the releases that the new job may have, oldest first; none if neither its snapshot nor the user tells."""
    if flink is not None:
        return tuple(filter(None, [parse_release(flink).release]))
    return () if new is None else writers_of(new)


def _kryo(new: Inventory | None, releases: tuple[str, ...]) -> int | None:
    """Return the Kryo of the release if the snapshot of the new job does not show it."""
    kryo = kryo_of(releases)
    if kryo is None or (new is not None and new.types.tried):
        return None
    shown = {o.types.kryo for o in new.operators.values()} if new is not None else set()
    return None if shown == {kryo} else kryo
