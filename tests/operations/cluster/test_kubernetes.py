"""Jobs and snapshots by resources in Kubernetes, through the official client, with a local API server."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import (
    ConnectionFailedError,
    FormatError,
    OptionError,
    SnapshotNotFoundError,
    StatetoolError,
    UnknownNameError,
)
from statetool.operations.cluster import client as client_module
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.high_availability import stored_checkpoints
from statetool.operations.cluster.servers import open_server
from tests.support.servers.flink_rest import RECORDED, RELEASES, FlinkRest, flink_rest
from tests.support.servers.kubernetes_api import TOKEN, KubernetesServer, kubernetes_server
from tests.support.zoo import ZOO


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSES_S", (0.0,))


@pytest.fixture
def kubernetes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesServer]:
    with kubernetes_server() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config")))
        yield server


@pytest.fixture(params=RELEASES)
def rest(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FlinkRest]:
    with flink_rest(request.param, tmp_path) as running:
        yield running


def newest(rest: FlinkRest) -> str:
    path = rest.checkpoint_path("orders", rest.history("orders")["latest"]["completed"]["id"])
    shutil.copytree(ZOO, path)
    return path.as_uri().replace("file://", "file:")


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments, prog_name="statetool")
    assert done.exit_code == code, done.output
    return done


def test_a_deployment_is_its_job(kubernetes: KubernetesServer, rest: FlinkRest) -> None:
    path = newest(rest)
    status = {"jobStatus": {"jobId": rest.jobs["orders"], "state": "RUNNING"}}
    kubernetes.add_resource("FlinkDeployment", "prod", "orders-app", status=status)
    kubernetes.add_service("prod", "orders-app-rest", {"rest": 8081}, rest.url)
    for url in ("k8s://prod/orders-app", "k8s://prod/flinkdeployment/orders-app", "k8s://prod/orders-app/orders"):
        assert statetool.load(url).path == path
    assert ("GET", "/api/v1/namespaces/prod/services/orders-app-rest:8081/proxy/jobs/overview") in kubernetes.requests
    # Savepoints are triggered through the same proxy, and all jobs are listed.
    jobs = json.loads(run("jobs", "k8s://prod/orders-app", "--json").stdout)["jobs"]
    assert [job["name"] for job in jobs] == ["orders"]
    tree = json.loads(run("savepoint", "k8s://prod/orders-app", "--to", "s3://b/s", "--json").stdout)
    assert "savepoint-" in tree["path"]
    assert [path for method, path in kubernetes.requests if method == "POST"][-1].endswith("/savepoints")
    assert "statetool_job_readable" in run("metrics", "k8s://prod/orders-app").stdout


def test_a_session_job_is_found_in_its_cluster(kubernetes: KubernetesServer, rest: FlinkRest) -> None:
    path = newest(rest)
    spec = {"deploymentName": "session"}
    status = {"jobStatus": {"jobId": rest.jobs["orders"]}}
    kubernetes.add_resource("FlinkSessionJob", "prod", "orders", spec=spec, status=status)
    kubernetes.add_resource("FlinkSessionJob", "prod", "waiting", spec=spec)
    kubernetes.add_resource("FlinkDeployment", "prod", "session")
    kubernetes.add_service("prod", "session-rest", {"rest": 8081}, rest.url)
    assert statetool.load("k8s://prod/orders").path == path
    assert statetool.load("k8s://prod/session/orders").path == path
    with pytest.raises(SnapshotNotFoundError, match="FlinkSessionJob waiting has no job id yet"):
        statetool.load("k8s://prod/waiting")
    with pytest.raises(OptionError, match="several jobs"):
        statetool.load("k8s://prod/session")


def test_a_service_of_another_cluster(kubernetes: KubernetesServer, rest: FlinkRest) -> None:
    path = newest(rest)
    kubernetes.add_service("prod", "jobmanager", {"rpc": 6123, "rest": 80}, rest.url)
    kubernetes.add_service("prod", "strange", {"a": 1, "b": 2}, rest.url)
    for url in ("k8s://prod/jobmanager/orders", "k8s://prod/service/jobmanager/orders"):
        assert statetool.load(url).path == path
    with pytest.raises(OptionError, match="has 2 ports"):
        statetool.load("k8s://prod/strange/orders")
    for url in ("k8s://prod/nothing", "k8s://other/jobmanager", "k8s://prod/flinkdeployment/jobmanager"):
        with pytest.raises(UnknownNameError, match="has no"):
            statetool.load(url)


def test_a_snapshot_resource_is_its_path(kubernetes: KubernetesServer, tmp_path: Path) -> None:
    shutil.copytree(ZOO, tmp_path / "there" / "savepoint-1")
    status = {"state": "COMPLETED", "path": "file:/of-the-pod/savepoint-1"}
    kubernetes.add_resource("FlinkStateSnapshot", "prod", "nightly", status=status)
    url = "k8s://prod/flinkstatesnapshot/nightly"
    with pytest.raises(SnapshotNotFoundError, match="which FlinkStateSnapshot nightly names, does not exist here"):
        statetool.load(url, rebase={"file:/of-the-pod": str(tmp_path / "nowhere")})
    assert statetool.load(url, rebase={"file:/of-the-pod": str(tmp_path / "there")}).checkpoint_id > 0
    states: dict[str, Any] = {"state": "FAILED", "error": "no space"}
    kubernetes.add_resource("FlinkStateSnapshot", "prod", "failed", status=states)
    kubernetes.add_resource("FlinkStateSnapshot", "prod", "pathless", status={"state": "COMPLETED"})
    kubernetes.add_resource("FlinkStateSnapshot", "prod", "new")
    for name, message in {"failed": "FAILED: no space", "pathless": "it has no path", "new": "is not complete"}.items():
        with pytest.raises(SnapshotNotFoundError, match=message):
            statetool.load(f"k8s://prod/flinkstatesnapshot/{name}")
    with pytest.raises(UnknownNameError, match="no FlinkStateSnapshot 'other'"):
        statetool.load("k8s://prod/flinkstatesnapshot/other")
    kubernetes.add_resource(
        "FlinkStateSnapshot", "prod", "evil", status={"state": "COMPLETED", "path": "http://host/jobs"}
    )
    with pytest.raises(FormatError, match="which statetool does not open"):
        statetool.load("k8s://prod/flinkstatesnapshot/evil")
    assert "is a snapshot, not a job" in run("jobs", url, code=2).stderr


class HighAvailability:
    """What Flink's classes stored about a job, in this folder."""

    def __init__(self, release: str, folder: Path) -> None:
        recorded = json.loads((RECORDED / f"ha-{release}.json").read_text())
        self.job: str = recorded["job"]
        self.entries: dict[str, str] = recorded["entries"]
        self.rebase = {f"file:{recorded['folder']}": str(folder)}
        (folder / "ha" / "orders").mkdir(parents=True)
        for name, text in recorded["files"].items():
            (folder / "ha" / "orders" / name).write_bytes(base64.b64decode(text))
        for number in (41, 42, 43):
            shutil.copytree(ZOO, folder / "checkpoints" / self.job / f"chk-{number}")


