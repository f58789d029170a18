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
@click.option("--tls-cert", metavar="FILE", help="Certificate chain in PEM, for HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Key of the certificate in PEM.")
@click.option("--api-token-file", metavar="FILE", help="File with a lasting bearer token for /api.")
@click.option(
    "--rate", type=click.FloatRange(0.1), default=50.0, show_default=True, help="Requests per second before answer 429."
)
@common_options(*(name for name in SNAPSHOT if name != "latest"))
def serve(
    options: CommonOptions,
    path: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    api_token_file: str | None,
    rate: float,
) -> None:
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
        from statetool.cli.explorer.server import ServerOptions, listening, read_token
    except ImportError as error:
        raise MissingDependencyError(
            f"the explorer needs the packages starlette and uvicorn: {error}", hint="pip install 'statetool[serve]'"
        ) from error
    from statetool.cli.explorer.opened import Snapshots

    settings = ServerOptions(
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        api_token=None if api_token_file is None else read_token(api_token_file),
        per_second=rate,
    )
    with no_progress():
        alone = is_snapshot(path) and not is_job(path)
        snapshots = Snapshots(path, lambda name: open_snapshot(name, options), is_root=not alone)
        if alone:
            snapshots.open(".")  # errors are those of the command
        with listening(snapshots, settings) as (address, server, listener):
            echo_err(f"serving {address}", "stop with Ctrl-C")
            server.run(sockets=[listener])
