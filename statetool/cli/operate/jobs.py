"""Commands on jobs of a cluster, through Flink's REST API."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import click

from statetool.cli.group import Command
from statetool.cli.job_list import print_jobs
from statetool.cli.options import OUTPUT, CommonOptions, common_options, open_snapshot
from statetool.cli.output import echo_err
from statetool.cli.read.info import print_info
from statetool.errors import OptionError

if TYPE_CHECKING:
    from statetool.operations.cluster.client import RestClient
    from statetool.operations.cluster.jobs import Job
    from statetool.operations.cluster.triggers import TriggerRequest

#: Seconds between two messages while waiting.
_SILENT_S: Final = 10.0
_open_option: Final = click.option(
    "--open", "opens", is_flag=True, help="Show the snapshot instead of its path, as info does."
)
_job_argument: Final = click.argument("job", required=False)


@click.command(cls=Command)
@click.argument("url")
@common_options(*OUTPUT)
def jobs(options: CommonOptions, url: str) -> None:
    """List jobs of a cluster with their checkpoints.

    URL is that of a JobManager or HistoryServer, or of one job: flink://host:8081/JOB, or the address in the browser.
    JOB is an id, its first digits, or a name. For each job, shows the newest completed checkpoint, then failed
    checkpoints with their reason, and savepoints.

    Examples:
      statetool jobs flink://jobmanager:8081
      statetool jobs flinks://flink.example.com/orders --json
    """
    print_jobs(url, options)


@click.command(cls=Command)
@click.argument("url")
@_job_argument
@click.option(
    "--to",
    "target",
    metavar="DIR",
    help="Directory in which Flink creates the savepoint.  [default: that of the cluster's configuration]",
)
@click.option(
    "--format", type=click.Choice(["canonical", "native"]), help="Format of the savepoint.  [default: canonical]"
)
@click.option("--stop", is_flag=True, help="Stop the job with this savepoint.")
@click.option("--drain", is_flag=True, help="With --stop, first fire all timers, as if the input had ended.")
@_open_option
@common_options("rebase", "dry_run", *OUTPUT)
def savepoint(
    options: CommonOptions,
    url: str,
    job: str | None,
    target: str | None,
    format: Literal["canonical", "native"] | None,
    stop: bool,
    drain: bool,
    opens: bool,
) -> None:
    """Take a savepoint of a running job and print its path.

    URL names the job, as for jobs, or only the cluster if JOB is given. DIR is an absolute path or a URI that all
    machines of the job can write to. By default it is the cluster's execution.checkpointing.savepoint-dir. The job keeps running unless --stop is given. With --dry-run, prints the request
    without sending it.

    Examples:
      statetool savepoint flink://host:8081/orders
      statetool savepoint flink://host:8081/orders --to s3://bucket/savepoints
      statetool savepoint flink://host:8081 435d --to s3://bucket/sp --stop
    """
    from statetool.operations.cluster.triggers import savepoint_request

    def request_for(client: RestClient, job: Job) -> TriggerRequest:
        return savepoint_request(client, job, target, format, stop=stop, drain=drain)

    _trigger(url, job, options, request_for, opens=opens)


@click.command(cls=Command)
@click.argument("url")
@_job_argument
@_open_option
@common_options("rebase", "dry_run", *OUTPUT)
def checkpoint(options: CommonOptions, url: str, job: str | None, opens: bool) -> None:
    """Take a checkpoint of a running job and print its path.

    URL names the job, as for jobs, or only the cluster if JOB is given. Flink owns the checkpoint and deletes it like
    any other. Needs Flink 1.17. With --dry-run, prints the request without sending it.

    Examples:
      statetool checkpoint flink://jobmanager:8081/orders
    """
    from statetool.operations.cluster.triggers import checkpoint_request

    _trigger(url, job, options, checkpoint_request, opens=opens)


def _trigger(
    url: str,
    name: str | None,
    options: CommonOptions,
    request_for: Callable[[RestClient, Job], TriggerRequest],
    *,
    opens: bool,
) -> None:
    from statetool.api.load import name_operators
    from statetool.operations.cluster.job_graph import read_operator_names
    from statetool.operations.cluster.jobs import find_job
    from statetool.operations.cluster.overview import connect
    from statetool.operations.cluster.snapshots import existing_path
    from statetool.operations.cluster.triggers import trigger

    client, found, address = connect(url)
    if name and address.job:
        raise OptionError(f"both the URL and {name!r} name a job", hint="leave one of them out")
    job = find_job(found, name or address.job, address.server)
    request = request_for(client, job)
    output = options.output
    if options.dry_run:
        body = request.body if output.is_json else json.dumps(request.body)
        line = f"POST {address.server}{request.path}"
        output.record({"job_id": job.job_id, "name": job.name, "request": line, "body": body})
        return
    echo_err(f"{request.what} of {job}: requested")
    try:
        path = trigger(client, job, request, _Progress(f"{request.what} of {job.name!r}"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; Flink may still complete the {request.what}: statetool jobs {url}"
        ) from None
    if opens:
        echo_err(f"{request.what} of {job.name!r}: {path}")
        savepoint = open_snapshot(existing_path(path, tuple(options.rebase.items()), "Flink"), options)
        print_info(name_operators(savepoint, partial(read_operator_names, client, job)), options)
    elif output.is_json:
        output.record({"job_id": job.job_id, "name": job.name, "path": path})
    else:
        output.text(path)


class _Progress:
    """Reports every ten seconds that a request is in progress."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = _SILENT_S

    def __call__(self, seconds: float) -> None:
        if seconds >= self._next:
            echo_err(f"{self._what}: in progress for {seconds:.0f} s")
            self._next += _SILENT_S
