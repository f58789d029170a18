"""Errors, retries, TLS and secrets of the client, against a server with recorded answers."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from statetool.errors import ConnectionFailedError, OptionError
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster.client import NotFlinkError, RestClient, RestError, shorten_reason
from statetool.operations.cluster.credentials import Credentials
from tests.support.servers.flink_rest import FlinkRest, flink_rest

_SECRET: Final = "hunter2-is-secret"
_JSON: Final = {"Content-Type": "application/json"}


@pytest.fixture
def rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkRest]:
    monkeypatch.setattr(client_module, "_PAUSES_S", (0.0, 0.0, 0.0))
    with flink_rest("2.3", tmp_path) as running:
        yield running


def raised(client: RestClient, path: str = "/jobs/overview", body: dict[str, Any] | None = None) -> Exception:
    with pytest.raises(ConnectionFailedError) as caught:
        client.get(path) if body is None else client.post(path, body)
    return caught.value


def test_an_answer(rest: FlinkRest) -> None:
    assert len(RestClient(rest.url).get("/jobs/overview")["jobs"]) == 7
    assert "Authorization" not in rest.requests[0][2]


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({"STATETOOL_FLINK_TOKEN": f"{_SECRET}\n"}, f"Bearer {_SECRET}"),
        (
            {"STATETOOL_FLINK_USER": "me", "STATETOOL_FLINK_PASSWORD": _SECRET},
            f"Basic {base64.b64encode(f'me:{_SECRET}'.encode()).decode()}",
        ),
        ({"STATETOOL_FLINK_HEADERS": f"X-Team: flink\nAuthorization: Key {_SECRET}"}, f"Key {_SECRET}"),
    ],
)
def test_credentials_are_sent_and_in_no_text(
    rest: FlinkRest, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], header: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    secrets = {_SECRET, header.split()[1]}

    def refuse(method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]] | None:
        # A server that repeats what it was sent, in a message and in a redirect.
        if path == "/redirect":
            return 302, b"", {"Location": f"http://elsewhere/{header.split()[1]}?{header}"}
        status = 500 if path == "/error" else 401
        return status, f'{{"errors":["refused: {header}"]}}'.encode(), _JSON

    client = RestClient(rest.url)
    client.get("/jobs/overview")
    assert rest.requests[0][2]["Authorization"] == header
    rest.first = refuse
    texts = [repr(client), repr(vars(client)), repr(Credentials.from_environment())]
    for path in ("/error", "/redirect", "/other"):
        error = raised(client, path)
        texts += [
            str(error),
            repr(error),
            *traceback.TracebackException.from_exception(error, capture_locals=True).format(),
        ]
        assert error.__cause__ is None
        assert error.__context__ is None
    assert any("***" in text for text in texts)
    assert not [text for text in texts if any(secret in text for secret in secrets)]
    assert str(error).startswith(f"{rest.url} answers 401")
    assert next(iter(variables)) in str(error)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"STATETOOL_FLINK_TOKEN": f"{_SECRET}\r\nX: y"}, "TOKEN contains a character"),
        ({"STATETOOL_FLINK_TOKEN": f"{_SECRET}ü"}, "TOKEN contains a character"),
        ({"STATETOOL_FLINK_TOKEN": _SECRET, "STATETOOL_FLINK_USER": "me"}, "both set"),
        ({"STATETOOL_FLINK_PASSWORD": _SECRET}, "only one of"),
        ({"STATETOOL_FLINK_USER": f"a:{_SECRET}", "STATETOOL_FLINK_PASSWORD": _SECRET}, "contains a colon"),
        ({"STATETOOL_FLINK_HEADERS": _SECRET}, "HEADERS: malformed header"),
        ({"STATETOOL_FLINK_TIMEOUT": "soon"}, "not a number of seconds"),
    ],
)
def test_malformed_credentials(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(OptionError, match=message) as caught:
        Credentials.from_environment()
    text = "".join(traceback.format_exception(caught.value))
    assert _SECRET not in text


def test_secrets_are_in_no_output_of_commands(rest: FlinkRest) -> None:
    rest.first = lambda method, path, headers: (403, f'{{"errors":["{_SECRET}"]}}'.encode(), _JSON)
    for arguments in (
        ["info", f"{rest.url}/orders"],
        ["--debug", "jobs", rest.url],
        ["info", f"flink://me:{_SECRET}@host/x"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "statetool", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[3]), "STATETOOL_FLINK_TOKEN": _SECRET},
        )
        assert done.returncode
        assert "answers 403" in done.stderr or "contains credentials" in done.stderr
        assert _SECRET not in done.stdout + done.stderr


def test_a_busy_server_is_asked_again(rest: FlinkRest) -> None:
    busy = [503, 503]
    rest.first = lambda method, path, headers: (busy.pop(), b"", {}) if busy else None
    assert RestClient(rest.url).get("/jobs/overview")["jobs"]
    assert len(rest.requests) == 3
    rest.first = lambda method, path, headers: (503, b'{"errors":["no leader"]}', _JSON)
    assert "answers 503 Service Unavailable: no leader" in str(raised(RestClient(rest.url)))
    assert len(rest.requests) == 7


@pytest.mark.parametrize("half", [b"", b'{"jobs": [{"jid'])
def test_half_an_answer_is_asked_for_again(rest: FlinkRest, half: bytes) -> None:
    halves = [half, half]
    rest.first = lambda method, path, headers: (200, halves.pop(), _JSON) if halves else None
    assert RestClient(rest.url).get("/jobs/overview")["jobs"]
    assert len(rest.requests) == 3
    rest.first = lambda method, path, headers: (200, half, _JSON)
    assert "half an answer" in str(raised(RestClient(rest.url)))


def test_a_request_that_may_have_been_received_is_not_sent_again(
    rest: FlinkRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_TIMEOUT", "0.2")
    received, gave_up = threading.Event(), threading.Event()

    def wait(method: str, path: str, headers: dict[str, str]) -> None:
        received.set()
        gave_up.wait(300)

    rest.first = wait
    assert "does not answer within 0.2 s" in str(raised(RestClient(rest.url), "/jobs/1/savepoints", {}))
    assert received.wait(300)  # a busy machine may take longer than the client waits
    gave_up.set()
    assert len(rest.requests) == 1


def test_a_refused_connection_is_tried_again(rest: FlinkRest, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(client_module, "_PAUSES_S", (0.5, 1.0))
    # Other threads of this process may sleep too.
    monkeypatch.setattr(client_module, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    error = raised(RestClient("http://127.0.0.1:1"), body={})
    assert "http://127.0.0.1:1 does not answer" in str(error)
    assert "check host and port" in str(error)
    assert pauses == [0.5, 1.0]


@pytest.mark.parametrize(
    ("status", "data"), [(200, b"<html>"), (200, b"[]"), (404, b"<html>not found"), (200, b'{"a": 1}')]
)
def test_a_server_that_is_not_flink(rest: FlinkRest, status: int, data: bytes) -> None:
    from statetool.operations.cluster.jobs import list_jobs

    rest.first = lambda method, path, headers: (status, data, {})
    with pytest.raises(NotFlinkError, match="is not Flink's REST API"):
        list_jobs(RestClient(rest.url))


def test_an_error_of_flink(rest: FlinkRest) -> None:
    error = raised(RestClient(rest.url), f"/jobs/{rest.jobs['orders']}/checkpoints/details/99999")
    assert isinstance(error, RestError)
    assert error.status == 404
    assert str(error).endswith("answers 404 Not Found: Could not find checkpointing statistics for checkpoint 99999")


def test_the_reason_in_a_stack_trace() -> None:
    text = "java.util.A: org.x.BException: outer\n\tat org.x.Y(Z.java:1)\nCaused by: java.lang.CError: inner\n\t... 21 more"
    assert shorten_reason(text) == "java.util.A: org.x.BException: outer (inner)"
    assert shorten_reason("org.x.AException: org.x.BException: both") == "both"
    assert len(shorten_reason("x" * 5000)) == 300


def test_tls(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with flink_rest("2.3", tmp_path, tls=context) as rest:
        assert "set STATETOOL_FLINK_CA" in str(raised(RestClient(rest.url)))
        assert "flinks://" in str(raised(RestClient(rest.url.replace("https", "http"))))
        monkeypatch.setenv("STATETOOL_FLINK_CA", str(certificate))
        assert RestClient(rest.url).get("/jobs/overview")["jobs"]
    with flink_rest("2.3", tmp_path) as plain:
        assert "TLS failed" in str(raised(RestClient(plain.url.replace("http", "https"))))


def test_mutual_tls(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    monkeypatch.setenv("STATETOOL_FLINK_CA", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with flink_rest("2.3", tmp_path, tls=context) as rest:
        assert "STATETOOL_FLINK_CERT" in str(raised(RestClient(rest.url)))
        monkeypatch.setenv("STATETOOL_FLINK_CERT", str(certificate))
        assert RestClient(rest.url).get("/jobs/overview")["jobs"]


@pytest.mark.parametrize("variable", ["STATETOOL_FLINK_CA", "STATETOOL_FLINK_CERT"])
def test_missing_files_with_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "missing.pem"))
    with pytest.raises(OptionError, match=f"{variable}=.*missing.pem"):
        RestClient("https://127.0.0.1:1")
