"""RocksDB databases opened read-only on local disk with ``rocksdict``: those that the reader of this package does not support.

The files are placed in a folder under their names in the database: local files as links, others as copies. Once
the database is open the folder is removed; the open files stay readable.

The merge operator joins operands by a comma (``StringAppendTESTOperator``), in every column family. The database's OPTIONS file
names it too, but also directories and limits of the machine that wrote it, so a generated options file is used instead.

rocksdict ends an iteration at an error in the same way as at the end, so the status is checked after each iteration.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from statetool.errors import FormatError, MissingDependencyError
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.stream import Stream
from statetool.io import files as io_files
from statetool.io.deletion import check_deletion

_COPY_BYTES: Final = 8 << 20
# With more files than this, they stay in their folder and are opened on demand.
_MOST_DESCRIPTORS: Final = 256
_CACHE_BYTES: Final = 16 << 20
_STEP: Final = 1024
_DEFAULT: Final = "default"
_OPTIONS: Final = """[Version]
  rocksdb_version=8.10.0
  options_file_version=1.1
[DBOptions]
  max_open_files={open_files}
  paranoid_checks=true
[CFOptions "default"]
  merge_operator={{id=StringAppendTESTOperator;delimiter=,;}}
[TableOptions/BlockBasedTable "default"]
  cache_index_and_filter_blocks=true
