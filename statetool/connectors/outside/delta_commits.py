"""Uncommitted files of Delta's sink for Flink 1.x compared with the log of their table.

``TABLE/_delta_log/N.json`` has the actions of version N, one JSON object per line: ``add`` and ``remove`` name a file by its URL-encoded path
below the table, ``commitInfo`` has the time of the commit. The name of a file is unique. A restored sink commits all files of its state, except
those that the newest commit of its application has (``DeltaGlobalCommitter.deduplicateFiles``). Readers of Delta take a path that is added
twice once, so this changes nothing unless the table has removed the file since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from statetool.connectors.layouts.delta import DeltaFile, DeltaSink
from statetool.connectors.model import PendingCommit
from statetool.connectors.outside.table_commits import Outcome, TableCommitRow
from statetool.connectors.sinks import unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import FormatError, OptionError
from statetool.io.files import is_dir, join, list_dir, read_whole
from statetool.snapshot.operator import OperatorInventory

_VERSION: Final = re.compile(r"(\d{20})\.json")


def delta_commit_rows(operators: Iterable[OperatorInventory], table: str) -> list[TableCommitRow]:
    """Compare the uncommitted files of Delta's sinks with a table, given by its folder.

    Raises
    ------
    OptionError
        The folder is not a table of Delta, or the snapshot has no such sink.
    FormatError
        The log of the table is damaged.
    """
    sinks = [s for s in sinks_and_unknown(operators) if isinstance(s.connector, DeltaSink) and s.state.role != "writer"]
    if not sinks:
        raise OptionError(
            "the snapshot has no committer of delta-sink with files", hint="statetool sinks list shows the sinks"
        )
    log = _Log(table)
    rows = []
    for sink in sinks:
        for pending in (*sink.state.pending, *unread_pending(sink)):
            outcome, message = log.outcome(pending)
            rows.append(
                TableCommitRow(
                    operator=sink.label,
                    connector=sink.name,
                    name=pending.name,
                    checkpoint_id=pending.checkpoint_id,
                    highest_committed=None,
                    outcome=outcome,
                    is_problem=outcome not in ("is_committed", "will_commit"),
                    message=message,
                )
            )
    return rows


class _Log:
    """Names of the files that a table has had. ``since_ms`` is the time of the oldest commit that is left, ``None`` if all are left."""

    def __init__(self, table: str) -> None:
        folder = join(table, "_delta_log")
        uris = [uri for uri, is_folder in list_dir(folder) if not is_folder] if is_dir(folder) else []
        names = sorted(name for uri in uris if _VERSION.fullmatch(name := uri.rpartition("/")[2]))
        if not names:
            raise OptionError(f"{table} is not a table of Delta with commits", hint="pass the folder with _delta_log/")
        self._added: set[str] = set()
        self._removed: set[str] = set()
        self._since_ms: int | None = None
        for name in names:
            self._read(join(folder, name), is_first=name == names[0])
        if int(names[0][:20]) == 0:
            self._since_ms = 0

    def _read(self, file: str, *, is_first: bool) -> None:
        for action in _actions(file):
            for kind, seen in (("add", self._added), ("remove", self._removed)):
                if kind in action:
                    seen.add(_file_name(action[kind], file))
            time = action.get("commitInfo")
            if is_first and isinstance(time, dict) and isinstance(time.get("timestamp"), int):
                self._since_ms = time["timestamp"]

    def outcome(self, pending: PendingCommit) -> tuple[Outcome, str]:
        file = pending.fields
        if not isinstance(file, DeltaFile):
            return "unknown", "it is not decoded"
        if file.file_name in self._removed:
            return (
                "may_double",
                "the table had this file and has removed it, as a compaction or a deletion does: a restore may add it again. "
                "Drop it with statetool sinks forget",
            )
        if file.file_name in self._added:
            return "is_committed", ""
        if self._since_ms is None or file.last_update_ms < self._since_ms:
            return (
                "unknown",
                "the log does not have it, and the file is older than the commits that are left in the log",
            )
        return "will_commit", ""


def _actions(file: str) -> list[dict[str, Any]]:
    try:
        actions = [json.loads(line) for line in read_whole(file).decode("utf-8").splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise FormatError("a commit of the table is not lines of JSON").at(file=file) from None
    if not all(isinstance(action, dict) for action in actions):
        raise FormatError("an action of the table is not a JSON object").at(file=file)
    return actions


def _file_name(action: Any, file: str) -> str:
    path = action.get("path") if isinstance(action, dict) else None
    if not isinstance(path, str):
        raise FormatError("an action of the table does not name its file").at(file=file)
    return unquote(path).rpartition("/")[2]
