"""Files that sinks have not committed, compared with the file system: whether a restored job finds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from statetool.connectors.connector import NamesFiles
from statetool.connectors.model import NamedFile
from statetool.connectors.named_files import find_named_file
from statetool.connectors.outside.table_commits import Outcome, TableCommitRow
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import NO_FINDING, StatetoolError, several
from statetool.io import files
from statetool.io.listing import FoundFile, stat
from statetool.io.origins import may_open
from statetool.snapshot.locate import refuse_path
from statetool.snapshot.operator import OperatorInventory

_PROBLEMS = ("will_fail", "will_drop", "unknown")


def file_commit_rows(operators: Iterable[OperatorInventory]) -> list[TableCommitRow] | None:
    """Return a row per file that a sink continues or commits after a restore, ``None`` if the snapshot has no sink that names files."""
    sinks = [s for s in sinks_and_unknown(operators) if _names_files(s) or not s.is_read]
    if not any(_names_files(s) for s in sinks):
        return None
    return [row for sink in sinks for row in _rows(sink)]


def _names_files(sink: Sink) -> bool:
    return sink.connector is not None and type(sink.connector).files is not NamesFiles.files


def _rows(sink: Sink) -> Iterator[TableCommitRow]:
    checkpoints = {pending.name: pending.checkpoint_id for pending in sink.state.pending}
    if sink.connector is not None:
        for file in sink.connector.files(sink.state):
            name = file.name or file.path
            outcome, message = _look(sink, file)
            yield _row(sink, name, checkpoints.get(name), outcome, message)
    unread = [*(p for p in sink.state.pending if p.undecoded is not None), *unread_pending(sink)]
    for pending in unread:
        yield _row(sink, pending.name, None, "unknown", "not decoded: its files, if any, are unknown")
    if sink.connector is None and not unread:
        yield _row(sink, "(unknown)", None, "unknown", "its operator state cannot be read")


def _row(sink: Sink, name: str, checkpoint_id: int | None, outcome: Outcome, message: str) -> TableCommitRow:
    return TableCommitRow(
        operator=sink.label,
        connector=sink.name,
        name=name,
        checkpoint_id=checkpoint_id,
        highest_committed=None,
        outcome=outcome,
        is_problem=outcome in _PROBLEMS,
        message=message,
    )


def _look(sink: Sink, file: NamedFile) -> tuple[Outcome, str]:
    """Return what a restored job does with a file."""
    if file.is_upload:
        return "unknown", "an upload to an object store is no file before its commit: look for it in the store"
    try:
        if file.is_state:
            return _look_for_state(sink, file)
        for path in filter(None, (file.path, file.committed_path)):
            # State may name any server. No rule of --rebase applies to files of the system that a sink writes to.
            if not may_open(path, [sink.operator.metadata_file]):
                return "unknown", refuse_path(path, "the state").message
        found = stat(file.path)
        if found is None:
            return _missing(file)
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return "unknown", error.message
    if short := _short(file, found):
        return short
    return ("will_continue", _continued(file, found)) if file.fails_restore else ("will_commit", "")


def _continued(file: NamedFile, found: FoundFile) -> str:
    """Say what a restored writer does with an open file. What a forked job has written cannot be told from what the same job has."""
    later = found.size_bytes - (found.size_bytes if file.size_bytes is None else file.size_bytes)
    if not later:
        return "a restored writer goes on with the file"
    return (
        f"a restored writer goes on with the file and cuts it off: {several(later, 'byte')} were written after the snapshot. If a job that was "
        "restored from an earlier snapshot has written them, it may have replaced records of this snapshot too"
    )


def _look_for_state(sink: Sink, file: NamedFile) -> tuple[Outcome, str]:
    place = find_named_file(sink.operator, file)
    found = None if place is None else stat(place)
    if found is None:
        return "unknown", "the file does not exist: either its records are sent, or a restored sink sends nothing"
    return _short(file, found) or ("will_commit", "")


def _short(file: NamedFile, found: FoundFile) -> tuple[Outcome, str] | None:
    if file.size_bytes is None or found.size_bytes >= file.size_bytes:
        return None
    return "will_fail", f"the file has {several(found.size_bytes, 'byte')}, the state says {file.size_bytes:,}"


def _missing(file: NamedFile) -> tuple[Outcome, str]:
    committed = None if file.committed_path is None else stat(file.committed_path)
    if committed is not None:
        other = file.other_commit(committed.size_bytes)
        return (
            ("will_drop", f"{other}: a restore drops the records of this snapshot") if other else ("is_committed", "")
        )
    if files.is_local(file.path) and not files.is_dir(files.parent(file.path)):
        return "unknown", f"the directory {files.parent(file.path)} does not exist here"
    if not file.fails_restore:
        return "will_drop", "neither the file nor the one that a commit makes of it exists: its records are lost"
    return (
        "will_fail",
        f"{file.path} does not exist, perhaps because a job has gone on from this snapshot and committed it: "
        "the restored writer fails at every attempt; sinks forget writes a copy that restores",
    )
