"""The command that writes a snapshot for a new release and new classes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

import statetool
from statetool.cli.group import Command
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    backend_option,
    common_options,
    flink_option,
    jar_options,
    json_values,
    open_snapshots,
    pairs,
    sql_plan_options,
    start_options,
)
from statetool.cli.output import echo_err
from statetool.cli.verdicts import echo_check_of_result
from statetool.cli.write.migrate import fill_option, last_access_option, report_steps
from statetool.cli.write.rewrite import report_target, source_and_target
from statetool.errors import several

if TYPE_CHECKING:
    from statetool.api.start_options import StartOptions
    from statetool.api.write.upgrade import Upgrade
    from statetool.migration.plan import MigrationPlan, StepRow


@click.command(cls=Command)
@source_and_target
@jar_options
@sql_plan_options
@flink_option("SRC")
@backend_option
@click.option("--to", "new_job", metavar="B", help="Savepoint of the new job, if its states differ from those of SRC.")
@click.option("--accept", multiple=True, metavar="STEP", help="Step that loses values and that you accept, by name.")
@click.option("--rename", "renames", multiple=True, metavar="FIELD=OLD", help="Old name of a renamed field.")
@fill_option
@last_access_option
@start_options
@common_options(*WRITE, "uids", "name_uid")
def upgrade(
    options: CommonOptions,
    source: str,
    target: str,
    jar_a: tuple[str, ...],
    jar_b: tuple[str, ...],
    plan_a: str | None,
    plan_b: str | None,
    flink: str | None,
    backend: Literal["heap", "rocksdb", "forst"] | None,
    new_job: str | None,
    accept: tuple[str, ...],
    renames: tuple[str, ...],
    fills: tuple[str, ...],
    last_access_ms: int | None,
    start: StartOptions,
) -> None:
    """Write a snapshot for a new release and new classes.

    Checks SRC with the classes of --jar-b, converts the states that the new job would not read, writes the result to
    DST, verifies it, and checks it again before it is published. With --dry-run, only shows the steps. A job whose states have no values of
    user classes, such as most SQL jobs, needs no --jar-b.

    Exits 1 if a step is not possible or not accepted, or if the new job does not restore the result.

    Examples:
      statetool upgrade savepoint-1a2b upgraded \\
        --jar-a old.jar --jar-b new.jar --flink 2.3
      statetool upgrade savepoint-1a2b upgraded --jar-b new.jar --dry-run
      statetool upgrade sql-savepoint upgraded --flink 2.3
    """
    paths = [source] if new_job is None else [source, new_job]
    savepoint, *jobs = open_snapshots(paths, options, jars=[jar_a, jar_b], plans=[plan_a, plan_b])
    rows: list[StepRow] = []

    def show(plan: MigrationPlan) -> None:
        if not jar_b:
            echo_err("no state has values of user classes: the upgrade needs no --jar-b")
        rows.extend(plan.rows)
        report_steps(rows, options)

    try:
        upgraded = statetool.upgrade(
            savepoint,
            target,
            other_jars=jar_b,
            to=jobs[0] if jobs else None,
            flink_version=flink,
            backend=backend,
            accept=accept,
            renames=pairs(renames, "FIELD=OLD"),
            fills=json_values(fills),
            last_access_ms=last_access_ms,
            on_plan=show,
            **start,
            **options.write_arguments,
        )
    finally:
        if options.output.is_json:
            options.output.rows(rows)
    _report(upgraded, target, options)
    if not upgraded.ok:
        sys.exit(1)


def _report(upgraded: Upgrade, target: str, options: CommonOptions) -> None:
    from statetool.reporting.verdicts.check import verdict_sentence

    echo_err(f"Before: {verdict_sentence(upgraded.before, 'the snapshot')}")
    echo_err(*(f"refused: {refusal}" for refusal in upgraded.plan.refused))
    report_target(target, options)
    if upgraded.verification is not None:
        problems = upgraded.verification.problems
        echo_err(f"verify: {several(len(problems), 'problem')}", *(f"  {p}" for p in problems))
    if upgraded.after is not None:
        echo_check_of_result("After", upgraded.after)
