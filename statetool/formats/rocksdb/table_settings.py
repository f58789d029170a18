"""Settings of new table files: those of RocksDB, or of a database that RocksDB wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import UnsupportedManifestError
from statetool.formats.rocksdb.options import Options, newest_options, read_options
from statetool.formats.rocksdb.table_file import numeric_properties

#: Property of table files that statetool wrote: RocksDB stores the size of blocks only in its options.
BLOCK_SIZE: Final = b"statetool.block.size"
#: Compressions as options name them, by the property ``rocksdb.compression``.
_COMPRESSIONS: Final[Mapping[str, str]] = {
    "kNoCompression": "NoCompression", "kSnappyCompression": "Snappy", "kZlibCompression": "Zlib", "kBZip2Compression": "BZip2",
    "kLZ4Compression": "LZ4", "kLZ4HCCompression": "LZ4HC", "kZSTD": "ZSTD",
}  # fmt: skip
#: Format versions that are written. From 6 on, only RocksDB 8.6 and later read a file. Older ones than 2 compress blocks otherwise.
_LEAST_VERSION, _MOST_VERSION = 2, 5
_BOTTOM_LEVEL: Final = 6
#: Default of RocksDB's option ``target_file_size_base``, and the sizes that are written if a database has others.
TABLE_BYTES: Final = 64 << 20
_LEAST_TABLE, _MOST_TABLE = 1 << 20, 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Settings of new table files; by default those of RocksDB.

    Attributes
    ----------
    compression
        ``Snappy``, ``LZ4``, ``LZ4HC``, ``ZSTD``, ``Zlib``, ``BZip2`` or ``NoCompression``.
    merge_operator
        Name of the merge operator of the column families.
    restart_interval
        Number of entries from one restart point of a block to the next.
    format_version
        2 to 5: the key and the place of a block take less space in the index from 3 and 4 on.
    table_bytes
        Size at which a table file ends.
    """

    merge_operator: str = "nullptr"
    compression: str = "Snappy"
    block_bytes: int = 4096
    restart_interval: int = 16
    format_version: int = 5
    table_bytes: int = TABLE_BYTES


def settings_of(files: DatabaseFiles, merge_operator: str) -> TableSettings:
    """Return the settings by which a database writes files of its bottom level: what its options say, or else its table files.

    Raises
    ------
    FormatError
        Damaged.
    """
    file = newest_options(files.files)
    options = {} if file is None else read_options(file)
    found = _of_options(options) if options else _of_tables(files)
    return TableSettings(
        merge_operator=merge_operator,
        **{name: value for name, value in found.items() if value},  # type: ignore[arg-type]
    )


def _of_options(options: Options) -> dict[str, str | int]:
    """Return the settings of the first column family with a name: all but the default one have the same."""
    names = [section[len("CFOptions ") :] for section in options if section.startswith("CFOptions ")]
    name = next((n for n in names if n != '"default"'), '"default"')
    family, blocks = options.get(f"CFOptions {name}", {}), options.get(f"TableOptions/BlockBasedTable {name}", {})
    version = _number(blocks, "format_version")
    table_bytes = _number(family, "target_file_size_base")
    return {
        "compression": _COMPRESSIONS.get(_bottom_compression(family), ""),
        "block_bytes": _number(blocks, "block_size"),
        "restart_interval": _number(blocks, "block_restart_interval"),
        "format_version": version and min(max(version, _LEAST_VERSION), _MOST_VERSION),
        "table_bytes": table_bytes and min(max(table_bytes, _LEAST_TABLE), _MOST_TABLE),
    }


def _bottom_compression(family: Mapping[str, str]) -> str:
    """Return the compression of the bottom level (``GetCompressionType``)."""
    bottommost = family.get("bottommost_compression", "kDisableCompressionOption")
    if bottommost != "kDisableCompressionOption":
        return bottommost
    # RocksDB 6.20 writes a:{b} for what is a:b in 8.10; how it nests more was not seen, so each brace is dropped.
    by_level = [kind.strip("{}") for kind in family.get("compression_per_level", "").split(":") if kind]
    if not by_level:
        return family.get("compression", "")
    # With dynamic levels, the first of them is that of the base level, and the last that of the bottom of a large database.
    is_dynamic = family.get("level_compaction_dynamic_level_bytes") == "true"
    return by_level[-1 if is_dynamic else min(_BOTTOM_LEVEL, len(by_level) - 1)]


def _number(options: Mapping[str, str], name: str) -> int:
    value = options.get(name, "")
    return int(value) if value.isdecimal() else 0


def _of_tables(files: DatabaseFiles) -> dict[str, str | int]:
    """Return the settings of the table file at the lowest level."""
    try:
        tables = open_database(files).tables
        if tables is None or not (stored := list(chain.from_iterable(tables.families.values()))):
            return {}
        table = tables.open_file(max(stored, key=lambda file: (file.level, file.number)))
        _, properties = table.meta()
    except UnsupportedManifestError:
        return {}
    compression = properties.get(b"rocksdb.compression", b"").decode(errors="replace")
    return {
        "compression": compression if compression in _COMPRESSIONS.values() else "",
        "block_bytes": numeric_properties(properties).get(BLOCK_SIZE, 0),
        "format_version": max(table.version, _LEAST_VERSION),
    }
