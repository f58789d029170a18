"""Search the job's jar, plan or source code for uids of operators that a snapshot knows only by id.

An operator id is the hash of the uid, so a text with this hash is the uid. Candidates are tried, never guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import IO, Any, Final

from statetool.classes.class_file import MAGIC, string_constants
from statetool.errors import FormatError, UnsupportedError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.io import files

#: Larger files, including those in an archive, are not searched for uids.
_MOST_BYTES: Final = 64 << 20
_MOST_UID_CHARACTERS: Final = 1000
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)+"|\'(?:[^\'\\\n]|\\.)+\'')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def uids_in(file: str, operator_ids: Collection[str]) -> list[str]:
    """Return the uids of operators that occur in a file.

    Parameters
    ----------
    file
        The job's jar (string constants of its classes are tried), a compiled plan or any other JSON, source code (quoted texts are
        tried), a folder of classes and jars, or a list with one uid per line. A local path, or any URI that fsspec can open.
    operator_ids
        Operator ids of 32 hex digits each.

    Raises
    ------
    SnapshotNotFoundError
        The file does not exist.
    FormatError, UnsupportedError
        The file is damaged, or too large for its kind.
    """
    unnamed = set(operator_ids)
    tried: set[str] = set()
    uids = []
    for text in _texts(file):
        if 0 < len(text) <= _MOST_UID_CHARACTERS and text not in tried:
            tried.add(text)
            operator_id = "" if _SURROGATE.search(text) else operator_id_for_uid(text)
            if operator_id in unnamed:
                unnamed.discard(operator_id)
                uids.append(text)
                if not unnamed:
                    break
    return uids


def _texts(file: str) -> Iterator[str]:
    if files.is_local(file) and os.path.isdir(files.local_path(file)):
        from statetool.classes.class_path import files_of  # other files need no index of classes

        for inner in files_of(file):
            yield from _texts(inner)
        return
    with files.reading(file), _opened(file) as stream:
        start = stream.read(4)
        stream.seek(0)
        if start[:2] == b"PK":
            yield from _texts_of_archive(file, stream)
        else:
            yield from _texts_of_bytes(file, _limited(file, stream))


def _opened(file: str) -> IO[bytes]:
    if files.is_local(file):
        return open(files.local_path(file), "rb")
    fs, path = files.file_system(file)
    opened: IO[bytes] = fs.open(path, "rb")
    return opened


def _texts_of_archive(file: str, stream: IO[bytes]) -> Iterator[str]:
    import zipfile

    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.filename.endswith(
                    (".class", ".py", ".json", ".sql", ".properties", ".yaml", ".yml", ".conf")
                ):
                    with archive.open(member) as inner:
                        yield from _texts_of_bytes(f"{file}!{member.filename}", _limited(file, inner))
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, FormatError | UnsupportedError):
            raise
        raise FormatError(f"{file} is not a valid jar: {error}") from error


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
    import json

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
