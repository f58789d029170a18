"""A standalone cluster: a JobManager and a TaskManager as processes of their own, as ``bin/start-cluster.sh`` starts them."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.support.flink.machine import OPENS
from tests.support.patience import PATIENCE_S, eventually
from tests.support.servers.ports import free_ports
from tools.flink_jars import SHORT_LIVED, compiled, flink_jars, java_tool

#: Sources of the jobs.
JOBS: Final = Path(__file__).parent / "jobs"
_LOGGING: Final = """
rootLogger.level = WARN
rootLogger.appenderRef.err.ref = err
appender.err.name = err
appender.err.type = CONSOLE
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n%throwable
"""


class StandaloneCluster:
    """A running cluster.

    Parameters
    ----------
    version
        Release, such as ``2.3.0``.
    work
        Folder for its files.
    retained
        Number of checkpoints that jobs keep.

    Raises
    ------
    FlinkUnavailableError
        There is no JDK, or the release cannot be downloaded.
    """

    def __init__(self, version: str, work: Path, *, retained: int = 3) -> None:
        self.version = version
        self._retained = retained
        self.work = Path(tempfile.mkdtemp(dir=work))
        self.checkpoints = self.work / "checkpoints"
        self.port, self._rpc_port, self._history_port = free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self._write_configuration()
        self._processes = [
            self._start("org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"),
            self._start("org.apache.flink.runtime.taskexecutor.TaskManagerRunner"),
        ]
        try:
            self.wait("a TaskManager", lambda: self.call("/taskmanagers")["taskmanagers"])
            self._jar = self._upload()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> StandaloneCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_configuration(self) -> None:
        conf = {
            # A busy machine may need longer than the ten seconds of the default.
            **dict.fromkeys(("akka.ask.timeout", "pekko.ask.timeout", "heartbeat.timeout"), PATIENCE_S * 1000),
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": self._rpc_port,
            "jobmanager.memory.process.size": "1g",
            "jobmanager.archive.fs.dir": (self.work / "archive").as_uri(),
            "taskmanager.host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": 8,
            "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.task.heap.size": "256m",
            "taskmanager.memory.task.off-heap.size": "0m",
            "taskmanager.memory.framework.heap.size": "64m",
            "taskmanager.memory.framework.off-heap.size": "64m",
            "taskmanager.memory.managed.size": "64m",
            "taskmanager.memory.network.min": "64m",
            "taskmanager.memory.network.max": "64m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
            "execution.checkpointing.num-retained": self._retained,
            "state.checkpoints.num-retained": self._retained,
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self.port,
            "io.tmp.dirs": self.work,
            "web.upload.dir": self.work / "upload",
            "historyserver.web.address": "127.0.0.1",
            "historyserver.web.port": self._history_port,
            "historyserver.web.tmpdir": self.work / "history",
            "historyserver.archive.fs.dir": (self.work / "archive").as_uri(),
            "historyserver.archive.fs.refresh-interval": 500,
        }
        (self.work / "archive").mkdir()
        lines = "".join(f"{key}: {value}\n" for key, value in conf.items())
        name = "config.yaml" if self.version >= "2" else "flink-conf.yaml"
        (self.work / name).write_text(lines)
        (self.work / "log4j2.properties").write_text(_LOGGING)

    def _start(self, main: str) -> subprocess.Popen[bytes]:
        command = [java_tool("java"), *OPENS, "-Xmx512m", *SHORT_LIVED]
        command += [f"-Dlog4j.configurationFile={self.work / 'log4j2.properties'}", f"-Djava.io.tmpdir={self.work}"]
        command += [
            "-cp",
            os.pathsep.join(map(str, flink_jars(self.version))),
            main,
            "--configDir",
            str(self.work),
        ]
        with (self.work / "log.txt").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def start_history_server(self, jobs: int) -> str:
        """Start a HistoryServer, wait until it has a number of jobs that ended, and return its URL."""
        self._processes.append(self._start("org.apache.flink.runtime.webmonitor.history.HistoryServer"))
        url = f"http://127.0.0.1:{self._history_port}"
        self.wait("the HistoryServer", lambda: len(_get(f"{url}/jobs/overview")["jobs"]) >= jobs)
        return url

    def call(self, path: str, body: Any = None) -> Any:
        """Send a request to the REST server and return the answer."""
        return _get(f"{self.url}{path}", body)

    def wait(self, what: str, holds: Any) -> Any:
        """Wait until a function returns a true value, and return it.

        Errors of the connection are retried, and so is half a document: the HistoryServer serves files that it is still writing.
        """

        def look() -> Any:
            try:
                if found := holds():
                    return found
            except (OSError, KeyError, http.client.HTTPException, json.JSONDecodeError):
                pass
            assert all(process.poll() is None for process in self._processes), describe()
            return None

        def describe() -> str:
            return f"{what}: {(self.work / 'log.txt').read_text()[-4000:]}"

        return eventually(look, describe=describe)

    def _upload(self) -> str:
        jar = self.work / "jobs.jar"
        classes = compiled(self.version, JOBS)
        with zipfile.ZipFile(jar, "w") as archive:
            for file in classes.rglob("*.class"):
                archive.write(file, file.relative_to(classes))
        edge = "edge-of-the-jar"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="jarfile"; filename="jobs.jar"\r\nContent-Type: application/x-java-archive\r\n\r\n'
        data = head.encode() + jar.read_bytes() + f"\r\n--{edge}--\r\n".encode()
        request = urllib.request.Request(
            f"{self.url}/jars/upload", data, {"Content-Type": f"multipart/form-data; boundary={edge}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return str(json.load(answer)["filename"]).rpartition("/")[2]

    def submit(self, name: str, mode: str = "run", program: str = "CountingJob", **options: str) -> str:
        """Start a job of a program in ``jobs`` and return its id. Underscores in the names of options stand for dots, two for a hyphen."""
        conf = {
            "execution.checkpointing.dir": self.checkpoints.as_uri(),
            "state.checkpoints.dir": self.checkpoints.as_uri(),
            **{key.replace("__", "-").replace("_", "."): value for key, value in options.items()},
        }
        arguments = [name, mode, *(f"{key}={value}" for key, value in conf.items())]
        request = {"entryClass": f"jobs.{program}", "programArgsList": arguments}
        return str(self.call(f"/jars/{self._jar}/run", request)["jobid"])

    def state(self, job: str) -> str:
        """Return the state of a job, ``RUNNING`` only if all of its tasks run."""
        found = self.call(f"/jobs/{job}")
        tasks = {vertex["status"] for vertex in found["vertices"]}
        return "STARTING" if found["state"] == "RUNNING" and tasks != {"RUNNING"} else str(found["state"])

    def wait_until(self, job: str, *states: str) -> None:
        """Wait until a job has one of the states."""
        self.wait(f"{job} to be {states}", lambda: self.state(job) in states)

    def history(self, job: str) -> Any:
        """Return the checkpoints of a job."""
        return self.call(f"/jobs/{job}/checkpoints")

    def wait_for_checkpoint(self, job: str) -> int:
        """Wait until a job has a completed checkpoint, and return its id."""
        return int(self.wait("a checkpoint", lambda: self.history(job)["latest"]["completed"])["id"])

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until it ended."""
        request = urllib.request.Request(f"{self.url}/jobs/{job}", method="PATCH")
        with urllib.request.urlopen(request, timeout=PATIENCE_S):
            self.wait_until(job, "CANCELED", "FAILED", "FINISHED")

    def close(self) -> None:
        """End the processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _get(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)
