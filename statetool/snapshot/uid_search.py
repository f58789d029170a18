"""Search the job's jar, plan or source code for uids of operators that a snapshot knows only by id.

An operator id is the hash of the uid, so a text with this hash is the uid. Candidates are tried, never guessed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io import files
from statetool.io.cache import cache_folders, keep_newest, writable
from statetool.java.classes.class_file import MAGIC, string_constants
from statetool.java.classes.class_path import ARCHIVES, files_of

#: Larger files, including those in an archive, are not searched for uids.
_MOST_BYTES: Final = 64 << 20
_MOST_UID_CHARACTERS: Final = 1000
#: Maximum bytes of all jars inside of a jar.
_MOST_NESTED_BYTES: Final = 1 << 30
_MOST_DEPTH: Final = 4
_MOST_CACHED: Final = 200
_TEXT_FILES: Final = (".class", ".py", ".json", ".sql", ".properties", ".yaml", ".yml", ".conf")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)+"|\'(?:[^\'\\\n]|\\.)+\'')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def uids_in(file: str, operator_ids: Collection[str]) -> list[str]:
    """Return the uids of operators that occur in a file.

    Parameters
    ----------
    file
        The job's jar with the jars inside (string constants of its classes are tried) or a folder of them, a compiled plan or any other JSON, source code (quoted texts are
        tried), or a list with one uid per line. A local path, or any URI that fsspec can open.
    operator_ids
        Operator ids of 32 hex digits each.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    FormatError, UnsupportedError
        The file is damaged, or too large for its kind.
    """
    if files.is_local(file) and os.path.isdir(files.local_path(file)):
        found: dict[str, None] = {}
        for inner in files_of(file):
            found |= dict.fromkeys(uids_in(inner, operator_ids))
        return list(found)
    with files.reading(file), _opened(file) as stream:
        start = stream.read(4)
        stream.seek(0)
        if start[:2] != b"PK":
            return _matching(_texts_of_bytes(file, _limited(file, stream)), operator_ids)
        with _archive(file, stream) as archive:
            return _cached_search(archive, file, operator_ids)


def _matching(texts: Iterable[str], operator_ids: Collection[str]) -> list[str]:
    """Return the texts that are uids of operators."""
    unnamed = set(operator_ids)
    tried: set[str] = set()
    uids = []
    for text in texts:
        if 0 < len(text) <= _MOST_UID_CHARACTERS and text not in tried:
            tried.add(text)
            operator_id = "" if _SURROGATE.search(text) else operator_id_for_uid(text)
            if operator_id in unnamed:
                unnamed.discard(operator_id)
                uids.append(text)
                if not unnamed:
                    break
    return uids


def _cached_search(archive: zipfile.ZipFile, file: str, operator_ids: Collection[str]) -> list[str]:
    """Return the uids in an archive; the result is kept in the user's cache folder, by the checksums of its members."""
    digest = hashlib.sha256(" ".join(sorted(operator_ids)).encode())
    for member in archive.infolist():
        digest.update(f"{member.filename} {member.CRC} {member.file_size} ".encode("utf-8", "surrogatepass"))
    folders = [folder for folder in cache_folders("uids") if writable(folder)]
    for folder in folders:
        try:
            known = json.loads((folder / f"{digest.hexdigest()}.json").read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(known, list) and {operator_id_for_uid(str(uid)) for uid in known} <= set(operator_ids):
            return [str(uid) for uid in known]
    uids = _matching(_texts_of_archive(file, archive, _Bounds(), 0), operator_ids)
    if folders:
        keep_newest(folders[0], f"{digest.hexdigest()}.json", json.dumps(uids), most=_MOST_CACHED)
    return uids


@dataclass(slots=True)
class _Bounds:
    """Number of bytes of nested archives read so far."""

    nested_bytes: int = 0

    def add(self, file: str, size: int) -> None:
        self.nested_bytes += size
        if self.nested_bytes > _MOST_NESTED_BYTES:
            raise UnsupportedError(
                f"{file} has more than {_MOST_NESTED_BYTES >> 20} MiB of jars inside",
                hint="pass a list with one uid per line",
            )


def _opened(file: str) -> IO[bytes]:
    if files.is_local(file):
        return open(files.local_path(file), "rb")
    fs, path = files.file_system(file)
    opened: IO[bytes] = fs.open(path, "rb")
    return opened


@contextmanager
def _archive(file: str, stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open an archive; what its library reports becomes an error that names the file."""
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, FormatError | UnsupportedError):
            raise
        raise FormatError(f"{file} is not a valid jar: {error}") from error


def _texts_of_archive(file: str, archive: zipfile.ZipFile, bounds: _Bounds, depth: int) -> Iterator[str]:
    """Yield the texts of an archive, and then of the archives inside."""
    nested = []
    for member in archive.infolist():
        if member.filename.endswith(_TEXT_FILES):
            if member.file_size > _MOST_BYTES and not member.filename.endswith(".class"):
                continue  # data, which has no uids
            with archive.open(member) as inner:
                yield from _texts_of_bytes(f"{file}!{member.filename}", _limited(file, inner))
        elif member.filename.endswith(ARCHIVES):
            nested.append(member)
    for member in nested:
        name = f"{file}!{member.filename}"
        if depth >= _MOST_DEPTH:
            raise UnsupportedError(f"{name}: jars are nested deeper than {_MOST_DEPTH}", hint="unpack the jar first")
        with archive.open(member) as inner:
            data = inner.read(_MOST_NESTED_BYTES - bounds.nested_bytes + 1)
        bounds.add(file, len(data))
        if data[:2] == b"PK":
            with _archive(name, io.BytesIO(data)) as opened:
                yield from _texts_of_archive(name, opened, bounds, depth + 1)


def _limited(file: str, stream: IO[bytes]) -> bytes:
    data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UnsupportedError(
            f"{file} is larger than {_MOST_BYTES >> 20} MiB, or has a member that is",
            hint="pass a list with one uid per line",
        )
    return data


def _texts_of_bytes(file: str, data: bytes) -> Iterator[str]:
    if data.startswith(MAGIC):
        try:
            yield from string_constants(data)
        except FormatError as error:
            raise error.at(file=file) from error
        return
    text = data.decode("utf-8", errors="replace")
    if text.lstrip()[:1] in ("{", "["):
        yield from _texts_of_json(text)
    for line in text.splitlines():
        yield line.strip()
        for quoted in _QUOTED.findall(line):
            yield _unquoted(quoted)


def _unquoted(quoted: str) -> str:
    if "\\" in quoted:
        import ast

        try:
            return str(ast.literal_eval(quoted))
        except (ValueError, SyntaxError):
            pass
    return quoted[1:-1]


def _texts_of_json(text: str) -> Iterator[str]:
    from statetool.sql_plans.compiled_plan import CompiledPlan

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    try:
        yield from (uid for uid, _ in CompiledPlan(text).uids())
    except FormatError:  # JSON of another kind
        pass
    nodes: list[Any] = [document]
    while nodes:
        match nodes.pop():
            case str(node):
                yield node
            case dict(node):
                nodes += [*node, *node.values()]
            case list(node):
                nodes += node
