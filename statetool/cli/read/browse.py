"""The command that opens a snapshot in a terminal browser."""

from __future__ import annotations

import sys

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.progress import no_progress
from statetool.errors import MissingDependencyError, OptionError


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@common_options(*SNAPSHOT)
def browse(options: CommonOptions, path: str) -> None:
    """Browse operators, tables and rows in the terminal.

    Needs the extra statetool[browse].

    Examples:
      statetool browse s3://bucket/savepoint-1a2b
    """
    try:
        from statetool.cli.read.browser import Browser
    except ImportError as error:
        raise MissingDependencyError(
            f"the browser needs textual: {error}", hint="pip install 'statetool[browse]'"
        ) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OptionError("browse needs a terminal", hint="run: statetool ls PATH")
    browser = Browser(open_snapshot(path, options))
    with no_progress():
        browser.run()
