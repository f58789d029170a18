"""Estimates of sizes and numbers of entries, from metadata, headers, and the properties of RocksDB's table files. No entry is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from statetool.analysis.statistics.records import (
    ESTIMATES,
    EstimatedOperatorRow,
    EstimatedRangeRow,
    EstimatedStateRow,
    RecordTables,
)
from statetool.analysis.statistics.statistics import element_sizes
from statetool.entries.form import StoredState
from statetool.errors import UNREAD, FormatError
from statetool.formats.backends.column_families import OwnedDatabase, family_name
from statetool.formats.backends.database_estimate import DatabaseEstimate, FamilyEstimate, estimate_databases
from statetool.formats.metadata.handles import ByteStreamHandle, streams_of
from statetool.formats.metadata.model import operator_handles
from statetool.io.garbage import collector_paused
from statetool.io.threads import in_threads
from statetool.snapshot.operator import OperatorInventory

Each: TypeAlias = Callable[
    [Callable[[Sequence[OwnedDatabase]], list[DatabaseEstimate]], Sequence[Sequence[OwnedDatabase]]],
    Iterable[list[DatabaseEstimate]],
]
#: Files of the databases of one task.
_TASK_FILES: Final = 2048
_EXACT: Final = "metadata"
_PROPERTIES: Final = "table properties"
_STREAM: Final = "streams store no numbers of entries"
_LOG: Final = "changelogs store no numbers of entries"


class Estimate(RecordTables):
    """Estimates of some operators: tables ``operators``, ``states`` and ``key_groups``."""

    def __init__(self, tables: Mapping[str, list[Any]], unread: tuple[str, ...]) -> None:
        super().__init__(ESTIMATES, tables)
        #: Why some keyed state could not be read. Only its stored bytes are known.
        self.unread = unread

    def _repr_html_(self) -> str:
        from statetool.analysis.statistics.notebook import estimate_html

        return estimate_html(self, self.unread)


def estimate_of(operators: Sequence[OperatorInventory], each: Each = in_threads) -> Estimate:
    """Estimate operators; ``each`` calls a function for each item, locally or in tasks of a cluster.

    Raises
    ------
    FormatError
        Damaged bytes.
    """
    with collector_paused():
        plans = [_Plan(operator) for operator in operators]
    databases = [database for plan in plans for _, database in plan.databases]
    estimates = (e for of_task in each(estimate_databases, list(_tasks(databases))) for e in of_task)
    tables: dict[str, list[Any]] = {name: [] for name in ESTIMATES}
    for plan in plans:
        for stored, database in plan.databases:
            plan.add_database(stored, database.key_groups, next(estimates))
        states = sorted(plan.state_rows(), key=lambda r: -(r.stored_bytes or r.size_bytes or 0))
        tables["operators"].append(plan.operator_row(states))
        tables["states"] += states
        tables["key_groups"] += plan.ranges
    return Estimate(tables, tuple(plan.unread for plan in plans if plan.unread))


def _tasks(databases: Iterable[OwnedDatabase]) -> Iterator[list[OwnedDatabase]]:
    task: list[OwnedDatabase] = []
    files = 0
    for database in databases:
        task.append(database)
        files += len(database.files.files)
        if files >= _TASK_FILES:
            yield task
            task, files = [], 0
    if task:
        yield task


@dataclass(slots=True)
class _Total:
    """Sums over subtasks; a number is ``None`` if it is unknown for one of them."""

    entries: int | None = 0
    at_least: int = 0
    at_most: int | None = 0
    key_bytes: int | None = 0
    value_bytes: int | None = 0
    stored_bytes: int | None = 0
    basis: dict[str, None] = field(default_factory=dict)

    def add(self, part: FamilyEstimate, basis: str, stored_bytes: int | None) -> None:
        self.entries = _sum(self.entries, part.entries)
        self.at_least += part.at_least
        self.at_most = _sum(self.at_most, part.at_most)
        self.key_bytes = _sum(self.key_bytes, part.key_bytes)
        self.value_bytes = _sum(self.value_bytes, part.value_bytes)
        self.stored_bytes = _sum(self.stored_bytes, stored_bytes)
        self.basis[basis] = None

    @property
    def size_bytes(self) -> int | None:
        return _sum(self.key_bytes, self.value_bytes)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


class _Plan:
    """One operator: its ``databases``, which tasks estimate, and the totals of its states, to which the results are added."""

    def __init__(self, operator: OperatorInventory) -> None:
        self.operator = operator
        self.databases: list[tuple[StoredState, OwnedDatabase]] = []
        self.totals: dict[tuple[str, str], _Total] = defaultdict(_Total)
        self.ranges: list[EstimatedRangeRow] = []
        self.unread = ""
        #: Names of states by identity of the header. Most subtasks have the same header.
        self._names: dict[bytes, list[str]] = {}
        try:
            operator.keyed.expect_files(opens=False)
            for stored in (*operator.keyed.managed, *operator.keyed.raw_timers):
                database = stored.owned_database()
                if database is None:
                    self._add_other(stored)
                else:
                    self.databases.append((stored, database))
        except UNREAD as error:
            self.unread = str(error.at(operator=operator.label))
        self._add_elements()

    def _state_names(self, stored: StoredState) -> list[str]:
        identity = stored.identity()
        if identity not in self._names:
            self._names[identity] = [meta.name for meta in stored.header().states]
        return self._names[identity]

    def _add_other(self, stored: StoredState) -> None:
        """Add a stream or a changelog: only the bytes of its key groups are known."""
        names = self._state_names(stored)
        groups = [(g.key_group, g.size_bytes) for g in stored.key_groups()]
        total = 0
        for key_group, size in groups:
            total += size or 0
            if size:
                self._add_range(stored, names[0] if len(names) == 1 else None, key_group, key_group, size)
        known = all(size is not None for _, size in groups)
        for name in names:
            self.totals["keyed", name].add(
                FamilyEstimate(), _STREAM if known else _LOG, total if known and len(names) == 1 else None
            )

    def add_database(self, stored: StoredState, own: range, estimate: DatabaseEstimate) -> None:
        """Add the estimate of a subtask's database. ``own`` are the subtask's key groups.

        Raises
        ------
        FormatError
            It has a column family of a state that the header does not name.
        """
        names = self._state_names(stored)
        if isinstance(estimate, str):
            for name in names:
                self.totals["keyed", name].add(FamilyEstimate(), estimate, None)
            return
        states = {family_name(name): name for name in names}
        if unknown := estimate.keys() - states.keys():
            raise FormatError(f"the database has a column family {min(unknown)!r} that the header does not name").at(
                operator=self.operator.label
            )
        for family, name in states.items():
            part = estimate.get(family)
            if part is None:
                raise FormatError(f"the database lacks the column family {family!r}").at(operator=self.operator.label)
            self.totals["keyed", name].add(part, part.reason or _PROPERTIES, part.stored_bytes)
            if part.files and own:
                self._add_range(stored, name, own[0], own[-1], part.stored_bytes, part)

    def _add_range(
        self,
        stored: StoredState,
        state: str | None,
        first: int,
        last: int,
        stored_bytes: int,
        part: FamilyEstimate = FamilyEstimate(),  # noqa: B008 - it is frozen
    ) -> None:
        self.ranges.append(
            EstimatedRangeRow(
                operator=self.operator.label,
                state=state,
                subtask=stored.place.subtask,
                first_key_group=first,
                last_key_group=last,
                entries=part.entries,
                at_least=part.at_least,
                at_most=part.at_most,
                stored_bytes=stored_bytes,
            )
        )

    def _add_elements(self) -> None:
        """Add operator state, whose elements the metadata counts."""
        for row in element_sizes(self.operator):
            if row.state is not None:
                exact = FamilyEstimate(
                    entries=row.entries,
                    at_least=row.entries or 0,
                    at_most=row.entries,
                    key_bytes=0,
                    value_bytes=row.size_bytes,
                )
                self.totals["operator", row.state].add(exact, _EXACT, row.size_bytes)

    def state_rows(self) -> Iterator[EstimatedStateRow]:
        """Yield the states of the operator, including those without entries."""
        for info in self.operator.states:
            if info.kind == "raw":
                continue
            total = self.totals.get((info.scope, info.name), _Total(basis={_EXACT: None}))
            unread = info.kind == "unread"
            yield EstimatedStateRow(
                operator=self.operator.label,
                scope=info.scope,
                state=info.name,
                kind=info.kind,
                entries=None if unread else total.entries,
                at_least=total.at_least,
                at_most=None if unread else total.at_most,
                key_bytes=None if unread else total.key_bytes,
                value_bytes=None if unread else total.value_bytes,
                size_bytes=None if unread else total.size_bytes,
                stored_bytes=None if unread else total.stored_bytes,
                basis=info.reason if unread else "; ".join(total.basis),
            )

    def operator_row(self, rows: Sequence[EstimatedStateRow]) -> EstimatedOperatorRow:
        """Return the operator as a row; ``rows`` are its states."""
        state = self.operator.state
        streams = [stream for handle in operator_handles(state) for stream in streams_of(handle)]
        total = _Total()
        for row in rows:
            total.entries = _sum(total.entries, row.entries)
            total.at_most = _sum(total.at_most, row.at_most)
            total.value_bytes = _sum(total.value_bytes, row.size_bytes)
        return EstimatedOperatorRow(
            operator=self.operator.label,
            parallelism=state.parallelism,
            max_parallelism=state.max_parallelism,
            files=sum(not isinstance(stream, ByteStreamHandle) for stream in streams),
            stored_bytes=sum(stream.size_bytes for stream in streams),
            entries=total.entries,
            at_least=sum(row.at_least for row in rows),
            at_most=total.at_most,
            size_bytes=total.value_bytes,
        )
