"""Commands on whole snapshots."""

from __future__ import annotations

import sys

import click

import statetool
from statetool.cli.options import output_option, rebase_option, rebase_pairs
from statetool.cli.output import Output

_PROBLEM_COLUMNS = ("severity", "operator", "subtask", "state", "file", "offset", "problem")


@click.command()
@output_option
@rebase_option
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
    found = statetool.verify(path, deep=deep, spark=session, uids=uids, rebase=rebase_pairs(rebase), threads=threads)
    if found.problems or form == "json":
        Output(form).rows(found.problems, columns=_PROBLEM_COLUMNS)
    errors = sum(p.severity == "error" for p in found.problems)
    Output.say(
        f"{found.operators} operators, {found.streams} pieces in files, {found.entries} entries, "
        f"{found.keys} keys in their key groups: {errors} errors{' or more' if found.truncated else ''}"
    )
    if not found.ok:
        sys.exit(1)
