"""Clusters, jobs and snapshots by their resources in Kubernetes.

``k8s://NAMESPACE/NAME`` is a FlinkDeployment or a FlinkSessionJob of Flink's operator, or the REST service of another cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from statetool.errors import ConnectionFailedError, OptionError, SnapshotNotFoundError, UnknownNameError, several, warn
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.client import RestClient, RestError
from statetool.operations.cluster.high_availability import StoredCheckpoint, checkpoint_path, stored_checkpoints
from statetool.operations.cluster.kubernetes import KubernetesApi
from statetool.operations.cluster.snapshots import existing_path, find_snapshot

_REFUSED: Final = (401, 403)
_LATEST: Final = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A cluster in Kubernetes.

    Attributes
    ----------
    cluster_id
        Flink's ``kubernetes.cluster-id``, the name of its deployment.
    address
        The address, with the id of the job if the resource has one.
    service, port
        The REST service, ``None`` if it does not exist.
    """

    api: KubernetesApi
    namespace: str
    cluster_id: str
    address: JobAddress
    service: str
    port: int | None

    def client(self) -> RestClient:
        """Return a client for the REST service.

        Raises
        ------
        ConnectionFailedError
            There is no such service, because the cluster is not running.
        """
        if self.port is None:
            raise ConnectionFailedError(
                f"namespace {self.namespace} has no service {self.service}: the cluster is not running",
                hint=f"run: kubectl get services -n {self.namespace}",
            )
        return self.api.rest_client(self.namespace, self.service, self.port)


def find_resource(address: JobAddress) -> Resource:
    """Return the cluster that an address names.

    Raises
    ------
    UnknownNameError
        There is no such resource.
    SnapshotNotFoundError
        The resource has no job yet.
    OptionError
        The address is that of a snapshot.
    ConnectionFailedError, MissingDependencyError
        As for :class:`statetool.operations.cluster.kubernetes.KubernetesApi`.
    """
    assert address.resource is not None
    namespace, name = address.resource
    if address.kind == "flinkstatesnapshot":
        raise OptionError(f"FlinkStateSnapshot {name} is a snapshot, not a job", hint="give the URL of the deployment")
    api = KubernetesApi(address.context)
    cluster_id, job, service = name, address.job, f"{name}-rest"
    is_service = address.kind == "service"
    wants = ("flinkdeployment", "flinksessionjob") if not address.kind else (address.kind,)
    deployment = api.custom_resource("flinkdeployments", namespace, name) if "flinkdeployment" in wants else None
    session_job = None
    if deployment is not None:
        job = job or str(_get(deployment, "status", "jobStatus", "jobId") or "")
    elif "flinksessionjob" in wants:
        session_job = api.custom_resource("flinksessionjobs", namespace, name)
    if session_job is not None:
        cluster_id = str(_get(session_job, "spec", "deploymentName") or "")
        job, service = str(_get(session_job, "status", "jobStatus", "jobId") or ""), f"{cluster_id}-rest"
        if not job or not cluster_id:
            raise SnapshotNotFoundError(f"FlinkSessionJob {name} has no job id yet", hint="wait until the job runs")
    port = api.rest_port(namespace, service)
    if port is None and deployment is None and session_job is None and (is_service or not address.kind):
        service, port = name, api.rest_port(namespace, name)
        cluster_id = name.removesuffix("-rest")
    if port is None and deployment is None and session_job is None and not api.config_maps(namespace, cluster_id):
        kinds = f"{address.kind}" if address.kind else "FlinkDeployment, FlinkSessionJob or REST service"
        raise UnknownNameError(
            f"namespace {namespace} has no {kinds} {name!r}",
            hint=f"run: kubectl get flinkdeployments,services -n {namespace}",
        )
    return Resource(
        api=api,
        namespace=namespace,
        cluster_id=cluster_id,
        address=replace(address, job=job),
        service=service,
        port=port,
    )


def find_resource_snapshot(address: JobAddress, rebase: Sequence[tuple[str, str]] = ()) -> str:
    """Return the path of the snapshot that an address names, by default the newest complete checkpoint.

    If no JobManager answers, it is the newest checkpoint of the high-availability metadata.

    Raises
    ------
    StatetoolError
        As :func:`find_resource` and :func:`statetool.operations.cluster.paths.resolve_path`.
    """
    if address.kind == "flinkstatesnapshot":
        return _snapshot_path(address, rebase)
    resource = find_resource(address)
    try:
        return find_snapshot(resource.client(), resource.address, rebase)
    except ConnectionFailedError as error:
        if (isinstance(error, RestError) and error.status in _REFUSED) or address.savepoint is not None:
            raise
        stored = _stored(resource)
        if stored is None:
            raise
        warn(
            f"no JobManager of {resource.cluster_id} answers: this is checkpoint {stored.checkpoint_id} of its high-availability metadata"
        )
    return existing_path(checkpoint_path(stored, rebase), rebase, "the high-availability metadata")


def _snapshot_path(address: JobAddress, rebase: Sequence[tuple[str, str]]) -> str:
    assert address.resource is not None
    namespace, name = address.resource
    found = KubernetesApi(address.context).custom_resource("flinkstatesnapshots", namespace, name)
    if found is None:
        raise UnknownNameError(
            f"namespace {namespace} has no FlinkStateSnapshot {name!r}",
            hint=f"run: kubectl get flinkstatesnapshots -n {namespace}",
        )
    state, path = _get(found, "status", "state"), _get(found, "status", "path")
    if state != "COMPLETED" or not path:
        reason = _get(found, "status", "error") or ("it has no path" if state == "COMPLETED" else "it is not complete")
        raise SnapshotNotFoundError(f"FlinkStateSnapshot {name} is {state or 'new'}: {reason}")
    return existing_path(str(path), rebase, f"FlinkStateSnapshot {name}")


def _stored(resource: Resource) -> StoredCheckpoint | None:
    """Return the chosen checkpoint of the high-availability metadata, ``None`` if there is none."""
    address = resource.address
    name = re.compile(rf"{re.escape(resource.cluster_id)}-([0-9a-f]{{32}})-.*")
    jobs: dict[str, list[StoredCheckpoint]] = {}
    for config_map, entries in resource.api.config_maps(resource.namespace, resource.cluster_id).items():
        match = name.fullmatch(config_map)
        if match is not None and (match[1].startswith(address.job.lower()) or not address.job):
            jobs[match[1]] = stored_checkpoints(entries, config_map)
    jobs = {job: stored for job, stored in jobs.items() if stored}
    if len(jobs) > 1:
        raise OptionError(
            f"{resource.cluster_id} has high-availability metadata of {several(len(jobs), 'job')}: {', '.join(sorted(jobs))}",
            hint=f"give the id of one: k8s://{resource.namespace}/{resource.cluster_id}/ID",
        )
    stored = [c for of_job in jobs.values() for c in of_job]
    if address.checkpoint not in (None, _LATEST):
        stored = [c for c in stored if c.checkpoint_id == int(address.checkpoint or 0)]
    return stored[-1] if stored else None


def _get(tree: Mapping[str, Any], *names: str) -> Any:
    """Return a part of a resource, ``None`` if it is absent."""
    part: Any = tree
    for name in names:
        part = part.get(name) if isinstance(part, Mapping) else None
    return part
