"""Commands that change values or their types, by writing a new snapshot in which some states differ."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Literal

import click

import statetool
from statetool.cli.inspect import comparison_record
from statetool.cli.options import opened, pairs, type_arguments
from statetool.cli.output import Output
from statetool.cli.rewrite import rewriting, say_done
from statetool.cli.verdicts import command_line, show_comparison

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.migration.plan import MigrationPlan, StepRow


#: Differences that a dry run of ``transform`` shows.
_MOST_SHOWN: Final = 20


@click.command()
@rewriting
@click.option("--uid", required=True, help="The operator, by uid or id.")
@click.option("--set", "sets", multiple=True, required=True, metavar="STATE=SQL", help="A state and its new value.")
@click.option("--where", metavar="SQL", help="Values of other keys stay.")
@click.option(
    "--decimals",
    type=click.Choice(["decimal", "string"]),
    default="decimal",
    help="Java's big numbers as decimals of 38 digits, or as text.",
)
def transform(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    uid: str,
    sets: tuple[str, ...],
    where: str | None,
    decimals: Literal["decimal", "string"],
) -> None:
    """Write SRC to DST with values of an operator's states computed by SQL expressions; the rest stays byte for byte.

    A dry run shows what would differ, key by key.
    """
    from statetool.spark.session import local_session

    change = pairs(sets, "--set STATE=SQL", "as in --set 'balance=CAST(balance AS BIGINT)'")
    edits = opened(source, rebase, spark=local_session())[uid].transform(change, where=where, decimals=decimals)
    if dry_run:
        comparison = edits.preview()
        if form == "json":
            Output(form).record(comparison_record(comparison, _MOST_SHOWN))
        show_comparison(comparison, _MOST_SHOWN, form, command_line("source"))
    else:
        numbered = edits if checkpoint_id is None else edits.with_checkpoint_id(checkpoint_id)
        written = numbered.write(target, take_over=take_over)
        rows = [s for s in written.metadata_rows("states") if s.operator == written[uid].name]
        Output(form).rows(rows, columns=("operator", "name", "kind", "value_type"))
    say_done(target, dry_run)


@click.command()
@rewriting
@click.option("--to", "new_job", metavar="B", help="A savepoint of the new job; its state may be empty.")
@click.option("--plan", "plan_file", metavar="FILE", help="A plan, as check --plan writes it, corrected.")
@click.option("--accept", multiple=True, metavar="STEP", help="A step that loses something, by its name.")
@click.option("--rename", "renames", multiple=True, metavar="FIELD=OLD", help="The old name of a field, by its step.")
@click.option("--flink", metavar="RELEASE", help="The release that restores, such as 2.3. [default: that of B]")
def migrate(
    source: str,
    target: str,
    form: str,
    rebase: tuple[str, ...],
    dry_run: bool,
    take_over: bool,
    checkpoint_id: int | None,
    new_job: str | None,
    plan_file: str | None,
    accept: tuple[str, ...],
    renames: tuple[str, ...],
    flink: str | None,
) -> None:
    """Write SRC to DST with the types of a new job, field by field; what would lose values has to be accepted by name.

    With --to, the result is checked against B. In JSON the verdict is the last row.

    Exit code 1 if a dry run finds steps that cannot be done or are not accepted, or if the result does not restore.
    """
    savepoint = opened(source, rebase)
    job = None if new_job is None else opened(new_job, rebase)
    out = Output(form)
    rows: list[StepRow] = []

    def show(plan: MigrationPlan) -> None:
        rows.extend(plan.rows)
        if form != "json" and rows:
            out.rows(rows)
        elif not rows:
            Output.say("no state gets another type")

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
            checkpoint_id=checkpoint_id,
            dry_run=dry_run,
            take_over=take_over,
            on_plan=show,
        )
        if job is not None and not dry_run:
            checked = statetool.check(statetool.load(target, **type_arguments()), job, flink=flink)
            rows.append(_verdict_row(checked))
    finally:
        if form == "json":
            out.rows(rows)
    _report_result(plan, checked, target, new_job, dry_run=dry_run)


def _report_result(
    plan: MigrationPlan, checked: Check | None, target: str, new_job: str | None, *, dry_run: bool
) -> None:
    """Print refusals and the verdict. Exit with 1 if a step is open or the result is not known to restore."""
    for refusal in plan.refused:
        Output.say(f"refused: {refusal}")
    say_done(target, dry_run)
    if not dry_run:
        _say_verdict(checked, target, new_job)
    is_open = bool(plan.refused) or any(row.needs != "nothing" for row in plan.rows)
    restores = checked is None or checked.verdict in ("fully", "after_migration")
    if is_open or not restores:
        sys.exit(1)


def _say_verdict(checked: Check | None, target: str, new_job: str | None) -> None:
    if checked is None:
        Output.say(f"not checked: run statetool check {target} B with a savepoint of the new job")
        return
    Output.say(f"check against {new_job}: {checked.verdict}" + (f": {checked.reason}" if checked.reason else ""))
    for warning in checked.warnings:
        Output.say(f"warning: {warning}")


def _verdict_row(checked: Check) -> StepRow:
    """Return the verdict of a check on the result, as the last row of the plan."""
    from statetool.migration.plan import StepRow

    fine = checked.verdict in ("fully", "after_migration")
    return StepRow(step="check", change=checked.verdict, text=checked.reason, needs="nothing" if fine else "correction")
