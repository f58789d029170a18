"""Credentials of several clusters: by a file, by ``set_credentials``, and by environment variables for all others."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import ConnectionFailedError, OptionError
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster import clusters
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.clusters import credentials_for, using_clusters
from tests.support.servers.flink_rest import FlinkRest, flink_rest
from tests.support.spark.data_sources import data_sources
from tests.support.zoo import ZOO

_ROOT: Final = Path(__file__).parents[3]
_SECRETS: Final = ("hunter2-of-the-first", "hunter3-of-the-other", "hunter4-in-a-header", "hunter5-in-the-environment")
_FIRST, _OTHER, _HEADER, _ELSEWHERE = _SECRETS


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSES_S", ())
    monkeypatch.setattr(clusters, "CREDENTIALS", clusters.SetCredentials())


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[FlinkRest, FlinkRest]]:
    """Two servers that each accept one token, and repeat what they refuse."""

    def accept(rest: FlinkRest, token: str) -> None:
        def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]] | None:
            if headers.get("Authorization") == f"Bearer {token}":
                return None
            return 403, f'{{"errors":["{headers}"]}}'.encode(), {}

        rest.first = answer

    with flink_rest("2.3", tmp_path / "a") as first, flink_rest("1.20", tmp_path / "b") as other:
        for rest, token in ((first, _FIRST), (other, _OTHER)):
            accept(rest, token)
            newest = rest.history("orders")["latest"]["completed"]["id"]
            path = rest.checkpoint_path("orders", newest)
            path.parent.mkdir(parents=True)
            path.symlink_to(Path(ZOO).absolute())
        yield first, other


def write(folder: Path, text: str) -> Path:
    file = folder / "clusters.ini"
    file.write_text(text)
    return file


def both(servers: tuple[FlinkRest, FlinkRest], folder: Path) -> Path:
    """Write the file of both servers. One token is in a file of its own."""
    (folder / "token").write_text(f"{_OTHER}\n")
    first, other = servers
    return write(folder, f"[{first.url}]\ntoken = {_FIRST}\n# another one\n[{other.url}]\ntoken_file = token\n")


def urls(servers: tuple[FlinkRest, FlinkRest]) -> list[str]:
    return [f"flink://{rest.host}/orders" for rest in servers]


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    assert not [secret for secret in _SECRETS if secret in done.output]
    return done


def test_one_command_with_two_clusters(servers: tuple[FlinkRest, FlinkRest], tmp_path: Path) -> None:
    file = both(servers, tmp_path)
    run("--clusters", str(file), "diff", *urls(servers))
    assert "53 of 54 states" in run("--clusters", str(file), "check", *urls(servers), code=1).stdout
    assert "CLUSTERS" not in " ".join(os.environ)
    assert "answers 403" in run("diff", *urls(servers), code=3).stderr


def test_one_process_with_two_clusters(servers: tuple[FlinkRest, FlinkRest]) -> None:
    for rest, token in zip(servers, (_FIRST, _OTHER), strict=True):
        statetool.set_credentials(f"flink://{rest.host}", token=token)
    first, other = (statetool.load(url) for url in urls(servers))
    assert first.path != other.path
    assert _FIRST not in repr(credentials_for(servers[0].url))
    statetool.set_credentials(servers[0].url, token="expired-token")
    with pytest.raises(ConnectionFailedError, match="answers 403") as refused:
        statetool.load(urls(servers)[0])
    assert refused.value.hint == "check token (statetool.set_credentials): the server does not accept them"


def test_the_section_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_TOKEN", _ELSEWHERE)
    file = write(
        tmp_path,
        f"""[flinks://host:443]
user = me
password = 100% = {_FIRST}
timeout = 3
[https://host/prod/flink]
headers =
    X-Team: flink
    Authorization: Key {_HEADER}
ca = ca.pem
cert = /etc/client.pem
key = key.pem
[flink://other]
[flink://[::1]]
token = {_OTHER}
""",
    )
    monkeypatch.setenv("STATETOOL_FLINK_CLUSTERS", str(file))
    for server in ("https://host:443", "https://host", "https://host/dev"):
        found = credentials_for(server)
        assert (found.timeout_s, list(found.headers)) == (3, ["Authorization"])
        assert f"100% = {_FIRST}" in found.secrets
    prod = credentials_for("https://host:443/prod/flink")
    assert prod.headers == {"X-Team": "flink", "Authorization": f"Key {_HEADER}"}
    assert (prod.ca, prod.certificate, prod.key) == (
        str(tmp_path / "ca.pem"),
        "/etc/client.pem",
        str(tmp_path / "key.pem"),
    )
    assert credentials_for("http://other:8081").headers == {}
    assert credentials_for("http://[::1]:8081").secrets == (_OTHER,)
    # Without TLS, on another port or host: those of the environment.
    for server in ("http://host", "https://host:8443", "https://host.evil", "http://other"):
        assert credentials_for(server).secrets == (_ELSEWHERE,)
    statetool.set_credentials("https://host", headers={"X-Key": _OTHER})
    assert credentials_for("https://host/prod/flink").headers == {"X-Key": _OTHER}
    statetool.set_credentials("https://host")
    assert credentials_for("https://host").headers == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{_FIRST}\n", "line 1 is malformed"),
        (f"[flink://a]\n{_FIRST}\n", "line 2 is malformed"),
        (f"[flink://a]\ntoken = x\ntoken = {_FIRST}\n", "line 3 is malformed"),
        (f"[flink://a]\ntoken = x\n[flink://a]\ntoken = {_FIRST}\n", "line 3 is malformed"),
        (f"[flink://a]\n[http://a:8081]\ntoken = {_FIRST}\n", "are the same server"),
        (f"[a]\ntoken = {_FIRST}\n", r"\[a\] is not the URL of a server"),
        (f"[flink://a]\ntokens = {_FIRST}\n", "unknown setting 'tokens'. did you mean token"),
        (
            f"[flink://a]\ntoken = {_FIRST}\nuser = me\n",
            r"token and user are both set in \[flink://a\] of .*clusters.ini",
        ),
        (f"[flink://a]\npassword = {_FIRST}\n", "only one of user and password"),
        (f"[flink://a]\ntoken = {_FIRST}\ntoken_file = x\n", "token_file and token are both set"),
        (f"[flink://a]\ntoken_file = missing\nheaders = X: {_FIRST}\n", "token_file=.*missing.* cannot be read"),
        (f"[flink://a]\nkey = x\ntoken = {_FIRST}\n", "key is set without cert"),
        (f"[flink://a]\ntoken = {_FIRST}ü\n", "token in .* contains a character"),
        (f"[flink://a]\nheaders = {_FIRST}\n", "headers in .*: malformed header"),
        (f"[flink://a]\ntimeout = soon\ntoken = {_FIRST}\n", "not a number of seconds"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    with using_clusters(str(write(tmp_path, text))), pytest.raises(OptionError, match=message) as caught:
        credentials_for("http://a:8081")
    assert _FIRST not in "".join(traceback.format_exception(caught.value))


def test_a_missing_file(tmp_path: Path) -> None:
    with using_clusters(str(tmp_path / "missing")), pytest.raises(OptionError, match="missing cannot be read"):
        RestClient("http://a:8081")
    (tmp_path / "latin").write_bytes(b"\xff")
    with using_clusters(str(tmp_path / "latin")), pytest.raises(OptionError, match="is not text"):
        RestClient("http://a:8081")


@pytest.mark.parametrize(
    "server", ["host", "k8s://a/b", "s3://bucket", f"flink://me:{_FIRST}@host", "flink://host:x", "flink://"]
)
def test_what_is_not_a_server(server: str) -> None:
    with pytest.raises(OptionError, match="not the URL of a server") as caught:
        statetool.set_credentials(server, token="x")
    assert _FIRST not in "".join(traceback.format_exception(caught.value))


def test_tls_by_a_file(tmp_path: Path, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    cert, key = (certificate.with_name(name) for name in ("cert", "key"))
    with flink_rest("2.3", tmp_path, tls=context) as rest:
        file = write(tmp_path, f"[{rest.url}]\nca = {certificate}\n")
        with using_clusters(str(file)), pytest.raises(ConnectionFailedError) as refused:
            RestClient(rest.url).get("/jobs/overview")
        assert f"set cert in [{rest.url}] of {file}" in str(refused.value)
        write(tmp_path, f"[{rest.url}]\nca = {certificate}\ncert = {cert}\nkey = {key}\n")
        with using_clusters(str(file)):
            assert RestClient(rest.url).get("/jobs/overview")["jobs"]
        write(tmp_path, f"[{rest.url}]\nca = {tmp_path / 'none.pem'}\n")
        with using_clusters(str(file)), pytest.raises(OptionError, match=r"ca=.*none.pem in \[http"):
            RestClient(rest.url)


def test_spark_options_name_the_file(servers: tuple[FlinkRest, FlinkRest], tmp_path: Path) -> None:
    options = pytest.importorskip("statetool.spark.source.options")
    url, file = urls(servers)[1], both(servers, tmp_path)
    found = options.resolve_job({"path": url, "clusters": str(file), "operatorUid": "x"})
    assert "/chk-" in found["path"]
    with pytest.raises(ConnectionFailedError, match="answers 403"):
        options.resolve_job({"path": url})


#: Commands, each with a part of its output.
_COMMANDS: Final = (
    (("head", "FIRST", "timers", "keyed_state", "-n", "1"), "timer-0"),
    (("--debug", "info", "FIRST"), "chk-"),
    (("check", "FIRST", "OTHER"), "restore"),
    (("jobs", "SERVER", "--json"), '"orders"'),
    (("metrics", "FIRST"), "statetool_checkpoint_id"),
    (("--debug", "info", "ELSEWHERE"), "answers 403"),
    (("info", "ELSEWHERE"), "answers 403"),
    (("--debug", "info", "MALFORMED"), "has an unknown setting"),
)
#: Runs commands in one process, and prints what other users see of it.
_PROGRAM: Final = """
import json, sys
from click.testing import CliRunner
from statetool.cli.main import cli
for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(cli, command, prog_name="statetool")
    print(done.output, done.exc_info, flush=True)
    if done.exception is not None:
        import traceback
        traceback.print_exception(done.exception)
print("cmdline", open(f"/proc/self/cmdline").read(), open("/proc/self/comm").read())
"""


def test_secrets_are_in_no_output_and_no_process_title(servers: tuple[FlinkRest, FlinkRest], tmp_path: Path) -> None:
    first, other = servers
    file = both(servers, tmp_path)
    file.write_text(
        f"{file.read_text()}[flink://unused]\nheaders = X-Key: {_HEADER}\nuser = me\npassword = {_HEADER}\n"
    )
    bad = tmp_path / "bad.ini"
    bad.write_text(f"[{first.url}]\npasswort = {_FIRST}\n")
    third = first.url.replace("127.0.0.1", "localhost")  # in no section, so it gets the credentials of the environment
    places = {"FIRST": urls(servers)[0], "OTHER": urls(servers)[1], "SERVER": first.url, "ELSEWHERE": f"{third}/orders"}
    lines = []
    for command, _ in _COMMANDS:
        given = bad if "MALFORMED" in command else file
        words = [places.get(word, places["FIRST"] if word == "MALFORMED" else word) for word in command]
        lines.append(["--clusters", str(given), *words])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(lines)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "STATETOOL_FLINK_TOKEN": _ELSEWHERE},
    )
    output = done.stdout + done.stderr
    assert not [part for _, part in _COMMANDS if part not in output], output
    assert not [secret for secret in _SECRETS if secret in output]
    assert _ELSEWHERE in {  # it was sent
        headers.get("Authorization", "").removeprefix("Bearer ") for _, _, headers, _ in first.requests
    }
    assert [rest.requests[-1][0] for rest in servers] == ["GET", "GET"]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert {path.name for path in written if any(s in path.read_text(errors="replace") for s in _SECRETS)} <= {
        "clusters.ini",
        "bad.ini",
        "token",
    }
    assert other.requests


#: Reads on Spark by the option ``clusters``, and prints plans and an error.
_SPARK: Final = """
import sys
import statetool
from pyspark.sql import SparkSession
url, elsewhere, file, log = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
spark = builder.config("spark.ui.enabled", "false").config("spark.eventLog.dir", log).config("spark.log.level", "INFO").getOrCreate()
statetool.register(spark)
reader = spark.read.format("flink-state").options(operatorUid="timers", clusters=file)
frame = reader.load(url)
frame.explain(True)
print("rows", frame.count())
spark.sql(f"CREATE TEMPORARY VIEW v USING `flink-state` OPTIONS (path '{url}', operatorUid 'timers', clusters '{file}')")
print("rows", spark.sql("SELECT * FROM v").count())
try:
    reader.load(elsewhere).count()
except Exception as error:
    print(error)
statetool.set_credentials(url.rpartition("/")[0], token=open(file).read().split()[3])
print("rows", statetool.load(url, spark)["timers"].keyed_state().count())
spark.stop()
"""


@pytest.mark.full
@data_sources
def test_secrets_are_in_no_plan_and_no_event_log(servers: tuple[FlinkRest, FlinkRest], tmp_path: Path) -> None:
    first, _ = servers
    file, log = both(servers, tmp_path), tmp_path / "log"
    log.mkdir()
    elsewhere = f"{first.url.replace('127.0.0.1', 'localhost')}/orders"
    done = subprocess.run(
        [sys.executable, "-c", _SPARK, urls(servers)[0], elsewhere, str(file), log.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "STATETOOL_FLINK_TOKEN": _ELSEWHERE},
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert output.count("\nrows ") == 3
    assert "answers 403" in output
    events = "".join(path.read_text(errors="replace") for path in log.rglob("*") if path.is_file())
    assert "SparkListenerJobEnd" in events
    assert not [secret for secret in _SECRETS if secret in output + events]
