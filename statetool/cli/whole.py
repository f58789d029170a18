"""Commands on whole snapshots."""

from __future__ import annotations

import sys
from typing import Any

import click

import statetool
from statetool.cli.options import declare_option, opened, output_option, rebase_option, rebase_pairs
from statetool.cli.output import Output
from statetool.cli.progress import progress_bar

_PROBLEM_COLUMNS = ("severity", "operator", "subtask", "state", "file", "offset", "problem")


@click.command()
@output_option
@rebase_option
@declare_option  # type: ignore[untyped-decorator]
@click.option("--uid", "uids", multiple=True, help="Name an operator that the snapshot knows by id only.")
@click.option("--deep", is_flag=True, help="Decode every value to its last byte too.")
@click.option("--spark", "on_spark", is_flag=True, help="Check the contents on Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("path")
def verify(
    path: str,
    rebase: tuple[str, ...],
    uids: tuple[str, ...],
    form: str,
    deep: bool,
    on_spark: bool,
    threads: int | None,
) -> None:
    """Check that a snapshot is whole: files, lengths, key groups, keys; --deep: every value. Exit code 1 if it is not."""
    session = None
    if on_spark:
        from statetool.spark.session import local_session

        session = local_session()
    found = statetool.verify(opened(path, rebase, uids=uids), deep=deep, spark=session, threads=threads)
    if found.problems or form == "json":
        Output(form).rows(found.problems, columns=_PROBLEM_COLUMNS)
    errors = sum(p.severity == "error" for p in found.problems)
    Output.say(
        f"{found.operators} operators, {found.streams} pieces in files, {found.entries} entries, "
        f"{found.keys} keys in their key groups: {errors} errors{' or more' if found.truncated else ''}"
    )
    if not found.ok:
        sys.exit(1)


@click.command()
@output_option
@rebase_option
@click.option("--dry-run", is_flag=True, help="Show what would be copied; write nothing.")
@click.option("--compare", is_flag=True, help="Read every copied file back and compare it with the original.")
@click.option("--spark", "on_spark", is_flag=True, help="Copy in tasks of Spark.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of this process [default: one a core].")
@click.argument("source")
@click.argument("target")
def copy(
    source: str,
    target: str,
    rebase: tuple[str, ...],
    form: str,
    dry_run: bool,
    compare: bool,
    on_spark: bool,
    threads: int | None,
) -> None:
    """Copy a snapshot with every file that it needs to TARGET, on any file system; an existing target is refused."""
    session = _session(on_spark)
    pairs = rebase_pairs(rebase)
    plan = statetool.copy(source, target, dry_run=True, rebase=pairs)
    Output.say(f"{len(plan.files)} files and _metadata, {plan.size_bytes} bytes, to {target}")
    if dry_run:
        Output(form).rows(plan.files)
        return
    with progress_bar("copying", sum(f.size_bytes for f in plan.files)) as advance:
        done = statetool.copy(
            source, target, rebase=pairs, spark=session, threads=threads, compare=compare, progress=advance
        )
    Output(form).record({"metadata_file": done.metadata_file, "files": len(done.files), "size_bytes": done.size_bytes})


def _session(on_spark: bool) -> Any:
    if not on_spark:
        return None
    from statetool.spark.session import local_session

    return local_session()
