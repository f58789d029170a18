"""HTTP with a deadline for the whole answer. The timeout of a socket alone lets a server send a byte at a time without an end."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import urllib.request
from functools import partial
from typing import Any


class _Patience(io.RawIOBase):
    """The bytes of a socket, until a time."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, end: float) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer whose bytes arrive until a time."""

    def __init__(self, sock: socket.socket, *arguments: Any, end: float, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        raw = self.fp.detach()  # type: ignore[attr-defined]
        self.fp = io.BufferedReader(_Patience(raw, sock, end))


def _set_deadline(connection: http.client.HTTPConnection) -> None:
    """Let the timeout of a connection include its answer."""
    assert connection.timeout is not None
    connection.response_class = partial(_Answer, end=time.monotonic() + connection.timeout)  # type: ignore[assignment]


class _Connection(http.client.HTTPConnection):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _set_deadline(self)


class _TlsConnection(http.client.HTTPSConnection):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _set_deadline(self)


class HttpHandler(urllib.request.HTTPHandler):
    """Opens ``http:`` URLs. The timeout of a request is that of its connection and its answer together."""

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


class HttpsHandler(urllib.request.HTTPSHandler):
    """Opens ``https:`` URLs, as :class:`HttpHandler`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._tls = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_TlsConnection, request, context=self._tls)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """Return ``None``, so that the redirect becomes an error."""
        return None