@pytest.fixture(params=RELEASES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> HighAvailability:
    return HighAvailability(request.param, tmp_path / "flink")


@pytest.mark.parametrize("has_service", [False, True])
def test_without_a_jobmanager_the_newest_stored_checkpoint_is_read(
    kubernetes: KubernetesServer, stored: HighAvailability, has_service: bool
) -> None:
    kubernetes.add_resource("FlinkDeployment", "prod", "orders", status={"jobStatus": {"jobId": stored.job}})
    if has_service:  # without a pod behind it
        kubernetes.add_service("prod", "orders-rest", {"rest": 8081})
    name = f"orders-{stored.job}-config-map"
    kubernetes.add_config_map(
        "prod", "orders-cluster-config-map", "orders", {"org.apache.flink.k8s.leader.x": "id,url"}
    )
    with pytest.raises(ConnectionFailedError):
        statetool.load("k8s://prod/orders", rebase=stored.rebase)
    kubernetes.add_config_map("prod", name, "orders", {**stored.entries, "counter": "44"})
    with pytest.warns(UserWarning, match="checkpoint 42 of its high-availability metadata"):
        assert statetool.load("k8s://prod/orders", rebase=stored.rebase).path.endswith(f"{stored.job}/chk-42")
    with pytest.warns(UserWarning, match="checkpoint 41"):
        found = statetool.load("k8s://prod/orders?checkpoint=41", rebase=stored.rebase)
    assert found.path.endswith("chk-41")
    for query in ("checkpoint=43", "savepoint=latest"):  # 43 is being deleted
        with pytest.raises(ConnectionFailedError):
            statetool.load(f"k8s://prod/orders?{query}", rebase=stored.rebase)


def test_stored_checkpoints_of_several_jobs(kubernetes: KubernetesServer, stored: HighAvailability) -> None:
    other = "0123456789abcdef" * 2
    for job in (stored.job, other):
        kubernetes.add_config_map("prod", f"session-{job}-config-map", "session", stored.entries)
    with pytest.raises(OptionError, match="2 jobs"):
        statetool.load("k8s://prod/session", rebase=stored.rebase)
    with pytest.warns(UserWarning, match="no JobManager of session answers"):
        statetool.load(f"k8s://prod/session/{stored.job[:6]}", rebase=stored.rebase)
    with (
        pytest.warns(UserWarning, match="checkpoint 42"),
        pytest.raises(SnapshotNotFoundError, match=r"mount high-availability\.storageDir"),
    ):
        statetool.load(f"k8s://prod/session/{stored.job}")


@pytest.mark.parametrize("release", RELEASES)
def test_damaged_entries_are_errors(release: str, tmp_path: Path) -> None:
    entries = HighAvailability(release, tmp_path).entries
    name, text = next(iter(entries.items()))
    raw = base64.b64decode(text)
    assert [c.checkpoint_id for c in stored_checkpoints(entries, "map")] == [41, 42]
    for damaged in ("?", text[:-9], base64.b64encode(b"\xac\xed\0\5t\0\1a").decode(), ""):
        with pytest.raises(FormatError, match=f"map, entry {name}"):
            stored_checkpoints({name: damaged}, "map")
    with pytest.raises(FormatError, match="not the id of a checkpoint"):
        stored_checkpoints({"checkpointID-x": text}, "map")
    for cut in range(len(raw)):
        with pytest.raises(FormatError):
            stored_checkpoints({name: base64.b64encode(raw[:cut]).decode()}, "map")
    renamed = raw.replace(b"RetrievableStreamStateHandle", b"RetrievableStreamStateHandlf")
    with pytest.raises(FormatError, match=r"expected .*RetrievableStreamStateHandle"):
        stored_checkpoints({name: base64.b64encode(renamed).decode()}, "map")


def test_credentials_and_contexts(
    kubernetes: KubernetesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubernetes.add_service("prod", "orders-rest", {"rest": 8081})
    kubernetes.forbidden = ("/api/v1/namespaces/prod/services/orders-rest:8081",)
    url = "k8s://prod/orders"
    refused = run("info", url, code=3)
    assert "answers 403" in refused.stderr
    assert "its user may get and create services/proxy" in refused.stderr
    kubernetes.forbidden = ("/apis/",)
    refused = run("info", url, code=3)
    assert "refuses to get flinkdeployments: 403" in refused.stderr
    wrong = kubernetes.write_kubeconfig(tmp_path / "wrong", token="another-secret-token")
    monkeypatch.setenv("KUBECONFIG", str(wrong))
    outputs = refused.output + run("info", url, code=3).output
    assert "http://127.0.0.1:9 does not answer" in run("info", "k8s://prod/orders?context=closed", code=3).stderr
    monkeypatch.setenv("STATETOOL_KUBE_CONTEXT", "closed")
    outputs += run("info", url, code=3).output
    assert "http://127.0.0.1:9 does not answer" in outputs
    monkeypatch.setenv("STATETOOL_KUBE_CONTEXT", "missing")
    outputs += run("info", url, code=2).output
    assert "missing" in outputs
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-such-file"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "no kubeconfig with context 'east'" in run("info", f"{url}?context=east", code=2).stderr
    outputs += run("info", url, code=2).output
    assert "there is no kubeconfig, and this is not a pod" in outputs
    assert TOKEN not in outputs
    assert "another-secret-token" not in outputs


def test_tls_with_the_authority_of_the_kubeconfig(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with flink_rest("2.3", tmp_path) as rest, kubernetes_server(context) as server:
        path = newest(rest)
        server.add_service("prod", "jobmanager", {"rest": 8081}, rest.url)
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", ca=certificate)))
        assert statetool.load("k8s://prod/jobmanager/orders").path == path
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config")))
        with pytest.raises(ConnectionFailedError, match="does not answer"):
            statetool.load("k8s://prod/jobmanager/orders")


def test_in_a_pod_the_service_is_asked_directly(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes.config import incluster_config

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    (tmp_path / "token").write_text(TOKEN)
    with kubernetes_server(context) as server:
        server.add_service("prod", "orders-rest", {"rest": 8081})
        host, _, port = server.url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
        address = JobAddress.parse("k8s://prod/orders")
        assert address is not None
        client, _ = open_server(address)
        assert client.server == "http://orders-rest.prod.svc:8081"


@pytest.mark.parametrize(
    ("url", "resource", "kind", "job"),
    [
        ("k8s://prod/orders", ("prod", "orders"), "", ""),
        ("k8s://prod/orders/my%20job", ("prod", "orders"), "", "my job"),
        ("k8s://prod/service/orders/a/b", ("prod", "orders"), "service", "a/b"),
        ("k8s://prod/flinkstatesnapshot/nightly", ("prod", "nightly"), "flinkstatesnapshot", ""),
        ("k8s://prod/service", ("prod", "service"), "", ""),
    ],
)
def test_addresses(url: str, resource: tuple[str, str], kind: str, job: str) -> None:
    address = JobAddress.parse(url)
    assert address is not None
    assert (address.resource, address.kind, address.job) == (resource, kind, job)


@pytest.mark.parametrize(
    "url",
    [
        "k8s://prod", "k8s:///orders", "k8s://prod/", "k8s://prod/..", "k8s://user:pw@prod/orders", "k8s://prod/Orders",
        "k8s://prod/flinkstatesnapshot/a/b", "k8s://prod/flinkstatesnapshot/a?checkpoint=1", "k8s://prod/a?x=1",
        "k8s://prod/a%2Fb",
    ],
)  # fmt: skip
def test_malformed_addresses(url: str) -> None:
    with pytest.raises(OptionError) as error:
        JobAddress.parse(url)
    assert "user:pw" not in str(error.value)


def test_the_package_is_only_needed_for_these_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kubernetes", None)
    with pytest.raises(StatetoolError, match=r"statetool\[k8s\]"):
        statetool.load("k8s://prod/orders")