"""


class RocksDatabase:
    """A database opened by RocksDB."""

    def __init__(self, files: DatabaseFiles) -> None:
        self.name = files.name
        self._paths = {name: stream.file for name, stream in files.files}
        self._metadata_file = next((stream.metadata_file for _, stream in files.files), "")
        folder = tempfile.TemporaryDirectory(prefix="statetool-rocksdb-")
        try:
            fetch(files, Path(folder.name))
            self._open(folder.name)
        except BaseException:
            folder.cleanup()
            raise
        if len(files.files) > _MOST_DESCRIPTORS:
            self._folder = folder  # removed with the last reference to this object
        else:
            folder.cleanup()

    def _open(self, folder: str) -> None:
        rocksdict = _rocksdict()
        names = os.listdir(folder)
        open_files = -1 if len(names) <= _MOST_DESCRIPTORS else _MOST_DESCRIPTORS
        Path(folder, "OPTIONS-000001").write_text(_OPTIONS.format(open_files=open_files))
        # Without this file, keys would be interpreted in rocksdict's encoding of Python values.
        Path(folder, "rocksdict-config.json").write_text('{"raw_mode": true, "prefix_extractors": {}}')
        with self._errors():
            self.column_families = tuple(rocksdict.Rdict.list_cf(folder))
            cache = rocksdict.Cache(_CACHE_BYTES)
            options, families = rocksdict.Options.load_latest(folder, cache=cache)
            family_options = dict.fromkeys(self.column_families, families[_DEFAULT])
            access = rocksdict.AccessType.read_only(False)
            self._db = rocksdict.Rdict(folder, options=options, column_families=family_options, access_type=access)

    def _errors(self) -> _RocksErrors:
        return _RocksErrors(self.name, self._paths, self._metadata_file)

    def slices(self, column_family: str, low: bytes, high: bytes, limit: int) -> Iterator[Slice]:
        """Yield the entries with keys from ``low`` (inclusive) to ``high`` (exclusive), about ``limit`` bytes at a time.

        Raises
        ------
        FormatError
            Damaged files.
        """
        rocksdict = _rocksdict()

        def options() -> Any:
            read_options = rocksdict.ReadOptions()
            read_options.set_iterate_upper_bound(high)
            read_options.set_verify_checksums(True)
            read_options.set_total_order_seek(True)
            read_options.fill_cache(False)
            return read_options

        with self._errors():
            family = self._db.get_column_family(column_family)
            items = family.items(from_key=low, read_opt=options())
        last = low
        step = 16
        ended = False
        while not ended:
            flat: list[bytes] = []
            size = 0
            while size < limit and not ended:
                with self._errors():
                    entries = list(islice(items, step))
                ended = len(entries) < step
                flat += [field for entry in entries for field in entry]
                added = sum(map(len, flat[len(flat) - 2 * len(entries) :]))
                size += added
                step = max(1, min(_STEP, limit * len(entries) // (4 * max(1, added))))
            if flat:
                last = flat[-2]
            if ended:
                self._check_end(family, options(), last)
            if flat:
                yield _slice(flat, final=ended)

    def _check_end(self, family: Any, options: Any, last: bytes) -> None:
        """Raise an error if entries follow ``last``: RocksDB silently ends an iteration at an error."""
        with self._errors():
            check = family.iter(options)
            check.seek(last)
            if check.valid() and check.key() == last:
                check.next()
            check.status()
            if check.valid():
                raise FormatError("an iteration of the database ended before the last entry").at(file=self.name)


def _slice(flat: list[bytes], *, final: bool) -> Slice:
    data = np.frombuffer(b"".join(flat), dtype=np.uint8)
    ends = np.cumsum(np.fromiter(map(len, flat), dtype=np.int64, count=len(flat)))
    key_end, value_end = ends[0::2], ends[1::2]
    key = np.concatenate([np.zeros(1, dtype=np.int64), value_end[:-1]])
    # Kernels are compiled for contiguous arrays.
    key_end, value_end = key_end.copy(), value_end.copy()
    return Slice(data=data, key=key, key_end=key_end, value_end=value_end, final=final)


def _rocksdict() -> Any:
    try:
        import rocksdict
    except ImportError as error:
        raise MissingDependencyError(
            f"this RocksDB file needs rocksdict: {error}", hint="pip install 'statetool[rocksdb]'"
        ) from error
    return rocksdict


class _RocksErrors:
    """Convert errors of RocksDB to those of statetool, with the names of the original files."""

    def __init__(self, name: str, paths: dict[str, str], metadata_file: str) -> None:
        self.name = name
        self.paths = paths
        self.metadata_file = metadata_file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # rocksdict raises plain exceptions with RocksDB's message.
        if type(error) is Exception:
            check_deletion(self.metadata_file, error)
            words = str(error)
            names = [n for n in re.findall(r"(?:\d+\.sst|MANIFEST-\d+|CURRENT|OPTIONS-\d+)", words) if n in self.paths]
            raise FormatError(
                f"RocksDB cannot read the snapshot's files: {words}", hint="check that they were copied completely"
            ).at(file=self.paths[names[0]] if names else self.name) from error


# ---- files --------------------------------------------------------------------------------------


def fetch(files: DatabaseFiles, folder: Path) -> None:
    """Place the files in a folder on local disk, as links if they are local.

    Raises
    ------
    FormatError
        A file is shorter than the metadata says.
    SnapshotNotFoundError
        A file is missing.
    """
    for name, stream in files.files:
        if name.startswith("OPTIONS-"):
            continue
        if stream.inline is not None:
            (folder / name).write_bytes(stream.inline)
        elif is_whole_local_file(stream):
            (folder / name).symlink_to(os.path.abspath(io_files.local_path(stream.file)))
        else:
            _copy(stream, folder / name)


def is_whole_local_file(stream: Stream) -> bool:
    """Return True if a stream is a complete file on local disk.

    Raises
    ------
    FormatError
        It is shorter than the metadata says.
    SnapshotNotFoundError
        It is missing.
    """
    if not io_files.is_local(stream.file):
        return False
    size = stream.file_size()
    if size < stream.start + stream.size_bytes:
        raise FormatError(
            f"the file has {size} bytes, the metadata says {stream.start + stream.size_bytes}",
            hint="check that it was copied completely",
        ).at(file=stream.file)
    return stream.start == 0 and size == stream.size_bytes


def _copy(stream: Stream, target: Path) -> None:
    with stream.open() as source, target.open("wb") as out:
        for at in range(0, stream.size_bytes, _COPY_BYTES):
            out.write(source.read_at(at, min(_COPY_BYTES, stream.size_bytes - at)))
