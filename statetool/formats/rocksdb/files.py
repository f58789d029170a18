"""Files of a database, wherever each of them lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.formats.stream import Part, Stream, whole
from statetool.io.requests import WHOLE_BYTES

#: Number of files up to which all files of a small database are requested together.
_FEW_FILES: Final = 16


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
    def are_small(self) -> bool:
        """Whether there are few files, which together are as small as a file that one request fetches."""
        return len(self.files) <= _FEW_FILES and self.size_bytes <= WHOLE_BYTES

    @property
    def first_parts(self) -> list[Part]:
        """The parts to read before the table files are known. If all files are small, the table files, too."""
        first = [s for name, s in self.files if name == "CURRENT" or name.startswith("MANIFEST-")]
        tables = [s for name, s in self.files if name.endswith(".sst")] if self.are_small else []
        return [*((stream, 0, stream.size_bytes) for stream in first), *whole(tables)]
