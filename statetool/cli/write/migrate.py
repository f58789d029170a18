"""Commands that change values or their types, by writing a new snapshot in which some states differ."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    common_options,
    flink_option,
    jar_options,
    json_values,
    load_snapshot,
    open_snapshot,
    open_snapshots,
    operator_option,
    pairs,
    sql_plan_options,
)
from statetool.cli.output import echo_err
from statetool.cli.read.inspect import comparison_record
from statetool.cli.verdicts import command_line, echo_check_of_result, show_comparison
from statetool.cli.write.rewrite import report_target, source_and_target
from statetool.errors import OptionError, StatetoolError
from statetool.snapshot.metadata_tables import operator_row

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
@source_and_target
@operator_option("Operator to change, by uid, name or operator id.", required=True)
@click.option("--set", "sets", multiple=True, required=True, metavar="STATE=SQL", help="New value of a state.")
@click.option("--where", metavar="SQL", help="Condition for keys to change. Other keys keep their values.")
@click.option(
    "--decimals",
    type=click.Choice(["decimal", "string"]),
    default="decimal",
    show_default=True,
    help="Type of BigDecimal and BigInteger in SQL: decimals with 38 digits, or text.",
)
@click.option("--allow-missing", is_flag=True, help="Go on if no key fulfills the condition.")
@common_options(*WRITE, "columns_from_plan")
def transform(
    options: CommonOptions,
    source: str,
    target: str,
    uid: str,
    sets: tuple[str, ...],
    where: str | None,
    decimals: Literal["decimal", "string"],
    allow_missing: bool,
) -> None:
    """Change values of states with SQL expressions.

    Writes a changed copy of SRC to DST. Everything that you do not change keeps its bytes. With --dry-run, only shows
    the differences, key by key. Runs on Spark.

    Examples:
      statetool transform savepoint-1a2b rounded --uid orders \\
        --set 'balance=ROUND(balance, 2)' --dry-run
    """
    from statetool.spark.session import local_session

    change = pairs(sets, "--set STATE=SQL", "as in --set 'balance=CAST(balance AS BIGINT)'")
    savepoint = open_snapshot(source, options, operators=[uid], spark=local_session())
    edits = savepoint[uid].transform(change, where=where, decimals=decimals, allow_missing=allow_missing)
    if options.checkpoint_id is not None:
        edits = edits.with_checkpoint_id(options.checkpoint_id)
    if options.dry_run:
        comparison = edits.preview(target=target, take_over=options.take_over)
        if options.output.is_json:
            options.output.record(comparison_record(comparison, _MAX_SHOWN))
        show_comparison(comparison, _MAX_SHOWN, options.output.form, command_line("source"))
        is_changed = not comparison.equal
    else:
        written = edits.write(target, take_over=options.take_over)
        rows = [s for s in written.metadata_rows("states") if s.operator == written[uid].name]
        options.output.rows(rows, columns=("operator", "name", "kind", "value_type"))
        is_changed = not _is_equal(savepoint, written, uid)
    report_target(target, options, is_changed=is_changed)


def _is_equal(before: statetool.Savepoint, after: statetool.Savepoint, uid: str) -> bool:
    """Return True if the small state of an operator is the same. The write has ended, so nothing that cannot be compared is an error."""
    if operator_row(before[uid].inventory).state_bytes > _MOST_COMPARED:
        return False
    with suppress(StatetoolError):
        return before.diff(after, operators=[uid]).equal
    return False


def fill_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--fill``."""
    help = "Value of a new field, as JSON."
    return click.option("--fill", "fills", multiple=True, metavar="FIELD=JSON", help=help)(command)


