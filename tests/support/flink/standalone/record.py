"""Answers of a real cluster's REST API, stored for tests without Flink.

``python -m tests.support.flink.standalone.record`` starts a cluster of each release and writes ``tests/operations/cluster/recorded``. Stack traces are
cut, and parts of answers that statetool does not read are removed.
"""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.servers.flink_rest import FOLDER, RECORDED
from tools.flink_jars import DEFAULT_VERSIONS

_REMOVED: Final = frozenset({"summary", "serialized-throwable", "tasks", "features", "metrics"})
_MOST_TEXT: Final = 400


class Recorder:
    """Sends requests, and collects the answers by method and path."""

    def __init__(self, cluster: StandaloneCluster, url: str) -> None:
        self._cluster = cluster
        self._url = url
        self.answers: dict[str, list[list[Any]]] = {}

    def ask(self, path: str, body: Any = None) -> Any:
        """Send a request and return the JSON answer. Further answers to the same request are added."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                status, text = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text
        name = f"{request.get_method()} {path}"
        answers = self.answers.setdefault(name, [])
        if not answers or answers[-1][1] != _cut(answer, self._cluster.work):
            answers.append([status, _cut(answer, self._cluster.work)])
        return answer

    def wait(self, path: str) -> None:
        """Record the status of a request until it is complete."""
        self._cluster.wait(path, lambda: self.ask(path)["status"]["id"] == "COMPLETED")


def _cut(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {key: _cut(part, folder) for key, part in value.items() if key not in _REMOVED}
    if isinstance(value, list):
        return [_cut(part, folder) for part in value]
    return value.replace(str(folder), FOLDER)[:_MOST_TEXT] if isinstance(value, str) else value


def record(version: str, work: Path) -> dict[str, Any]:
    """Run jobs in a cluster and return the answers of its REST API and of its HistoryServer, and the ids of the jobs."""
    with StandaloneCluster(version, work) as cluster:
        rest = Recorder(cluster, cluster.url)
        interval = {"execution_checkpointing_interval": "1 s"}
        retained = {"execution_checkpointing_externalized__checkpoint__retention": "RETAIN_ON_CANCELLATION"}
        ended = {"finished": cluster.submit("finished", "finish"), "failed": cluster.submit("failed", "fail")}
        cluster.wait_until(ended["finished"], "FINISHED")
        jobs = {
            **ended,
            "orders": cluster.submit("orders", "run", **interval, **retained),
            "twice": cluster.submit("twice"),
            "other": cluster.submit("twice"),
            "declining": cluster.submit("declining", "decline", **interval),
            "canceled": cluster.submit("canceled", "run", **interval, **retained),
        }
        for name in ("orders", "twice", "other", "canceled"):
            cluster.wait_until(jobs[name], "RUNNING")
        for name in ("orders", "canceled"):
            cluster.wait_for_checkpoint(jobs[name])
        cluster.cancel(jobs["canceled"])
        cluster.wait("a failed checkpoint", lambda: cluster.history(jobs["declining"])["latest"]["failed"])
        rest.ask("/config")
        orders = f"/jobs/{jobs['orders']}"
        savepoints = (cluster.work / "savepoints").as_uri()
        number = rest.ask(f"{orders}/savepoints", {"target-directory": savepoints, "cancel-job": False})["request-id"]
        rest.wait(f"{orders}/savepoints/{number}")
        number = rest.ask(f"{orders}/checkpoints", {})["request-id"]
        rest.wait(f"{orders}/checkpoints/{number}")
        taken = rest.ask(f"{orders}/checkpoints/{number}")["operation"]["checkpointId"]
        declining = f"/jobs/{jobs['declining']}"
        number = rest.ask(f"{declining}/savepoints", {"target-directory": savepoints, "cancel-job": False})[
            "request-id"
        ]
        rest.wait(f"{declining}/savepoints/{number}")
        for job in jobs.values():
            rest.ask(f"/jobs/{job}/checkpoints")
        for path in ("/jobs/overview", f"{orders}/checkpoints/details/{taken}", f"{orders}/checkpoints/details/99999"):
            rest.ask(path)
        for path in ("/jobmanager/config", f"{orders}/jobmanager/config", f"{orders}/checkpoints/config"):
            rest.ask(path)
        for vertex in rest.ask(orders)["vertices"]:
            rest.ask(f"{orders}/checkpoints/details/{taken}/subtasks/{vertex['id']}")
        number = rest.ask(f"{orders}/stop", {"targetDirectory": savepoints, "drain": False})["request-id"]
        rest.wait(f"{orders}/savepoints/{number}")
        cluster.wait_until(jobs["orders"], "FINISHED")
        history = Recorder(cluster, cluster.start_history_server(4))
        for path in (
            "/config",
            "/jobs/overview",
            *(f"/jobs/{jobs[name]}/checkpoints" for name in ("orders", "canceled")),
        ):
            history.ask(path)
        history.ask(f"/jobs/{'0' * 32}/checkpoints")
        return {"version": version, "jobs": jobs, "rest": rest.answers, "history": history.answers}


def main() -> None:
    """Record all releases."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    for version in DEFAULT_VERSIONS:
        with tempfile.TemporaryDirectory() as work:
            recorded = record(version, Path(work))
        lines = json.dumps(recorded, indent=1, ensure_ascii=False)
        (RECORDED / f"{version.rpartition('.')[0]}.json").write_text(f"{lines}\n")


if __name__ == "__main__":
    main()
