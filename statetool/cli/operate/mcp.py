"""The command that serves snapshots to assistants."""

from __future__ import annotations

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import CommonOptions, common_options
from statetool.cli.progress import no_progress
from statetool.errors import MissingDependencyError


@click.command(cls=Command)
@click.argument("root", shell_complete=complete_path)
@common_options()
def mcp(options: CommonOptions, root: str) -> None:
    """Serve snapshots to AI assistants over MCP.

    Runs a Model Context Protocol server on stdin and stdout with five read-only tools: list_snapshots, describe,
    read_rows, stats and check. They read only files below ROOT. An assistant sends the results to its provider.
    The URL of a job stands for the directory of its checkpoints.

    Needs the extra statetool[mcp].

    Examples:
      statetool mcp /checkpoints
      statetool mcp flink://jobmanager:8081/orders
    """
    try:
        from statetool.cli.assistants.server import server
    except ImportError as error:
        raise MissingDependencyError(
            f"the MCP server needs the package mcp: {error}", hint="pip install 'statetool[mcp]'"
        ) from error
    with no_progress():
        server(root).run("stdio")
