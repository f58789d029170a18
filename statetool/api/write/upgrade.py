"""Upgrade of a job's snapshot to new classes and a new release: check, plan, migrate, verify, and check again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.api.job_classes import classes_of, new_job_classes
from statetool.api.load import inventory_of
from statetool.api.savepoint import Savepoint
from statetool.api.start_options import StartOptions, restore_options
from statetool.api.write.migrate import release_of
from statetool.api.write.options import WriteOptions
from statetool.errors import FormatError, OptionError, UnsupportedError, several
from statetool.saving.uids import with_ids_of
from statetool.snapshot.inventory import Inventory
from statetool.tables.request import list_options
from statetool.types.declared import ClassSource, TypeContext
from statetool.types.options import name_list, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from statetool.analysis.verification.verify import Verification
    from statetool.compatibility.verdicts import Cause, Check
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.migration.plan import MigrationPlan
    from statetool.saving.forms import SnapshotForm
    from statetool.snapshot.state_tables import Scope


#: Steps of a restore that no copy of the snapshot changes: the check after the upgrade says what they leave open.
_OF_START: Final = frozenset(
    ("finished", "channels", "coordinators", "timers", "windows", "patterns", "claim", "first_checkpoint")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """Result of an upgrade.

    Attributes
    ----------
    before
        Check of the old snapshot against the new job.
    plan
        The migration that was, or in a dry run would be, carried out. ``plan.refused`` has everything that no migration mends.
    verification, after
        Verification of the new snapshot, and its check against the new job. ``None`` after a dry run.
    """

    before: Check
    plan: MigrationPlan
    verification: Verification | None = None
    after: Check | None = None

    @property
    def ok(self) -> bool:
        """Whether the new job restores the new snapshot without losses, or, after a dry run, whether nothing keeps the upgrade from being done."""
        if self.after is None or self.verification is None:
            return not self.plan.is_open
        return self.verification.ok and self.after.ok


def plan_upgrade(
    src: str | Savepoint,
    to: str | Savepoint | None = None,
    *,
    other_jars: Iterable[str | os.PathLike[str]] | None = None,
    flink_version: str | None = None,
    backend: str | None = None,
    match: str | Mapping[str, str] | None = None,
) -> MigrationPlan:
    """Plan the migration of an :func:`upgrade`, without the reasons against it that only a check finds. Parameters as there."""
    new_job = None if to is None else inventory_of(to)
    base = with_ids_of(inventory_of(src), new_job, match)
    return _plan(base, new_job, flink_version, _new_classes(other_jars, base, new_job), backend)


def _plan(
    base: Inventory, new_job: Inventory | None, flink_version: str | None, classes: ClassSource, backend: str | None
) -> MigrationPlan:
    from statetool.compatibility.check import with_new_classes
    from statetool.migration.plan import plan_migration

    # Only ForSt has asynchronous state. The savepoint of the new job shows what its states are.
    api: Literal["v1"] | None = "v1" if new_job is None and backend in ("heap", "rocksdb") else None
    new = with_new_classes(base, new_job, flink_version, classes)
    return plan_migration(base, new, api, declared={} if new_job is not None else _declared_metas(base, new))


def _declared_metas(base: Inventory, new: Inventory) -> dict[tuple[str, Scope, str], StateMetaInfo]:
    """Return the states that the code of the new job declares otherwise, by operator id, scope and name."""
    from statetool.compatibility.declared_states import declared_metas
    from statetool.compatibility.traced_states import traced_metas
    from statetool.compatibility.window_forms import CONTENTS, contents_meta

    found = declared_metas(base.operators.values(), base.types, new.types)
    for operator in base.operators.values():
        traced = traced_metas(operator, base.types, new.types)
        found = {(operator.state.operator_id, "keyed", n): m for n, m in traced.items()} | found
        if (contents := contents_meta(operator, base.types, new.types)) is not None:
            found[operator.state.operator_id, "keyed", CONTENTS] = contents
    return found


def _new_classes(
    jars: Iterable[str | os.PathLike[str]] | None, base: Inventory, new_job: Inventory | None
) -> ClassSource:
    """Return the classes of the new job, which needs no jar if no state has values of user classes."""
    from statetool.compatibility.classes.trial import user_class
    from statetool.java.classes.jar_classes import JarClasses  # most commands need no class files

    classes = new_job_classes(jars, new_job)
    if classes is None and (found := next(filter(None, map(user_class, base.operators.values())), None)):
        raise OptionError(
            f"an upgrade needs the jar of the new job: {found.place} has values of {found.name}",
            hint="pass other_jars=, or --jar-b FILE",
        )
    return classes or JarClasses(()).open()


@list_options(StartOptions, {"last_state": False})
def upgrade(
    src: str | Savepoint,
    dst: str,
    *,
    other_jars: Iterable[str | os.PathLike[str]] | None = None,
    jars: Iterable[str | os.PathLike[str]] = (),
    flink_version: str | None = None,
    backend: Literal["heap", "rocksdb", "forst"] | None = None,
    to: str | Savepoint | None = None,
    match: str | Mapping[str, str] | None = None,
    accept: Iterable[str] = (),
    renames: Mapping[str, str] | None = None,
    fills: Mapping[str, Any] | None = None,
    last_access_ms: int | None = None,
    format: Literal["same", "canonical", "native"] = "same",
    on_plan: Callable[[MigrationPlan], object] | None = None,
    dry_run: bool = False,
    take_over: bool = False,
    checkpoint_id: int | None = None,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    progress: Callable[[int], object] | None = None,
    **start: Unpack[StartOptions],
) -> Upgrade:
    """Write a copy of a snapshot that a new job restores: with the classes of its jar, in its release of Flink.

    Checks the snapshot, migrates the states whose values the new classes or the new release do not read as they are, verifies the copy, and
    checks it against the new job before it is published. States that need no migration keep their bytes.

    Parameters
    ----------
    src
        The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.
    dst
        A new directory for the savepoint: a local path or any URI that fsspec can write to.
    other_jars
        The jars of the new job. Only needed if a state has values of user classes.
    jars
        The jars of the job that wrote the snapshot, as for :func:`statetool.load`. Defaults to those with which ``src`` was opened.
    flink_version
        Flink release of the new job. Defaults to that of ``to``, or of the snapshot.
    backend
        State backend of the new job, as for :func:`statetool.check`. A native snapshot of RocksDB or ForSt needs it if ``to`` is not given.
    to
        A savepoint of the new job. Without one, the new job has the states of the old one.
    match
        Which operators of the new job have other ids: ``"auto"`` matches those with evidence that fits no other operator
        (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.
    accept
        Names of steps, from the plan's ``rows``.
    renames
        Old field names by new ones: ``{"orders.totals.value.city": "town"}``.
    fills
        Values of added fields, as in JSON: ``{"orders.totals.value.count": 0}``.
    last_access_ms
        Last access of values that get a time to live, in epoch milliseconds.
    format
        ``"native"`` writes all keyed state in the files of a backend. ``"same"`` writes state that changes in the format that its operator
        has, of databases, of the heap backend, or canonical.
    on_plan
        Called with the plan before anything is written.
    dry_run
        Only plan, without writing.
    take_over
        Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By default,
        statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another machine.
    checkpoint_id
        Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from
        several.
    spark
        Session to run on. Without one, threads of this process are used.
    uids
        Uids of operators whose uid the snapshot does not store, if it is given as a path.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path.
    progress
        Called with the number of bytes processed (not on Spark).
    config
        The Flink configuration of the new job: a file, or the URL of a job or JobManager.
    parallelism, max_parallelism
        Those of the new job. Default to those of its savepoint.
    claim_mode
        Default to that of ``config``.
    allow_non_restored
        State that the new job does not have is left out (``--allowNonRestoredState``). Defaults to the setting in ``config``.
    last_state
        The job starts from its high-availability data (``upgradeMode: last-state``).
    map_uids
        Uids or ids of operators, and those that they have in the new job (``setUidHash``).
    graph
        The job graph of the new job: a file with the answer of ``/jobs/<id>/plan``, or the URL of the job.

    Raises
    ------
    OptionError
        A state has values of a user class, and ``other_jars`` is empty.
    TargetExistsError
        ``dst`` exists, or another write to it may still be running.
    UnsupportedError
        Something cannot be migrated, or a step was not accepted. (A dry run reports this in its plan instead.) Or the new job would not restore
        the copy. Nothing was published.
    FormatError
        The copy would be damaged. Nothing was published.
    EncodeError
        The new type cannot hold a value exactly. The error names the value's key.
    """
    from statetool.analysis.verification.verify import verify_inventory
    from statetool.compatibility.check import check_inventories

    started = restore_options(**start)
    options = WriteOptions.of(locals())
    form = _form_of(format, backend)
    base, new_job = _sides(options.open(src, dst), to, jars, match)
    classes = _new_classes(other_jars, base, new_job)
    if new_job is not None:
        options.check_target(new_job, dst)
        base, new_job = base.with_names_of(new_job), new_job.with_names_of(base)
    before = check_inventories(base, new_job, flink_version, backend, classes, started)
    plan = _plan(base, new_job, flink_version, classes, backend).renaming(renames or {}).filling(fills or {})
    plan = _try_conversions(plan, base, last_access_ms, accept)
    plan = replace(plan, refused=tuple(dict.fromkeys((*plan.refused, *_not_mended(before, plan, base.path, form)))))
    if on_plan is not None:
        on_plan(plan)
    done = Upgrade(before=before, plan=plan)
    if dry_run and plan.is_open:
        return done
    plan.check()

    def prove() -> None:
        nonlocal done
        staged = Inventory(dst, uids=base.given_uids, types=TypeContext(source=classes))
        verification = verify_inventory(staged, Execution(spark).map, deep=True, allow_unread=True)
        after = check_inventories(staged, new_job, flink_version, backend, classes, started)
        done = replace(done, verification=verification, after=after)
        _check_proof(verification, after)

    release = flink_version or release_of(plan, base)
    options.write(base, dst, flink_version=release, prove=prove, changes=plan.changes, form=form)
    return done


def _sides(
    base: Inventory,
    to: str | Savepoint | None,
    jars: Iterable[str | os.PathLike[str]],
    match: str | Mapping[str, str] | None,
) -> tuple[Inventory, Inventory | None]:
    """Return the snapshot with the classes of its job and the ids of the new one, and the snapshot of the new job."""
    old_classes = classes_of(name_list("jars", jars))
    new_job = None if to is None else inventory_of(to)
    if old_classes:
        base = base.with_types(replace(base.types, source=old_classes))
    return with_ids_of(base, new_job, match), new_job


def _form_of(format: str, backend: str | None) -> SnapshotForm:
    """Return the form of keyed state. The backend is that of the new job, in the canonical format too."""
    from statetool.saving.forms import parse_form

    return parse_form(format, backend if format == "native" else None)


def _try_conversions(
    plan: MigrationPlan, base: Inventory, last_access_ms: int | None, accept: Iterable[str]
) -> MigrationPlan:
    """Return the plan with the choices of the user, and the failures of its conversions."""
    from statetool.migration.trial import try_conversions

    if last_access_ms is not None:
        plan = plan.with_last_access(whole_number("last_access_ms", last_access_ms, least=0))
    return try_conversions(plan.accepting(tuple(accept)), base)


def _check_proof(verification: Verification, after: Check) -> None:
    """Refuse to publish an upgraded snapshot that is damaged, or that the new job does not restore."""
    errors = [p for p in verification.problems if p.severity == "error"]
    if errors:
        more = f" (and {several(len(errors) - 1, 'more problem')})" if len(errors) > 1 else ""
        raise FormatError(
            f"the upgraded snapshot would be damaged: {errors[0]}{more}",
            hint="nothing was published; verify SRC (statetool verify SRC --deep): if it has no such problem, report this as a bug",
        )
    if after.verdict == "not":
        raise UnsupportedError(
            f"the new job would not restore the upgraded snapshot: {after.reason}", hint="nothing was published"
        )


def _way_on(cause: Cause, path: str) -> str:
    """Return what to do about a cause. State that is refused is never left out unasked, so only another name is suggested."""
    from statetool.compatibility.verdicts import A, Level

    if cause.remedy is None:
        return ""
    if cause.remedy.command[:1] == ("uid",):
        return str(replace(cause.remedy, command=tuple(path if word is A else word for word in cause.remedy.command)))
    return cause.remedy.text if cause.level is Level.UNKNOWN else ""


def _not_mended(check: Check, plan: MigrationPlan, path: str, form: SnapshotForm) -> Iterator[str]:
    """Yield the reasons of the check that no step of the plan mends."""
    from statetool.compatibility.verdicts import Level
    from statetool.migration.conversion import are_of_both_apis
    from statetool.types.operators import display_name

    of_start = {f.text for step in check.steps if step.step in _OF_START for f in step.findings if f.kind != "not"}
    # The copy is written for the release, and its native form for the backend.
    mended = {"M1", "M2", "M5"} if form in ("canonical", "same") else {"M1", "M2", "M5", "V1"}
    of_start |= {f.text for step in check.steps for f in step.findings if f.rule in mended}
    # Asynchronous state is written as state of the API that the job has.
    converted = {str(s.uid) for s in plan.states if are_of_both_apis(s.conversion.old, s.conversion.meta)}
    of_api = (f for step in check.steps for f in step.findings if f.rule in ("V3", "V6"))
    of_start |= {f.text for f in of_api if f.operator in converted}
    if any(c.level >= Level.UNKNOWN and c.reason not in of_start for c in check.causes):
        yield check.reason
    yield from (f"{s.name}: {s.failure}" for s in plan.states if s.failure)
    planned = {(s.uid, s.state) for s in plan.states}
    for operator in check.operators:
        name = display_name(operator.uid)
        # The key of an operator, and its successor.
        causes = [c for c in operator.causes if c.level >= Level.UNKNOWN and c.reason not in of_start]
        lost = [w for w in operator.warnings if w.kind == "loses" and w.message not in of_start]
        if causes or lost:
            remedies = [_way_on(c, path) for c in causes if c.remedy is not None]
            reason = " ".join(dict.fromkeys(c.text for c in causes)) or " ".join(w.message for w in lost)
            yield " ".join((f"{name}: {reason}", *dict.fromkeys(filter(None, remedies))))
        for state in operator.states:
            if state.verdict in ("not", "unknown") and (operator.uid, state.name) not in planned:
                yield f"{name}.{state.name}: {state.reason}"
