"""The server of the explorer, on a port of this machine only."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from statetool.cli.explorer.app import application
from statetool.cli.explorer.opened import Snapshots
from statetool.errors import OptionError

HOST: Final = "127.0.0.1"


@contextmanager
def listening(snapshots: Snapshots, port: int) -> Iterator[tuple[str, uvicorn.Server, socket.socket]]:
    """Yield the address with the token, and the server with its socket; port 0 is any that is free.

    Raises
    ------
    OptionError
        The port is in use.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError as error:
            raise OptionError(
                f"port {port} cannot be used: {error.strerror}", hint="pass another --port, or 0"
            ) from error
        used, token = listener.getsockname()[1], secrets.token_urlsafe(32)
        config = uvicorn.Config(
            application(snapshots, token, used),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=64,
        )
        yield f"http://{HOST}:{used}/?token={token}", uvicorn.Server(config), listener
