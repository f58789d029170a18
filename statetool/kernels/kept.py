"""Compiled code on disk, found by the sources of all kernels, the versions of Python and numba and the kind of processor alone.

Where the package lies does not matter, nor whether it is a folder, a wheel or a zip that Spark unpacks anew for each application. A
kernel has others compiled into it, so its code depends on the sources of all kernels. The code of each is a file of its own that
appears whole or not at all. Processes that share a folder do not compile the same at the same time: one waits for the other's code, for a minute
at most.

Code is looked for in the folder that ``STATETOOL_KERNELS`` names (what ``statetool kernels --build`` made, shipped to where it is needed), in
``compiled`` beside this module (in a zip too), and in the user's folder: ``NUMBA_CACHE_DIR`` where that is set, else the
user's cache folder, else one of the user's own below the temporary folder. What had to be compiled is kept in the user's folder.
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
#: How long a process waits for another one that compiles the same, and how often it looks, in seconds.
_MOST_WAITING: Final = 60.0
_LOOK_AGAIN: Final = 0.02


@cache
def stamp() -> str:
    """Return the name of the folder of compiled code, by sources, Python and numba."""
    digest = hashlib.sha256()
    here = importlib.resources.files(__package__)
    for source in sorted((f for f in here.iterdir() if f.name.endswith(".py")), key=lambda f: f.name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"{digest.hexdigest()[:16]}-{sys.implementation.cache_tag}-numba-{importlib.metadata.version('numba')}"


@cache
def folders() -> tuple[Traversable, ...]:
    """Return where code is looked for, best first."""
    named = os.environ.get(VARIABLE)
    shipped: list[Traversable] = [Path(named).absolute()] if named else []
    shipped.append(importlib.resources.files(__package__) / "compiled")
    return tuple(base / stamp() for base in (*shipped, *_own_folders()))


@cache
def target() -> Path | None:
    """Return the folder for new code; ``None`` where none can be written, and each process compiles for itself."""
    for base in _own_folders():
        if writable(folder := base / stamp()):
            return folder
    return None


@cache
def names() -> frozenset[str]:
    """Return the kernels that had compiled code when this process first asked."""
    kernels = set()
    for folder in folders():
        if folder.is_dir():
            kernels |= {f.name.rpartition("-")[0] for f in folder.iterdir() if f.name.endswith(_SUFFIX)}
    return frozenset(kernels)


def _own_folders() -> list[Path]:
    named = os.environ.get("NUMBA_CACHE_DIR")
    return [Path(named) / "statetool"] if named else cache_folders("kernels")


class KeptCode:
    """The compiled code of one kernel, as numba's dispatchers ask for it: a file for each signature (types of arguments, processor).

    A file is a digest, and what it is of: the pickled signature and code.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: Locks that this process has, by file.
        self._claims: dict[str, int | None] = {}
        self.cache_path = str(target())

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return kept code, or ``None``: then it is for this process to compile, and others wait for it."""
        signature = (types, context.codegen().magic_tuple())
        file = self._file(signature)
        code = self._stored(signature, context)
        folder = target()
        if code is None and folder is not None and file not in self._claims:
            self._claims[file] = _claimed_in_time(folder / file)
            code = self._stored(signature, context)  # another process may have kept it meanwhile
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
        """Keep code; where that is not possible, it is compiled again the next time."""
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
        """Tell whether code is not kept, and no other process compiles it."""
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
    """Lock a file of code for this process, which gives up the lock by closing the descriptor or by its end.

    ``None`` where there are no locks of files: then code may be compiled twice.

    Raises
    ------
    BlockingIOError
        Another process has it.
    """
    try:
        import fcntl

        lock = os.open(_lock_of(file), os.O_CREAT | os.O_RDWR, 0o600)
    except (ImportError, OSError):  # Windows; a folder that is gone
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
    """Lock a file of code once no other process has it; ``None`` where that takes too long, too."""
    deadline = time.monotonic() + _MOST_WAITING
    while time.monotonic() < deadline:
        try:
            return claimed(file)
        except BlockingIOError:
            time.sleep(_LOOK_AGAIN)
    return None
