"""Cache of compiled code on disk, keyed by the sources of all kernels, the versions of Python and numba, and the processor type.

The package's location does not matter, nor does its form: a folder, a wheel, or a zip that Spark unpacks for each application. A kernel has
others compiled into it, so its code depends on the sources of all kernels. Each kernel's code is a separate file that appears atomically.
Processes that share a folder do not compile the same code at the same time: one waits for the other's code, for up to a minute.

Code is looked up in these folders, in this order:

- the folder that ``STATETOOL_KERNELS`` names (the output of ``statetool kernels --build``, shipped to where it is needed),
- ``compiled`` next to this module (also inside a zip),
- the user's folder: ``NUMBA_CACHE_DIR`` if set, otherwise the user's cache folder, otherwise a private folder below the temporary folder.

Newly compiled code is cached in the user's folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
import os
import pickle
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from statetool.io.cache import cache_folders, writable

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

VARIABLE: Final = "STATETOOL_KERNELS"
_SUFFIX: Final = ".kernel"
_DIGEST_BYTES: Final = 32
#: How long a process waits for another process that compiles the same code, and how often it checks, in seconds.
_MOST_WAITING: Final = 60.0
_LOOK_AGAIN: Final = 0.02


@cache
def stamp() -> str:
    """Return the name of the folder of compiled code, derived from sources, Python and numba."""
    digest = hashlib.sha256()
    here = importlib.resources.files(__package__)
    for source in sorted((f for f in here.iterdir() if f.name.endswith(".py")), key=lambda f: f.name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"{digest.hexdigest()[:16]}-{sys.implementation.cache_tag}-numba-{importlib.metadata.version('numba')}"


@cache
def folders() -> tuple[Traversable, ...]:
    """Return the folders to look up code in, best first."""
    named = os.environ.get(VARIABLE)
    shipped: list[Traversable] = [Path(named).absolute()] if named else []
    shipped.append(importlib.resources.files(__package__) / "compiled")
    return tuple(base / stamp() for base in (*shipped, *_own_folders()))


@cache
def target() -> Path | None:
    """Return the folder for new code. ``None`` if none is writable, in which case each process compiles for itself."""
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
            kernels |= {f.name.rpartition("-")[0] for f in folder.iterdir() if f.name.endswith(_SUFFIX)}
    return frozenset(kernels)


def _own_folders() -> list[Path]:
    named = os.environ.get("NUMBA_CACHE_DIR")
    return [Path(named) / "statetool"] if named else cache_folders("kernels")


class KeptCode:
    """Cache of the compiled code of one kernel, as numba's dispatchers use it: one file per signature (argument types, processor).

    A file is a digest followed by its input, the pickled signature and code.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: Locks held by this process, by file.
        self._claims: dict[str, int | None] = {}
        self.cache_path = str(target())

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return cached code. ``None`` if this process must compile it, while others wait for it."""
        signature = (types, context.codegen().magic_tuple())
        file = self._file(signature)
        code = self._stored(signature, context)
        folder = target()
        if code is None and folder is not None and file not in self._claims:
            self._claims[file] = _claimed_in_time(folder / file)
            code = self._stored(signature, context)  # another process may have cached it in the meantime
            if code is not None:
                self._release(folder / file)
        return code

    def _stored(self, signature: Any, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        for folder in folders():
            try:
                data = (folder / self._file(signature)).read_bytes()
            except OSError:
                continue
            digest, data = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
            if hashlib.sha256(data).digest() == digest:
                stored, code = pickle.loads(data)
                if stored == signature:
                    return CompileResult._rebuild(context, *code)
        return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Cache code. If that is not possible, it is compiled again the next time."""
        from numba.core.serialize import dumps

        folder = target()
        if folder is None:
            return
        signature = (types, result.codegen.magic_tuple())
        file = folder / self._file(signature)
        data = dumps((signature, result._reduce()))
        try:
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as f:
                f.write(hashlib.sha256(data).digest() + data)
            os.replace(f.name, file)
        except OSError:
            return
        finally:
            self._release(file)

    def is_left(self, types: Any, context: Any) -> bool:
        """Return True if code is not cached and no other process compiles it."""
        signature = (types, context.codegen().magic_tuple())
        folder = target()
        if folder is None or self._stored(signature, context) is not None:
            return False
        try:
            claim = claimed(folder / self._file(signature))
        except BlockingIOError:
            return False
        if claim is not None:
            os.close(claim)
        return True

    def _release(self, file: Path) -> None:
        claim = self._claims.pop(file.name, None)
        if claim is not None:
            with suppress(OSError):
                os.unlink(_lock_of(file))
            os.close(claim)

    def _file(self, signature: Any) -> str:
        return f"{self._name}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}{_SUFFIX}"


def _lock_of(file: Path) -> Path:
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

        lock = os.open(_lock_of(file), os.O_CREAT | os.O_RDWR, 0o600)
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


def _claimed_in_time(file: Path) -> int | None:
    """Lock a file of code as soon as no other process holds the lock. Return ``None`` on a timeout, too."""
    deadline = time.monotonic() + _MOST_WAITING
    while time.monotonic() < deadline:
        try:
            return claimed(file)
        except BlockingIOError:
            time.sleep(_LOOK_AGAIN)
    return None
