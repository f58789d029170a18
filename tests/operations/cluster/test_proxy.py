"""Clusters of Flink 1.20 and 2.3 at once, each behind a proxy with TLS: one with basic authentication, the other with a token."""

from __future__ import annotations

import base64
import functools
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import SnapshotNotFoundError, StatetoolError
from statetool.operations.cluster import clusters
from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.servers.http_answers import Answer, forward, http_server
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
OFTEN = {"execution_checkpointing_interval": "500 ms"}
USER, PASSWORD, TOKEN = "reader", "the password of the proxy", "the-token-of-the-other-proxy"


@dataclass(frozen=True, slots=True)
class Site:
    """Two clusters, each with a job of the same name, and the URLs of proxies before the first and the second."""

    clusters: tuple[StandaloneCluster, ...]
    jobs: tuple[str, ...]
    proxy: str
    other_proxy: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Site]:
    work = tmp_path_factory.mktemp("clusters")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    newer, older = DEFAULT_VERSIONS
    # A busy machine may take seconds to read a checkpoint.
    with StandaloneCluster(newer, work, retained=20) as first, StandaloneCluster(older, work, retained=20) as second:

        def proxy_of(cluster: StandaloneCluster, expected: str) -> Answer:
            def answer(
                method: str, path: str, headers: dict[str, str], body: bytes
            ) -> tuple[int, bytes, dict[str, str]]:
                if headers.get("Authorization") != expected:
                    return 401, b"<html>who are you?</html>", {"WWW-Authenticate": 'Basic realm="flink"'}
                return forward(cluster.url, method, path.removeprefix("/flink"), body)

            return answer

        # Jobs of equal keys have equal counts now and then: numbers arrive by the buffer, of which both have consumed about the same number.
        keys = {first: "500", second: "400"}
        jobs = tuple(cluster.submit("orders", jobs_keys=number, **OFTEN) for cluster, number in keys.items())
        for cluster, job in zip((first, second), jobs, strict=True):
            cluster.wait_until(job, "RUNNING")
            cluster.wait("all keys", functools.partial(has_all_keys, cluster, job, int(keys[cluster])))
        proxy, other = proxy_of(first, basic), proxy_of(second, f"Bearer {TOKEN}")
        with http_server(proxy, context) as url, http_server(other, context) as other_url:
            proxies = [f"{each.replace('https', 'flinks')}/flink" for each in (url, other_url)]
            yield Site((first, second), jobs, *proxies)


def has_all_keys(cluster: StandaloneCluster, job: str, keys: int) -> bool:
    """Return True if the newest checkpoint has all keys; a job that starts on a busy machine takes others before."""
    try:
        return len(statetool.load(f"flink://127.0.0.1:{cluster.port}/{job}")["counts"].to_arrow()) == keys
    except StatetoolError:  # no checkpoint yet, or it was deleted
        return False


@pytest.fixture
def secrets(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_FLINK_CA", str(certificate))
    monkeypatch.setenv("STATETOOL_FLINK_USER", USER)
    monkeypatch.setenv("STATETOOL_FLINK_PASSWORD", PASSWORD)


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    assert PASSWORD not in done.output
    assert TOKEN not in done.output
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


def test_two_proxies_with_different_credentials(
    site: Site, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"{proxy}/orders" for proxy in (site.proxy, site.other_proxy)]
    file = tmp_path / "clusters.ini"
    sections = ((site.proxy, f"user = {USER}\npassword = {PASSWORD}"), (site.other_proxy, f"token = {TOKEN}"))
    file.write_text("".join(f"[{url}]\nca = {certificate}\n{lines}\n" for url, lines in sections))
    by_file, uids = ("--clusters", str(file)), ("--name-uid", "counts", "--name-uid", "numbers")
    assert "2 of 2 states" in run(*by_file, "check", *reversed(urls), *uids).stdout
    assert json.loads(run(*by_file, "diff", *urls, *uids, "--json", code=1).stdout)["summary"]
    for url in urls:
        assert run(*by_file, "savepoint", url, "--to", tmp_path.as_uri()).stdout.startswith("file:")
    monkeypatch.setenv("STATETOOL_FLINK_CA", str(certificate))
    assert "answers 401" in run("check", *urls, *uids, code=3).stderr
    monkeypatch.delenv("STATETOOL_FLINK_CA")
    monkeypatch.setattr(clusters, "CREDENTIALS", clusters.SetCredentials())
    statetool.set_credentials(site.proxy, user=USER, password=PASSWORD, ca=certificate)
    statetool.set_credentials(site.other_proxy, token=TOKEN, ca=certificate)
    for url, job in zip(urls, site.jobs, strict=True):
        assert f"{job}/chk-" in statetool.load(url).path
        assert statetool.chain(url).checkpoints
        assert statetool.lint(url) is not None


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
