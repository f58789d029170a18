"""An HTTP server with a text at ``/metrics``."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from statetool.errors import OptionError
from statetool.reporting.openmetrics.families import CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE

#: Seconds that a client may take for its request.
_PATIENCE_S: Final = 10
_PAGE: Final = b'<html><body><a href="metrics">metrics</a></body></html>\n'


@contextlib.contextmanager
def serving(text: Callable[[], str], host: str, port: int) -> Iterator[str]:
    """Serve metrics in threads of their own. Yields the URL.

    Parameters
    ----------
    text
        Returns the OpenMetrics text for each request.
    port
        0 chooses a free port.

    Raises
    ------
    OptionError
        The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    handler = type("Handler", (_Handler,), {"text": staticmethod(text)})
    server_type = type("Server", (_Server,), {"address_family": family})
    try:
        server = server_type((host, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionError(
            f"cannot listen on {host} port {port}: {reason}", hint="choose another --serve PORT"
        ) from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection early."""


class _Handler(BaseHTTPRequestHandler):
    text: Callable[[], str]
    timeout = _PATIENCE_S
    server_version = "statetool"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            # The text is valid in both formats.
            is_open_metrics = "application/openmetrics-text" in self.headers.get("Accept", "")
            status, kind = 200, CONTENT_TYPE if is_open_metrics else PROMETHEUS_CONTENT_TYPE
            data = self.text().encode()
        else:
            status, kind, data = (200 if path == "/" else 404), "text/html; charset=utf-8", _PAGE
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        """Log nothing: each scrape would be a line."""
