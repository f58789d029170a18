"""Admission of requests: a token, the host that is served, and no requests of other sites. All answers get the same strict headers.

A page of another site can make a browser send requests to 127.0.0.1, and with DNS rebinding also read the answers. So the header ``Host`` has to
name the served host, and requests that other sites cause are refused, in addition to the token.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
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


class Guard:
    """ASGI middleware that admits requests.

    Parameters
    ----------
    token
        The secret that a request has as a cookie or as ``Authorization: Bearer``.
    port
        The served port.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"statetool-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

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
            origin is not None and origin != f"http://{host}"
        ):
            return _answer(HTTPStatus.FORBIDDEN, "requests from other sites are refused: type or paste the address")
        if request.scope["method"] not in ("GET", "HEAD"):
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed: nothing can be changed")
        if len(request.scope["query_string"]) > _MOST_QUERY:
            return _answer(HTTPStatus.REQUEST_URI_TOO_LONG, f"the address has more than {_MOST_QUERY} characters")
        if (given := request.query_params.get("token")) is not None:
            return self._enter(request, given)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(bearer):
            return None
        if self._is_token(request.cookies.get(self._cookie, "")):
            return None
        return _answer(HTTPStatus.UNAUTHORIZED, "open the address with the token that statetool serve has printed")

    def _enter(self, request: HTTPConnection, given: str) -> Response:
        """Exchange the token in an address for a cookie, so that it stays out of the history of the browser."""
        if not self._is_token(given):
            return _answer(HTTPStatus.UNAUTHORIZED, "the token is not that of this server: it changes at each start")
        rest = QueryParams([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = "/" + request.scope["path"].lstrip("/\\")  # two slashes would be another host
        query = urlencode(rest.multi_items())
        answer = RedirectResponse(f"{path}?{query}" if query else path, HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _answer(status: HTTPStatus, text: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return PlainTextResponse(f"{status.value} {status.phrase}: {text}\n", status, headers)
