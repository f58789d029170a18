"""Writing files by URI: new files, atomic creation of the last file, removal.

Local paths need no library; everything else goes through fsspec. Nothing here overwrites a file of another writer. If the
system refuses a write (full disk, missing permission), a :class:`WriteFailedError` names the file.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from statetool.errors import SnapshotNotFoundError, StatetoolError, TargetExistsError, WriteFailedError
from statetool.io.files import (
    BUCKET_SCHEMES,
    BYTES_WRITTEN,
    NO_FILE,
    check_bucket,
    exists,
    file_system,
    is_local,
    join,
    local_path,
    parent,
)

# File systems that show a file while it is being written. It must be renamed into place, which is atomic there.
# Object stores show an object when its upload is complete, and cannot rename.
_RENAMING: Final = frozenset(
    {"hdfs", "viewfs", "webhdfs", "webHDFS", "arrow_hdfs", "sftp", "ssh", "smb", "ftp", "dbfs"}
)
#: Object stores that copy objects themselves.
_COPYING: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
_GONE: Final = -1
#: Bytes of a local file that are flushed to disk at once.
_WINDOW_BYTES: Final = 16 << 20
_HINTS: Final = {
    errno.ENOSPC: "free some space, or choose another place",
    errno.EDQUOT: "free some space, or choose another place",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that can be written to",
}


def write_failed(error: OSError, uri: str) -> WriteFailedError:
    """Return the error for a file that the system refuses to write."""
    if isinstance(error, FileNotFoundError):
        try:
            check_bucket(uri)
        except SnapshotNotFoundError as missing:
            return WriteFailedError(missing.message, hint=missing.hint)
    reason = error.strerror or str(error) or type(error).__name__
    return WriteFailedError(f"cannot write: {reason}", hint=_HINTS.get(error.errno or 0, "")).at(file=uri)


@contextlib.contextmanager
def writing(uri: str) -> Iterator[None]:
    """Convert a system error about a write to statetool's error."""
    try:
        yield
    except StatetoolError:
        raise
    except OSError as error:
        raise write_failed(error, uri) from error


