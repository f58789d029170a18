"""Commands that change values or their types: a new snapshot in which some states are others."""

from __future__ import annotations

import sys
from typing import Literal

import click

import statetool
from statetool.cli.answers import show_differences
from statetool.cli.options import opened, pairs
from statetool.cli.output import Output
from statetool.cli.rewriting import rewriting, say_done


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
        show_differences(edits.preview(), Output(form), 20)
    else:
        written = (edits if checkpoint_id is None else edits.with_checkpoint_id(checkpoint_id)).write(target)
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
    checkpoint_id: int | None,
    new_job: str | None,
    plan_file: str | None,
    accept: tuple[str, ...],
    renames: tuple[str, ...],
    flink: str | None,
) -> None:
    """Write SRC to DST with the types of a new job, field by field; what would lose values has to be accepted by name.

    Exit code 1 where a dry run finds steps that cannot be done or are not accepted.
    """
    savepoint = opened(source, rebase)
    plan = statetool.migrate(
        savepoint,
        target,
        to=None if new_job is None else opened(new_job, rebase),
        plan=plan_file,
        accept=accept,
        renames=pairs(renames, "FIELD=OLD"),
        flink_version=flink,
        checkpoint_id=checkpoint_id,
        dry_run=dry_run,
        on_plan=lambda plan: Output(form).rows(plan.rows),
    )
    for refusal in plan.refused:
        Output.say(f"refused: {refusal}")
    say_done(target, dry_run)
    if plan.refused or any(row.needs != "nothing" for row in plan.rows):
        sys.exit(1)
