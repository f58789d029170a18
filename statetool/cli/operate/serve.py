"""The command that serves snapshots to a browser."""

from __future__ import annotations

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import echo_err
from statetool.cli.progress import no_progress
from statetool.cli.resolve_path import is_snapshot
from statetool.errors import MissingDependencyError
from statetool.operations.cluster.paths import is_job


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.option("--port", type=click.IntRange(0, 65535), default=8265, show_default=True, help="Port; 0 is any free one.")
@common_options(*(name for name in SNAPSHOT if name != "latest"))
def serve(options: CommonOptions, path: str, port: int) -> None:
    """Explore snapshots in a browser, and look up keys over HTTP.

    PATH is a snapshot, a directory of snapshots, or the URL of a job. Open the printed address: its token changes at each start. The pages show
    findings, tables, keys, queries and differences. Nothing can be written, and only this machine can connect. For a directory, no file outside
    of it is read. GET /api/get?o=OPERATOR&key=KEY looks up a key in the newest checkpoint.

    Needs the extra statetool[serve].

    Examples:
      statetool serve savepoint-1a2b
      statetool serve s3://bucket/checkpoints/1a2b --port 0
    """
    try:
        from statetool.cli.explorer.server import listening
    except ImportError as error:
        raise MissingDependencyError(
            f"the explorer needs the packages starlette and uvicorn: {error}", hint="pip install 'statetool[serve]'"
        ) from error
    from statetool.cli.explorer.opened import Snapshots

    with no_progress():
        alone = is_snapshot(path) and not is_job(path)
        snapshots = Snapshots(path, lambda name: open_snapshot(name, options), is_root=not alone)
        if alone:
            snapshots.open(".")  # errors are those of the command
        with listening(snapshots, port) as (address, server, listener):
            echo_err(f"serving {address}", "stop with Ctrl-C")
            server.run(sockets=[listener])
