"""The part of the API server of Kubernetes that statetool uses, on this machine, with its proxy for services."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.support.servers.http_answers import forward, http_server

TOKEN: Final = "token-of-the-test"
_JSON: Final = {"Content-Type": "application/json"}
_REASONS: Final = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}


@dataclass(slots=True)
class KubernetesServer:
    """A running API server.

    Attributes
    ----------
    objects
        Objects by their path: ``/apis/flink.apache.org/v1beta1/namespaces/prod/flinkdeployments/orders``.
    backends
        URL of the server behind each service, by ``namespace/service:port``. A missing one is a service without endpoints.
    forbidden
        Beginnings of paths that the user may not use.
    requests
        Method and path of each request.
    """

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    backends: dict[str, str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    requests: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def add_resource(self, kind: str, namespace: str, name: str, **parts: Any) -> None:
        """Add a resource of Flink's operator."""
        path = f"/apis/flink.apache.org/v1beta1/namespaces/{namespace}/{kind.lower()}s/{name}"
        head = {
            "apiVersion": "flink.apache.org/v1beta1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
        }
        self.objects[path] = {**head, **parts}

    def add_service(self, namespace: str, name: str, ports: dict[str, int], backend: str | None = None) -> None:
        """Add a service."""
        listed = [{"name": port, "port": number, "protocol": "TCP"} for port, number in ports.items()]
        tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": listed}}
        self.objects[f"/api/v1/namespaces/{namespace}/services/{name}"] = tree
        if backend is not None:
            self.backends.update({f"{namespace}/{name}:{number}": backend for number in ports.values()})

    def add_config_map(self, namespace: str, name: str, cluster_id: str, data: dict[str, str]) -> None:
        """Add a config map of Flink's high availability."""
        labels = {"app": cluster_id, "configmap-type": "high-availability", "type": "flink-native-kubernetes"}
        tree = {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data}
        self.objects[f"/api/v1/namespaces/{namespace}/configmaps/{name}"] = tree

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Return the answer to a request."""
        self.requests.append((method, path))
        lower = {name.lower(): value for name, value in headers.items()}
        scheme, _, token = lower.get("authorization", "").partition(" ")
        if (scheme.lower(), token) != ("bearer", TOKEN):
            return _status(401, "Unauthorized")
        parts = urlsplit(path)
        if parts.path.startswith(self.forbidden) and self.forbidden:
            return _status(403, f'User "reader" cannot get {parts.path}')
        if "/proxy/" in parts.path:
            return self._forward(method, path, body)
        if parts.path.endswith("/configmaps"):
            return self._config_maps(parts.path, parse_qs(parts.query).get("labelSelector", [""])[0])
        if parts.path in self.objects:
            return 200, json.dumps(self.objects[parts.path]).encode(), _JSON
        return _status(404, f'"{parts.path.rpartition("/")[2]}" not found')

    def _config_maps(self, path: str, selector: str) -> tuple[int, bytes, dict[str, str]]:
        wanted = dict(pair.split("=") for pair in selector.split(",") if pair)
        items = [
            tree
            for name, tree in self.objects.items()
            if name.startswith(f"{path}/") and wanted.items() <= tree["metadata"]["labels"].items()
        ]
        tree = {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": items}
        return 200, json.dumps(tree).encode(), _JSON

    def _forward(self, method: str, path: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        service, _, rest = path.partition("/proxy/")
        namespace, _, name = service.removeprefix("/api/v1/namespaces/").partition("/services/")
        backend = self.backends.get(f"{namespace}/{name}")
        if backend is None:
            return _status(503, f"no endpoints available for service {name!r}")
        return forward(backend, method, f"/{rest}", body)

    def write_kubeconfig(self, file: Path, token: str = TOKEN, ca: Path | None = None) -> Path:
        """Write a kubeconfig with two contexts; the current one is this server's."""
        cluster: dict[str, str] = {"server": self.url}
        if ca is not None:
            cluster["certificate-authority-data"] = base64.b64encode(ca.read_bytes()).decode()
        here = {"cluster": "here", "user": "reader", "namespace": "default"}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [
                {"name": "test", "context": here},
                {"name": "closed", "context": {"cluster": "closed", "user": "reader"}},
            ],
            "clusters": [
                {"name": "here", "cluster": cluster},
                {"name": "closed", "cluster": {"server": "http://127.0.0.1:9"}},
            ],
            "users": [{"name": "reader", "user": {"token": token}}],
        }
        file.write_text(yaml.safe_dump(tree))
        return file


def _status(code: int, message: str) -> tuple[int, bytes, dict[str, str]]:
    tree = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": code,
    }
    return code, json.dumps(tree).encode(), _JSON


@contextlib.contextmanager
def kubernetes_server(tls: ssl.SSLContext | None = None) -> Iterator[KubernetesServer]:
    """Run an API server without objects."""
    server = KubernetesServer()
    with http_server(server.answer, tls) as url:
        server.url = url
        yield server
