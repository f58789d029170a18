"""Settings of a job, and of its JobManager, by the names of Flink's options.

``/jobmanager/config`` lists the configuration of the cluster. ``/jobs/<id>/checkpoints/config`` has the checkpoint settings that are in
effect, whether they come from the configuration or from the job's code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statetool.operations.cluster.client import RestClient, reading_answer
from statetool.operations.cluster.jobs import Job, get_if_found

_PREFIX: Final = "execution.checkpointing."
#: The interval of jobs that only take savepoints: ``Long.MAX_VALUE``.
_NEVER_MS: Final = (1 << 63) - 1
#: Fields of ``CheckpointConfigInfo`` in milliseconds: options, and their defaults.
_DURATIONS: Final = {
    "interval": (f"{_PREFIX}interval", _NEVER_MS),
    "timeout": (f"{_PREFIX}timeout", 600_000),
    "min_pause": (f"{_PREFIX}min-pause", 0),
    "aligned_checkpoint_timeout": (f"{_PREFIX}aligned-checkpoint-timeout", 0),
}
_NUMBERS: Final = {
    "max_concurrent": (f"{_PREFIX}max-concurrent-checkpoints", 1),
    "tolerable_failed_checkpoints": (f"{_PREFIX}tolerable-failed-checkpoints", 0),
}
_FLAGS: Final = {
    "unaligned_checkpoints": (f"{_PREFIX}unaligned.enabled", False),
    "checkpoints_after_tasks_finish": (f"{_PREFIX}checkpoints-after-tasks-finish", True),
    "state_changelog_enabled": ("state.changelog.enabled", False),
}
_BACKENDS: Final = {
    "HashMapStateBackend": "hashmap",
    "EmbeddedRocksDBStateBackend": "rocksdb",
    "ForStStateBackend": "forst",
}


def read_cluster_settings(client: RestClient, job: Job | None) -> dict[str, str]:
    """Return the configuration of the JobManager; for a job on a HistoryServer, as it was.

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    FormatError
        The answer is not that of Flink.
    """
    path = "/jobmanager/config" if job is None else f"/jobs/{job.job_id}/jobmanager/config"
    tree = get_if_found(client, path, list)
    if tree is None:  # before Flink 1.16
        path = "/jobmanager/config"
        tree = client.get(path, list)
    with reading_answer(f"{client.server}{path}"):
        return {str(entry["key"]): str(entry["value"]) for entry in tree}


def read_checkpoint_settings(client: RestClient, job: Job) -> dict[str, tuple[str, bool]]:
    """Return the checkpoint settings of a job by option, each with whether it is Flink's default. Empty without checkpoints.

    Raises
    ------
    ConnectionFailedError, FormatError
        As for :func:`read_cluster_settings`.
    """
    path = f"/jobs/{job.job_id}/checkpoints/config"
    tree: Any = get_if_found(client, path)
    if tree is None:
        return {}
    with reading_answer(f"{client.server}{path}"):
        return _settings(tree)


def _settings(tree: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    found = {}
    for name, (option, default) in _DURATIONS.items():
        if name in tree and int(tree[name]) != _NEVER_MS:
            found[option] = (f"{int(tree[name])} ms", int(tree[name]) == default)
    for name, (option, number) in _NUMBERS.items():
        if name in tree:
            found[option] = (str(int(tree[name])), int(tree[name]) == number)
    for name, (option, flag) in _FLAGS.items():
        if name in tree:
            found[option] = (str(bool(tree[name])).lower(), bool(tree[name]) == flag)
    mode = str(tree["mode"]).upper()
    found[f"{_PREFIX}mode"] = (mode, mode == "EXACTLY_ONCE")
    kept = tree["externalization"]
    retention = "NO_EXTERNALIZED_CHECKPOINTS"
    if kept["enabled"]:
        retention = "DELETE_ON_CANCELLATION" if kept["delete_on_cancellation"] else "RETAIN_ON_CANCELLATION"
    found[f"{_PREFIX}externalized-checkpoint-retention"] = (retention, retention == "NO_EXTERNALIZED_CHECKPOINTS")
    if (backend := _BACKENDS.get(str(tree.get("state_backend")))) is not None:
        found["state.backend.type"] = (backend, backend == "hashmap")
    return found
