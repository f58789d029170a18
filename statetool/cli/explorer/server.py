"""The server of the explorer, on a port of this machine only."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn

from statetool.cli.explorer.app import application
from statetool.cli.explorer.guard import Admission
from statetool.cli.explorer.opened import Snapshots
from statetool.errors import OptionError

HOST: Final = "127.0.0.1"
_LEAST_TOKEN: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of the server.

    Attributes
    ----------
    port
        0 is any that is free.
    tls_cert, tls_key
        Files with the certificate chain and its key in PEM; without them, the server speaks HTTP.
    api_token
        A token with which only ``/api`` answers.
    per_second
        Requests per second.
    """

    port: int = 0
    tls_cert: str | None = None
    tls_key: str | None = None
    api_token: str | None = None
    per_second: float = 50.0


def read_token(file: str) -> str:
    """Return the token in the first line of a file.

    Raises
    ------
    OptionError
        The file cannot be read, or the token is short.
    """
    try:
        token = (Path(file).read_text("ascii").splitlines() or [""])[0].strip()
    except (OSError, ValueError) as error:
        raise OptionError(f"the token in {file} cannot be read: {error}") from error
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token:
        raise OptionError(
            f"the token in {file} has fewer than {_LEAST_TOKEN} characters, or spaces", hint="openssl rand -hex 32"
        )
    return token


def _tls(options: ServerOptions) -> dict[str, Any]:
    """Return the settings of uvicorn for TLS.

    Raises
    ------
    OptionError
        A file is missing or not valid.
    """
    if options.tls_cert is None and options.tls_key is None:
        return {}
    if options.tls_cert is None or options.tls_key is None:
        raise OptionError("TLS needs a certificate and its key", hint="pass both --tls-cert and --tls-key")
    try:
        # An encrypted key would be asked for on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise OptionError(f"{options.tls_cert} and {options.tls_key} cannot be used for TLS: {error}") from error
    return {"ssl_certfile": options.tls_cert, "ssl_keyfile": options.tls_key}


@contextmanager
def listening(snapshots: Snapshots, options: ServerOptions) -> Iterator[tuple[str, uvicorn.Server, socket.socket]]:
    """Yield the address with the token, and the server with its socket.

    Raises
    ------
    OptionError
        The port is in use, or the files for TLS are not valid.
    """
    tls = _tls(options)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, options.port))
            listener.listen()
        except OSError as error:
            raise OptionError(
                f"port {options.port} cannot be used: {error.strerror}", hint="pass another --port, or 0"
            ) from error
        used, token = listener.getsockname()[1], secrets.token_urlsafe(32)
        admission = Admission(
            token=token,
            port=used,
            api_token=options.api_token,
            scheme="https" if tls else "http",
            per_second=options.per_second,
        )
        config = uvicorn.Config(
            application(snapshots, admission),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=64,
            **tls,
        )
        yield f"{admission.scheme}://{HOST}:{used}/?token={token}", uvicorn.Server(config), listener
