"""Ports for servers that cannot choose a port themselves."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

#: Linux gives ports above this range to connections of any process, which could take one before the server starts.
_RANGE: Final = range(20_000, 32_000)
_LINUX_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return different ports that no process uses, and that none gets unless it asks for this number."""
    free: list[int] = []
    ports = _ports()
    for port in random.SystemRandom().sample(ports, len(ports)):
        if len(free) == count:
            break
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            free.append(port)
    return free


def _ports() -> range:
    """Return ports below those that the system gives to connections, if a machine has another range for these."""
    try:
        lowest = int(_LINUX_PORTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _RANGE
    return _RANGE if lowest >= _RANGE.stop or lowest < 4_000 else range(lowest // 2, lowest)
