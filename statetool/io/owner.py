"""The process that writes a target, as the marker of the write records it: of a savepoint, or of an exported table.

A later write asks whether that process still runs. The answer is certain only on the same machine and in the same PID namespace:
elsewhere a PID means another process, so the answer is ``None``.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
import weakref
from typing import Any, Final

#: Ids of the writes running in this process, each for as long as its object exists.
RUNNING: Final[weakref.WeakValueDictionary[str, Any]] = weakref.WeakValueDictionary()
_OF_SAVEPOINT: Final = "written by statetool; _metadata appears when the write is complete"


def describe_owner(note: str = _OF_SAVEPOINT, beat_s: float | None = None) -> bytes:
    """Return the content of a marker: a note for people who find it, this process, its start time and its machine.

    Parameters
    ----------
    beat_s
        Seconds after which the marker is written again while the process runs, ``None`` if it is not.
    """
    pid = os.getpid()
    owner = {"note": note, "host": _host(), "pid": pid, "started": _start_of(pid), "name": socket.gethostname()}
    if beat_s is not None:
        owner["beat_s"] = beat_s
    return json.dumps(owner).encode() + b"\n"


def is_running(marker: bytes, write_id: str) -> bool | None:
    """Return True if the process of a write is still running; ``None`` if this process cannot tell."""
    owner = _parse(marker)
    if owner.get("host") != _host() or not isinstance(owner.get("pid"), int) or os.name != "posix":
        return None
    pid, started = owner["pid"], owner.get("started")
    if pid == os.getpid() and started == _start_of(pid):
        return write_id in RUNNING
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        pass
    return started == _start_of(pid)


def has_beats(marker: bytes) -> bool:
    """Return True if the process of a marker writes it again and again."""
    return isinstance(_parse(marker).get("beat_s"), int | float)


def name_owner(marker: bytes) -> str:
    """Return the phrase for the process of a write in messages, empty if the marker does not name one."""
    owner = _parse(marker)
    return f"process {owner['pid']} on {owner['name']}" if {"pid", "name"} <= owner.keys() else ""


def _parse(marker: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(marker)
    except (ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _host() -> str:
    """Return a name that two processes share only if a PID means the same process to both."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f"{f.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode():x}"


def _start_of(pid: int) -> str | None:
    """Return the start time of a process in the system's unit; ``None`` if it ended or the system does not report it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            # The name, in parentheses, may contain any character. After it come the state and, 19 fields later, the start time.
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()
