"""Files of a RocksDB database, as named in a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.formats.stream import Part, Stream, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFiles:
    """Files of one database: name in the database's folder, and location of the bytes. ``name`` is for messages."""

    name: str
    files: tuple[tuple[str, Stream], ...]

    @property
    def size_bytes(self) -> int:
        """Total bytes of all files."""
        return sum(s.size_bytes for _, s in self.files)

    @property
    def first_parts(self) -> list[Part]:
        """What must be read before the table files are known."""
        return list(whole(s for name, s in self.files if name == "CURRENT" or name.startswith("MANIFEST-")))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedDatabase:
    """The database of a subtask; ``key_groups`` are those that belong to it, and ``prefix`` the bytes of a key group in keys."""

    files: DatabaseFiles
    key_groups: range
    prefix: int
