"""A running explorer, and requests to it."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import statetool
from statetool.cli.explorer.opened import Snapshots
from statetool.cli.explorer.server import ServerOptions, listening


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


@dataclass(frozen=True, slots=True)
class Explorer:
    """Address, port and token of a running explorer."""

    address: str
    port: int
    token: str
    cert: str | None = None

    def get(self, target: str, *, method: str = "GET", token: str | None = "", **headers: str) -> Answer:
        """Send a request, by default with the token. Underscores in names of headers stand for hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        given = self.token if token == "" else token
        if given is not None:
            sent.setdefault("Authorization", f"Bearer {given}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        if self.cert is not None:
            context = ssl.create_default_context(cafile=self.cert)
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=context)
        try:
            connection.request(method, target, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def exploring(
    path: str, *, is_root: bool, load: Any = statetool.load, cert: str | None = None, **options: Any
) -> Iterator[Explorer]:
    """Serve snapshots in a thread; ``cert`` is a file with a certificate that clients trust, and its key."""
    if cert is not None:
        options |= {"tls_cert": cert, "tls_key": cert}
    options.setdefault("per_second", 10_000.0)
    with listening(Snapshots(path, load, is_root=is_root), ServerOptions(**options)) as (address, server, listener):
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
        thread.start()
        try:
            yield Explorer(address, urlsplit(address).port or 0, address.partition("token=")[2], cert)
        finally:
            server.should_exit = True
            thread.join()
