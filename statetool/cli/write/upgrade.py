"""The command that writes a snapshot for a new release and new classes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from statetool.api.write.verbs import migrate as verbs
from statetool.cli.group import Command
from statetool.cli.options import (
    WRITE,
    CommonOptions,
    common_options,
    jar_options,
    open_snapshots,
    sql_plan_options,
    start_options,
)
from statetool.cli.output import echo_err
from statetool.cli.verb import report_target, run_verb, verb_options
from statetool.cli.verdicts import echo_check_of_result
from statetool.cli.write.migrate import find_partners, read_last_access, report_steps
from statetool.errors import several

if TYPE_CHECKING:
    from statetool.api.start_options import StartOptions
    from statetool.api.write.upgrade import Upgrade
    from statetool.migration.plan import MigrationPlan, StepRow


@click.command(cls=Command)
@jar_options
@sql_plan_options
@verb_options(verbs.Upgrade, last_access_ms=read_last_access)
@start_options
@common_options(*WRITE, "uids", "name_uid")
def upgrade(
    options: CommonOptions,
    given: verbs.Upgrade,
    start: StartOptions,
    jar_a: tuple[str, ...],
    jar_b: tuple[str, ...],
    plan_a: str | None,
    plan_b: str | None,
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
      statetool upgrade sql-savepoint upgraded --to new-job --match pairs.json
    """
    paths: list[Any] = [given.src] if given.to is None else [given.src, given.to]
    savepoint, *jobs = open_snapshots(paths, options, jars=[jar_a, jar_b], plans=[plan_a, plan_b])
    rows: list[StepRow] = []

    def show(plan: MigrationPlan) -> None:
        if not jar_b:
            echo_err("no state has values of user classes: the upgrade needs no --jar-b")
        rows.extend(plan.rows)
        report_steps(rows, options)

    try:
        new_job = jobs[0] if jobs else None
        match = find_partners(savepoint, new_job, given.match)
        upgraded = run_verb(
            given, options, src=savepoint, to=new_job, other_jars=jar_b, match=match, on_plan=show, **start
        )
    finally:
        if options.output.is_json:
            options.output.rows(rows)
    _report(upgraded, given.dst, options)
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
