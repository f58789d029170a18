"""The snapshots that metrics describe: one snapshot, or the newest checkpoint of each job of a directory or of a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from statetool.errors import StatetoolError
from statetool.io import files
from statetool.io.listing import FoundFile, stat
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.paths import is_job
from statetool.operations.directories.newest import newest_checkpoints
from statetool.operations.directories.survey import job_of
from statetool.snapshot.locate import METADATA_NAME, find_metadata

if TYPE_CHECKING:
    from statetool.operations.cluster.job_graph import OperatorNames

ReadNames: TypeAlias = "Callable[[Mapping[str, int]], OperatorNames]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A snapshot to measure.

    Attributes
    ----------
    job_id, job_name
        Empty if unknown.
    path
        The snapshot. Empty if it was not found, because of ``error``.
    metadata_file
        Its metadata file. As long as this is the same, the snapshot is the same.
    read_names
        Returns the names of operators by operator id for the ids of a snapshot's operators. ``None`` without a JobManager.
    """

    job_id: str
    job_name: str = ""
    path: str = ""
    metadata_file: FoundFile | None = None
    error: StatetoolError | None = None
    read_names: ReadNames | None = field(default=None, compare=False, repr=False)


Find: TypeAlias = Callable[[], list[Target]]


def targets_of(path: str, rebase: Sequence[tuple[str, str]] = ()) -> Find:
    """Return a function that finds the snapshots which a path stands for now. Nothing but names is read.

    Parameters
    ----------
    path
        A snapshot, the directory of a job's checkpoints, a directory of such directories, or the URL of a job or of a server.
    rebase
        Pairs of an old and a new prefix.
    """
    if is_job(path):
        return lambda: _of_server(path, rebase)
    if files.exists(files.join(path, METADATA_NAME)) or not files.is_dir(path):
        return lambda: [_target("", "", path)]
    return lambda: [
        Target(job_id=found.job, path=found.path, metadata_file=found.metadata_file)
        for found in newest_checkpoints(path)
    ]


def _of_server(url: str, rebase: Sequence[tuple[str, str]]) -> list[Target]:
    from statetool.operations.cluster.job_graph import read_operator_names
    from statetool.operations.cluster.servers import open_server  # an HTTP client, which paths do not need
    from statetool.operations.cluster.snapshots import find_snapshots

    parsed = JobAddress.parse(url)
    assert parsed is not None
    client, address = open_server(parsed)
    targets = []
    for job, found in find_snapshots(client, address, rebase):
        try:
            if not isinstance(found, str):
                raise found
            targets.append(_target(job.job_id, job.name, found, partial(read_operator_names, client, job)))
        except StatetoolError as error:
            targets.append(Target(job_id=job.job_id, job_name=job.name, error=error))
    return targets


def _target(job_id: str, job_name: str, path: str, read_names: ReadNames | None = None) -> Target:
    metadata_file = find_metadata(path)
    directory = files.parent(files.canonical(metadata_file))
    return Target(
        job_id=job_id or job_of(directory),
        job_name=job_name,
        path=path,
        metadata_file=stat(metadata_file),
        read_names=read_names,
    )
