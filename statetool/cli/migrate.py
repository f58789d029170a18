"""Commands that change values or their types, by writing a new snapshot in which some states differ."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import click

import statetool
from statetool.cli.group import Command
from statetool.cli.inspect import comparison_record
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    common_options,
    flink_option,
    jar_options,
    load_snapshot,
    open_snapshot,
    open_snapshots,
    operator_option,
    pairs,
)
from statetool.cli.output import echo_err
from statetool.cli.rewrite import report_target, source_and_target
from statetool.cli.verdicts import command_line, show_comparison

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.migration.plan import MigrationPlan, StepRow

#: Number of differences that a dry run of ``transform`` shows.
_MAX_SHOWN: Final = 20


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
@common_options(*WRITE, "columns_from_plan")
def transform(
    options: CommonOptions,
    source: str,
    target: str,
    uid: str,
    sets: tuple[str, ...],
    where: str | None,
    decimals: Literal["decimal", "string"],
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
    edits = savepoint[uid].transform(change, where=where, decimals=decimals)
    if options.dry_run:
        comparison = edits.preview()
        if options.output.is_json:
            options.output.record(comparison_record(comparison, _MAX_SHOWN))
        show_comparison(comparison, _MAX_SHOWN, options.output.form, command_line("source"))
    else:
        numbered = edits if options.checkpoint_id is None else edits.with_checkpoint_id(options.checkpoint_id)
        written = numbered.write(target, take_over=options.take_over)
        rows = [s for s in written.metadata_rows("states") if s.operator == written[uid].name]
        options.output.rows(rows, columns=("operator", "name", "kind", "value_type"))
    report_target(target, options)


@click.command(cls=Command)
@source_and_target
@click.option("--to", "new_job", metavar="B", help="Savepoint of the new job; its state may be empty.")
@click.option("--plan", "plan_file", metavar="FILE", help="Plan to run, from statetool check --plan FILE.")
@click.option("--accept", multiple=True, metavar="STEP", help="Step that loses values and that you accept, by name.")
@click.option("--rename", "renames", multiple=True, metavar="FIELD=OLD", help="Old name of a renamed field.")
@flink_option
@jar_options
@common_options(*WRITE)
def migrate(
    options: CommonOptions,
    source: str,
    target: str,
    new_job: str | None,
    plan_file: str | None,
    accept: tuple[str, ...],
    renames: tuple[str, ...],
    flink: str | None,
    jar_a: tuple[str, ...],
    jar_b: tuple[str, ...],
) -> None:
    """Convert states to the types of a new job.

    Writes a copy of SRC with converted values to DST. Accept steps that lose values with --accept. With --to, statetool
    checks whether the new job restores the result. With --json, the verdict is the last row.

    Exits 1 if a step of a dry run is not possible or not accepted, or if the result does not restore.

    Examples:
      statetool migrate savepoint-1a2b migrated --to savepoint-of-new-job
      statetool migrate savepoint-1a2b migrated --plan plan.json
    """
    paths = [source] if new_job is None else [source, new_job]
    savepoint, *jobs = open_snapshots(paths, options, jars=[jar_a, jar_b])
    job = jobs[0] if jobs else None
    output = options.output
    rows: list[StepRow] = []

    def show(plan: MigrationPlan) -> None:
        rows.extend(plan.rows)
        report_steps(rows, options)

    checked = None
    try:
        plan = statetool.migrate(
            savepoint,
            target,
            to=job,
            plan=plan_file,
            accept=accept,
            renames=pairs(renames, "FIELD=OLD"),
            flink_version=flink,
            on_plan=show,
            **options.write_arguments,
        )
        if job is not None and not options.dry_run:
            written = load_snapshot(target, replace(options, rebase={}, jar=jar_b or options.jar))
            checked = statetool.check(written, job, flink=flink, other_jars=jar_b)
            rows.append(_verdict_row(checked))
    finally:
        if output.is_json:
            output.rows(rows)
    _report_result(plan, checked, target, new_job, options)


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
    if not options.dry_run:
        _print_verdict(checked, target, new_job)
    is_open = bool(plan.refused) or any(row.needs != "nothing" for row in plan.rows)
    restores = checked is None or checked.verdict in ("fully", "after_migration")
    if is_open or not restores:
        sys.exit(1)


def _print_verdict(checked: Check | None, target: str, new_job: str | None) -> None:
    if checked is None:
        echo_err(f"not checked (run: statetool check {target} B, where B is a savepoint of the new job)")
        return
    echo_err(f"check against {new_job}: {checked.verdict}" + (f": {checked.reason}" if checked.reason else ""))
    echo_err(*(f"warning: {warning}" for warning in checked.warnings))


def _verdict_row(checked: Check) -> StepRow:
    """Return the verdict of a check on the result, as the last row of the plan."""
    from statetool.migration.plan import StepRow

    fine = checked.verdict in ("fully", "after_migration")
    return StepRow(step="check", change=checked.verdict, text=checked.reason, needs="nothing" if fine else "correction")
