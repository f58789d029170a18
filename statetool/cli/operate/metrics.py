"""The command that prints or serves metrics."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from statetool.cli.completion import complete_path
from statetool.cli.group import Command
from statetool.cli.options import SNAPSHOT, CommonOptions, common_options, given_options, open_snapshot
from statetool.cli.output import echo_err
from statetool.cli.progress import no_progress
from statetool.cli.write.connectors import end_offset_options, end_offsets
from statetool.errors import OptionError, StatetoolError

if TYPE_CHECKING:
    from statetool.reporting.openmetrics.exporter import Exporter


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.option(
    "--read",
    multiple=True,
    type=click.Choice(["keyed", "connectors"]),
    help="Also read state of each new checkpoint: keyed state, or that of sources and sinks.",
)
@end_offset_options
@click.option("--strict", is_flag=True, help="Exit 1 if some state could not be read (not with --serve).")
@click.option("--serve", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve /metrics at this port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on (with --serve).")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=15.0,
    show_default=True,
    help="Seconds between two looks for new checkpoints (with --serve).",
)
@common_options(*(name for name in SNAPSHOT if name != "latest"), "threads")
def metrics(
    options: CommonOptions,
    path: str,
    read: tuple[Any, ...],
    ends: str | None,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
    strict: bool,
    port: int | None,
    host: str,
    interval: float,
) -> None:
    """Print or serve state sizes as metrics for Prometheus.

    PATH is a snapshot, a directory of checkpoints, or the URL of a job or JobManager. For a directory or JobManager, shows
    the newest checkpoint of each job.

    By default reads only _metadata: bytes by operator and slot, and operator state by state. --read keyed reads all
    keyed state: bytes, entries, keys, largest value and timers by state. --read connectors reads the state of sources and
    sinks: splits, offsets and uncommitted transactions. End offsets (--ends, --bootstrap-servers) add the lag.

    With --serve, serves the metrics until interrupted, and reads each new checkpoint once.

    Metrics of state that could not be read are left out, never 0. Exits 1 if the newest checkpoint of some job cannot be read, and with
    --strict also if some of its state could not be read.

    Examples:
      statetool metrics s3://bucket/checkpoints/1a2b
      statetool metrics flink://jobmanager:8081/orders --read keyed --serve 9250
    """
    from statetool.api.execution import Execution
    from statetool.reporting.openmetrics.exporter import Exporter
    from statetool.reporting.openmetrics.targets import targets_of

    if port is None and (alone := given_options().keys() & {"host", "interval"}):
        raise OptionError(f"--{min(alone)} is for --serve", hint="add --serve PORT")
    if port is not None and strict:
        raise OptionError("--strict is not for --serve", hint="use the metric statetool_operator_unread_bytes")
    offsets = end_offsets(ends, bootstrap_servers, settings)
    exporter = Exporter(
        targets_of(path, tuple(options.rebase.items())),
        lambda snapshot: open_snapshot(snapshot, options).inventory,
        read if offsets is None else (*read, "connectors"),
        offsets,
        Execution(threads=options.threads).map,
    )
    errors = exporter.refresh()
    if errors and not exporter.is_readable:
        raise errors[0]
    if port is None:
        options.output.text(*exporter.text.splitlines())
        echo_err(*map(str, errors), *(f"left out: {reason}" for reason in exporter.unread))
        if errors or (strict and exporter.unread):
            sys.exit(1)
        return
    with no_progress():
        _serve(exporter, host, port, interval, errors)


def _serve(exporter: Exporter, host: str, port: int, interval: float, errors: list[StatetoolError]) -> None:
    """Serve metrics until interrupted. An error is printed when it first occurs."""
    from statetool.reporting.openmetrics.server import serving

    with serving(lambda: exporter.text, host, port) as url:
        echo_err(f"serving {url}; stop with Ctrl-C")
        printed = set[str]()
        while True:
            messages = {*map(str, errors), *(f"left out: {reason}" for reason in exporter.unread)}
            echo_err(*sorted(messages - printed))
            printed = messages
            time.sleep(interval)
            errors = exporter.refresh()