def last_access_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--last-access``, in epoch milliseconds."""
    return click.option(
        "--last-access",
        "last_access_ms",
        metavar="MS|now",
        callback=_read_last_access,
        help="Last access of values that get a time to live: epoch milliseconds, or now, as Flink 2 does.",
    )(command)


def _read_last_access(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    if value == "now":
        return int(time.time() * 1000)
    if not value.isdecimal():
        raise OptionError(f"--last-access {value} is no number of milliseconds, and not now")
    return int(value)


def _migration_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a migration: its plan, and the choices of the user."""
    for option in (
        jar_options,
        sql_plan_options,
        flink_option("JOB"),
        fill_option,
        last_access_option,
        click.option("--rename", "renames", multiple=True, metavar="FIELD=OLD", help="Old name of a renamed field."),
        click.option(
            "--accept", multiple=True, metavar="STEP", help="Step that loses values and that you accept, by name."
        ),
        click.option(
            "--plan", "plan_file", metavar="FILE", help="Plan to run, from statetool check --write-plan FILE."
        ),
        click.option("--to", "new_job", metavar="JOB", help="Savepoint of the new job; its state may be empty."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class _Choices:
    """Values of :func:`_migration_options`."""

    new_job: str | None
    plan_file: str | None
    accept: tuple[str, ...]
    renames: tuple[str, ...]
    fills: tuple[str, ...]
    last_access_ms: int | None
    flink: str | None
    jar_a: tuple[str, ...]
    jar_b: tuple[str, ...]
    plan_a: str | None
    plan_b: str | None

    @property
    def paths(self) -> list[str]:
        """Path of the savepoint of the new job, if any."""
        return [] if self.new_job is None else [self.new_job]


@click.command(cls=Command)
@source_and_target
@_migration_options
@common_options(*WRITE)
def migrate(options: CommonOptions, source: str, target: str, **choices: Any) -> None:
    """Convert states to the types of a new job.

    Writes a copy of SRC with converted values to DST. Accept steps that lose values with --accept. With --to, statetool
    checks whether the new job restores the result before it is published. With --json, the verdict is the last row.

    Exits 1 if a step of a dry run is not possible or not accepted, or if the result is not known to restore. A result
    with a converted state that does not restore is not published. With --to, a dry run checks what stays as it is.

    Examples:
      statetool migrate savepoint-1a2b migrated --to savepoint-of-new-job
      statetool migrate savepoint-1a2b migrated --plan plan.json
    """
    chosen = _Choices(**choices)
    jars, plans = [chosen.jar_a, chosen.jar_b], [chosen.plan_a, chosen.plan_b]
    savepoint, *jobs = open_snapshots([source, *chosen.paths], options, jars=jars, plans=plans)
    _run(partial(statetool.migrate, savepoint), savepoint, target, jobs, chosen, options)


@click.command(cls=Command)
@click.argument("migrated", metavar="MIGRATED", shell_complete=complete_path)
@click.argument("first", metavar="A", shell_complete=complete_path)
@click.argument("second", metavar="B", shell_complete=complete_path)
@click.argument("target", metavar="DST", shell_complete=complete_path)
@_migration_options
@common_options(*WRITE, "on_spark")
def catch_up(options: CommonOptions, migrated: str, first: str, second: str, target: str, **choices: Any) -> None:
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
    chosen = _Choices(**choices)
    paths = [second, first, migrated, *chosen.paths]
    jars = [chosen.jar_a, chosen.jar_a, chosen.jar_b, chosen.jar_b]
    plans = [chosen.plan_a, chosen.plan_a, chosen.plan_b, chosen.plan_b]
    after, before, done, *jobs = open_snapshots(paths, options, jars=jars, plans=plans)
    convert = partial(statetool.catch_up, done, before, after, spark=options.spark)
    _run(convert, after, target, jobs, chosen, options)


def _run(
    convert: Callable[..., MigrationPlan],
    source: statetool.Savepoint,
    target: str,
    jobs: Sequence[statetool.Savepoint],
    chosen: _Choices,
    options: CommonOptions,
) -> None:
    """Convert states, show the steps, and check the staged result against the new job. A dry run checks what stays as it is in the source."""
    job = jobs[0] if jobs else None
    output = options.output
    rows: list[StepRow] = []
    checked: Check | None = None

    migrated: set[tuple[str, str]] = set()

    def show(plan: MigrationPlan) -> None:
        migrated.update((s.uid, s.state) for s in plan.states)
        rows.extend(plan.rows)
        report_steps(rows, options)

    def check() -> None:
        nonlocal checked
        if job is None:
            return
        as_new = replace(options, rebase={}, jar=chosen.jar_b or options.jar, columns_from_plan=chosen.plan_b)
        checked = statetool.check(load_snapshot(target, as_new), job, flink=chosen.flink, other_jars=chosen.jar_b)
        rows.append(_verdict_row(checked))
        refused = {(o.uid, s.name) for o in checked.operators for s in o.states if s.verdict == "not"}
        if migrated & refused:
            raise _NotRestoredError

    try:
        plan = convert(
            dst=target,
            to=job,
            plan=chosen.plan_file,
            accept=chosen.accept,
            renames=pairs(chosen.renames, "FIELD=OLD"),
            fills=json_values(chosen.fills),
            last_access_ms=chosen.last_access_ms,
            flink_version=chosen.flink,
            on_plan=show,
            on_staged=check,
            **options.write_arguments,
        )
        if options.dry_run and job is not None:
            before = statetool.check(source, job, flink=chosen.flink, other_jars=chosen.jar_b)
            checked = _check_of_unchanged(before, migrated)
            rows.extend([] if checked is None else [_verdict_row(checked)])
    except _NotRestoredError:
        _print_verdict(checked, target, chosen.new_job)
        echo_err(f"nothing was published to {target}: the new job does not restore a converted state")
        sys.exit(1)
    finally:
        if output.is_json:
            output.rows(rows)
    _report_result(plan, checked, target, chosen.new_job, options)


class _NotRestoredError(Exception):
    """The new job does not restore a converted state of the staged result."""


def report_steps(rows: list[StepRow], options: CommonOptions) -> None:
    """Print the steps of a plan, unless stdout has JSON."""
    if not options.output.is_json and rows:
        options.output.rows(rows)
    elif not rows:
        echo_err("no state changes its type")


def _report_result(
    plan: MigrationPlan, checked: Check | None, target: str, new_job: str | None, options: CommonOptions
) -> None:
    """Print refusals and the verdict. Exit with 1 if a step is open or the result is not known to restore."""
    echo_err(*(f"refused: {refusal}" for refusal in plan.refused))
    report_target(target, options)
    if checked is not None or not options.dry_run:
        _print_verdict(checked, target, new_job)
    if plan.is_open or not (checked is None or checked.verdict in _RESTORED):
        sys.exit(1)


def _check_of_unchanged(checked: Check, migrated: Set[tuple[str, str]]) -> Check | None:
    """Return what is not restored of the source and what a migration of some states leaves as it is, ``None`` if there is nothing."""
    if checked.verdict in _RESTORED:
        return None
    left = []
    for operator in checked.operators:
        failed = [(operator.uid, s.name) for s in operator.states if s.verdict not in _RESTORED]
        if operator.verdict not in _RESTORED and not (failed and migrated >= set(failed)):
            left.append(operator)
    of_states = any(o.verdict not in _RESTORED for o in checked.operators)
    if of_states and not left:
        return None
    verdict, reason = (left[0].verdict, left[0].named_reason) if left else (checked.verdict, checked.reason)
    return replace(checked, verdict=verdict, reason=reason, operators=tuple(left))


def _print_verdict(checked: Check | None, target: str, new_job: str | None) -> None:
    if checked is None:
        echo_err(f"not checked (run: statetool check {target} B, where B is a savepoint of the new job)")
        return
    echo_check_of_result(f"Checked against {new_job}", checked)


def _verdict_row(checked: Check) -> StepRow:
    """Return the verdict of a check on the result, as the last row of the plan."""
    from statetool.migration.plan import StepRow

    fine = checked.verdict in _RESTORED
    return StepRow(step="check", change=checked.verdict, text=checked.reason, needs="nothing" if fine else "correction")
