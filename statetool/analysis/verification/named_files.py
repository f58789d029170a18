"""Check the files that only operator state names: they exist, and are as long as the state says."""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from statetool.analysis.verification.problems import Problem, Severity, elsewhere, note
from statetool.connectors.model import NamedFile
from statetool.connectors.named_files import NamedFiles, find_named_file, named_files
from statetool.errors import NO_FINDING, StatetoolError, several
from statetool.io import files
from statetool.io.listing import FoundFile
from statetool.io.threads import in_threads
from statetool.serializers.core.base import all_parts
from statetool.serializers.libraries.beam.serializer import BeamSerializer
from statetool.snapshot.operator import OperatorInventory

_LOST: Final = "the file does not exist, and neither does the one that a commit makes of it: unless the sink has committed it, its records are lost"
_BEAM: Final = (
    "files that this state may name are not checked: Beam's file writes keep the names of temporary files in elements"
)
#: The coder of ``FileBasedSink.FileResult``, by its name in the type of a state.
_BEAM_FILE: Final = re.compile(r"\bFileResult\b")
#: Directories in which files are looked for at the same time.
_THREADS: Final = 16
_STOPPED: Final = "the file does not exist: a restored writer continues it, and fails; statetool sinks forget writes a copy without it"


def check_named_files(
    operator: OperatorInventory, metadata_file: str, find: Callable[[str], FoundFile | None]
) -> tuple[NamedFiles, list[Problem]]:
    """Return the files that the state of an operator names, and their problems.

    Parameters
    ----------
    find
        Returns size and time of a file, ``None`` if it does not exist.
    """
    named = named_files(operator)
    check = _Check(operator, metadata_file, find)
    return named, list(check.run(named))


class _Check:
    def __init__(
        self, operator: OperatorInventory, metadata_file: str, find: Callable[[str], FoundFile | None]
    ) -> None:
        self._operator = operator
        self._metadata_file = metadata_file
        self._find_one = find
        #: Files that were looked for before they are needed.
        self._found: dict[str, FoundFile | None] = {}

    def _find(self, path: str) -> FoundFile | None:
        return self._found[path] if path in self._found else self._find_one(path)

    def _look_for(self, named: Sequence[NamedFile]) -> None:
        """Look for remote files, in several directories at the same time. Where that fails, the error is that of :meth:`_find`."""
        folders: dict[str, list[str]] = defaultdict(list)
        for file in named:
            if not file.is_state and not file.is_upload and not self._elsewhere(file):
                for path in filter(None, (file.path, file.committed_path)):
                    if not files.is_local(path):
                        folders[files.parent(path)].append(path)

        def look(paths: Sequence[str]) -> None:
            with contextlib.suppress(StatetoolError):
                self._found.update((path, self._find_one(path)) for path in paths)

        for _ in in_threads(look, folders.values(), threads=_THREADS):
            pass

    def run(self, named: NamedFiles) -> Iterator[Problem]:
        label = self._operator.label
        for unread in named.unread:
            yield note(label, f"files that this state may name are not checked: {unread.reason}", unread.state)
        for state in _states_of_beam_files(self._operator):
            yield note(label, _BEAM, state)
        yield from self._of_states(named.of_state)
        self._look_for(named.files)
        unchecked = Counter[str]()
        for file in named.files:
            if not file.is_state:
                if reason := self._why_unseen(file):
                    unchecked[reason] += 1
                else:
                    yield from self._of_sink(file)
        for reason, count in unchecked.items():
            yield note(label, f"{several(count, 'file')} of the sink not checked: {reason}")

    def _of_states(self, named: Sequence[NamedFile]) -> Iterator[Problem]:
        """Check files in directories of checkpoints. The sink deletes a file when it has sent its records, so some may be missing."""
        folders: dict[tuple[str | None, str], list[NamedFile]] = defaultdict(list)
        for file in named:
            folders[file.state, files.parent(file.path)].append(file)
        for (state, folder), of_folder in folders.items():
            missing = []
            for file in of_folder:
                place = find_named_file(self._operator, file)
                found = None if place is None else self._find(place)
                if found is None:
                    missing.append(file)
                elif file.size_bytes is not None and found.size_bytes != file.size_bytes:
                    yield self._short(file, found)
            total = several(len(of_folder), "file")
            if missing:
                words = (
                    f"{len(missing):,} of {total} that only this state names do not exist, such as {missing[0].path}: "
                    "unless the sink has sent their records and deleted them, a restored sink sends neither them nor later ones"
                )
                yield replace(self._problem(missing[0], "warning", words), subtask=None, file=folder)
            if len(missing) < len(of_folder):
                words = f"{several(len(of_folder) - len(missing), 'file')} in {folder}; statetool copy takes them along"
                yield elsewhere(self._operator.label, words, state)

    def _of_sink(self, file: NamedFile) -> Iterator[Problem]:
        found = self._find(file.path)
        if found is not None:
            if file.size_bytes is not None and found.size_bytes < file.size_bytes:
                yield self._short(file, found)
        elif file.fails_restore:
            yield self._problem(file, "error", _STOPPED)
        else:
            committed = None if file.committed_path is None else self._find(file.committed_path)
            if committed is None:
                yield self._problem(file, "warning", _LOST)
            elif other := file.other_commit(committed.size_bytes):
                words = f"{other}, so a restore drops the records that this state names"
                yield replace(self._problem(file, "warning", words), file=file.committed_path)

    def _why_unseen(self, file: NamedFile) -> str:
        """Return why it is unknown whether a file of a sink exists, empty if it is known."""
        if file.is_upload:
            return "uploads to object stores are not files before their commit"
        if path := self._elsewhere(file):
            return f"{path} is in another file system than the snapshot"
        try:
            if (
                self._find(file.path) is None
                and files.is_local(file.path)
                and not files.is_dir(files.parent(file.path))
            ):
                return f"the directory {files.parent(file.path)} does not exist here"
        except NO_FINDING:
            raise
        except StatetoolError as error:
            return str(error)
        return ""

    def _elsewhere(self, file: NamedFile) -> str:
        """Return the path of a file that is in another file system than the snapshot, empty if there is none."""
        paths = filter(None, (file.path, file.committed_path))
        return next((path for path in paths if _storage(path) != _storage(self._metadata_file)), "")

    def _short(self, file: NamedFile, found: FoundFile) -> Problem:
        words = f"the file has {several(found.size_bytes, 'byte')}, the state that names it says {file.size_bytes:,}"
        return self._problem(file, "error", words)

    def _problem(self, file: NamedFile, severity: Severity, words: str) -> Problem:
        return Problem(
            severity=severity,
            operator=self._operator.label,
            subtask=file.subtask,
            state=file.state,
            file=file.path,
            offset=None,
            problem=words,
        )


def _storage(uri: str) -> tuple[str, str]:
    """Return scheme and authority of a URI, both empty for local files."""
    if files.is_local(uri):
        return "", ""
    parts = urlsplit(uri)
    return parts.scheme, parts.netloc


def _states_of_beam_files(operator: OperatorInventory) -> Iterator[str]:
    """Yield the states of a pipeline of Beam with files that it has written and not yet moved to their place."""
    try:
        metas = {**{name: meta for name, (_, meta) in operator.listed_keyed.items()}, **operator.listed_elements}
    except NO_FINDING:
        raise
    except StatetoolError:
        return  # what cannot be listed is reported where it is read
    for name, meta in metas.items():
        parts = (part for serializer in meta.serializers.values() for part in all_parts(serializer))
        if any(isinstance(part, BeamSerializer) and _BEAM_FILE.search(part.type_name) for part in parts):
            yield name
