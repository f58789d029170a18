"""Files by URI: local paths without any library, everything else through fsspec.

``BYTES_READ`` counts every byte that was asked for, so that pruning can be checked; with ``BYTES_WRITTEN`` it tells how far long work is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import FormatError, MissingDependencyError, SnapshotNotFoundError, StatetoolError, StorageError
from statetool.io.storage import Storage, storage_error

#: Schemes of Flink's and Hadoop's file systems that fsspec knows by another name.
_FSSPEC_SCHEMES: Final = {"s3p": "s3", "s3n": "s3"}
#: By scheme, the packages that fsspec needs; two of them are extras of ours.
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
#: Errors of local file systems for names that no file can have: a folder in it is a file, a circle of links, too long.
NO_FILE: Final = (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
#: Bytes of a remote file that are asked for before its size: most are no longer.
_AT_FIRST: Final = 4 << 20


@dataclass(slots=True)
class ByteCounter:
    """A running count."""

    total: int = 0


BYTES_READ: Final = ByteCounter()
BYTES_WRITTEN: Final = ByteCounter()


def is_local(uri: str) -> bool:
    """Tell whether ``uri`` is a local path or a ``file:`` URI."""
    return uri.startswith("file:") or "://" not in uri


def local_path(uri: str) -> str:
    """Return the path of a local URI (``file:/x``, ``file:///x`` or a plain path)."""
    if not uri.startswith("file:"):
        return uri
    rest = uri.removeprefix("file:")
    return "/" + rest.lstrip("/")


def canonical(uri: str) -> str:
    """Return the same spelling for all URIs of a file: of a local one its plain absolute path.

    Raises
    ------
    SnapshotNotFoundError
        A relative path, and the working directory was deleted.
    """
    if not is_local(uri):
        return uri.rstrip("/")
    try:
        return os.path.abspath(local_path(uri))
    except FileNotFoundError as e:
        raise SnapshotNotFoundError(
            f"{uri!r} is a relative path, and the working directory does not exist",
            hint="give an absolute path, or change to a directory that exists",
        ) from e


def join(directory: str, name: str) -> str:
    """Put a name below a directory."""
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
        No package for this kind of file system is installed.
    SnapshotNotFoundError
        Nothing that can be opened.
    StorageError
        It cannot be reached.
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
        raise SnapshotNotFoundError(f"{uri!r} is not a path or URI that can be opened: {e}") from e
    except Exception as e:
        raise storage_error(e, uri) from e
    return Storage(fs, uri), path


def _package_for(scheme: str) -> str:
    """Return the package with the fsspec implementation of a scheme."""
    return _PACKAGES.get(scheme, "the fsspec implementation for it")


def exists(uri: str) -> bool:
    """Tell whether a file or directory is there."""
    if is_local(uri):
        return os.path.exists(local_path(uri))
    try:
        with reading(uri):
            fs, path = file_system(uri)
            fs.info(path)  # not exists(): most answer False to whatever goes wrong
    except FileNotFoundError:
        return False
    return True


def check_links(uri: str) -> None:
    """Raise an error if a path leads through links in a circle, or starts in a working directory that was deleted.

    Raises
    ------
    SnapshotNotFoundError
    """
    if is_local(uri):
        canonical(uri)
        with reading(uri), contextlib.suppress(FileNotFoundError):
            os.stat(local_path(uri))


def is_stored(uri: str) -> bool:
    """Tell whether a file is there at this moment, whatever an object store's client remembers."""
    if not is_local(uri):
        with reading(uri):
            fs, path = file_system(uri)
            fs.invalidate_cache(path)
            fs.invalidate_cache(parent(path))
    return exists(uri)


def is_dir(uri: str) -> bool:
    """Tell whether it is a directory."""
    if is_local(uri):
        return os.path.isdir(local_path(uri))
    with reading(uri):
        fs, path = file_system(uri)
        return bool(fs.isdir(path))


def is_broken_link(uri: str) -> bool:
    """Return whether a local path is a symbolic link to nothing, or to itself."""
    return is_local(uri) and os.path.islink(local_path(uri)) and not os.path.exists(local_path(uri))


def list_dir(uri: str) -> list[tuple[str, bool]]:
    """Return ``(uri, is a directory)`` of what lies directly below a directory, sorted."""
    with reading(uri):
        if is_local(uri):
            base = local_path(uri)
            with os.scandir(base) as entries:
                return sorted((join(base, e.name), e.is_dir()) for e in entries)
        fs, path = file_system(uri)
        # The names that file systems give lack scheme and host, each in its own way; the last part is always right.
        return sorted(
            (join(uri, e["name"].rstrip("/").rpartition("/")[2]), e["type"] == "directory")
            for e in fs.ls(path, detail=True)
        )


@contextmanager
def reading(uri: str) -> Iterator[None]:
    """Turn errors of the system into ours, which name the file.

    Raises
    ------
    SnapshotNotFoundError
        It is not there, or a local file may not be read.
    StorageError
        The storage fails.
    """
    try:
        yield
    except StatetoolError:
        raise
    except FileNotFoundError as e:
        raise SnapshotNotFoundError(f"{uri} is not there", hint="was the snapshot moved or cleaned up?") from e
    except IsADirectoryError as e:
        raise SnapshotNotFoundError(f"{uri} is a directory, not a file") from e
    except OSError as e:
        if not is_local(uri):
            raise storage_error(e, uri) from e
        if isinstance(e, PermissionError):
            raise SnapshotNotFoundError(f"{uri} may not be read: {e}") from e
        if e.errno in NO_FILE:
            raise SnapshotNotFoundError(f"{uri} is not a valid path: {str(e.strerror).lower()}") from e
        raise StorageError(f"cannot read {uri}: {e.strerror or e}") from e
    except ValueError as e:
        if "\0" in uri:
            raise SnapshotNotFoundError(f"{uri!r} is no name of a file") from e
        raise


def read_whole(uri: str) -> bytes:
    """Read a small file.

    Raises
    ------
    SnapshotNotFoundError
        It is not there.
    """
    if not is_local(uri):
        with reading(uri):
            start = read_range(uri, 0, _AT_FIRST)
            return start if len(start) < _AT_FIRST else start + read_range(uri, _AT_FIRST, size_of(uri) - _AT_FIRST)
    with InputFile(uri) as f:
        return bytes(f.read_at(0, f.size))


def size_of(uri: str) -> int:
    """Return the size of a file in bytes."""
    with reading(uri):
        if is_local(uri):
            return os.stat(local_path(uri)).st_size
        fs, path = file_system(uri)
        return int(fs.size(path))


def read_range(uri: str, offset: int, length: int) -> bytes:
    """Read a range of a remote file, by one request; fewer bytes where the file ends before."""
    if length <= 0:
        return b""
    fs, path = file_system(uri)
    with reading(uri):
        data: bytes = fs.cat_file(path, start=offset, end=offset + length)
    return data


def _without_waiting(path: str, flags: int) -> int:
    """Open a path without waiting for a writer where it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class InputFile:
    """A file open for reads at any offset.

    Local files are read, not mapped: if somebody truncates a mapped file, the system kills the process that looks at it.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._file: Any = None
        self._local = is_local(uri)
        with reading(uri):
            if self._local:
                self._file = open(local_path(uri), "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115 - closed by close()
                status = os.fstat(self._file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    self._file.close()
                    raise SnapshotNotFoundError(f"{uri} is no regular file")
                self.size = status.st_size
            else:
                fs, path = file_system(uri)
                self._file = fs.open(path, "rb", cache_type="none")
                self.size = int(self._file.size)

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; views that were given out stay valid."""
        self._file.close()

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on.

        Raises
        ------
        FormatError
            The file ends before that.
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
            raise FormatError(
                f"expected {length} bytes, found {len(data)}", hint="the file was truncated while it was read"
            ).at(file=self.uri, offset=offset)
        return memoryview(data)

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
        if self._local and hasattr(os, "pread"):  # safe for several threads
            return os.pread(self._file.fileno(), length, offset)
        self._file.seek(offset)
        data: bytes = self._file.read(length)
        return data
