"""Commands that change values or their types, by writing a new snapshot in which some states differ."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.api.write.verbs import migrate as verbs
from statetool.api.write.verbs.values import Transform
from statetool.cli.group import Command
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    common_options,
    jar_options,
    load_snapshot,
    open_snapshots,
    sql_plan_options,
)
from statetool.cli.output import echo_err
from statetool.cli.read.inspect import comparison_record
from statetool.cli.verb import open_given, report_target, run_verb, verb_options
from statetool.cli.verdicts import command_line, echo_check_of_result, show_comparison
from statetool.errors import OptionError, StatetoolError
from statetool.saving.uids import changes_of_match, id_and_uid, with_ids_of
from statetool.snapshot.metadata_tables import operator_row
from statetool.types.operators import OperatorLabel

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.migration.plan import MigrationPlan, StepRow

#: Verdicts on a result that the new job restores.
_RESTORED: Final = ("fully", "after_migration")
#: Number of differences that a dry run of ``transform`` shows.
_MAX_SHOWN: Final = 20
#: Bytes of an operator's state that ``transform`` reads again, to say that nothing changed.
_MOST_COMPARED: Final = 64 << 20


@click.command(cls=Command)
@verb_options(Transform)
@common_options(*WRITE, "columns_from_plan")
def transform(options: CommonOptions, given: Transform) -> None:
    """Change values of states with SQL expressions.

    Writes a changed copy of SRC to DST. Everything that you do not change keeps its bytes. With --dry-run, only shows
    the differences, key by key. Runs on Spark.

    Examples:
      statetool transform savepoint-1a2b rounded --uid orders \\
        --set 'balance=ROUND(balance, 2)' --dry-run
    """
    from statetool.spark.session import local_session

    savepoint = open_given(given, options, [given.uid])[0].with_session(local_session())
    edits = savepoint[given.uid].transform(
        given.change, where=given.where, decimals=given.decimals, allow_missing=given.allow_missing
    )
    if options.checkpoint_id is not None:
        edits = edits.with_checkpoint_id(options.checkpoint_id)
    if options.dry_run:
        comparison = edits.preview(
            target=given.dst, take_over=options.take_over, format=given.format, backend=given.backend
        )
        if options.output.is_json:
            options.output.record(comparison_record(comparison, _MAX_SHOWN))
        show_comparison(comparison, _MAX_SHOWN, options.output.form, command_line("src"))
        is_changed = not comparison.equal
    else:
        written = edits.write(given.dst, take_over=options.take_over, format=given.format, backend=given.backend)
        rows = [s for s in written.metadata_rows("states") if s.operator == written[given.uid].name]
        options.output.rows(rows, columns=("operator", "name", "kind", "value_type"))
        is_changed = not _is_equal(savepoint, written, given.uid)
    report_target(given.dst, options, is_changed=is_changed)


def _is_equal(before: statetool.Savepoint, after: statetool.Savepoint, uid: str) -> bool:
    """Return True if the small state of an operator is the same. The write has ended, so nothing that cannot be compared is an error."""
    if operator_row(before[uid].inventory).state_bytes > _MOST_COMPARED:
        return False
    with suppress(StatetoolError):
        return before.diff(after, operators=[uid]).equal
    return False


def read_last_access(value: str) -> int:
    """Return the epoch milliseconds of ``--last-access``."""
    if value == "now":
        return int(time.time() * 1000)
    if not value.isdecimal():
        raise OptionError(f"--last-access {value} is no number of milliseconds, and not now")
    return int(value)


@click.command(cls=Command)
@verb_options(verbs.Migrate, last_access_ms=read_last_access)
@sql_plan_options
@jar_options
@common_options(*WRITE)
def migrate(options: CommonOptions, given: verbs.Migrate, **files: Any) -> None:
    """Convert states to the types of a new job.

    Writes a copy of SRC with converted values to DST. Accept steps that lose values with --accept. With --to, statetool
    checks whether the new job restores the result before it is published. With --json, the verdict is the last row.

    Exits 1 if a step of a dry run is not possible or not accepted, or if the result is not known to restore. A result
    with a converted state that does not restore is not published. With --to, a dry run checks what stays as it is.
    With --match, operators get the ids that they have in the new job.

    Examples:
      statetool migrate savepoint-1a2b migrated --to savepoint-of-new-job
      statetool migrate savepoint-1a2b migrated --to new-savepoint --match auto
      statetool migrate savepoint-1a2b migrated --plan plan.json
    """
    of = _FilesOfJobs(**files)
    jars, plans = [of.jar_a, of.jar_b], [of.plan_a, of.plan_b]
    paths: list[Any] = [given.src, *_new_jobs(given)]
    savepoint, *jobs = open_snapshots(paths, options, jars=jars, plans=plans)
    _run(given, options, savepoint, jobs, of, src=savepoint)


@click.command(cls=Command)
@verb_options(verbs.CatchUp, last_access_ms=read_last_access)
@sql_plan_options
@jar_options
@common_options(*WRITE, "on_spark")
def catch_up(options: CommonOptions, given: verbs.CatchUp, **files: Any) -> None:
    """Migrate a savepoint, reusing the migration of an older one.

    Writes the same to DST as migrate for B. MIGRATED is the result of migrate for A, an older savepoint of the job, with
    the same plan and options. Only state that changed between A and B is converted. With --to, statetool checks whether the new
    job restores the result before it is published.

    Exits 1 if a step of a dry run is not possible or not accepted, or if the result is not known to restore. A result
    with a converted state that does not restore is not published. With --to, a dry run checks what stays as it is.

    Examples:
      statetool catch-up migrated savepoint-1a2b savepoint-9f8e upgraded \\
        --to savepoint-of-new-job
    """
    of = _FilesOfJobs(**files)
    paths = [given.after, given.before, given.migrated, *_new_jobs(given)]
    jars, plans = [of.jar_a, of.jar_a, of.jar_b, of.jar_b], [of.plan_a, of.plan_a, of.plan_b, of.plan_b]
    after, before, migrated, *jobs = open_snapshots(paths, options, jars=jars, plans=plans)
    _run(given, options, after, jobs, of, migrated=migrated, before=before, after=after)


@dataclass(frozen=True, slots=True)
class _FilesOfJobs:
    """Values of :func:`jar_options` and :func:`sql_plan_options`."""

    jar_a: tuple[str, ...]
    jar_b: tuple[str, ...]
    plan_a: str | None
    plan_b: str | None


def _new_jobs(given: verbs.MigrationChoices) -> list[Any]:
    """Return the path of the savepoint of the new job, if any."""
    return [] if given.to is None else [given.to]


def _run(
    given: verbs.Migrate | verbs.CatchUp,
    options: CommonOptions,
    source: statetool.Savepoint,
    jobs: Sequence[statetool.Savepoint],
    of: _FilesOfJobs,
    **opened: statetool.Savepoint,
) -> None:
    """Convert states, show the steps, and check the staged result against the new job. A dry run checks what stays as it is in the source."""
    job = jobs[0] if jobs else None
    output = options.output
    rows: list[StepRow] = []
    checked: Check | None = None
    check_new = partial(statetool.check, flink_version=given.flink_version, other_jars=of.jar_b)
    migrated: set[tuple[str, str]] = set()
    match = find_partners(source, job, given.match)

    def show(plan: MigrationPlan) -> None:
        migrated.update((_operator_id(s.uid), s.state) for s in plan.states)
        rows.extend(plan.rows)
        report_steps(rows, options)

    def check() -> None:
        nonlocal checked
        if job is None:
            return
        as_new = replace(options, rebase={}, jar=of.jar_b or options.jar, columns_from_plan=of.plan_b)
        if match is not None:  # the given uids are those of the old job
            as_new = replace(as_new, uids=(), name_uid=())
        checked = check_new(load_snapshot(given.dst, as_new), job)
        rows.append(_verdict_row(checked))
        refused = {(_operator_id(o.uid), s.name) for o in checked.operators for s in o.states if s.verdict == "not"}
        if migrated & refused:
            raise _NotRestoredError

    try:
        plan = run_verb(given, options, to=job, match=match, on_plan=show, on_staged=check, **opened)
        if options.dry_run and job is not None:
            checked = _check_of_unchanged(check_new(source, job, match=match), migrated)
            rows.extend([] if checked is None else [_verdict_row(checked)])
    except _NotRestoredError:
        _print_verdict(checked, given)
        echo_err(f"nothing was published to {given.dst}: the new job does not restore a converted state")
        sys.exit(1)
    finally:
        if output.is_json:
            output.rows(rows)
    _report_result(plan, checked, given, options)


def _operator_id(uid: str) -> str:
    """Return the id of an operator, which is the same in all snapshots whether they store its uid or not."""
    return uid.operator_id if isinstance(uid, OperatorLabel) else id_and_uid(uid)[0]


def find_partners(
    source: statetool.Savepoint, job: statetool.Savepoint | None, match: str | Mapping[str, str] | None
) -> dict[str, str] | None:
    """Return the new uids or ids by old ones for ``--match``, and say which operator of A is which of the new job."""
    if match is None:
        return None
    new = None if job is None else job.inventory
    changes = changes_of_match(source.inventory, new, match)
    copy = with_ids_of(source.inventory, new, changes)
    copy = copy if new is None else copy.with_names_of(new)
    echo_err(*(f"other id: {label.display}" for label in copy.labels if label.former is not None))
    return changes


class _NotRestoredError(Exception):
    """The new job does not restore a converted state of the staged result."""


def report_steps(rows: list[StepRow], options: CommonOptions) -> None:
    """Print the steps of a plan, unless stdout has JSON."""
    if not options.output.is_json and rows:
        options.output.rows(rows)
    elif not rows:
        echo_err("no state changes its type")


def _report_result(
    plan: MigrationPlan, checked: Check | None, given: verbs.Migrate | verbs.CatchUp, options: CommonOptions
) -> None:
    """Print refusals and the verdict. Exit with 1 if a step is open or the result is not known to restore."""
    echo_err(*(f"refused: {refusal}" for refusal in plan.refused))
    report_target(given.dst, options)
    if checked is not None or not options.dry_run:
        _print_verdict(checked, given)
    if plan.is_open or not (checked is None or checked.verdict in _RESTORED):
        sys.exit(1)


def _check_of_unchanged(checked: Check, migrated: Set[tuple[str, str]]) -> Check | None:
    """Return what is not restored of the source and what a migration of some states leaves as it is, ``None`` if there is nothing."""
    if checked.verdict in _RESTORED:
        return None
    left = []
    for operator in checked.operators:
        failed = [(_operator_id(operator.uid), s.name) for s in operator.states if s.verdict not in _RESTORED]
        if operator.verdict not in _RESTORED and not (failed and migrated >= set(failed)):
            left.append(operator)
    of_states = any(o.verdict not in _RESTORED for o in checked.operators)
    if of_states and not left:
        return None
    verdict, reason = (left[0].verdict, left[0].named_reason) if left else (checked.verdict, checked.reason)
    return replace(checked, verdict=verdict, reason=reason, operators=tuple(left))


def _print_verdict(checked: Check | None, given: verbs.Migrate | verbs.CatchUp) -> None:
    if checked is None:
        echo_err(f"not checked (run: statetool check {given.dst} B, where B is a savepoint of the new job)")
        return
    echo_check_of_result(f"Checked against {given.to}", checked)


def _verdict_row(checked: Check) -> StepRow:
    """Return the verdict of a check on the result, as the last row of the plan."""
    from statetool.migration.plan import StepRow

    fine = checked.verdict in _RESTORED
    return StepRow(step="check", change=checked.verdict, text=checked.reason, needs="nothing" if fine else "correction")
