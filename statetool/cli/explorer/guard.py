"""Admission of requests: a token, the host that is served, and no requests of other sites. All answers get the same strict headers.

A page of another site can make a browser send requests to 127.0.0.1, and with DNS rebinding also read the answers. So the header ``Host`` has to
name the served host, and requests that other sites cause are refused, in addition to the token.
"""

from __future__ import annotations

import hmac
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders, QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Nothing but the style sheet is loaded, no script runs, and no other site can frame a page.
POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
#: Longer addresses are refused. Keys and queries are part of the address.
_MOST_QUERY: Final = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who is admitted, and how often.

    Attributes
    ----------
    token
        The secret that a request has as a cookie or as ``Authorization: Bearer``.
    api_token
        Another one, with which only ``/api`` answers; ``None`` for none.
    port
        The served port.
    scheme
        ``http`` or ``https``.
    per_second
        Requests per second on average; twice as many may come at once.
    """

    token: str
    port: int
    api_token: str | None = None
    scheme: str = "http"
    per_second: float = 50.0


class _Rate:
    """Number of requests that may come at once, which grows again with time."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left = self._most = max(1.0, 2 * per_second)
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Take one request, and return 0, or the seconds after which there is one."""
        with self._lock:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * self._per_second)
            self._at = now
            if self._left < 1:
                return (1 - self._left) / self._per_second
            self._left -= 1
            return 0.0


class Guard:
    """ASGI middleware that admits requests."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission
        self._cookie = f"statetool-{admission.port}"
        self._hosts = {f"{name}:{admission.port}" for name in ("127.0.0.1", "localhost")}
        self._rate = _Rate(admission.per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # neither the start of the server nor WebSockets have anything to do
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self._refusal(HTTPConnection(scope))
        await (self._app if refused is None else refused)(scope, receive, send_with_headers)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        """Return the answer to a request that is not admitted, and ``None`` for others."""
        if request.headers.getlist("host") != [host := request.headers.get("host", "")] or host not in self._hosts:
            return _answer(HTTPStatus.MISDIRECTED_REQUEST, "this host name is not served")
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") or (
            origin is not None and origin != f"{self._admission.scheme}://{host}"
        ):
            return _answer(HTTPStatus.FORBIDDEN, "requests from other sites are refused: type or paste the address")
        if request.scope["method"] not in ("GET", "HEAD"):
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed: nothing can be changed")
        if len(request.scope["query_string"]) > _MOST_QUERY:
            return _answer(HTTPStatus.REQUEST_URI_TOO_LONG, f"the address has more than {_MOST_QUERY} characters")
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            return _answer(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "requests have no body: give all parameters in the address"
            )
        if (given := request.query_params.get("token")) is not None:
            return self._enter(request, given)
        if not self._has_token(request):
            return _answer(HTTPStatus.UNAUTHORIZED, "open the address with the token that statetool serve has printed")
        if (wait := self._rate.take()) > 0:
            per_second = self._admission.per_second
            answer = _answer(HTTPStatus.TOO_MANY_REQUESTS, f"more than {per_second:g} requests per second (--rate)")
            answer.headers["Retry-After"] = str(ceil(wait))
            return answer
        return None

    def _has_token(self, request: HTTPConnection) -> bool:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            of_api = self._admission.api_token
            if of_api is not None and request.scope["path"].startswith("/api/") and _same(bearer, of_api):
                return True
            if self._is_token(bearer):
                return True
        return self._is_token(request.cookies.get(self._cookie, ""))

    def _enter(self, request: HTTPConnection, given: str) -> Response:
        """Exchange the token in an address for a cookie, so that it stays out of the history of the browser."""
        if not self._is_token(given):
            return _answer(HTTPStatus.UNAUTHORIZED, "the token is not that of this server: it changes at each start")
        rest = QueryParams([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = "/" + request.scope["path"].lstrip("/\\")  # two slashes would be another host
        query = urlencode(rest.multi_items())
        answer = RedirectResponse(f"{path}?{query}" if query else path, HTTPStatus.SEE_OTHER)
        secure = self._admission.scheme == "https"
        answer.set_cookie(
            self._cookie, self._admission.token, httponly=True, samesite="strict", path="/", secure=secure
        )
        return answer

    def _is_token(self, given: str) -> bool:
        return _same(given, self._admission.token)


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _answer(status: HTTPStatus, text: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return PlainTextResponse(f"{status.value} {status.phrase}: {text}\n", status, headers)