class NewFile:
    """A file being written; it is complete only after :meth:`close`.

    Bytes reach the disk before ``close`` returns if the file system can confirm that. Linux writes them to disk while more are appended,
    and drops them from the page cache: a savepoint is often larger than memory and would evict cached input.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.size_bytes = 0
        self._local = is_local(uri)
        self._sent = 0
        with writing(uri):
            if self._local:
                self._file: Any = open(local_path(uri), "xb")  # noqa: SIM115 - closed by close()
            else:
                fs, path = file_system(uri)
                self._file = fs.open(path, "wb")

    def write(self, data: Any) -> None:
        """Append bytes."""
        with writing(self.uri):
            self._file.write(data)
        self.size_bytes += len(data)
        BYTES_WRITTEN.total += len(data)
        if self.size_bytes - self._sent >= _WINDOW_BYTES:
            self._send()

    def _send(self) -> None:
        """Start the system's write-back of the buffered bytes and drop written ones from the page cache, without waiting."""
        self._sent = self.size_bytes
        if self._local and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):  # a hint that some file systems reject
                os.posix_fadvise(self._file.fileno(), 0, self.size_bytes, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Complete the file."""
        with writing(self.uri):
            if self._local and not self._file.closed:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        discard = getattr(self._file, "discard", None)
        with contextlib.suppress(OSError):
            if discard is not None:
                discard()
                with contextlib.suppress(AttributeError):  # in-memory files upload nothing
                    self._file.closed = True  # fsspec uploads unclosed files when Python frees them
            else:
                self._file.close()
        remove(self.uri)


def copy_in_store(source: str, uri: str) -> bool:
    """Let an object store copy an object to a new one, and return True if it did.

    Otherwise nothing is left behind: the two are not in the same store, or the store refuses the copy.
    """
    if is_local(source) or is_local(uri):
        return False
    fs, old = file_system(source)
    target, new = file_system(uri)
    names = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}
    if fs != target or not names & _COPYING:
        return False
    try:
        fs.cp_file(old, new)
    except (OSError, ValueError, NotImplementedError):  # no permission to copy, or a server without copies
        with contextlib.suppress(OSError):
            remove(uri)
        return False
    return True


def make_dir(uri: str) -> bool:
    """Make a directory with its parents; return True if it did not exist. Object stores have no directories."""
    existed = exists(uri)
    with writing(uri):
        if is_local(uri):
            os.makedirs(local_path(uri), exist_ok=True)
        else:
            fs, path = file_system(uri)
            make_folders(fs, path)
    return not existed


def make_folders(fs: Any, path: str, *, exist_ok: bool = True) -> None:
    """Make a folder with its parents, except in an object store, which has none: its library would make a missing bucket."""
    if not {*((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol)} & BUCKET_SCHEMES:
        fs.makedirs(path, exist_ok=exist_ok)


def move(source: str, target: str) -> bool:
    """Move a file to a new name in the same file system; return False if it does not exist.

    At every moment, one of the two names has the complete file: the old name is removed last.

    Raises
    ------
    TargetExistsError
        The new name is taken.
    WriteFailedError
        The file system refuses the move.
    """
    make_dir(parent(target))
    with writing(target):
        if is_local(source):
            try:
                os.link(local_path(source), local_path(target))
            except FileExistsError as e:
                raise _already_there(target) from e
            except FileNotFoundError:
                return False
            _sync_dir(local_path(parent(target)))
        else:
            fs, path = file_system(source)
            new = file_system(target)[1]
            fs.invalidate_cache()
            if fs.exists(new):
                raise _already_there(target)
            try:
                size = int(fs.size(path))
                if _protocols(fs) & _RENAMING:
                    fs.mv(path, new)
                    return True
                fs.cp_file(path, new)
            except FileNotFoundError:
                return False
            fs.invalidate_cache()
            if int(fs.size(new)) != size:
                raise WriteFailedError(f"the copy has not the size of {source}", hint="try again").at(file=target)
        remove(source)
    return True


def remove(uri: str) -> None:
    """Remove a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if is_local(uri):
            os.unlink(local_path(uri))
        else:
            fs, path = file_system(uri)
            fs.rm_file(path)


def remove_dir(uri: str) -> None:
    """Remove a directory if it exists and is empty."""
    with contextlib.suppress(OSError):
        if is_local(uri):
            os.rmdir(local_path(uri))
        else:
            fs, path = file_system(uri)
            if fs.isdir(path) and not fs.ls(path):
                fs.rmdir(path)


def remove_tree(uri: str) -> None:
    """Remove a directory with its contents, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if is_local(uri):
            shutil.rmtree(local_path(uri))
        else:
            fs, path = file_system(uri)
            fs.rm(path, recursive=True)


def size_of(uri: str) -> int | None:
    """Return the size of a file, ``None`` if it does not exist."""
    try:
        if is_local(uri):
            return os.stat(local_path(uri)).st_size
        fs, path = file_system(uri)
        fs.invalidate_cache()
        return int(fs.size(path))
    except FileNotFoundError:
        return None


def _local_size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return _GONE


def read_if_there(uri: str) -> bytes | None:
    """Read a small file; ``None`` if it does not exist."""
    try:
        if is_local(uri):
            with open(local_path(uri), "rb") as f:
                return f.read()
        fs, path = file_system(uri)
        fs.invalidate_cache()
        data: bytes = fs.cat_file(path)
        return data
    except FileNotFoundError:
        return None


def list_sizes(uri: str) -> dict[str, int | None]:
    """Return the size of each direct child of a directory by name (``None`` for a directory); empty if it does not exist."""
    if is_local(uri):
        try:
            with os.scandir(local_path(uri)) as entries:
                # A file may be removed after it is listed and before its size is read.
                found = {e.name: None if e.is_dir() else _local_size(e) for e in entries}
                return {name: size for name, size in found.items() if size != _GONE}
        except OSError as error:
            if error.errno == errno.ENOENT or error.errno in NO_FILE:
                return {}
            raise
    fs, path = file_system(uri)
    fs.invalidate_cache()
    try:
        infos = fs.ls(path, detail=True)
    except FileNotFoundError:
        return {}
    # Object stores may list the marker object of the directory itself.
    rows = ((e["name"].rstrip("/").rpartition("/")[2], e) for e in infos if e["name"].strip("/") != path.strip("/"))
    return {name: None if e["type"] == "directory" else int(e["size"]) for name, e in rows}


def put_new(uri: str, data: bytes, *, through: str | None = None) -> None:
    """Create a small file atomically: other processes see either the whole file or none.

    - Local: a temporary file is linked to its name, which fails if the name is taken.
    - Object stores: one conditional upload (``If-None-Match: *``) if the file system's package supports it, which also fails then.
    - Others: rename of a temporary file, or one upload if files appear when complete. They only detect a name that was already taken.

    Parameters
    ----------
    through
        URI of the temporary file, if one is needed; by default a hidden one in the same directory.

    Raises
    ------
    TargetExistsError
        The file already exists.
    WriteFailedError
        The file system refuses the file.
    """
    staged = through or join(parent(uri), f".{uri.rpartition('/')[2]}-{uuid.uuid4()}")
    with writing(uri):
        _put_new(uri, staged, data)


def _put_new(uri: str, staged: str, data: bytes) -> None:
    if is_local(uri):
        _write_whole(staged, data)
        try:
            os.link(local_path(staged), local_path(uri))
        except FileExistsError as e:
            raise _already_there(uri) from e
        finally:
            remove(staged)
        _sync_dir(local_path(parent(uri)))
        return
    fs, path = file_system(uri)
    fs.invalidate_cache()
    if fs.exists(path):
        raise _already_there(uri)
    if _protocols(fs) & _RENAMING:
        _write_whole(staged, data)
        try:
            fs.mv(file_system(staged)[1], path)
        except BaseException:
            remove(staged)
            raise
    elif getattr(fs, "async_impl", False):
        # An interrupt would leave the upload running in fsspec's thread, so a separate thread waits for its end. It runs before the upload
        # begins: the pool does not wait for a thread if the interrupt comes while it starts.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
            pool.submit(_upload_new, fs, path, uri, data).result()
    else:
        _upload_new(fs, path, uri, data)


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}


def _upload_new(fs: Any, path: str, uri: str, data: bytes) -> None:
    """Upload an object; if the file system's package supports conditional uploads, only if the name is free."""
    if "mode" not in inspect.signature(getattr(fs, "_pipe_file", fs.pipe_file)).parameters:
        fs.pipe_file(path, data)
        return
    try:
        fs.pipe_file(path, data, mode="create")
    except FileExistsError as e:
        raise _already_there(uri) from e
    except OSError as e:
        if e.errno != errno.ENOSYS:
            raise
        fs.pipe_file(path, data)  # a server without conditional uploads


def _already_there(uri: str) -> TargetExistsError:
    return TargetExistsError(f"{uri} already exists", hint="write to a new directory; nothing is overwritten")


def _write_whole(uri: str, data: bytes) -> None:
    f = NewFile(uri)
    try:
        f.write(data)
        f.close()
    except BaseException:
        f.discard()
        raise


def _sync_dir(path: str) -> None:
    """Make new names in a directory survive a crash, if directories can be synchronised."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
