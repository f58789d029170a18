"""The API of Kubernetes, through its official client: the only module that imports it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from statetool.errors import ConnectionFailedError, MissingDependencyError, OptionError
from statetool.io.threads import call_with_timeout
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.credentials import Credentials
from statetool.operations.cluster.deadlines import waiting

#: The context of the kubeconfig to use instead of its current one.
CONTEXT: Final = "STATETOOL_KUBE_CONTEXT"
_GROUP: Final = "flink.apache.org"
_VERSION: Final = "v1beta1"
_NOT_FOUND: Final = 404


class KubernetesApi:
    """Requests to the API server that the kubeconfig names, or, in a pod without a kubeconfig, to that of the pod's cluster.

    Parameters
    ----------
    context
        The context of the kubeconfig. Empty for that in ``STATETOOL_KUBE_CONTEXT``, or its current one.

    Raises
    ------
    MissingDependencyError
        The package ``kubernetes`` is not installed.
    OptionError
        There is neither a kubeconfig nor a pod, or the kubeconfig is not valid.
    """

    def __init__(self, context: str = "") -> None:
        try:
            import kubernetes
        except ImportError as error:
            raise MissingDependencyError(
                f"k8s:// needs the package kubernetes: {error}", hint="pip install 'statetool[k8s]'"
            ) from error
        self._package: Any = kubernetes
        self._waiting = waiting()
        self._configuration = kubernetes.client.Configuration()
        kubeconfig = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
        self._in_pod = not any(map(os.path.exists, kubeconfig.split(os.pathsep)))
        if context and self._in_pod:
            raise OptionError(f"there is no kubeconfig with context {context!r}", hint="set KUBECONFIG")
        try:
            if self._in_pod:
                kubernetes.config.load_incluster_config(client_configuration=self._configuration)
            else:
                kubernetes.config.load_kube_config(
                    config_file=kubeconfig,
                    context=context or os.environ.get(CONTEXT) or None,
                    client_configuration=self._configuration,
                )
        except kubernetes.config.ConfigException as error:
            where = "there is no kubeconfig, and this is not a pod" if self._in_pod else f"{kubeconfig}: {error}"
            raise OptionError(
                where, hint=f"set KUBECONFIG, and ?context=NAME or {CONTEXT} to choose a context"
            ) from None
        self._client = kubernetes.client.ApiClient(self._configuration)

    def custom_resource(self, plural: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a resource of Flink's operator, ``None`` if it does not exist or the operator is not installed.

        Raises
        ------
        ConnectionFailedError
            The API server does not answer, or refuses the request.
        """
        api = self._package.client.CustomObjectsApi(self._client)
        found: Mapping[str, Any] | None = self._ask(
            f"get {plural}",
            lambda **more: api.get_namespaced_custom_object(_GROUP, _VERSION, namespace, plural, name, **more),
        )
        return found

    def rest_port(self, namespace: str, service: str) -> int | None:
        """Return the port of a JobManager's REST service, ``None`` if the service does not exist.

        Raises
        ------
        ConnectionFailedError
            As for :meth:`custom_resource`.
        OptionError
            The service has several ports, none of them with the name ``rest``.
        """
        api = self._package.client.CoreV1Api(self._client)
        found = self._ask("get services", lambda **more: api.read_namespaced_service(service, namespace, **more))
        if found is None:
            return None
        ports = list(found.spec.ports or ())
        ports = [port for port in ports if port.name == "rest"] or ports
        if len(ports) != 1:
            raise OptionError(
                f"service {service} in namespace {namespace} has {len(ports)} ports, and none with the name rest",
                hint="give the URL of the REST API: flink://HOST:PORT/JOB",
            )
        return int(ports[0].port)

    def config_maps(self, namespace: str, cluster_id: str) -> dict[str, Mapping[str, str]]:
        """Return the entries of a cluster's high-availability config maps by the names of the maps.

        Raises
        ------
        ConnectionFailedError
            As for :meth:`custom_resource`.
        """
        api = self._package.client.CoreV1Api(self._client)
        labels = f"app={cluster_id},configmap-type=high-availability"
        found = self._ask(
            "list configmaps", lambda **more: api.list_namespaced_config_map(namespace, label_selector=labels, **more)
        )
        return {item.metadata.name: item.data or {} for item in (found.items if found is not None else ())}

    def rest_client(self, namespace: str, service: str, port: int) -> RestClient:
        """Return a client for a REST service: in a pod directly, elsewhere through the proxy of the API server."""
        if self._in_pod:
            return RestClient(f"http://{service}.{namespace}.svc:{port}")
        configuration = self._configuration
        auth = [entry for entry in configuration.auth_settings().values() if entry["in"] == "header" and entry["value"]]
        headers = {str(entry["key"]).title(): str(entry["value"]) for entry in auth}
        seconds = Credentials.from_environment()
        credentials = Credentials(
            headers=headers,
            secrets=tuple(part for value in headers.values() for part in (value, value.rpartition(" ")[2])),
            source="the kubeconfig, and that its user may get and create services/proxy",
            ca=configuration.ssl_ca_cert,
            certificate=configuration.cert_file,
            key=configuration.key_file,
            verify=bool(configuration.verify_ssl),
            timeout_s=seconds.timeout_s,
            deadline_s=seconds.deadline_s,
        )
        host = configuration.host.rstrip("/")
        return RestClient(f"{host}/api/v1/namespaces/{namespace}/services/{service}:{port}/proxy", credentials)

    def _ask(self, what: str, request: Callable[..., Any]) -> Any:
        """Return the answer to a request, ``None`` if there is no such object."""
        from urllib3.exceptions import HTTPError  # a dependency of the client

        host = self._configuration.host
        seconds = Credentials.from_environment()
        try:
            with self._waiting.counted():
                left_s = max(0.0, round(self._waiting.left(seconds.deadline_s), 1))
                return call_with_timeout(left_s, lambda: request(_request_timeout=seconds.timeout_s))
        except self._package.client.ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            status, reason = error.status, error.reason
        except (HTTPError, TimeoutError) as error:
            status, reason = 0, getattr(error, "reason", None) or error
        # Raised outside of the handler, so that no traceback has the frames of the client, with the headers.
        if status in (401, 403):
            raise ConnectionFailedError(
                f"{host} refuses to {what}: {status} {reason}", hint=f"allow the user of the kubeconfig to {what}"
            )
        if status:
            raise ConnectionFailedError(f"{host} answers {status} {reason} to {what}")
        raise ConnectionFailedError(
            f"{host} does not answer: {reason}",
            hint=f"check the kubeconfig; ?context=NAME or {CONTEXT} chooses a context",
        )
