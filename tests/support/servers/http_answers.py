"""An HTTP server on this machine whose answers a function gives."""

from __future__ import annotations

import contextlib
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, TypeAlias

_JSON: Final = {"Content-Type": "application/json"}
#: Gets method, path, headers and body of a request, and returns status, body and headers.
Answer: TypeAlias = Callable[[str, str, dict[str, str], bytes], tuple[int, bytes, dict[str, str]]]


def forward(server: str, method: str, path: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
    """Send a request to another server, and return its answer, as a proxy does."""
    request = urllib.request.Request(f"{server}{path}", body or None, _JSON, method=method)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, answer.read(), _JSON
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), _JSON


@contextlib.contextmanager
def http_server(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, data, headers = answer(self.command, self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            with contextlib.suppress(ConnectionError):  # of a client that did not wait
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
