"""Uncommitted transactions of a sink compared with the commits that its table already has.

Paimon: ``TABLE/snapshot/snapshot-N`` are JSON files with user and identifier of a commit. The sink commits again what has a higher identifier
than the newest snapshot of its user, and drops the rest (``FileStoreCommitImpl.filterCommitted``). A job that was restored from an earlier
snapshot has the same user, and commits other records under the same identifiers. The snapshot has their number.

Iceberg: the table's metadata is JSON. Summaries of snapshots have ``flink.job-id``, ``flink.operator-id`` and
``flink.max-committed-checkpoint-id``. The sink looks at the newest snapshot of its job and operator among the ancestors of the branch
(``SinkUtil.getMaxCommittedCheckpointId``), and drops what is not higher. ``FlinkSink`` looks for the operator that holds the state, which is
another one after a change of its uid: it then tries to commit again what the table has, and fails because the manifests are deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from statetool.connectors.layouts.iceberg_sink import IcebergCommittable
from statetool.connectors.layouts.paimon import PaimonCommittable
from statetool.connectors.model import PendingCommit
from statetool.connectors.sinks import Sink, unread_pending
from statetool.connectors.tables import sinks_and_unknown
from statetool.errors import FormatError, OptionError, several
from statetool.io.files import is_dir, join, list_dir, read_whole
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord

Outcome: TypeAlias = Literal[
    "is_committed",
    "will_commit",
    "will_drop",
    "will_linger",
    "may_double",
    "will_continue",
    "will_fail",
    "unknown",
]
TableFormat: TypeAlias = Literal["paimon", "iceberg"]

_SNAPSHOT: Final = re.compile(r"snapshot-(\d+)")
_METADATA: Final = re.compile(r"v?(\d+)(?:-.*)?\.metadata\.json")
_MAIN: Final = "main"
_ID_KEY: Final = "flink.max-committed-checkpoint-id"
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
        The highest checkpoint id that the table has of this sink, ``None`` if it has none. Delta, Kafka and databases store no checkpoint ids.
    outcome
        ``is_committed``, ``will_commit`` (a restore commits it), ``will_drop`` (the table lacks it, and a restore does not commit it),
        ``will_linger`` (a database has it prepared, and a restore neither commits it nor rolls it back), ``may_double`` (the table has it, and
        a restore tries to commit it again), ``will_continue`` (a restored writer goes on with the file), ``will_fail`` (the file is gone
        or too short, and the restored job fails), ``unknown``.
    is_problem
        Whether it will be dropped, stay prepared, be committed again or stop the job, or this is unknown.
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
    """Checkpoint ids that a table has of one sink. ``lost`` is set if it may have more of them.

    ``replaced`` is set if the table has another commit under the id. ``elsewhere`` is the highest id of another operator of the job, if the sink does not store which operator has committed.
    """

    ids: frozenset[int]
    highest: int | None
    lost: bool
    elsewhere: int | None = None
    replaced: str = ""


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
    for pending in table.of_this_table((*sink.state.pending, *unread_pending(sink))):
        commits = table.commits(sink, pending)
        outcome, message = _outcome(pending, commits)
        yield TableCommitRow(
            operator=sink.label,
            connector=sink.name,
            name=pending.name,
            checkpoint_id=pending.checkpoint_id,
            highest_committed=None if commits is None else commits.highest,
            outcome=outcome,
            is_problem=outcome not in ("is_committed", "will_commit"),
            message=message,
        )


def _outcome(pending: PendingCommit, commits: _Commits | None) -> tuple[Outcome, str]:
    if commits is None or pending.undecoded is not None:
        return "unknown", "this table cannot be compared with it"
    if pending.checkpoint_id is None:
        return "unknown", "it was written at the end of the input and has no checkpoint id"
    if pending.checkpoint_id in commits.ids:
        return ("will_drop", commits.replaced) if commits.replaced else ("is_committed", "")
    if commits.elsewhere is not None and pending.checkpoint_id <= commits.elsewhere:
        return (
            "may_double",
            "another operator of the job has committed this id or a later one. If it was this sink under another uid, a restore fails or commits "
            "the id again: drop it with statetool sinks forget. If the job has another sink to this table, a restore commits the id, so keep it",
        )
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

    def of_this_table(self, pending: Sequence[PendingCommit]) -> Sequence[PendingCommit]:
        return pending

    def commits(self, sink: Sink, pending: PendingCommit) -> _Commits | None:
        users = {w["commit_user"] for _, w in sink.state.writers if "commit_user" in w}
        if len(users) != 1:
            return None
        ids = [
            _whole_number(snapshot, "commitIdentifier", name)
            for snapshot, name in self._snapshots
            if snapshot.get("commitUser") in users
        ]
        replaced = self._replaced(users, pending)
        return _Commits(ids=frozenset(ids), highest=ids[-1] if ids else None, lost=self._expired, replaced=replaced)

    def _replaced(self, users: set[str], pending: PendingCommit) -> str:
        """Return why the commit of the table under the id of a transaction is another one, empty if it may be the same."""
        rows = pending.fields.added_rows if isinstance(pending.fields, PaimonCommittable) else None
        committed = [
            _whole_number(snapshot, "deltaRecordCount", name)
            for snapshot, name in self._snapshots
            if snapshot.get("commitUser") in users
            and snapshot.get("commitKind") == "APPEND"
            and snapshot.get("commitIdentifier") == pending.checkpoint_id
            and snapshot.get("deltaRecordCount") is not None
        ]
        if rows is None or not committed or sum(committed) == rows:
            return ""
        return (
            f"the table has {several(sum(committed), 'record')} under this id, the snapshot {rows:,}: another job has committed it, which was "
            "restored from an earlier snapshot. A restore drops the records of this one"
        )


class _Iceberg:
    """Metadata of a table of Iceberg: the snapshots of its branches."""

    def __init__(self, table: str) -> None:
        self._file = _metadata_file(table)
        metadata = _json(self._file)
        location = str(metadata.get("location") or "").rstrip("/").rsplit("/", 2)
        #: The namespace and name that a location in a warehouse ends with. Hive's folder of a namespace has a suffix.
        self._name = ".".join([*location[-2:-1], *location[-1:]]).replace(".db.", ".")
        self._by_id = {s.get("snapshot-id"): s for s in metadata.get("snapshots") or [] if isinstance(s, dict)}
        refs = metadata.get("refs") or {}
        self._heads = {n: r.get("snapshot-id") for n, r in refs.items() if isinstance(r, dict)}
        self._heads.setdefault(_MAIN, metadata.get("current-snapshot-id"))

    def of_this_table(self, pending: Sequence[PendingCommit]) -> Sequence[PendingCommit]:
        """Leave out what a sink to several tables commits to other tables, if the folder of the table is named like the table."""
        here = [p for p in pending if self._names(p)]
        return here or pending

    def _names(self, pending: PendingCommit) -> bool:
        table = pending.fields.table if isinstance(pending.fields, IcebergCommittable) else None
        return table is not None and (f".{table}".endswith(f".{self._name}") or f".{self._name}".endswith(f".{table}"))

    def commits(self, sink: Sink, pending: PendingCommit) -> _Commits | None:
        committable = pending.fields
        if not isinstance(committable, IcebergCommittable) or (committable.table and not self._names(pending)):
            return None
        job_id = committable.job_id
        operator_id = committable.operator_id or sink.operator.state.operator_id
        ancestors, expired = self._ancestors(committable.branch or _MAIN)
        ids = [i for operator, i in self._committed(ancestors, job_id) if operator in (None, operator_id)]
        others = [i for operator, i in self._committed(ancestors, job_id) if operator not in (None, operator_id)]
        elsewhere = None if committable.operator_id else max(others, default=None)
        # A restored job commits several checkpoints as one, under the highest of their ids.
        return _Commits(
            ids=frozenset(ids), highest=ids[0] if ids else None, lost=expired or bool(ids), elsewhere=elsewhere
        )

    def _ancestors(self, branch: str) -> tuple[list[Mapping[str, Any]], bool]:
        """Return the snapshots of a branch, the newest first, and whether older ones have expired."""
        current, found = self._heads.get(branch), dict[Any, Mapping[str, Any]]()
        while current in self._by_id and current not in found:
            found[current] = self._by_id[current]
            current = found[current].get("parent-snapshot-id")
        return [*found.values()], current is not None and current != -1 and current not in found

    def _committed(self, ancestors: Iterable[Mapping[str, Any]], job_id: str) -> Iterator[tuple[str | None, int]]:
        """Yield operator and checkpoint id of each commit of a job."""
        for snapshot in ancestors:
            summary = snapshot.get("summary")
            if isinstance(summary, dict) and summary.get("flink.job-id") == job_id and _ID_KEY in summary:
                yield summary.get("flink.operator-id"), _whole_number(summary, _ID_KEY, self._file)


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
