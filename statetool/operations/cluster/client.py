"""A client of Flink's REST API (Flink 1.13 to 2.3), and of the HistoryServer, over the standard library."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import ConnectionFailedError, FormatError
from statetool.io.json_text import parse_json
from statetool.operations.cluster.answers import HttpHandler, HttpsHandler, NoRedirect
from statetool.operations.cluster.clusters import credentials_for
from statetool.operations.cluster.credentials import Credentials
from statetool.operations.cluster.deadlines import waiting

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
    have received it. Redirects are not followed, because they could send credentials elsewhere. Each answer has a timeout, and all
    answers to a command share a deadline (:mod:`statetool.operations.cluster.deadlines`).

    Parameters
    ----------
    server
        URL without a slash at the end.
    credentials
        By default, those of :func:`statetool.operations.cluster.clusters.credentials_for`.
    """

    def __init__(self, server: str, credentials: Credentials | None = None) -> None:
        self.server = server
        self._credentials = credentials_for(server) if credentials is None else credentials
        self._waiting = waiting()
        handlers: list[urllib.request.BaseHandler] = [NoRedirect(), HttpHandler()]
        if server.startswith("https:"):
            handlers.append(HttpsHandler(self._credentials.tls_context()))
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

    def renew_deadline(self) -> None:
        """Give the answers from now on the whole deadline: Flink has said that it is working on a request."""
        self._waiting.renew()

    def hide(self, text: str) -> str:
        """Return text of the server without secrets, which it may repeat."""
        return self._credentials.hide(text)

    def _send(self, path: str, body: dict[str, Any] | None, kind: type) -> Any:
        found = self._attempt(path, body, kind)
        for pause in _PAUSES_S:
            if not isinstance(found, _Failure) or not found.retry:
                break
            time.sleep(pause)
            found = self._attempt(path, body, kind)
        if isinstance(found, _Failure):
            # Raised outside of the handler, so that no traceback has the frames of urllib, with the headers.
            raise found.error
        return found

    def _attempt(self, path: str, body: dict[str, Any] | None, kind: type) -> Any | _Failure:
        left_s = self._waiting.left(self._credentials.deadline_s)
        if left_s <= 0:
            return self._no_time()
        with self._waiting.counted():
            data = self._ask(path, body, min(self._credentials.timeout_s, left_s))
        return data if isinstance(data, _Failure) else self._parse(path, data, kind, sends=body is not None)

    def _ask(self, path: str, body: dict[str, Any] | None, timeout_s: float) -> bytes | _Failure:
        try:
            with self._opener.open(self._request(path, body), timeout=timeout_s) as answer:
                data: bytes = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                return self._refusal(path, error)
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            return self._no_answer(reason, sends=body is not None)
        if len(data) > _MOST_BYTES:
            return _Failure(error=NotFlinkError(f"{self.server}{path}: an answer of over 64 MiB"), retry=False)
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

    def _parse(self, path: str, data: bytes, kind: type, *, sends: bool) -> Any | _Failure:
        what = f"not a JSON {'object' if kind is dict else 'array'}"
        try:
            tree = parse_json(data)
            if isinstance(tree, kind):
                return tree
        except json.JSONDecodeError:
            # The HistoryServer sends files that it is still writing.
            if not sends and (not data or data.lstrip()[:1] in (b"{", b"[")):
                return _Failure(error=NotFlinkError(f"{self.server}{path}: half an answer"), retry=True)
        except ValueError as error:
            what = f"JSON with {error}"
        problem = f"{self.server} is not Flink's REST API: {path} is {what}"
        return _Failure(error=NotFlinkError(problem, hint="check host, port and path"), retry=False)

    def _refusal(self, path: str, error: urllib.error.HTTPError) -> _Failure:
        """Return the failure for an answer with an error status."""
        status = f"{error.code} {self._credentials.hide(str(error.reason or ''))}".strip()
        if 300 <= error.code < 400:
            return _Failure(error=self._redirect(error), retry=False)
        if error.code in (401, 403):
            refused = RestError(f"{self.server} answers {status}", status=error.code, hint=self._access_hint())
            return _Failure(error=refused, retry=False)
        try:
            reasons = parse_json(error.read(_MOST_BYTES))["errors"]
            text = shorten_reason(self._credentials.hide(" ".join(map(str, reasons))))
        except TimeoutError as slow:
            return self._no_answer(slow, sends=False)
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
            if self._waiting.left(self._credentials.deadline_s) < self._credentials.timeout_s:
                return self._no_time()
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

    def _no_time(self) -> _Failure:
        """Return the failure for a server whose answers together take too long."""
        problem = f"the answers of {self.server} take longer than {self._credentials.deadline_s:g} s together"
        hint = self._credentials.say("set {deadline}{place} to more seconds")
        return _Failure(error=ConnectionFailedError(problem, hint=hint), retry=False)


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


@contextmanager
def reading_answer(path: str) -> Iterator[None]:
    """Raise errors of code that reads an answer as ours.

    Raises
    ------
    FormatError
        The answer misses a field, or a field has another type than Flink's.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FormatError(
            f"{path}: an unexpected answer of Flink's REST API ({type(error).__name__} {error})"
        ) from None
