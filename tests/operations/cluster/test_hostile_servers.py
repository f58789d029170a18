"""Servers that answer slowly, endlessly or with hostile numbers, and that name paths which a user never named."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from statetool.cli.main import cli
from statetool.errors import ConnectionFailedError, FormatError, StatetoolError
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.deadlines import Waiting, one_deadline
from statetool.operations.cluster.jobs import find_job, list_jobs
from statetool.operations.cluster.triggers import savepoint_request, trigger
from tests.support.servers.flink_rest import FlinkRest, flink_rest

_JSON: Final = {"Content-Type": "application/json"}
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkRest]:
    monkeypatch.setattr(client_module, "_PAUSES_S", (0.0, 0.0, 0.0))
    with flink_rest("2.3", tmp_path) as running:
        yield running


@contextmanager
def dripping(start: bytes, *, speaks_first: bool = False) -> Iterator[str]:
    """A server that sends the start of an answer, and then a byte every 50 ms without an end."""
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            if not speaks_first:
                connection.recv(65536)
            try:
                connection.sendall(start)
                while not ended.wait(0.05):
                    connection.sendall(b" ")
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", id="headers"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 3, id="continue"),
        pytest.param(_HEAD + b"Content-Length: 1000000\r\n\r\n{", id="body"),
        pytest.param(_HEAD + b"\r\n{", id="body of any length"),
        pytest.param(b"HTTP/1.1 500 Bad\r\nContent-Length: 1000000\r\n\r\n{", id="error"),
    ],
)
def test_an_answer_that_drips_has_a_deadline(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_TIMEOUT", "0.5")
    with dripping(start) as url:
        begin = time.monotonic()
        with pytest.raises(ConnectionFailedError, match=r"0\.5 s") as caught:
            RestClient(url).get("/jobs/overview")
        assert time.monotonic() - begin < 20
    assert "STATETOOL_FLINK_TIMEOUT" in str(caught.value)


def test_all_answers_of_a_command_share_a_deadline(rest: FlinkRest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_DEADLINE", "0.5")

    def slowly(method: str, path: str, headers: dict[str, str]) -> None:
        time.sleep(0.2)

    rest.first = slowly
    result = CliRunner().invoke(cli, ["jobs", rest.url])
    assert result.exit_code == 3
    assert "STATETOOL_FLINK_DEADLINE" in result.stderr
    assert len(rest.requests) <= 4


def test_all_clients_of_a_command_share_a_deadline(rest: FlinkRest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_DEADLINE", "0.5")
    rest.first = lambda *_: time.sleep(0.3)
    with one_deadline():
        list_jobs(RestClient(rest.url))
        with pytest.raises(ConnectionFailedError, match=r"longer than 0\.5 s together"):
            list_jobs(RestClient(rest.url))
    list_jobs(RestClient(rest.url))


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan"])
def test_a_malformed_deadline(rest: FlinkRest, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_DEADLINE", value)
    result = CliRunner().invoke(cli, ["jobs", rest.url])
    assert result.exit_code == 2
    assert "STATETOOL_FLINK_DEADLINE" in result.stderr


@pytest.mark.timeout(60)
def test_an_unknown_status_of_a_request_is_an_error(rest: FlinkRest) -> None:
    client = RestClient(rest.url)
    job = find_job(list_jobs(client), "orders", rest.url)

    def unknown(method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]] | None:
        if "/savepoints" not in path:
            return None
        return 200, (b'{"request-id":"a"}' if method == "POST" else b'{"status":{"id":"DANCING"}}'), _JSON

    rest.first = unknown
    with pytest.raises(FormatError, match="DANCING"):
        trigger(client, job, savepoint_request(client, job, "/tmp/x", None, stop=False, drain=False), lambda _: None)


_OVERVIEW: Final = {"jid": "0" * 32, "name": "x", "state": "RUNNING", "start-time": 1, "duration": 1}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("[" * 200_000, id="open"),
        pytest.param('{"jobs":' + "[" * 900 + "]" * 900 + "}", id="closed"),
        pytest.param('{"jobs":' + '{"a":' * 50_000 + "1" + "}" * 50_001, id="objects"),
        pytest.param(json.dumps({"jobs": [_OVERVIEW]}).replace('"duration": 1', '"duration": 1e999'), id="1e999"),
        pytest.param(json.dumps({"jobs": [_OVERVIEW]}).replace('"duration": 1', '"duration": NaN'), id="NaN"),
        pytest.param(json.dumps({"jobs": [_OVERVIEW | {"duration": 10**400}]}), id="400 digits"),
        pytest.param(
            json.dumps({"jobs": [_OVERVIEW]}).replace('"duration": 1', '"duration": ' + "9" * 5000), id="5000"
        ),
        pytest.param(json.dumps({"jobs": [_OVERVIEW | {"duration": []}]}), id="list"),
        pytest.param('{"jobs":[' + ",".join(["1"] * 5_000_000) + "]}", id="values"),
    ],
)
def test_hostile_json_is_an_error_of_ours(rest: FlinkRest, answer: str) -> None:
    rest.first = lambda *_: (200, answer.encode(), _JSON)
    with pytest.raises(StatetoolError):
        list_jobs(RestClient(rest.url))


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 253402300800_000, -1])
def test_times_beyond_the_calendar_are_shown(rest: FlinkRest, number: int) -> None:
    job = _OVERVIEW | {"start-time": number, "duration": number}
    details = {"is_savepoint": False, "status": "COMPLETED", "end_to_end_duration": number, "state_size": number}
    checkpoint = {"id": 1, "trigger_timestamp": number, **details}
    counts = {"completed": 1, "failed": 1, "in_progress": 0}
    failed = checkpoint | {"id": 2, "status": "FAILED", "failure_message": "x"}
    history = {"counts": counts, "latest": {"completed": checkpoint, "failed": failed}, "history": [checkpoint, failed]}

    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps({"jobs": [job]} if path == "/jobs/overview" else history).encode(), _JSON

    rest.first = answer
    for form in ([], ["--json"]):
        result = CliRunner().invoke(cli, ["jobs", rest.url, *form])
        assert result.exit_code == 0, result.output
        assert str(number) in result.stdout


def test_a_job_graph_of_any_depth_is_no_traceback() -> None:
    from statetool.operations.cluster.job_graph import parse_chain

    lines = ["a0", *("   " * level + f"+- a{level + 1}" for level in range(5000))]
    assert parse_chain(" -> ".join(f"a{i}" for i in range(5001)), "<br/>".join(lines)) is None


def _named(rest: FlinkRest, path: str) -> Any:
    history = rest.history("orders")
    for checkpoint in [*history["history"], *filter(None, history["latest"].values())]:
        if "external_path" in checkpoint:
            checkpoint["external_path"] = path
    return history


@pytest.mark.parametrize(
    "path",
    [
        "http://169.254.169.254/latest/meta-data/iam/chk-1",
        "http://127.0.0.1:{port}/a/b/chk-1",
        "https://example.invalid/a/b/chk-1",
        "ftp://127.0.0.1:{port}/a/chk-1",
        "sftp://127.0.0.1:{port}/a/chk-1",
        "webhdfs://127.0.0.1:{port}/a/chk-1",
        "simplecache::http://127.0.0.1:{port}/a/b/chk-1",
        "github://org:repo@main/chk-1",
        "hdfs://169.254.169.254:80/chk-1",
        "hdfs://2852039166/chk-1",
        "hdfs://0xA9FEA9FE/chk-1",
        "hdfs://[fe80::1]:9000/chk-1",
        "hdfs://[::ffff:169.254.169.254]/chk-1",
        "hdfs://metadata.google.internal/chk-1",
        "hdfs://METADATA.google.internal./chk-1",
        "memory://a/chk-1",
    ],
)
def test_an_answer_cannot_name_other_schemes_and_hosts(rest: FlinkRest, path: str) -> None:
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        path = path.format(port=server.getsockname()[1])
        _named(rest, path)
        result = CliRunner().invoke(cli, ["info", f"{rest.url}/orders"])
        try:
            asked.append(server.accept())
        except TimeoutError:
            pass
    assert not asked
    assert result.exit_code == 3
    assert re.search("names .*which statetool does not open", result.stderr), result.stderr
    assert "--rebase" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_metadata_cannot_name_other_schemes_and_hosts(tmp_path: Path) -> None:
    from statetool.formats.metadata.handles import FileHandle
    from statetool.snapshot.locate import Locator

    (tmp_path / "_metadata").touch()
    for path in ("http://127.0.0.1:1/shared/a", "hdfs://169.254.169.254/shared/a", "filecache::s3://bucket/a"):
        locator = Locator(metadata_file=str(tmp_path / "_metadata"))
        with pytest.raises(StatetoolError, match="which statetool does not open") as caught:
            locator.resolve(FileHandle(path=path, size_bytes=1))
        assert "--rebase" in str(caught.value)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "a").touch()  # the copy beside the metadata needs no other host
    found = Locator(metadata_file=str(tmp_path / "_metadata")).resolve(
        FileHandle(path="http://127.0.0.1:1/shared/a", size_bytes=1)
    )
    assert found is not None
    assert found.file == str(tmp_path / "shared" / "a")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "start"), [("postgresql", b"NR\0\0\xff\xff"), ("mysql", b"\xff\xff\0\0")])
def test_a_database_that_drips_has_a_deadline(kind: str, start: bytes) -> None:
    from statetool.connectors.outside.xa_databases import prepared_transactions

    with (
        dripping(start, speaks_first=kind == "mysql") as url,
        pytest.raises(ConnectionFailedError, match="no answer within 1"),
    ):
        prepared_transactions(url.replace("http:", f"{kind}:") + "/x", timeout_s=0.25)


@pytest.mark.timeout(60)
def test_an_api_of_kubernetes_that_drips_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_DEADLINE", "0.5")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with dripping(_HEAD + b"Content-Length: 1000000\r\n\r\n{") as url:
        cluster = {"name": "a", "cluster": {"server": url}}
        context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
        config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "a", "user": {}}]}
        (tmp_path / "config").write_text(json.dumps({"current-context": "a", **config}))
        result = CliRunner().invoke(cli, ["info", "k8s://prod/orders"])
    assert result.exit_code == 3
    assert "does not answer: no answer within 0.5 s" in result.stderr


def test_a_database_that_sends_other_messages_is_an_error_of_ours() -> None:
    from statetool.connectors.outside.xa_databases import prepared_transactions

    with dripping(b"N  \0\0\0\4") as url, pytest.raises(ConnectionFailedError):
        prepared_transactions(url.replace("http:", "postgresql:") + "/x", timeout_s=0.25)


def test_answers_that_threads_wait_for_together_count_once() -> None:
    waiting = Waiting()
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(_wait, waiting) for _ in range(4)]:
            done.result()
    assert 9 < waiting.left(10) < 10 - 0.2  # not 4 times 0.3
    waiting.renew()
    assert waiting.left(10) == 10


def _wait(waiting: Waiting) -> None:
    with waiting.counted():
        time.sleep(0.3)
