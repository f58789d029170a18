"""Files by URI: local paths without any library, everything else through fsspec.

``BYTES_READ`` counts every byte that was asked for, so that pruning can be checked.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import FormatError, MissingDependencyError, SnapshotNotFoundError

#: Schemes of Flink's and Hadoop's file systems that fsspec knows by another name.
_FSSPEC_SCHEMES: Final = {"s3p": "s3", "s3n": "s3"}


@dataclass(slots=True)
class ByteCounter:
    """A running count."""

    total: int = 0


BYTES_READ: Final = ByteCounter()


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
    """Return the one spelling of a URI that two of the same file share: local ones as plain absolute paths."""
    if is_local(uri):
        return os.path.normpath(os.path.abspath(local_path(uri)))
    return uri.rstrip("/")


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
    """
    import fsspec

    scheme, separator, rest = uri.partition("://")
    try:
        fs, path = fsspec.core.url_to_fs(_FSSPEC_SCHEMES.get(scheme, scheme) + separator + rest)
    except ImportError as e:
        raise MissingDependencyError(
            f"no package for {scheme}:// is installed: {e}",
            hint="install the fsspec implementation for it, e.g. s3fs, gcsfs or adlfs",
        ) from e
    except ValueError as e:
        raise SnapshotNotFoundError(f"{uri!r} is not a path or URI that can be opened: {e}") from e
    return fs, path


def exists(uri: str) -> bool:
    """Tell whether a file or directory is there."""
    if is_local(uri):
        return os.path.exists(local_path(uri))
    fs, path = file_system(uri)
    return bool(fs.exists(path))


def is_dir(uri: str) -> bool:
    """Tell whether it is a directory."""
    if is_local(uri):
        return os.path.isdir(local_path(uri))
    fs, path = file_system(uri)
    return bool(fs.isdir(path))


def list_dir(uri: str) -> list[tuple[str, bool]]:
    """Return ``(uri, is a directory)`` of what lies directly below a directory, sorted."""
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


def read_whole(uri: str) -> bytes:
    """Read a small file.

    Raises
    ------
    SnapshotNotFoundError
        It is not there.
    """
    with InputFile(uri) as f:
        return bytes(f.read_at(0, f.size))


class InputFile:
    """A file open for reads at any offset; local ones are mapped, so that reads copy nothing."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._file: Any = None
        self._map: mmap.mmap | None = None
        try:
            if is_local(uri):
                self._file = open(local_path(uri), "rb")  # noqa: SIM115 - closed by close()
                self.size = os.fstat(self._file.fileno()).st_size
                if self.size:
                    self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            else:
                fs, path = file_system(uri)
                self._file = fs.open(path, "rb", cache_type="none")
                self.size = int(self._file.size)
        except FileNotFoundError as e:
            raise SnapshotNotFoundError(f"{uri} is not there", hint="was the snapshot moved or cleaned up?") from e
        except IsADirectoryError as e:
            raise SnapshotNotFoundError(f"{uri} is a directory, not a file") from e
        except PermissionError as e:
            raise SnapshotNotFoundError(f"{uri} may not be read: {e}") from e

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
        if self._map is not None:
            return memoryview(self._map)[offset : offset + length]
        self._file.seek(offset)
        data = self._file.read(length)
        if len(data) != length:
            raise FormatError(f"expected {length} bytes, found {len(data)}").at(file=self.uri, offset=offset)
        return memoryview(data)
