"""Forms of keyed state in a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from statetool.errors import OptionError

#: The canonical form, or the native one of a backend.
KeyedForm: TypeAlias = Literal["canonical", "rocksdb", "forst", "heap"]
#: As :data:`KeyedForm`, or for each operator that of its base.
SnapshotForm: TypeAlias = KeyedForm | Literal["same"]
#: The format of a changed copy if the user does not choose one.
DEFAULT_FORMAT: Final = "same"

_NATIVE: Final[Mapping[str | None, KeyedForm]] = {"rocksdb": "rocksdb", "forst": "forst", "heap": "heap"}


def parse_form(style: str, backend: str | None) -> SnapshotForm:
    """Return the form of keyed state for the format of a savepoint and the backend that restores it.

    Raises
    ------
    OptionError
        There is no such form, or statetool does not write it.
    """
    if style == "canonical" and backend is None:
        return "canonical"
    if style == "same":
        if backend is not None:
            raise OptionError(
                f"backend={backend!r} with the format of the base",
                hint="omit the backend, or choose the native format (--format native, format='native')",
            )
        return "same"
    if style == "native" and backend in _NATIVE:
        return _NATIVE[backend]
    if style == "canonical":
        raise OptionError(
            f"backend={backend!r} with the canonical format",
            hint="omit the backend: a canonical savepoint is for RocksDB and the heap backend",
        )
    if style == "native":
        raise OptionError(
            "the native format needs a backend"
            if backend is None
            else f"statetool does not write native savepoints of {backend!r}",
            hint="choose rocksdb, forst or heap (--backend rocksdb, backend='rocksdb'), or the canonical format",
        )
    raise OptionError(f"format {style!r}", hint="choose same, canonical or native")
