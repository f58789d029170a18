"""URLs of jobs, and of the servers that know them: a JobManager, or the HistoryServer.

``flink://host:8081/JOB`` and ``flinks://host:8081/JOB`` (TLS) name a job by its id, a prefix of it, or its name. URLs of the REST API and
of the web interface name it by its id. ``k8s://NAMESPACE/NAME`` names a cluster or job by its resource in Kubernetes, with ``?context=NAME`` for a context of the kubeconfig.
``?checkpoint=42`` and ``?savepoint=latest`` choose one of its snapshots.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from statetool.errors import OptionError

_SCHEMES: Final = {"flink": "http", "flinks": "https", "http": "http", "https": "https"}
_KUBERNETES: Final = "k8s"
#: Kinds of resources that a URL may name: ``k8s://NAMESPACE/KIND/NAME``.
KINDS: Final = ("flinkdeployment", "flinksessionjob", "flinkstatesnapshot", "service")
_FLINK_PORT: Final = 8081
#: Names of namespaces and resources: they become part of URLs.
_RESOURCE_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
#: A URL without a scheme, as people type it: ``localhost:8081/orders``.
_HOST_AND_PORT: Final = re.compile(r"(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+:[0-9]{1,5}(?:/[^/]*)?")
_CHOICES: Final = ("checkpoint", "savepoint")
_LATEST: Final = "latest"
_CONTEXT: Final = "context"
#: Routes of the web interface, after ``#``: ``/job/running/ID/overview``, ``/job/completed/ID/...``, ``/jobs/ID`` before Flink 1.6.
_PAGE: Final = re.compile(r"/jobs?/(?:(?:running|completed)/)?(?P<job>[0-9a-f]{32})(?:/|$)")
#: Paths of the REST API: the server, then the job, then perhaps a checkpoint.
_RESOURCE: Final = re.compile(
    r"(?P<prefix>.*?)/jobs(?:/overview)?(?:/(?P<job>[0-9a-f]{32})(?:/(?:checkpoints/details/(?P<checkpoint>\d+)|.*))?)?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAddress:
    """A server, and a job of it.

    Attributes
    ----------
    server
        URL of the REST API, without a slash at the end. For a resource in Kubernetes, its URL ``k8s://NAMESPACE/NAME``.
    job
        Id, prefix of an id, or name. Empty if the URL names only the server.
    checkpoint, savepoint
        Id of a checkpoint or savepoint, or ``latest``.
    kind
        Kind of the resource in Kubernetes, one of :data:`KINDS`. Empty if the URL names none.
    context
        Context of the kubeconfig for a resource in Kubernetes. Empty if the URL names none.
    certain
        False for ``http://host/NAME``, which may also be a snapshot on a web server.
    """

    server: str
    job: str = ""
    checkpoint: str | None = None
    savepoint: str | None = None
    kind: str = ""
    context: str = ""
    certain: bool = True

    @property
    def resource(self) -> tuple[str, str] | None:
        """Namespace and name of the resource in Kubernetes, ``None`` for other servers."""
        scheme, _, rest = self.server.partition("://")
        namespace, _, name = rest.partition("/")
        return (namespace, name) if scheme == _KUBERNETES else None

    @property
    def is_newest(self) -> bool:
        """Whether the newest checkpoint or savepoint is meant, not one by its id."""
        return (self.checkpoint or self.savepoint or _LATEST) == _LATEST

    @classmethod
    def parse(cls, url: str) -> JobAddress | None:
        """Return the address in a URL, ``None`` for a path or URI of files. ``host:8081`` is one unless such a file exists.

        Raises
        ------
        OptionError
            The URL is malformed, or contains a password.
        """
        if _HOST_AND_PORT.fullmatch(url) and not os.path.exists(url):
            url = f"flink://{url}"
        scheme = url.partition("://")[0].lower()
        if scheme == _KUBERNETES:
            return _kubernetes_address(url)
        if scheme not in _SCHEMES or "://" not in url:
            return None
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise OptionError("the URL of a job has an invalid host or port", hint=_form()) from None
        found = _flink_address(parts) if scheme.startswith("flink") else _http_address(parts)
        if found is None:
            return None
        prefix, job, checkpoint, certain = found
        if "@" in parts.netloc:
            raise OptionError(
                "the URL of a job contains credentials, which other programs could read",
                hint="set STATETOOL_FLINK_USER and STATETOOL_FLINK_PASSWORD, or pass --clusters FILE with a section for the server",
            )
        if not parts.hostname:
            raise OptionError("the URL of a job has no host", hint=_form())
        chosen = _choice(parts.query)
        if checkpoint and chosen:
            raise OptionError("the URL names a checkpoint twice", hint=f"remove ?{parts.query}")
        return cls(
            server=f"{_server(scheme, parts.hostname, port)}{prefix}",
            job=unquote(job),
            checkpoint=checkpoint or chosen.get("checkpoint"),
            savepoint=chosen.get("savepoint"),
            certain=certain,
        )


def parse_server(url: str) -> str:
    """Return the URL of a REST API as :attr:`JobAddress.server` has it, without the default ports of HTTP and HTTPS.

    Raises
    ------
    OptionError
        Not the URL of a server.

    Examples
    --------
    >>> parse_server("flink://host"), parse_server("flinks://host:443/prod/")
    ('http://host:8081', 'https://host/prod')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _SCHEMES or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise OptionError("not the URL of a server", hint="write flinks://HOST:PORT, without a job")
    default = {"http": 80, "https": 443}[_SCHEMES[parts.scheme]]
    server = _server(parts.scheme, parts.hostname, port).removesuffix(f":{default}")
    return f"{server}{parts.path.rstrip('/')}"


