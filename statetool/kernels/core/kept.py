"""Cache of compiled code on disk, keyed by the sources of all kernels, the versions of Python and numba, and the processor type.

The package's location does not matter, nor does its form: a folder, a wheel, or a zip that Spark unpacks for each application. A kernel has
others compiled into it, so its code depends on the sources of all kernels. Each kernel's code is a separate file that appears atomically.
Processes that share a folder do not compile the same code at the same time: one waits for the other's code, for up to a minute.

Code is looked up in these folders, in this order:

- the folder that ``STATETOOL_KERNELS`` names (the output of ``statetool kernels --build``, shipped to where it is needed),
- ``compiled`` in the package of kernels (also inside a zip),
- the user's folder: ``NUMBA_CACHE_DIR`` if set, otherwise the user's cache folder, otherwise a private folder below the temporary folder.

Newly compiled code is cached in the user's folder. Nothing is cached with ``STATETOOL_PLAIN=numba``, or with a numba that is newer than the
tested ones.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
import os
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statetool.errors import warn
from statetool.io.cache import cache_folders, is_private, writable
from statetool.io.switches import is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

VARIABLE: Final = "STATETOOL_KERNELS"
SUFFIX: Final = ".kernel"
_KERNELS: Final = "statetool.kernels"
#: The newest release of numba whose private parts were tested. A newer one is used by its public parts.
NEWEST_NUMBA: Final = (0, 68)
#: How long a process waits for another process that compiles the same code, and how often it checks, in seconds.
_MOST_WAITING: Final = 60.0
_LOOK_AGAIN: Final = 0.02


@cache
def is_numba_plain() -> bool:
    """Return True if only public parts of numba are used: because the user says so, or because numba is newer than the tested ones.

    The second reason is told once per process.
    """
    if is_plain("numba"):
        return True
    try:
        version = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        return False
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found <= NEWEST_NUMBA:
        return False
    newest = ".".join(map(str, NEWEST_NUMBA))
    warn(
        f"numba {version} is newer than {newest}, the newest that statetool was tested with: kernels are compiled in each process, which is "
        f"slower. Install a newer statetool or 'numba<{NEWEST_NUMBA[0]}.{NEWEST_NUMBA[1] + 1}', or set STATETOOL_PLAIN=numba"
    )
    return True


@cache
def stamp() -> str:
    """Return the name of the folder of compiled code, derived from sources, Python and numba."""
    digest = hashlib.sha256()
    for name, source in sorted(_sources(importlib.resources.files(_KERNELS))):
        digest.update(name.encode() + b"\0" + source + b"\0")
    return f"{digest.hexdigest()[:16]}-{sys.implementation.cache_tag}-numba-{importlib.metadata.version('numba')}"


@cache
def folders() -> tuple[Traversable, ...]:
    """Return the folders to look up code in, best first; none if nothing is cached."""
    if is_numba_plain():
        return ()
    named = os.environ.get(VARIABLE)
    shipped: list[Traversable] = [Path(named).absolute()] if named else []
    shipped.append(importlib.resources.files(_KERNELS) / "compiled")
    return tuple(base / stamp() for base in (*shipped, *_own_folders()))


@cache
def target() -> Path | None:
    """Return the folder for new code. ``None`` if none is writable or nothing is cached: each process compiles for itself."""
    if is_numba_plain():
        return None
    for base in _own_folders():
        if writable(folder := base / stamp()):
            return folder
    return None


@cache
def names() -> frozenset[str]:
    """Return the kernels that had compiled code when this process first checked."""
    kernels = set()
    for folder in folders():
        if folder.is_dir():
            kernels |= {f.name.rpartition("-")[0] for f in folder.iterdir() if f.name.endswith(SUFFIX)}
    return frozenset(kernels)


def _sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the modules of a folder and of the packages in it."""
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()
        elif (entry / "__init__.py").is_file():
            yield from _sources(entry, f"{prefix}{entry.name}/")


def _own_folders() -> list[Path]:
    named = os.environ.get("NUMBA_CACHE_DIR")
    if not named:
        return cache_folders("kernels")
    return [folder] if is_private(folder := Path(named) / "statetool") else []


def lock_of(file: Path) -> Path:
    """Return the file that is locked by the process that compiles the code of a file."""
    return file.with_suffix(".lock")


def claimed(file: Path) -> int | None:
    """Lock a file of code for this process. Closing the descriptor, or the end of the process, releases the lock.

    Returns ``None`` on platforms without file locks: code may be compiled twice there.

    Raises
    ------
    BlockingIOError
        Another process holds the lock.
    """
    try:
        import fcntl

        lock = os.open(lock_of(file), os.O_CREAT | os.O_RDWR, 0o600)
    except (ImportError, OSError):  # Windows; a deleted folder
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return lock


def claimed_in_time(file: Path) -> int | None:
    """Lock a file of code as soon as no other process holds the lock. Return ``None`` on a timeout, too."""
    deadline = time.monotonic() + _MOST_WAITING
    while time.monotonic() < deadline:
        try:
            return claimed(file)
        except BlockingIOError:
            time.sleep(_LOOK_AGAIN)
    return None
