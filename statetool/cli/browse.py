"""The command that opens a snapshot in a terminal browser."""

from __future__ import annotations

import click

from statetool.cli.completion import complete_path
from statetool.cli.options import finding_options, opened, plan_option, type_options
from statetool.errors import MissingDependencyError


@click.command()
@finding_options
@type_options
@plan_option
@click.argument("path", shell_complete=complete_path)
def browse(path: str, rebase: tuple[str, ...]) -> None:
    """Look through operators, tables and rows in the terminal; changes nothing. Needs textual: statetool[browse]."""
    try:
        from statetool.cli.browser import Browser
    except ImportError as error:
        raise MissingDependencyError(
            f"the browser needs textual: {error}", hint="pip install 'statetool[browse]'"
        ) from error
    Browser(opened(path, rebase)).run()