def _server(scheme: str, hostname: str, port: int | None) -> str:
    host = f"[{hostname}]" if ":" in hostname else hostname
    number = port or (_FLINK_PORT if scheme.startswith("flink") else None)
    return f"{_SCHEMES[scheme]}://{host}{f':{number}' if number else ''}"


def _kubernetes_address(url: str) -> JobAddress:
    parts = urlsplit(url)
    names = [unquote(name) for name in parts.path.strip("/").split("/")]
    kind = names.pop(0) if len(names) > 1 and names[0] in KINDS else ""
    name, job = names[0], "/".join(names[1:])
    valid = all(_RESOURCE_NAME.fullmatch(part) for part in (parts.netloc, name))
    if not valid or (job and kind in ("flinksessionjob", "flinkstatesnapshot")):
        raise OptionError(
            "the URL does not name a resource in Kubernetes",
            hint="write k8s://NAMESPACE/DEPLOYMENT or .../DEPLOYMENT/JOB",
        )
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    contexts = [value for name, value in pairs if name == _CONTEXT]
    if len(contexts) > 1:
        raise OptionError("the URL names more than one context", hint="keep one of them")
    chosen = _choice(urlencode([pair for pair in pairs if pair[0] != _CONTEXT]))
    if chosen and kind == "flinkstatesnapshot":
        raise OptionError("a FlinkStateSnapshot is one snapshot", hint=f"remove ?{parts.query}")
    return JobAddress(
        server=f"{_KUBERNETES}://{parts.netloc}/{name}",
        job=job,
        checkpoint=chosen.get("checkpoint"),
        savepoint=chosen.get("savepoint"),
        kind=kind,
        context="".join(contexts),
    )


def _form() -> str:
    return "write flink://HOST:8081/JOB"


def _flink_address(parts: SplitResult) -> tuple[str, str, str | None, bool]:
    # A name of a job may contain # and, unescaped, spaces.
    path = f"{parts.path}#{parts.fragment}" if parts.fragment else parts.path
    prefix, _, job = path.rstrip("/").rpartition("/")
    return prefix, job, None, True


def _http_address(parts: SplitResult) -> tuple[str, str, str | None, bool] | None:
    """Return prefix, job, checkpoint and certainty, ``None`` for a URL that can only be a file."""
    if {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} - {*_CHOICES}:
        return None
    if parts.fragment.startswith("/"):
        page = _PAGE.search(parts.fragment)
        return parts.path.rstrip("/"), page["job"] if page else "", None, True
    if resource := _RESOURCE.fullmatch(parts.path):
        return resource["prefix"], resource["job"] or "", resource["checkpoint"], True
    path = parts.path.strip("/")
    if "/" in path or parts.fragment:
        return None
    return "", path, None, not path


def _choice(query: str) -> dict[str, str]:
    """Return the chosen checkpoint or savepoint."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if unknown := [name for name, _ in pairs if name not in _CHOICES]:
        raise OptionError(
            f"the URL of a job has an unknown parameter {unknown[0]!r}", hint="use ?checkpoint=ID or ?savepoint=latest"
        )
    if len(pairs) > 1:
        raise OptionError("the URL of a job names more than one snapshot", hint="keep one of them")
    for name, value in pairs:
        if value != _LATEST and not value.isdecimal():
            raise OptionError(
                f"{name}={value!r} is neither an id nor 'latest'", hint=f"use ?{name}=42, or ?{name}=latest"
            )
    return dict(pairs)
