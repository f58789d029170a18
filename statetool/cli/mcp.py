"""The command that serves snapshots to assistants."""

from __future__ import annotations

import click

from statetool.cli.completion import complete_path
from statetool.errors import MissingDependencyError


@click.command()
@click.argument("root", shell_complete=complete_path)
def mcp(root: str) -> None:
    """Let assistants look into the snapshots below ROOT: a server of the Model Context Protocol on stdin and stdout.

    Five tools that only read (list_snapshots, describe, read_rows, stats, check), and nothing outside of ROOT. What an assistant
    reads it sends to whoever runs it. Needs the official SDK: statetool[mcp].
    """
    try:
        from statetool.assistants.server import server
    except ImportError as error:
        raise MissingDependencyError(f"the server needs mcp: {error}", hint="pip install 'statetool[mcp]'") from error
    server(root).run("stdio")
