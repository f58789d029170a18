"""Resolution of URLs of jobs to paths of snapshots. Nothing is sent, and no HTTP client is imported, for other paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from statetool.errors import CheckpointDeletedError, ConnectionFailedError, OptionError
from statetool.io import files
from statetool.io.deletion import noticing_deletion
from statetool.operations.cluster.address import JobAddress
from statetool.snapshot.locate import METADATA_NAME

if TYPE_CHECKING:
    from statetool.operations.cluster.job_graph import OperatorNames

Opened = TypeVar("Opened")
#: Maximum number of checkpoints that Flink may delete before they are open.
_MOST_DELETED: Final = 5


def is_job(path: str) -> bool:
    """Return True if a path is the URL of a job or of a server. For ``http://host/NAME`` the server decides.

    Raises
    ------
    OptionError
        The URL is malformed.
    ConnectionFailedError
        The server does not answer.
    """
    address = JobAddress.parse(path)
    if address is None or address.certain:
        return address is not None
    from statetool.operations.cluster.client import NotFlinkError, RestClient
    from statetool.operations.cluster.jobs import list_jobs

    try:
        list_jobs(RestClient(address.server))
    except NotFlinkError:
        return False
    return True


def is_server(path: str) -> bool:
    """Return True if a path is the URL of a server, without a job."""
    address = JobAddress.parse(path)
    return address is not None and not address.job


def resolve_path(path: str, rebase: Sequence[tuple[str, str]] = ()) -> str:
    """Return the path of the snapshot that a job's URL names, by default the newest complete checkpoint. Return other paths unchanged.

    Parameters
    ----------
    rebase
        Pairs of an old and a new prefix, for paths that have another location here than on the job's machines.

    Raises
    ------
    OptionError
        The URL is malformed, or several jobs match.
    UnknownNameError
        There is no such job, checkpoint or savepoint.
    SnapshotNotFoundError
        The job has no complete checkpoint, or it was deleted, or its path does not exist here.
    ConnectionFailedError
        The server does not answer, or refuses the request.
    """
    address = JobAddress.parse(path)
    if address is None:
        return path
    if address.resource is not None:
        from statetool.operations.cluster.resources import find_resource_snapshot

        return find_resource_snapshot(address, rebase)
    from statetool.operations.cluster.client import NotFlinkError, RestClient
    from statetool.operations.cluster.snapshots import find_snapshot

    try:
        return find_snapshot(RestClient(address.server), address, rebase)
    except NotFlinkError:
        if address.certain:
            raise
        return path


def open_path(path: str, rebase: Sequence[tuple[str, str]], open: Callable[[str], Opened]) -> Opened:
    """Return what a function opens at the path of :func:`resolve_path`.

    If Flink deletes the newest checkpoint of a job before it is open, the next one is opened.

    Raises
    ------
    CheckpointDeletedError
        The checkpoint was deleted, and the URL names it by its id, or the next ones were deleted, too.
    StatetoolError
        As :func:`resolve_path` and ``open``.
    """
    for remaining in reversed(range(_MOST_DELETED)):
        found = resolve_path(path, rebase)
        if found == path:
            break
        try:
            with noticing_deletion(files.join(found, METADATA_NAME)):
                return open(found)
        except CheckpointDeletedError:
            address = JobAddress.parse(path)
            if not remaining or (address is not None and not address.is_newest):
                raise
    return open(path)


def resolve_directory(path: str, rebase: Sequence[tuple[str, str]] = ()) -> str:
    """Return the directory of a job's checkpoints for the URL of a job. Return other paths unchanged.

    Parameters
    ----------
    rebase
        As for :func:`resolve_path`.

    Raises
    ------
    OptionError
        The URL chooses one snapshot.
    StatetoolError
        As :func:`resolve_path`.
    """
    address = JobAddress.parse(path)
    if address is not None and (address.checkpoint or address.savepoint):
        raise OptionError("this URL names one snapshot, not a directory of snapshots", hint="remove what follows the ?")
    found = resolve_path(path, rebase)
    return path if found == path else files.parent(found)


def operator_names(path: str, operators: Mapping[str, int]) -> OperatorNames | None:
    """Return the names of the operators of a job, for the URL of a job. ``None`` for other paths, and without a JobManager.

    Parameters
    ----------
    operators
        As for :func:`statetool.operations.cluster.job_graph.operator_names`.

    Raises
    ------
    StatetoolError
        As :func:`resolve_path`.
    """
    read = names_reader(path)
    return None if read is None else read(operators)


def names_reader(path: str) -> Callable[[Mapping[str, int]], OperatorNames] | None:
    """Return a function as :func:`operator_names` for one job, which finds no names when the job or its JobManager is gone.

    ``None`` for other paths, and without a JobManager.

    Raises
    ------
    StatetoolError
        As :func:`resolve_path`.
    """
    address = JobAddress.parse(path)
    if address is None:
        return None
    from statetool.operations.cluster.job_graph import read_operator_names
    from statetool.operations.cluster.jobs import find_job
    from statetool.operations.cluster.overview import connect

    try:
        client, jobs, address = connect(path)
    except ConnectionFailedError:
        return None
    return partial(read_operator_names, client, find_job(jobs, address.job, address.server))
