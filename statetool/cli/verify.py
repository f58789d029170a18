"""The command that verifies a snapshot."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

import statetool
from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import echo_err
from statetool.errors import several

_PROBLEM_COLUMNS = ("severity", "operator", "subtask", "state", "file", "offset", "problem")

_SHALLOW = "values were not decoded (--deep does)"


def verification_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a verification."""
    allow_unread = click.option("--allow-unread", is_flag=True, help="Do not fail on state that cannot be decoded.")
    deep = click.option("--deep", is_flag=True, help="Decode every value too.")
    return deep(allow_unread(command))


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@verification_options
@common_options("latest", "rebase", "uids", "name_uid", "declare", "on_spark", "threads", *OUTPUT)
def verify(options: CommonOptions, path: str, deep: bool, allow_unread: bool) -> None:
    """Check that a snapshot is complete and undamaged.

    Checks files, lengths, key groups and keys, and with --deep every value.

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
    if verification.problems or options.output.is_json:
        options.output.rows(verification.problems, columns=_PROBLEM_COLUMNS)
    errors = sum(p.severity == "error" for p in verification.problems)
    looked = [
        several(verification.operators, "operator"),
        f"{several(verification.streams, 'piece')} in files",
        f"{several(verification.entries, 'entry', 'entries')} of keyed state",
        f"{several(verification.keys, 'key')} in their key groups",
    ]
    if deep:
        looked.append(f"{several(verification.elements, 'element')} of operator state")
    echo_err(
        f"{', '.join(looked)}: {several(errors, 'error')}{' or more' if verification.truncated else ''}"
        + (f"; not read: {several(verification.unread, 'piece')} of state" if verification.unread else "")
    )
    echo_err("values without a checksum may have been changed in ways that no reader can see" if deep else _SHALLOW)
    if not verification.ok:
        sys.exit(1)
