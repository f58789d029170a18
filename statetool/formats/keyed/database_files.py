"""The files of a RocksDB database, as a snapshot names them."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.formats.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFiles:
    """The files of one database: name in the database's folder, and where the bytes are. ``name`` is for messages."""

    name: str
    files: tuple[tuple[str, Stream], ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(s.size_bytes for _, s in self.files)
