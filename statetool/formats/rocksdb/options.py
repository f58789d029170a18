"""Options of a database, which RocksDB writes into a file of its own (``OPTIONS-000012``). Follows ``RocksDBOptionsParser``."""

from __future__ import annotations

from typing import Final, TypeAlias

from statetool.formats.rocksdb.files import DatabaseFiles

#: Values by name, in each section such as ``DBOptions`` or ``CFOptions "name"``.
Options: TypeAlias = dict[str, dict[str, str]]

_FILE: Final = "OPTIONS-"
_MOST_BYTES: Final = 1 << 20


def read_options(files: DatabaseFiles) -> Options:
    """Return the options of a database; none without such a file, as in databases that statetool wrote.

    Raises
    ------
    StatetoolError
        The file cannot be read.
    """
    found = [(name, stream) for name, stream in files.files if name.startswith(_FILE)]
    if not found:
        return {}
    _, stream = max(found, key=lambda file: (len(file[0]), file[0]))  # the newest
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
