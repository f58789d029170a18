"""A server on this machine with recorded answers of Flink's REST API (:mod:`tests.support.flink.standalone.record`)."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.servers.http_answers import http_server

#: Folder of the recorded answers.
RECORDED: Final = HERE / "operations" / "cluster" / "recorded"
#: The folder of the cluster in recorded paths.
FOLDER: Final = "/folder-of-the-cluster"
RELEASES: Final = ("1.20", "2.3")


@dataclass(slots=True)
class FlinkRest:
    """A running server.

    Attributes
    ----------
    jobs
        Ids of the jobs by what they do: ``orders``, ``twice``, ``other`` (also named ``twice``), ``finished``, ``failed``, ``declining``,
        ``canceled``.
    requests
        Method, path, headers and body of each request.
    answers
        Answers by method and path; the last one repeats.
    first
        Gets method and path of a request. If it returns an answer, this is sent instead: status, body and headers.
    """

    jobs: dict[str, str]
    answers: dict[str, list[list[Any]]]
    folder: Path
    url: str = ""
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    first: Callable[[str, str, dict[str, str]], tuple[int, bytes, dict[str, str]] | None] | None = None

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.partition("://")[2]

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Return the answer to a request."""
        self.requests.append((method, path, headers, json.loads(body) if body else None))
        if self.first is not None and (given := self.first(method, path, headers)) is not None:
            return given
        known = self.answers.get(f"{method} {path}")
        if not known:
            return 404, b'{"errors":["Unable to load requested file."]}', {"Content-Type": "application/json"}
        status, tree = known.pop(0) if len(known) > 1 else known[0]
        text = json.dumps(tree).replace(FOLDER, str(self.folder))
        return status, text.encode(), {"Content-Type": "application/json"}

    def history(self, job: str) -> Any:
        """Return the recorded checkpoints of a job, which a test may change."""
        return self.answers[f"GET /jobs/{self.jobs[job]}/checkpoints"][-1][1]

    def checkpoint_path(self, job: str, number: int) -> Path:
        """Return the path of a checkpoint."""
        return self.folder / "checkpoints" / self.jobs[job] / f"chk-{number}"


@contextlib.contextmanager
def flink_rest(
    release: str, folder: Path, *, part: str = "rest", tls: ssl.SSLContext | None = None
) -> Iterator[FlinkRest]:
    """Run a server with the answers of a release.

    Parameters
    ----------
    folder
        Folder in place of that of the cluster.
    part
        ``rest`` for the JobManager, ``history`` for the HistoryServer.
    """
    recorded = json.loads((RECORDED / f"{release}.json").read_text())
    rest = FlinkRest(jobs=recorded["jobs"], answers=recorded[part], folder=folder)

    with http_server(rest.answer, tls) as url:
        rest.url = url
        yield rest
