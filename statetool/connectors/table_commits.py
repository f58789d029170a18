"""Uncommitted transactions of a sink compared with the commits that its table already has.

Paimon: ``TABLE/snapshot/snapshot-N`` are JSON files with user and identifier of a commit. The sink commits again what has a higher identifier
than the newest snapshot of its user, and drops the rest (``FileStoreCommitImpl.filterCommitted``).

Iceberg: the table's metadata is JSON. Summaries of snapshots have ``flink.job-id``, ``flink.operator-id`` and
``flink.max-committed-checkpoint-id``. The sink looks at the newest snapshot of its job and operator among the ancestors of the branch
(``SinkUtil.getMaxCommittedCheckpointId``), and drops what is not higher.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from statetool.connectors.iceberg_sink import IcebergCommittable
from statetool.connectors.model import PendingCommit
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import FormatError, OptionError
from statetool.io.files import is_dir, join, list_dir, read_whole
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord

Outcome: TypeAlias = Literal["is_committed", "will_commit", "will_drop", "unknown"]
TableFormat: TypeAlias = Literal["paimon", "iceberg"]

_SNAPSHOT: Final = re.compile(r"snapshot-(\d+)")
_METADATA: Final = re.compile(r"v?(\d+)(?:-.*)?\.metadata\.json")
#: Connectors whose commits a format has.
_CONNECTORS: Final[Mapping[TableFormat, frozenset[str]]] = {
    "paimon": frozenset({"paimon-sink"}),
    "iceberg": frozenset({"iceberg-sink", "dynamic-iceberg-sink", "iceberg-files-committer"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommitRow(OperatorRecord):
    """An uncommitted transaction of a sink, and whether the table has it.

    Attributes
    ----------
    name
        Name of the transaction.
    highest_committed
        The highest checkpoint id that the table has of this sink, ``None`` if it has none.
    outcome
        ``is_committed``, ``will_commit`` (a restore commits it), ``will_drop`` (the table lacks it, and a restore does not commit it),
        ``unknown``.
    is_problem
        Whether it will be dropped, or this is unknown.
    """

    connector: str
    name: str
    checkpoint_id: int | None
    highest_committed: int | None
    outcome: str
    is_problem: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commits:
    """Checkpoint ids that a table has of one sink. ``lost`` is set if it may have more of them."""

    ids: frozenset[int]
    highest: int | None
    lost: bool


def table_commit_rows(
    operators: Iterable[OperatorInventory], table: str, table_format: TableFormat
) -> list[TableCommitRow]:
    """Compare the uncommitted transactions of the sinks of a table format with a table.

    Parameters
    ----------
    operators
        Operators of the snapshot. Those of several tables are compared with this one: choose one sink if the job has several.
    table
        Folder of the table; for Iceberg also its metadata file.

    Raises
    ------
    OptionError
        The folder is not a table of this format, or the snapshot has no such sink.
    FormatError
        Metadata of the table is damaged.
    """
    of_format = [
        s
        for s in sinks_and_unknown(operators)
        if s.connector is not None and s.name in _CONNECTORS[table_format] and s.state.role != "writer"
    ]
    if not of_format:
        raise OptionError(
            f"the snapshot has no committer of {table_format}", hint="statetool sinks list shows the sinks"
        )
    commits = _Paimon(table) if table_format == "paimon" else _Iceberg(table)
    return [row for sink in of_format for row in _rows(sink, commits)]


def _rows(sink: Sink, table: _Paimon | _Iceberg) -> Iterator[TableCommitRow]:
    for pending in (*sink.state.pending, *unread_pending(sink)):
        commits = table.commits(sink, pending)
        outcome, message = _outcome(pending, commits)
        yield TableCommitRow(
            operator=sink.label,
            connector=sink.name,
            name=pending.name,
            checkpoint_id=pending.checkpoint_id,
            highest_committed=None if commits is None else commits.highest,
            outcome=outcome,
            is_problem=outcome in ("will_drop", "unknown"),
            message=message,
        )


def _outcome(pending: PendingCommit, commits: _Commits | None) -> tuple[Outcome, str]:
    if commits is None or pending.undecoded is not None:
        return "unknown", "this table cannot be compared with it"
    if pending.checkpoint_id is None:
        return "unknown", "it was written at the end of the input and has no checkpoint id"
    if pending.checkpoint_id in commits.ids:
        return "is_committed", ""
    if commits.highest is None and not commits.lost:
        return "will_commit", "the table has no commit of this sink"
    if commits.highest is not None and pending.checkpoint_id > commits.highest:
        return "will_commit", ""
    if commits.lost:
        return (
            "unknown",
            "no snapshot of the table has its id: one that contained it may have expired, or stand for several ids",
        )
    return "will_drop", f"the table lacks it, but has the later id {commits.highest}: a restore drops it"


class _Paimon:
    """Snapshots of a table of Paimon."""

    def __init__(self, table: str) -> None:
        folder = join(table, "snapshot")
        found = _numbered(folder, _SNAPSHOT)
        if not found:
            raise OptionError(
                f"{table} is not a table of Paimon with snapshots", hint="pass the folder with schema/ and snapshot/"
            )
        self._snapshots = [(_json(join(folder, name)), name) for _, name in sorted(found)]
        self._expired = min(found)[0] > 1

    def commits(self, sink: Sink, pending: PendingCommit) -> _Commits | None:
        users = {w["commit_user"] for _, w in sink.state.writers if "commit_user" in w}
        if len(users) != 1:
            return None
        ids = [
            _whole_number(snapshot, "commitIdentifier", name)
            for snapshot, name in self._snapshots
            if snapshot.get("commitUser") in users
        ]
        return _Commits(ids=frozenset(ids), highest=ids[-1] if ids else None, lost=self._expired)


class _Iceberg:
    """Metadata of a table of Iceberg: the snapshots of its main branch, the newest first."""

    def __init__(self, table: str) -> None:
        file = _metadata_file(table)
        metadata = _json(file)
        snapshots = metadata.get("snapshots") or []
        by_id = {s.get("snapshot-id"): s for s in snapshots if isinstance(s, dict)}
        self._file = file
        self._ancestors: list[Mapping[str, Any]] = []
        current = metadata.get("current-snapshot-id")
        while current in by_id:
            snapshot = by_id.pop(current)
            self._ancestors.append(snapshot)
            current = snapshot.get("parent-snapshot-id")
        #: Ancestors may have expired.
        self._expired = current is not None and current != -1

    def commits(self, sink: Sink, pending: PendingCommit) -> _Commits | None:
        committable = pending.fields
        if not isinstance(committable, IcebergCommittable) or committable.table is not None:
            return None
        operator_id = committable.operator_id or sink.operator.state.operator_id
        ids = [
            _checkpoint_of(summary, self._file)
            for snapshot in self._ancestors
            if isinstance(summary := snapshot.get("summary"), dict)
            and summary.get("flink.job-id") == committable.job_id
            and summary.get("flink.operator-id") in (None, operator_id)
            and "flink.max-committed-checkpoint-id" in summary
        ]
        # A restored job commits several checkpoints as one, under the highest of their ids.
        return _Commits(ids=frozenset(ids), highest=ids[0] if ids else None, lost=self._expired or bool(ids))


def _checkpoint_of(summary: Mapping[str, Any], file: str) -> int:
    return _whole_number(summary, "flink.max-committed-checkpoint-id", file)


def _metadata_file(table: str) -> str:
    if not is_dir(table):
        return table
    folder = join(table, "metadata")
    found = _numbered(folder, _METADATA)
    newest = [name for number, name in found if number == max(found)[0]]
    if len(newest) != 1:
        raise OptionError(
            f"{table} has {len(newest)} newest metadata files of Iceberg",
            hint="pass the metadata file that the catalog names",
        )
    return join(folder, newest[0])


def _numbered(folder: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return the files of a folder whose names fit a pattern, with their numbers."""
    uris = [uri for uri, is_folder in list_dir(folder) if not is_folder] if is_dir(folder) else []
    names = [uri.rpartition("/")[2] for uri in uris]
    return [(int(match[1]), name) for name in names if (match := pattern.fullmatch(name))]


def _json(file: str) -> Mapping[str, Any]:
    try:
        value = json.loads(read_whole(file).decode("utf-8"))
    except (ValueError, RecursionError):
        raise FormatError("the table's metadata is not JSON").at(file=file) from None
    if not isinstance(value, dict):
        raise FormatError("the table's metadata is not a JSON object").at(file=file)
    return value


def _whole_number(fields: Mapping[str, Any], name: str, file: str) -> int:
    value = str(fields.get(name))
    if not re.fullmatch(r"-?[0-9]{1,19}", value):
        raise FormatError(f"{name} of the table's metadata is {value!r}, not a number").at(file=file)
    return int(value)
