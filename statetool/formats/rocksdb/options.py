"""Options of a database, which RocksDB writes into a file of its own (``OPTIONS-000012``). Follows ``RocksDBOptionsParser``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, TypeVar

from statetool.formats.stream import Stream

T = TypeVar("T")

#: Values by name, in each section such as ``DBOptions`` or ``CFOptions "name"``.
Options: TypeAlias = dict[str, dict[str, str]]

_FILE: Final = "OPTIONS-"
_MOST_BYTES: Final = 1 << 20


def newest_options(files: Iterable[tuple[str, T]]) -> T | None:
    """Return the file with the options of a database, from its files by name; ``None`` if it has none, as those that statetool wrote."""
    found = [(name, file) for name, file in files if name.startswith(_FILE)]
    return max(found, key=lambda named: (len(named[0]), named[0]))[1] if found else None


def read_options(stream: Stream) -> Options:
    """Return the options that a file contains.

    Raises
    ------
    StatetoolError
        The file cannot be read.
    """
    with stream.open() as f:
        text = bytes(f.read_kept(0, min(_MOST_BYTES, stream.size_bytes))).decode(errors="replace")
    options: Options = {}
    section: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = options.setdefault(line[1:-1], {})
            continue
        name, is_set, value = line.partition("=")
        if is_set and not line.startswith("#"):
            section[name] = value
    return options
