"""Numbers of entries of RocksDB databases by their manifests and the properties of their table files, without reading entries.

A table file stores how many values, merge operands and deletions it has, and the bytes of their keys and values. How many entries a state
has also depends on which of them are of the same key. Files whose ranges of keys overlap are taken together:

* at most: all values and merge operands, as if no key were twice in the files;
* at least: the values of the file with the most, minus the deletions of the others. Within a file each key has one value;
* the estimate: that of RocksDB (``rocksdb.estimate-num-keys``), which assumes that each deletion deletes a value of another file. It is
  limited to the two bounds.

The files of a rescaled job may have keys of key groups that are no longer the subtask's. Those with any count for nothing in the lower bound,
and by their share of key groups in the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from statetool.errors import FormatError
from statetool.formats.backends.column_families import OwnedDatabase
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import TableFile, UnsupportedManifestError, open_manifest, table_streams
from statetool.formats.rocksdb.table_properties import TableProperties, read_properties
from statetool.formats.stream import Stream, read_parts

#: Files that are read together: their last bytes are in memory at the same time.
_MOST_FILES: Final = 2048
_TAG_BYTES: Final = 8
_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyEstimate:
    """One column family of a database.

    Attributes
    ----------
    files, stored_bytes
        Table files and their bytes, which are exact.
    entries, at_most, key_bytes, value_bytes
        Estimated entries, an upper bound, and estimated bytes before compression; ``None`` if unknown.
    at_least
        A lower bound, 0 if unknown.
    reason
        Why the numbers are unknown, otherwise empty.
    """

    files: int = 0
    stored_bytes: int = 0
    entries: int | None = None
    at_least: int = 0
    at_most: int | None = None
    key_bytes: int | None = None
    value_bytes: int | None = None
    reason: str = ""


#: Estimates by column family, or the reason why nothing is known about a database.
DatabaseEstimate = dict[str, FamilyEstimate] | str


def estimate_databases(databases: Sequence[OwnedDatabase]) -> list[DatabaseEstimate]:
    """Return the estimates of databases. Reads each manifest, and the last bytes of each table file.

    Raises
    ------
    FormatError
        Damaged; with file and offset.
    SnapshotNotFoundError
        A file does not exist.
    """
    families = _families(databases)
    streams = iter(
        [
            stream_of[file.name]
            for of_database in families
            if not isinstance(of_database, str)
            for stream_of, files in of_database.values()
            for file in files
        ]
    )
    properties = _properties(streams)
    return [
        of_database
        if isinstance(of_database, str)
        else {
            name: _estimate(database, files, list(islice(properties, len(files))))
            for name, (_, files) in of_database.items()
        }
        for database, of_database in zip(databases, families, strict=True)
    ]


def _properties(streams: Iterator[Stream]) -> Iterator[TableProperties | str]:
    while batch := list(islice(streams, _MOST_FILES)):
        yield from read_properties(batch)


def _families(
    databases: Sequence[OwnedDatabase],
) -> list[dict[str, tuple[Mapping[str, Stream], tuple[TableFile, ...]]] | str]:
    """Return streams and table files of each column family, or why a database has none that can be read."""
    found: list[dict[str, tuple[Mapping[str, Stream], tuple[TableFile, ...]]] | str] = []
    manifests = [_manifest(d.files) for d in databases]
    read = read_parts([(stream, 0, stream.size_bytes) for _, stream in manifests])
    for database, (name, _), data in zip(databases, manifests, read, strict=True):
        try:
            streams = table_streams(database.files)
            families = open_manifest(database.files.name, streams, name, bytes(data)).files()
        except UnsupportedManifestError as error:
            found.append(f"only RocksDB itself can read the database: {error}")
        else:
            found.append({family: (streams, files) for family, files in families.items() if family != _DEFAULT})
    return found


def _manifest(files: DatabaseFiles) -> tuple[str, Stream]:
    """Return the manifest of a database. Flink uploads the current one only."""
    manifests = [(name, stream) for name, stream in files.files if name.startswith("MANIFEST-")]
    if len(manifests) != 1:
        raise FormatError(f"the database has {len(manifests)} manifests, not 1").at(file=files.name)
    return manifests[0]


def _estimate(
    database: OwnedDatabase, files: Sequence[TableFile], properties: Sequence[TableProperties | str]
) -> FamilyEstimate:
    """Return the estimate of one column family."""
    stored = sum(file.size_bytes for file in files)
    counted: list[tuple[TableFile, TableProperties, float]] = []
    for file, of_file in zip(files, properties, strict=True):
        if isinstance(of_file, str):
            return FamilyEstimate(files=len(files), stored_bytes=stored, reason=of_file)
        if share := _own_share(database, file):
            counted.append((file, of_file, share))
    entries, key_bytes, value_bytes = 0.0, 0.0, 0.0
    at_least = at_most = 0
    for cluster in _overlapping(counted):
        most = sum(p.entries - p.deletions for _, p, _ in cluster)
        deletions = sum(p.deletions for _, p, _ in cluster)
        least = max(
            0 if share < 1 else p.entries - p.deletions - p.merges - (deletions - p.deletions)
            for _, p, share in cluster
        )
        least = max(0, least)
        expected = sum((p.entries - 2 * p.deletions) * share for _, p, share in cluster)
        expected = min(max(expected, least), most)
        at_least, at_most, entries = at_least + least, at_most + most, entries + expected
        stored_entries = sum(p.entries for _, p, _ in cluster)
        if stored_entries:
            keys = sum(p.raw_key_bytes for _, p, _ in cluster) / stored_entries - _TAG_BYTES - database.prefix
            key_bytes += expected * keys
            # Deletions have no value.
            value_bytes += expected * sum(p.raw_value_bytes for _, p, _ in cluster) / max(1, most)
    return FamilyEstimate(
        files=len(files),
        stored_bytes=stored,
        entries=round(entries),
        at_least=at_least,
        at_most=at_most,
        key_bytes=round(key_bytes),
        value_bytes=round(value_bytes),
    )


def _own_share(database: OwnedDatabase, file: TableFile) -> float:
    """Return the share of a file's key groups that belong to the subtask, 0 if none do."""
    first, last = (int.from_bytes(key[: database.prefix], "big") for key in (file.smallest, file.largest))
    own = database.key_groups
    return max(0, min(last, own.stop - 1) - max(first, own.start) + 1) / max(1, last - first + 1)


def _overlapping(
    files: Sequence[tuple[TableFile, TableProperties, float]],
) -> Iterator[list[tuple[TableFile, TableProperties, float]]]:
    """Group files whose ranges of keys overlap, directly or by files between."""
    cluster: list[tuple[TableFile, TableProperties, float]] = []
    largest = b""
    for item in sorted(files, key=lambda f: f[0].smallest):
        if cluster and item[0].smallest > largest:
            yield cluster
            cluster = []
        largest = max(largest, item[0].largest) if cluster else item[0].largest
        cluster.append(item)
    if cluster:
        yield cluster
