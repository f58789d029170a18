"""Files by URI: local paths without any library, everything else through fsspec.

``BYTES_READ`` counts every requested byte, so that pruning can be checked. With ``BYTES_WRITTEN`` it shows the progress of long operations.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from statetool.errors import FormatError, MissingDependencyError, SnapshotNotFoundError, StatetoolError, StorageError
from statetool.io.storage import Storage, storage_error

_DELETED: Final = (
    "Flink may have deleted it, as it does with a shared file that no retained checkpoint of the job needs; "
)
#: Schemes of URIs whose authority is a bucket or container.
BUCKET_SCHEMES: Final = frozenset(
    ("s3", "s3a", "s3n", "s3p", "gs", "gcs", "oss", "abfs", "abfss", "wasb", "wasbs", "az")
)
#: Schemes of Flink's and Hadoop's file systems that have another name in fsspec.
_FSSPEC_SCHEMES: Final = {"s3p": "s3", "s3n": "s3"}
#: Packages that fsspec needs, by scheme; two of them are extras of statetool.
_PACKAGES: Final = {
    **dict.fromkeys(("s3", "s3a"), "'statetool[s3]'"),
    **dict.fromkeys(("gs", "gcs"), "'statetool[gcs]'"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("hdfs", "arrow_hdfs"), "pyarrow"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("oss",), "ossfs"),
    **dict.fromkeys(("smb",), "smbprotocol"),
    **dict.fromkeys(("webhdfs", "webHDFS"), "requests"),
}
#: Errors of local file systems for impossible file names: a file used as a folder, a cycle of links, a name that is too long.
NO_FILE: Final = (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
#: Bytes of a remote file requested before its size is known: most files are not longer.
_AT_FIRST: Final = 4 << 20
#: Requests that are in flight at the same time.
IN_FLIGHT: Final = 64
#: Device, inode, size and modification time of a local file.
Stamp: TypeAlias = tuple[int, int, int, int]


@dataclass(slots=True)
class ByteCounter:
    """A running count."""

    total: int = 0


BYTES_READ: Final = ByteCounter()
BYTES_WRITTEN: Final = ByteCounter()


def is_local(uri: str) -> bool:
    """Return True if ``uri`` is a local path or a ``file:`` URI."""
    return uri.startswith("file:") or "://" not in uri


def local_path(uri: str) -> str:
    """Return the path of a local URI (``file:/x``, ``file:///x`` or a plain path)."""
    if not uri.startswith("file:"):
        return uri
    rest = uri.removeprefix("file:")
    return "/" + rest.lstrip("/")


def canonical(uri: str) -> str:
    """Return one spelling for all URIs of a file: the plain absolute path if it is local.

    Raises
    ------
    SnapshotNotFoundError
        The path is relative, and the working directory was deleted.
    """
    if not is_local(uri):
        return uri.rstrip("/")
    try:
        return os.path.abspath(local_path(uri))
    except FileNotFoundError as e:
        raise SnapshotNotFoundError(
            f"{uri!r} is a relative path, and the working directory does not exist",
            hint="pass an absolute path, or change to a directory that exists",
        ) from e


def join(directory: str, name: str) -> str:
    """Return the URI of a name in a directory."""
    return f"{directory.rstrip('/')}/{name}"


def parent(uri: str) -> str:
    """Return the directory of a file."""
    head, slash, _ = uri.rstrip("/").rpartition("/")
    return (head or slash) if slash else "."


def file_system(uri: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URI, and the path in it.

    Raises
    ------
    MissingDependencyError
        No package for this kind of file system is installed, or none is known.
    SnapshotNotFoundError
        The URI names nothing that can be opened.
    StorageError
        The storage cannot be reached.
    """
    import fsspec

    scheme, separator, rest = uri.partition("://")
    known = _FSSPEC_SCHEMES.get(scheme, scheme)
    try:
        fs, path = fsspec.core.url_to_fs(known + separator + rest)
    except ImportError as e:
        raise MissingDependencyError(
            f"no package for {scheme}:// is installed: {e}", hint=f"run: pip install {_package_for(known)}"
        ) from e
    except ValueError as e:
        if known not in fsspec.available_protocols():
            raise MissingDependencyError(
                f"no file system for {scheme}:// is installed",
                hint=f"install a package with its fsspec implementation, or use one of {', '.join(sorted(_PACKAGES))}",
            ) from e
        raise SnapshotNotFoundError(f"{uri!r} is not a path or URI that can be opened: {e}") from e
    except Exception as e:
        raise storage_error(e, uri) from e
    if isinstance(
        settings := getattr(fs, "config_kwargs", None), dict
    ):  # s3fs, whose client has 10 connections by default
        settings.setdefault("max_pool_connections", IN_FLIGHT)
    return Storage(fs, uri), path


def _package_for(scheme: str) -> str:
    """Return the package with the fsspec implementation of a scheme."""
    return _PACKAGES.get(scheme, "the fsspec implementation for it")


def exists(uri: str) -> bool:
    """Return True if a file or directory exists."""
    if is_local(uri):
        return os.path.exists(local_path(uri))
    try:
        with reading(uri):
            fs, path = file_system(uri)
            fs.info(path)  # not exists(): most implementations return False for any error
    except FileNotFoundError:
        return False
    return True


def check_links(uri: str) -> None:
    """Raise an error if a path contains a cycle of links, or is relative to a deleted working directory.

    Raises
    ------
    SnapshotNotFoundError
    """
    if is_local(uri):
        canonical(uri)
        with reading(uri), contextlib.suppress(FileNotFoundError):
            os.stat(local_path(uri))


def forget_listing(uri: str) -> None:
    """Forget the cached listing of a remote directory.

    fsspec creates a client per thread, so a client does not notice the uploads of other threads.
    """
    if not is_local(uri):
        with reading(uri):
            fs, path = file_system(uri)
            fs.invalidate_cache(path)


def is_stored(uri: str) -> bool:
    """Return True if a file exists right now, bypassing the caches of an object store's client."""
    if not is_local(uri):
        with reading(uri):
            fs, path = file_system(uri)
            fs.invalidate_cache(path)
            fs.invalidate_cache(parent(path))
    return exists(uri)


def is_dir(uri: str) -> bool:
    """Return True if it is a directory."""
    if is_local(uri):
        return os.path.isdir(local_path(uri))
    with reading(uri):
        fs, path = file_system(uri)
        return bool(fs.isdir(path))


def is_broken_link(uri: str) -> bool:
    """Return True if a local path is a symbolic link to nothing, or to itself."""
    return is_local(uri) and os.path.islink(local_path(uri)) and not os.path.exists(local_path(uri))


def list_dir(uri: str) -> list[tuple[str, bool]]:
    """Return the sorted ``(uri, is a directory)`` pairs of the direct children of a directory."""
    with reading(uri):
        if is_local(uri):
            base = local_path(uri)
            with os.scandir(base) as entries:
                return sorted((join(base, e.name), e.is_dir()) for e in entries)
        fs, path = file_system(uri)
        return sorted((join(uri, _name_of(e)), e["type"] == "directory") for e in fs.ls(path, detail=True))


def deletion_hint(uri: str) -> str:
    """Return the beginning of a hint about a missing file, empty unless it is in the folder ``shared`` of a job's checkpoints."""
    return _DELETED if "/shared/" in uri else ""


def check_bucket(uri: str) -> None:
    """Raise an error if the bucket of an object store that a URI names does not exist.

    Raises
    ------
    SnapshotNotFoundError
    """
    scheme, _, rest = uri.partition("://")
    if scheme not in BUCKET_SCHEMES:
        return
    bucket = f"{scheme}://{rest.partition('/')[0]}"
    try:
        list_dir(bucket)
    except SnapshotNotFoundError as error:
        raise SnapshotNotFoundError(
            f"the bucket {bucket} does not exist", hint="check the name of the bucket, and the endpoint"
        ) from error.__cause__
    except StorageError:
        return  # Whoever may not list the bucket may still read what is in it.


def _name_of(entry: Mapping[str, Any]) -> str:
    """Return the name of an entry of a listing. File systems return paths in different forms; the last part is always right."""
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


@contextmanager
def reading(uri: str) -> Iterator[None]:
    """Convert system errors to statetool's, which name the file.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist, or a local file cannot be read for lack of permission.
    StorageError
        The storage fails.
    """
    try:
        yield
    except StatetoolError:
        raise
    except FileNotFoundError as e:
        raise SnapshotNotFoundError(
            f"{uri} does not exist",
            hint=f"{deletion_hint(uri)}check whether the snapshot was moved or deleted",
        ) from e
    except IsADirectoryError as e:
        raise SnapshotNotFoundError(f"{uri} is a directory, not a file") from e
    except OSError as e:
        if not is_local(uri):
            raise storage_error(e, uri) from e
        if isinstance(e, PermissionError):
            raise SnapshotNotFoundError(f"no permission to read {uri}: {e}") from e
        if e.errno in NO_FILE:
            raise SnapshotNotFoundError(f"{uri} is not a valid path: {str(e.strerror).lower()}") from e
        raise StorageError(f"cannot read {uri}: {e.strerror or e}") from e
    except ValueError as e:
        if "\0" in uri:
            raise SnapshotNotFoundError(f"{uri!r} is not the name of a file") from e
        raise


def read_whole(uri: str) -> bytes:
    """Read a small file.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    """
    if not is_local(uri):
        with reading(uri):
            start = read_range(uri, 0, _AT_FIRST)
            if len(start) < _AT_FIRST:
                return start
            fs, path = file_system(uri)
            rest: bytes = fs.cat_file(path, start=_AT_FIRST)
            return start + rest
    with InputFile(uri) as f:
        data = f.read_at(0, f.size).obj
        assert isinstance(data, bytes)
        return data


def size_of(uri: str) -> int:
    """Return the size of a file in bytes."""
    with reading(uri):
        if is_local(uri):
            return os.stat(local_path(uri)).st_size
        fs, path = file_system(uri)
        return int(fs.size(path))


def read_range(uri: str, offset: int, length: int) -> bytes:
    """Read a range of a remote file with one request; fewer bytes if the file ends earlier."""
    if length <= 0:
        return b""
    fs, path = file_system(uri)
    with reading(uri):
        data: bytes = fs.cat_file(path, start=offset, end=offset + length)
    return data


def existing(uris: Iterable[str]) -> set[str]:
    """Return which of some remote files exist. Requests are in flight together; clients without an event loop make none.

    Raises
    ------
    StorageError
        The storage fails.
    """
    begun: list[tuple[str, Any, Future[Any]]] = []
    for uri in uris:
        fs, path = file_system(uri)
        response = fs.begin("_info", path)
        if response is not None:
            begun.append((uri, fs, response))
    found = set()
    for uri, fs, response in begun:
        with contextlib.suppress(FileNotFoundError), reading(uri):
            fs.result_of(response)
            found.add(uri)
    return found


def list_dirs(uris: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return what is in remote directories, by directory. Requests are in flight together; clients without an event loop make none.

    Directories that cannot be listed are left out: whoever needs them gets the error. The clients keep the listings.
    """
    found: dict[str, frozenset[str]] = {}
    begun: deque[tuple[str, Any, Future[Any]]] = deque()

    def wait() -> None:
        uri, fs, response = begun.popleft()
        with contextlib.suppress(StatetoolError, OSError), reading(uri):
            found[uri] = frozenset(join(uri, _name_of(entry)) for entry in fs.result_of(response))

    for uri in uris:
        with contextlib.suppress(StatetoolError):
            fs, path = file_system(uri)
            fs.invalidate_cache(path)
            response = fs.begin("_ls", path, detail=True)
            if response is not None:
                begun.append((uri, fs, response))
        if len(begun) >= IN_FLIGHT:
            wait()
    while begun:
        wait()
    return found


def read_ranges(ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
    """Read ranges of remote files, given by URI, offset and length, with many requests in flight; fewer bytes if a file ends earlier.

    Raises
    ------
    SnapshotNotFoundError
        A file does not exist.
    StorageError
        The storage fails.
    """
    by_system: dict[Any, list[tuple[int, str]]] = {}
    folders: dict[str, tuple[Any, str]] = {}
    for number, (uri, _, _) in enumerate(ranges):
        folder, _, name = uri.rpartition("/")
        if folder not in folders:
            folders[folder] = file_system(folder)
        fs, path = folders[folder]
        by_system.setdefault(fs, []).append((number, f"{path.rstrip('/')}/{name}"))
    read: list[bytes] = [b""] * len(ranges)
    for fs, paths in by_system.items():
        numbers = [number for number, _ in paths]
        starts = [ranges[n][1] for n in numbers]
        ends = [ranges[n][1] + ranges[n][2] for n in numbers]
        with reading(ranges[numbers[0]][0]):
            several = {"batch_size": IN_FLIGHT} if getattr(fs, "async_impl", False) else {}
            results = fs.cat_ranges([path for _, path in paths], starts, ends, on_error="return", **several)
        for number, result in zip(numbers, results, strict=True):
            if isinstance(result, BaseException):
                with reading(ranges[number][0]):
                    raise result
            read[number] = bytes(result)
            BYTES_READ.total += len(read[number])
    return read


def stamp_of(status: os.stat_result) -> Stamp:
    """Return numbers that change if a local file is replaced or changed."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _without_waiting(path: str, flags: int) -> int:
    """Open a path; if it is a pipe, do not wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class InputFile:
    """File open for reads at any offset.

    Local files are read, not memory-mapped: if a mapped file is truncated, the system kills the process that accesses it.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._file: Any = None
        self._local = is_local(uri)
        #: Of a local file, as it was opened.
        self.stamp: Stamp | None = None
        with reading(uri):
            if self._local:
                self._file = open(local_path(uri), "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115 - closed by close()
                status = os.fstat(self._file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    self._file.close()
                    raise SnapshotNotFoundError(f"{uri} is not a regular file")
                self.size = status.st_size
                self.stamp = stamp_of(status)
            else:
                fs, path = file_system(uri)
                self._file = fs.open(path, "rb", cache_type="none")
                self.size = int(self._file.size)

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; views already returned stay valid."""
        self._file.close()

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on.

        Raises
        ------
        FormatError
            The file ends earlier.
        """
        if offset < 0 or length < 0 or offset + length > self.size:
            raise FormatError(
                f"expected {length} bytes, the file has {self.size} bytes in all",
                hint="the file is shorter than the metadata says: was it copied completely?",
            ).at(file=self.uri, offset=offset)
        BYTES_READ.total += length
        with reading(self.uri):
            data = self._read(offset, length)
        if len(data) != length:
            raise self._truncated(offset, length, len(data))
        return memoryview(data)

    def read_into(self, offset: int, target: memoryview) -> None:
        """Read the bytes from ``offset`` on that fill ``target``; errors as for :meth:`read_at`."""
        length = len(target)
        if not self._local or not hasattr(os, "preadv"):
            target[:] = self.read_at(offset, length)
            return
        if offset < 0 or offset + length > self.size:
            self.read_at(offset, length)
        BYTES_READ.total += length
        done = 0
        with reading(self.uri):
            while done < length and (n := os.preadv(self._file.fileno(), [target[done:]], offset + done)):
                done += n
        if done != length:
            raise self._truncated(offset, length, done)

    def _truncated(self, offset: int, length: int, found: int) -> FormatError:
        return FormatError(
            f"expected {length} bytes, found {found}", hint="the file was truncated while it was read"
        ).at(file=self.uri, offset=offset)

    def _read(self, offset: int, length: int) -> bytes:
        """Read up to ``length`` bytes; fewer if the file ends before."""
        parts: list[bytes] = []
        left = length
        while left:
            part = self._read_some(offset + length - left, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_some(self, offset: int, length: int) -> bytes:
        if self._local and hasattr(os, "pread"):  # thread-safe
            return os.pread(self._file.fileno(), length, offset)
        self._file.seek(offset)
        data: bytes = self._file.read(length)
        return data
