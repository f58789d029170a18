"""Options of a database, which RocksDB writes into a file of its own (``OPTIONS-000012``). Follows ``RocksDBOptionsParser``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from statetool.formats.stream import Stream

T = TypeVar("T")

#: Values by name, in each section such as ``DBOptions`` or ``CFOptions "name"``.
Options: TypeAlias = dict[str, dict[str, str]]

_FILE: Final = "OPTIONS-"
_MOST_BYTES: Final = 1 << 20
#: Sections of a column family, whose name follows in quotes.
_OF_FAMILY: Final = re.compile(rb'\[((?:CFOptions|TableOptions/BlockBasedTable) )"(.*)"\]')
_DEFAULT: Final = "default"


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


def options_of_families(text: bytes, renamed: Mapping[str, str], added: Sequence[str]) -> bytes:
    """Return the text of a file of options for other column families. Comments before the first section stay.

    Parameters
    ----------
    renamed
        New names of column families by their old names; others are left out.
    added
        Names of further column families, which get the options of another one with a name.
    """
    out: list[bytes] = []
    sections: dict[str, list[bytes]] = {}
    lines = out
    for line in text.splitlines(keepends=True):
        if line.startswith(b"["):
            found = _OF_FAMILY.match(line.strip())
            name = None if found is None else found[2].decode("utf-8", "surrogateescape")
            lines = out if name in (None, _DEFAULT) else sections.setdefault(str(name), [])
        lines.append(line)
    for old, new in renamed.items():
        out += _with_name(sections.get(old, ()), new)
    template = next((lines for lines in sections.values()), ())
    for name in added:
        out += _with_name(template, name)
    return b"".join(out)


def _with_name(lines: Iterable[bytes], name: str) -> list[bytes]:
    """Return the sections of a column family with another name."""
    quoted = b'"' + name.encode("utf-8", "surrogateescape") + b'"]'
    return [b"[" + found[1] + quoted + b"\n" if (found := _OF_FAMILY.match(line.strip())) else line for line in lines]
