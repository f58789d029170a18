"""The command that verifies a snapshot."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options, open_snapshot
from statetool.cli.verdicts import show_verification


def verification_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a verification."""
    allow_unread = click.option("--allow-unread", is_flag=True, help="Do not fail on state that cannot be decoded.")
    deep = click.option("--deep", is_flag=True, help="Decode every value too.")
    return deep(allow_unread(command))


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@verification_options
@common_options("latest", "rebase", "uids", "name_uid", "declare", "jar", "on_spark", "threads", *OUTPUT)
def verify(options: CommonOptions, path: str, deep: bool, allow_unread: bool) -> None:
    """Check that a snapshot is complete and undamaged.

    Checks that no file is missing or truncated, and that each key is in its key group. With --deep, also decodes every
    value.

    Exits 1 if there are errors, or if keyed or operator state could not be read.

    Examples:
      statetool verify s3://bucket/savepoint-1a2b --deep
    """
    verification = statetool.verify(
        open_snapshot(path, options),
        deep=deep,
        spark=options.spark,
        threads=options.threads,
        allow_unread=allow_unread,
    )
    if options.output.is_json:
        options.output.rows(verification.problems)
    show_verification(verification, options.output.form)
    if not verification.ok:
        sys.exit(1)
