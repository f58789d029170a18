"""The context of the snapshot that is being read.

Serializers are bound while their snapshots are read, deep inside of each other, so what comes from outside (the version of Kryo,
declared classes) is set around the reading of a header and taken up where a serializer is made. Nothing else looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from statetool.types.declared import NOTHING_DECLARED, TypeContext

_CURRENT: ContextVar[TypeContext] = ContextVar("statetool_types", default=NOTHING_DECLARED)


@contextmanager
def reading_with(context: TypeContext) -> Iterator[None]:
    """Read serializer snapshots with a context."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_context() -> TypeContext:
    """Return the context of the snapshot that is being read."""
    return _CURRENT.get()
