"""Ports for servers that cannot choose a port themselves."""

from __future__ import annotations

import random
import socket
from typing import Final

#: The system gives ports above this range to connections of any process, which could take one before the server starts.
_RANGE: Final = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return different ports that no process uses, and that none gets unless it asks for this number."""
    free: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(free) == count:
            break
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            free.append(port)
    return free
