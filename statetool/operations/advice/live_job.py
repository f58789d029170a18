"""Checkpoint statistics and configuration of a job, from Flink's REST API instead of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.errors import OptionError
from statetool.operations.advice.configuration import Configuration, read_configuration
from statetool.operations.advice.statistics import CheckpointStatistics, SubtaskTimes, statistics_of, subtasks_of
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.job_graph import read_vertices
from statetool.operations.cluster.job_settings import read_checkpoint_settings, read_cluster_settings
from statetool.operations.cluster.jobs import CheckpointHistory, Job, find_job, get_if_found, read_history
from statetool.operations.cluster.overview import connect
from statetool.operations.cluster.paths import is_job

_DIRECTORY: Final = "execution.checkpointing.dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job, or only the JobManager if ``job`` is ``None``."""

    client: RestClient
    job: Job | None

    @classmethod
    def open(cls, url: str, *, job_needed: bool) -> LiveJob:
        """Return the job that a URL names.

        Parameters
        ----------
        job_needed
            Whether the URL of a server stands for its only job, instead of for the JobManager.

        Raises
        ------
        StatetoolError
            As :func:`statetool.operations.cluster.overview.connect` and :func:`statetool.operations.cluster.jobs.find_job`.
        """
        client, jobs, address = connect(url)
        if address.checkpoint or address.savepoint:
            raise OptionError("this URL names one snapshot, not a job", hint="remove what follows the ?")
        named = bool(address.job) or job_needed
        return cls(client=client, job=find_job(jobs, address.job, address.server) if named else None)

    def statistics(self) -> CheckpointStatistics | None:
        """Return the statistics of the job's checkpoints, ``None`` without checkpoints.

        Raises
        ------
        ConnectionFailedError, FormatError
            The server does not answer, or not as Flink does.
        """
        if self.job is None:
            return None
        path = f"/jobs/{self.job.job_id}/checkpoints"
        tree = get_if_found(self.client, path)
        return None if tree is None else statistics_of(tree, f"{self.client.server}{path}")

    def subtasks(self) -> list[SubtaskTimes]:
        """Return the times of all subtasks in the newest completed checkpoint; errors as for :meth:`statistics`."""
        newest = None if self.job is None else read_history(self.client, self.job).newest("checkpoint")
        if self.job is None or newest is None:
            return []
        times: list[SubtaskTimes] = []
        for vertex in read_vertices(self.client, self.job):
            path = f"/jobs/{self.job.job_id}/checkpoints/details/{newest.checkpoint_id}/subtasks/{vertex.vertex_id}"
            tree = get_if_found(self.client, path)
            if tree is not None:
                times += subtasks_of(tree, f"{self.client.server}{path}")
        return times

    def configuration(self) -> Configuration:
        """Return the configuration of the JobManager, with the checkpoint settings that are in effect for the job.

        If the job's code sets the directory of its checkpoints, this is the directory of the newest one. A setting that only has its default, and that the JobManager does not set, is left out. Errors are as for :meth:`statistics`.
        """
        values = read_cluster_settings(self.client, self.job)
        own = Configuration(self.client.server, values)
        effective = {} if self.job is None else read_checkpoint_settings(self.client, self.job)
        for option, (value, is_default) in effective.items():
            if own.written(option) is None:
                if not is_default:
                    values[option] = value
            elif not _same(own, option, value):
                values[own.name(option)] = value
        if self.job is not None and own.text(_DIRECTORY) is None:
            values.update(_directory(self.job, read_history(self.client, self.job)))
        return Configuration(self.client.server, values)


def _directory(job: Job, history: CheckpointHistory) -> dict[str, str]:
    """Return the directory of the job's checkpoints as a setting, nothing if it is unknown."""
    newest = history.newest("checkpoint")
    path = "" if newest is None else newest.path or ""
    directory, found, _ = path.partition(f"/{job.job_id}/chk-")
    return {_DIRECTORY: directory} if found else {}


def _same(configuration: Configuration, option: str, value: str) -> bool:
    """Return True if an option has this value, perhaps written in another way."""
    written = configuration.text(option) or ""
    other = Configuration("", {option: value})
    return written.lower() == value.lower() or (
        configuration.millis(option) is not None and configuration.millis(option) == other.millis(option)
    )


def configuration_of(path: str) -> Configuration:
    """Return the configuration in a file, or that of a job or JobManager for a URL.

    Raises
    ------
    StatetoolError
        As :func:`statetool.operations.advice.configuration.read_configuration` and :class:`LiveJob`.
    """
    return LiveJob.open(path, job_needed=False).configuration() if is_job(path) else read_configuration(path)
