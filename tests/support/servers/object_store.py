"""An S3 server on this machine that counts its requests and can reject some, like a busy store."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from statetool.io import requests
from tests.support.patience import PATIENCE_S

_SLOW_DOWN: Final = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"

#: Otherwise clients send requests again after 15 s.
_DENIED: Final = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@dataclass(slots=True)
class Store:
    """A running server.

    Attributes
    ----------
    requests
        Method, path, range and query of each request since they were last cleared.
    refuse_each
        Every n-th request is refused with 503 and ``SlowDown``; 0 for none.
    forbid
        Gets method, path and query of a request. If it returns ``before`` or ``after``, the response is 403, before or after the
        store has performed the request.
    """

    fs: Any = None
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)
    refuse_each: int = 0
    forbid: Callable[[str, str, str], str] | None = None

    def answer(self, app: Callable[..., Iterable[bytes]], environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        query = environ.get("QUERY_STRING", "")
        self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", ""), query))
        if self.refuse_each and len(self.requests) % self.refuse_each == 0:
            start("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(_SLOW_DOWN)))])
            return [_SLOW_DOWN]
        when = self.forbid(environ["REQUEST_METHOD"], environ["PATH_INFO"], query) if self.forbid else ""
        if when == "after":
            b"".join(app(environ, lambda *_: None))
        if when:
            start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(_DENIED)))])
            return [_DENIED]
        return app(environ, start)

    def objects_read(self) -> Counter[tuple[str, str]]:
        """Return the number of times each range of each object was read."""
        return Counter((path, span) for method, path, span, query in self.requests if method == "GET" and not query)


@contextlib.contextmanager
def object_store(bucket: str) -> Iterator[Store]:
    """Run a server with an empty bucket; it is configured through the environment, as for a user's job.

    However long a busy machine takes, clients wait for the server, and what they keep is not requested again.
    """
    import s3fs
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *arguments: object) -> None:
            pass

    store = Store()
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server(
        "127.0.0.1", 0, lambda environ, start: store.answer(app, environ, start), threaded=True, request_handler=Quiet
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        patch.setattr(s3fs.S3FileSystem, "connect_timeout", PATIENCE_S)
        patch.setattr(s3fs.S3FileSystem, "read_timeout", PATIENCE_S)
        patch.setattr(requests, "_KEPT_SECONDS", math.inf)
        s3fs.S3FileSystem.clear_instance_cache()
        store.fs = s3fs.S3FileSystem()
        store.fs.mkdir(bucket)
        yield store
    s3fs.S3FileSystem.clear_instance_cache()
    server.shutdown()
    thread.join()
