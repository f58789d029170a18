"""Clusters of Flink 1.20 and 2.3 at once, one of them behind a proxy with TLS and basic authentication."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import SnapshotNotFoundError
from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.servers.http_answers import forward, http_server
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
OFTEN = {"execution_checkpointing_interval": "500 ms"}
USER, PASSWORD = "reader", "the password of the proxy"


@dataclass(frozen=True, slots=True)
class Site:
    """Two clusters, each with a job of the same name, and the URL of a proxy before the first."""

    clusters: tuple[StandaloneCluster, ...]
    jobs: tuple[str, ...]
    proxy: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Site]:
    work = tmp_path_factory.mktemp("clusters")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    newer, older = DEFAULT_VERSIONS
    with StandaloneCluster(newer, work) as first, StandaloneCluster(older, work) as second:

        def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
            if headers.get("Authorization") != expected:
                return 401, b"<html>who are you?</html>", {"WWW-Authenticate": 'Basic realm="flink"'}
            return forward(first.url, method, path.removeprefix("/flink"), body)

        jobs = tuple(cluster.submit("orders", **OFTEN) for cluster in (first, second))
        for cluster, job in zip((first, second), jobs, strict=True):
            cluster.wait_until(job, "RUNNING")
            cluster.wait_for_checkpoint(job)
        with http_server(answer, context) as url:
            yield Site((first, second), jobs, f"{url.replace('https', 'flinks')}/flink")


@pytest.fixture
def secrets(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_CA", str(certificate))
    monkeypatch.setenv("STATETOOL_FLINK_USER", USER)
    monkeypatch.setenv("STATETOOL_FLINK_PASSWORD", PASSWORD)


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    assert PASSWORD not in done.output
    return done


def test_one_name_in_two_clusters(site: Site) -> None:
    for cluster, job in zip(site.clusters, site.jobs, strict=True):
        assert f"{job}/chk-" in statetool.load(f"flink://127.0.0.1:{cluster.port}/orders").path
    urls = [f"flink://127.0.0.1:{cluster.port}/orders" for cluster in site.clusters]
    summary = json.loads(run("diff", *urls, "--name-uid", "counts", "--name-uid", "numbers", "--json", code=1).stdout)
    assert {row["state"] for row in summary["summary"]} >= {"count"}


@pytest.mark.usefixtures("secrets")
def test_a_proxy_with_tls_and_a_password(site: Site, tmp_path: Path) -> None:
    url = f"{site.proxy}/orders"
    assert f"{site.jobs[0]}/chk-" in statetool.load(url).path
    assert run("head", url, "counts", "keyed_state", "-n", "3").stdout
    path = run("savepoint", url, "--to", tmp_path.as_uri()).stdout.strip()
    assert len(statetool.load(path)["counts"].to_arrow()) == 500
    server = (
        f"{site.proxy.replace('flinks', 'https')}/jobs"  # without a job, only the REST API's own path is unambiguous
    )
    assert json.loads(run("jobs", server, "--json").stdout)["jobs"][0]["name"] == "orders"
    assert 'job_name="orders"' in run("metrics", server).stdout
    run("lint", url, code=0)


@pytest.mark.usefixtures("secrets")
def test_a_wrong_password_is_not_shown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_PASSWORD", "a wrong password")
    refused = run("info", f"{site.proxy}/orders", code=3)
    assert "answers 401" in refused.stderr
    assert "a wrong password" not in refused.output


def test_a_job_that_restarts(site: Site) -> None:
    cluster = site.clusters[0]
    options = {
        "restart__strategy_type": "fixed-delay",
        "restart__strategy_fixed__delay_attempts": "100",
        "restart__strategy_fixed__delay_delay": "10 min",
    }
    job = cluster.submit("restarting", "fail", **OFTEN, **options)
    cluster.wait("the restart", lambda: cluster.call(f"/jobs/{job}")["state"] == "RESTARTING")
    rows = json.loads(run("jobs", f"flink://127.0.0.1:{cluster.port}/restarting", "--json").stdout)["jobs"]
    assert [row["state"] for row in rows] == ["RESTARTING"]
    with pytest.raises(SnapshotNotFoundError, match="no completed checkpoint"):
        statetool.load(f"flink://127.0.0.1:{cluster.port}/restarting")
    cluster.cancel(job)
