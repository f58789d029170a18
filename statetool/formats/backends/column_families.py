"""States as column families of a database, and databases as parts of an operator's state."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.formats.rocksdb.files import DatabaseFiles


def family_name(state: str) -> str:
    """Return the name of a state's column family: Java writes a lone surrogate as a question mark."""
    return state.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedDatabase:
    """The database of a subtask; ``key_groups`` are those that belong to it, and ``prefix`` the bytes of a key group in keys."""

    files: DatabaseFiles
    key_groups: range
    prefix: int
