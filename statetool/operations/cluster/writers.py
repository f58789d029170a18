"""Running jobs that write checkpoints to a directory, or restored a snapshot in it, as a cluster reports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statetool.errors import DirectoryInUseError, OptionError
from statetool.io import files
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.jobs import CheckpointHistory, Job, list_jobs, read_history
from statetool.snapshot.locate import rebase_path


def check_writers(cluster: str, root: str, rebase: Sequence[tuple[str, str]] = ()) -> None:
    """Refuse a directory that a running job of a cluster writes to, or whose files it may need.

    Parameters
    ----------
    cluster
        URL of the REST API, such as ``flink://host:8081``.
    rebase
        Pairs of an old and a new prefix, for paths that have another location here than on the cluster's machines.

    Raises
    ------
    DirectoryInUseError
        A job that has not ended wrote a checkpoint there, restored a snapshot there, or has its id in the path.
    OptionError
        The URL does not name a server.
    ConnectionFailedError
        The server does not answer.
    """
    address = JobAddress.parse(cluster)
    if address is None:
        raise OptionError(f"{cluster!r} is not the URL of a cluster", hint="pass flink://host:8081")
    client = RestClient(address.server)
    inside = f"{files.canonical(root).rstrip('/')}/"
    for job in list_jobs(client):
        if job.has_ended:
            continue
        for path in _paths(read_history(client, job)):
            for place in (*rebase_path(path, rebase), path):
                if f"{files.canonical(place)}/".startswith(inside):
                    raise _in_use(job, f"uses {path}", root)
        if job.job_id in inside.split("/") or files.exists(files.join(root, job.job_id)):
            raise _in_use(job, "has its directory there", root)


def _paths(history: CheckpointHistory) -> Iterator[str]:
    """Yield the paths of a job's checkpoints and of the snapshot that it restored."""
    yield from (c.path for c in history.recent if c.path is not None)
    if history.restored_path is not None:
        yield history.restored_path


def _in_use(job: Job, use: str, root: str) -> DirectoryInUseError:
    return DirectoryInUseError(
        f"job {job} {use}", hint="stop the job, or pass the directory of a job that has ended and that no job restored"
    ).at(file=root)
