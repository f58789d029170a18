"""Commands on whole snapshots."""

from __future__ import annotations

import sys

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.options import (
    declare_option,
    finding_options,
    latest_option,
    latest_wanted,
    opened,
    output_option,
    rebase_option,
    rebase_pairs,
    session,
    spark_option,
    take_over_option,
)
from statetool.cli.output import Output
from statetool.cli.progress import expect
from statetool.cli.resolve_path import newest_snapshot
from statetool.cli.verdicts import show_verification
from statetool.errors import several


@click.command()
@output_option
@finding_options
@declare_option  # type: ignore[untyped-decorator]
@click.option("--deep", is_flag=True, help="Decode every value to its last byte too.")
@click.option("--allow-unread", is_flag=True, help="It is known that some state cannot be read.")
@spark_option("Check the contents on Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("path", shell_complete=complete_path)
def verify(
    path: str, rebase: tuple[str, ...], form: str, deep: bool, allow_unread: bool, on_spark: bool, threads: int | None
) -> None:
    """Check that a snapshot is whole: files, lengths, key groups, keys; --deep: every value.

    Exit code 1 if it is not, or if keyed or operator state could not be read.
    """
    verification = statetool.verify(
        opened(path, rebase), deep=deep, spark=session(on_spark), threads=threads, allow_unread=allow_unread
    )
    if form == "json":
        Output(form).rows(verification.problems)
    show_verification(verification, form)
    if not verification.ok:
        sys.exit(1)


@click.command()
@output_option
@latest_option  # type: ignore[untyped-decorator]
@rebase_option
@click.option("--dry-run", is_flag=True, help="Show what would be copied; write nothing.")
@take_over_option  # type: ignore[untyped-decorator]
@click.option("--compare", is_flag=True, help="Read every copied file back and compare it with the original.")
@spark_option("Copy in tasks of Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("source", shell_complete=complete_path)
@click.argument("target", shell_complete=complete_path)
def copy(
    source: str,
    target: str,
    rebase: tuple[str, ...],
    form: str,
    dry_run: bool,
    take_over: bool,
    compare: bool,
    on_spark: bool,
    threads: int | None,
) -> None:
    """Copy a snapshot with every file that it needs to TARGET, on any file system; an existing target is refused."""
    pairs = rebase_pairs(rebase)
    source = newest_snapshot(source, pairs) if latest_wanted() else source
    plan = statetool.copy(source, target, dry_run=True, take_over=take_over, rebase=pairs)
    Output.say(f"{several(len(plan.files), 'file')} and _metadata, {several(plan.size_bytes, 'byte')}, to {target}")
    if dry_run:
        Output(form).rows(plan.files)
        return
    expect(lambda: (3 if compare else 2) * plan.size_bytes)
    done = statetool.copy(
        source,
        target,
        take_over=take_over,
        rebase=pairs,
        spark=session(on_spark),
        threads=threads,
        compare=compare,
    )
    Output(form).record({"metadata_file": done.metadata_file, "files": len(done.files), "size_bytes": done.size_bytes})
