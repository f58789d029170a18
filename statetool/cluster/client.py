"""A client of Flink's REST API (Flink 1.13 to 2.3), and of the HistoryServer, over the standard library."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final

from statetool.cluster.clusters import credentials_for
from statetool.cluster.credentials import Credentials
from statetool.errors import ConnectionFailedError, FormatError

#: Pauses between attempts, in seconds.
_PAUSES_S: Final = (0.5, 1.0, 2.0)
_BUSY: Final = 503
#: An answer is at most this long: a list of some thousand jobs takes 1 MiB.
_MOST_BYTES: Final = 64 << 20
_CLASS: Final = re.compile(r"(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable|Failure)[\w$]*: ")
_MOST_REASON: Final = 300


class NotFlinkError(ConnectionFailedError):
    """A server that is not Flink's REST API."""


class RestError(ConnectionFailedError):
    """An answer with an error of Flink, or of a proxy before it. ``status`` is the HTTP status."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """A failed attempt: what to raise, and whether the request was certainly not processed."""

    error: ConnectionFailedError
    retry: bool


class RestClient:
    """Sends requests to one server.

    Connection errors and answers with status 503 are retried. A request that triggers something is only sent again if the server cannot
    have received it. Redirects are not followed, because they could send credentials elsewhere.

    Parameters
    ----------
    server
        URL without a slash at the end.
    credentials
        By default, those of :func:`statetool.cluster.clusters.credentials_for`.
    """

    def __init__(self, server: str, credentials: Credentials | None = None) -> None:
        self.server = server
        self._credentials = credentials_for(server) if credentials is None else credentials
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if server.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=self._credentials.tls_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"RestClient({self.server!r})"

    def get(self, path: str, kind: type = dict) -> Any:
        """Return the JSON answer to a GET request.

        Parameters
        ----------
        kind
            ``dict`` or ``list``: the type of the answer.

        Raises
        ------
        ConnectionFailedError
            The server does not answer, refuses the request (:class:`RestError`), or is not Flink's (:class:`NotFlinkError`).
        """
        return self._send(path, None, kind)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the JSON answer to a POST request with a JSON body.

        Raises
        ------
        ConnectionFailedError
            As for :meth:`get`.
        """
        return self._send(path, body, dict)

    def hide(self, text: str) -> str:
        """Return text of the server without secrets, which it may repeat."""
        return self._credentials.hide(text)

    def _send(self, path: str, body: dict[str, Any] | None, kind: type) -> Any:
        found = self._attempt(path, body)
        for pause in _PAUSES_S:
            if not isinstance(found, _Failure) or not found.retry:
                break
            time.sleep(pause)
            found = self._attempt(path, body)
        if isinstance(found, _Failure):
            # Raised outside of the handler, so that no traceback has the frames of urllib, with the headers.
            raise found.error
        return self._parse(path, found, kind)

    def _attempt(self, path: str, body: dict[str, Any] | None) -> bytes | _Failure:
        try:
            with self._opener.open(self._request(path, body), timeout=self._credentials.timeout_s) as answer:
                data: bytes = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                return self._refusal(path, error)
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            return self._no_answer(reason, sends=body is not None)
        if len(data) > _MOST_BYTES:
            return _Failure(error=NotFlinkError(f"{self.server}{path}: an answer of over 64 MiB"), retry=False)
        if body is None and _is_cut(data):
            return _Failure(error=NotFlinkError(f"{self.server}{path}: half an answer"), retry=True)
        return data

    def _request(self, path: str, body: dict[str, Any] | None) -> urllib.request.Request:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.server}{path}", data)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "statetool")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in self._credentials.headers.items():
            request.add_unredirected_header(name, value)
        return request

    def _parse(self, path: str, data: bytes, kind: type) -> Any:
        try:
            tree = json.loads(data)
        except ValueError:
            tree = None
        if not isinstance(tree, kind):
            what = "object" if kind is dict else "array"
            raise NotFlinkError(
                f"{self.server} is not Flink's REST API: {path} is not a JSON {what}", hint="check host, port and path"
            )
        return tree

    def _refusal(self, path: str, error: urllib.error.HTTPError) -> _Failure:
        """Return the failure for an answer with an error status."""
        status = f"{error.code} {self._credentials.hide(str(error.reason or ''))}".strip()
        if 300 <= error.code < 400:
            return _Failure(error=self._redirect(error), retry=False)
        if error.code in (401, 403):
            refused = RestError(f"{self.server} answers {status}", status=error.code, hint=self._access_hint())
            return _Failure(error=refused, retry=False)
        try:
            reasons = json.loads(error.read(_MOST_BYTES))["errors"]
            text = shorten_reason(self._credentials.hide(" ".join(map(str, reasons))))
        except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
            text = ""
        if error.code == _BUSY:
            said = f": {text}" if text else ""
            problem, hint = f"{self.server} answers {status}{said}", "try again when the JobManager is up"
            return _Failure(error=RestError(problem, status=error.code, hint=hint), retry=True)
        if not text:
            problem = f"{self.server} is not Flink's REST API: {path} is answered with {status}"
            return _Failure(error=NotFlinkError(problem, hint="check host, port and path"), retry=False)
        return _Failure(error=RestError(f"{self.server} answers {status}: {text}", status=error.code), retry=False)

    def _redirect(self, error: urllib.error.HTTPError) -> ConnectionFailedError:
        target = self._credentials.hide(str(error.headers.get("Location", "nowhere"))).partition("?")[0]
        return NotFlinkError(
            f"{self.server} redirects to {target}", hint="give the URL that it redirects to; a login page needs a token"
        )

    def _access_hint(self) -> str:
        if self._credentials.source:
            return f"check {self._credentials.source}: the server does not accept them"
        return self._credentials.say("set {token}, or {user} and {password}, or for mutual TLS {cert}{place}")

    def _no_answer(self, reason: Any, *, sends: bool) -> _Failure:
        """Return the failure for a connection that could not be made, or broke."""
        problem = f"{self.server} does not answer: {self._credentials.hide(str(reason))}"
        hint, retry = "check host and port, and that the JobManager is up", True
        if isinstance(reason, ssl.SSLCertVerificationError):
            problem = f"{self.server}: the certificate cannot be verified ({reason.verify_message})"
            hint, retry = self._credentials.say("set {ca}{place} to the PEM file of the certificate authority"), False
        elif isinstance(reason, ssl.SSLError):
            problem = f"{self.server}: TLS failed ({reason.reason or reason})"
            hint = self._credentials.say(
                "use flink:// if the server has no TLS; set {cert}{place} if it asks for a certificate"
            )
            retry = False
        elif isinstance(reason, TimeoutError):
            problem = f"{self.server} does not answer within {self._credentials.timeout_s:g} s"
            hint, retry = self._credentials.say("check host and port, or set {timeout}{place} to more seconds"), False
        elif isinstance(reason, ConnectionResetError) and self.server.startswith("https:"):
            # A server that misses a certificate may close the connection before its reason arrives.
            hint = self._credentials.say(
                "check that the JobManager is up, and set {cert}{place} if it asks for a certificate"
            )
        elif isinstance(reason, http.client.HTTPException | ConnectionResetError) and self.server.startswith("http:"):
            problem = f"{self.server} does not answer as an HTTP server ({type(reason).__name__})"
            hint = "use flinks:// if the server has TLS"
        if sends and not isinstance(reason, ConnectionRefusedError):
            retry = False
        return _Failure(error=ConnectionFailedError(problem, hint=hint), retry=retry)


def _is_cut(data: bytes) -> bool:
    """Return True if an answer may be the start of a JSON document: the HistoryServer sends files that it is still writing."""
    if data and data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data)
    except ValueError:
        return True
    return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


def shorten_reason(text: str) -> str:
    """Return the message of a Java stack trace, without the names of exceptions.

    Examples
    --------
    >>> shorten_reason("java.lang.A$BException: org.x.CError: Job 1 not found\\n\\tat org.x.Y(Z.java:1)")
    'Job 1 not found'
    """
    lines = text.strip().splitlines() or [""]
    first = lines[0]
    while match := _CLASS.match(first):
        first = first[match.end() :]
    causes = [line.partition("Caused by: ")[2] for line in lines if line.startswith("Caused by: ")]
    last = causes[-1] if causes else ""
    while match := _CLASS.match(last):
        last = last[match.end() :]
    message = (f"{first} ({last})" if last and last not in first else first).rstrip(". ")
    return message if len(message) <= _MOST_REASON else f"{message[: _MOST_REASON - 1]}…"


def malformed(path: str, error: Exception) -> FormatError:
    """Return the error for an answer without an expected field."""
    return FormatError(f"{path}: an unexpected answer of Flink's REST API ({type(error).__name__} {error})")
