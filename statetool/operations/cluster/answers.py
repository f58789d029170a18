"""HTTP with a timeout for the whole response.

The timeout of a socket is that of one read: a server that sends one byte at a time never exceeds it.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import urllib.request
from functools import partial
from typing import Any


class _TimedReader(io.RawIOBase):
    """Reader of a socket that raises ``TimeoutError`` after a point in time."""

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
            raise TimeoutError("the response is not complete")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """A response that must be complete at a point in time."""

    def __init__(self, sock: socket.socket, *arguments: Any, end: float, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(_TimedReader(raw, sock, end))


def _set_deadline(connection: http.client.HTTPConnection) -> None:
    """Apply the timeout of a connection to the response, too."""
    assert connection.timeout is not None
    connection.response_class = partial(_TimedResponse, end=time.monotonic() + connection.timeout)  # type: ignore[assignment]


class _TimedConnection(http.client.HTTPConnection):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _set_deadline(self)


class _TimedTlsConnection(http.client.HTTPSConnection):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _set_deadline(self)


class HttpHandler(urllib.request.HTTPHandler):
    """Opens ``http:`` URLs. The timeout of a request includes the connection and the whole response."""

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_TimedConnection, request)


class HttpsHandler(urllib.request.HTTPSHandler):
    """Opens ``https:`` URLs, with the timeout of :class:`HttpHandler`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._tls = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_TimedTlsConnection, request, context=self._tls)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """Return ``None``, so that the redirect becomes an error."""
        return None
