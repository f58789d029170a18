"""Private parts of numba: the cache of a dispatcher, compilation without counting of references, and prefetches.

- numba's public cache depends on the location of a source file and does not see changes in other files. :class:`KeptCode` replaces it, which
  saves 9 seconds of CPU time before the first large read of a process, and 6 before a rescaling.
- Kernels with ``_nrt=False`` cannot allocate arrays, and do not count references to arrays: 0.19 instead of 0.87 seconds of CPU time to read
  a million keys with three states.
- Prefetches hide the latency of memory: 7 % of a rescaling that moves all keys.

With ``STATETOOL_PLAIN=numba``, and with a numba that is newer than the tested ones, each process compiles its kernels with public options of numba.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from statetool.kernels.core import kept

_DIGEST_BYTES: Final = 32


def make_dispatcher(function: Callable[..., Any], name: str, *, inline: bool) -> Callable[..., Any]:
    """Return numba's dispatcher of a kernel, which compiles it for each combination of argument types."""
    import numba

    dispatcher: Any
    if kept.is_numba_plain():
        dispatcher = numba.njit(nogil=True, forceinline=inline)(function)
    else:
        dispatcher = numba.njit(nogil=True, forceinline=inline, _nrt=False)(function)
        dispatcher._cache = KeptCode(name)
    compiled: Callable[..., Any] = dispatcher
    return compiled


def compile_prefetch(read_soon: Callable[..., None]) -> None:
    """Compile calls of a function ``read_soon(data, p)`` to a prefetch instruction, or to nothing."""
    from numba.extending import overload

    if kept.is_numba_plain():
        overload(read_soon)(lambda data, p: lambda data, p: None)
        return
    prefetch = _prefetch()
    overload(read_soon)(lambda data, p: lambda data, p: prefetch(data, p))


def _prefetch() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(_: Any, data: Any, p: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            first = context.make_array(signature.args[0])(context, builder, values[0]).data
            place = builder.bitcast(builder.gep(first, [values[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
            # Arguments of the prefetch: read, keep in all cache levels, data.
            how = [ir.Constant(word, number) for number in (0, 3, 1)]
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *how])
            return context.get_dummy_value()

        return types.void(data, p), generate

    return prefetch


def is_left(dispatcher: Any, types: Any) -> bool:
    """Return True if the code for these argument types is not cached, could be, and no other process compiles it."""
    return not kept.is_numba_plain() and bool(dispatcher._cache.is_left(types, dispatcher.targetctx))


class KeptCode:
    """Cache of the compiled code of one kernel, as numba's dispatchers use it: one file per signature (argument types, processor).

    A file is a digest followed by its input, the pickled signature and code.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: Locks held by this process, by file.
        self._claims: dict[str, int | None] = {}
        self.cache_path = str(kept.target())

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return cached code. ``None`` if this process must compile it, while others wait for it."""
        signature = (types, context.codegen().magic_tuple())
        file = self._file(signature)
        code = self._stored(signature, context)
        folder = kept.target()
        if code is None and folder is not None and file not in self._claims:
            self._claims[file] = kept.claimed_in_time(folder / file)
            code = self._stored(signature, context)  # another process may have cached it in the meantime
            if code is not None:
                self._release(folder / file)
        return code

    def _stored(self, signature: Any, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        for folder in kept.folders():
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

        folder = kept.target()
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
        folder = kept.target()
        if folder is None or self._stored(signature, context) is not None:
            return False
        file = folder / self._file(signature)
        try:
            claim = kept.claimed(file)
        except BlockingIOError:
            return False
        if self._stored(signature, context) is not None:  # another process has cached it in the meantime
            self._claims[file.name] = claim
            self._release(file)
            return False
        if claim is not None:
            os.close(claim)
        return True

    def _release(self, file: Path) -> None:
        claim = self._claims.pop(file.name, None)
        if claim is not None:
            with suppress(OSError):
                os.unlink(kept.lock_of(file))
            os.close(claim)

    def _file(self, signature: Any) -> str:
        return f"{self._name}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}{kept.SUFFIX}"
