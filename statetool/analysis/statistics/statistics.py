"""Build the statistics tables from measured sources and from the bytes outside of entries in files."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from statetool.analysis.statistics import rows as table_rows
from statetool.analysis.statistics.records import TABLES, Part, RecordTables, Scope, SizeRow
from statetool.analysis.statistics.restore import Link, restore_rows
from statetool.analysis.statistics.source import Measured, MeasureTask, measure
from statetool.entries.form import TARGET_BYTES, KeyedContext, KeyGroupReader, StoredState
from statetool.errors import UNREAD, OptionError, StatetoolError
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.stream import Stream
from statetool.io.open_files import keeping_open
from statetool.io.threads import in_threads
from statetool.snapshot.metadata_tables import file_rows, operator_row
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.scan import column_names
from statetool.types.options import whole_number

Each: TypeAlias = Callable[[Callable[[MeasureTask], Measured], Sequence[MeasureTask]], Iterable[Measured]]
MOST_LARGEST: Final = 10
BANDWIDTH_MIB: Final = 100.0
LATENCY_MS: Final = 20.0
#: Bytes of each source that are compressed to estimate the gain of Snappy.
SAMPLE_BYTES: Final = 1 << 20
#: Differences of times within this bound fit 64 bits.
_FARTHEST_MS: Final = 1 << 62
_MANAGED: Final = ("managed keyed", "managed operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRequest:
    """Options of a measurement.

    Attributes
    ----------
    largest
        Number of the largest keys, values, lists and maps to name per operator.
    parallelism
        Another parallelism to show skew and restore for; ``None`` for only the current one.
    ttl_ms
        TTL after which values count as expired.
    now_ms
        Epoch milliseconds that ages count from.
    link
        Bandwidth and latency for the restore time.
    """

    largest: int
    parallelism: int | None
    ttl_ms: int | None
    now_ms: int
    link: Link

    @classmethod
    def of(
        cls,
        *,
        largest: int = MOST_LARGEST,
        parallelism: int | None = None,
        ttl_ms: int | None = None,
        now_ms: int | None = None,
        bandwidth_mib: float = BANDWIDTH_MIB,
        latency_ms: float = LATENCY_MS,
    ) -> StatisticsRequest:
        """Check options.

        Raises
        ------
        OptionError
            A number is out of range.
        """
        if whole_number("largest", largest) < 0:
            raise OptionError(
                f"largest={largest} is not valid", hint="pass the number of largest items to return, 0 or more"
            )
        for name, number in (("ttl_ms", ttl_ms), ("now_ms", now_ms)):
            if number is not None:
                whole_number(name, number)
        if parallelism is not None:
            check_max_parallelism(32768, parallelism)
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        if not -_FARTHEST_MS < now < _FARTHEST_MS:
            raise OptionError(f"now_ms={now_ms} is not valid", hint="pass epoch milliseconds")
        link = Link.of(bandwidth_mib=bandwidth_mib, latency_ms=latency_ms)
        return cls(largest=largest, parallelism=parallelism, ttl_ms=ttl_ms, now_ms=now, link=link)


class Statistics(RecordTables):
    """Sizes, counts, ages and timers of some operators.

    ``operators``, ``states``, ``sizes`` (by state, key group and subtask), ``largest`` (keys, values, lists, maps), ``distribution`` (of
    sizes and lengths), ``skew`` (over subtasks), ``ages`` (of values with TTL), ``timers`` (by firing time), ``restore`` (bytes
    that each subtask reads, and the approximate time).

    If some keyed state of an operator could not be read, its numbers of entries, keys and bytes of entries are ``None``, and it has no rows in
    ``distribution``, ``skew``, ``ages`` and ``timers``. ``largest`` then names the largest of those that were read.
    """

    def __init__(self, tables: Mapping[str, list[Any] | Callable[[], list[Any]]], unread: tuple[str, ...]) -> None:
        super().__init__(TABLES, tables)
        #: Why some keyed state could not be read. Only its bytes are counted, as unread.
        self.unread = unread

    def _repr_html_(self) -> str:
        from statetool.analysis.statistics.notebook import statistics_html

        return statistics_html(self, self.unread)


def statistics_of(
    operators: Sequence[OperatorInventory], request: StatisticsRequest, each: Each = in_threads
) -> Statistics:
    """Measure operators; ``each`` calls a function for each item, locally or in tasks of a cluster.

    Undamaged state that statetool cannot read is counted as unread.

    Raises
    ------
    FormatError, DecodeError
        Damaged bytes.
    """
    with keeping_open():
        return _tables_of([_Plan(operator, request) for operator in operators], request, each)


def _tables_of(plans: Sequence[_Plan], request: StatisticsRequest, each: Each) -> Statistics:
    measured = _measure(plans, each)
    tables: dict[str, list[Any]] = {name: [] for name in TABLES}
    sizes: list[Callable[[], list[SizeRow]]] = []
    for plan in plans:
        operator = plan.operator
        sources = [*measured[operator.label], *plan.unread]
        headers, framing = _keyed_surroundings(plan, sources)
        others = [*framing, *element_sizes(operator), *_other_sizes(plan)]
        sizes.append(partial(_size_rows, operator.label, headers, sources, others))
        known = plan.keyed_is_known
        surroundings = [*headers, *others]
        row = table_rows.operator_size_row(operator, surroundings, sources, is_known=plan.timers_are_known)
        tables["operators"].append(row)
        tables["states"] += table_rows.state_rows(operator, surroundings, sources, keyed_is_known=known)
        tables["largest"] += table_rows.largest_rows(operator.label, sources, request.largest)
        tables["restore"] += restore_rows(operator, plan.stored, request.parallelism, request.link)
        if known:
            tables["distribution"] += table_rows.distribution_rows(operator.label, sources)
            tables["skew"] += table_rows.skew_rows(operator, sources, request.parallelism)
            tables["ages"] += table_rows.age_rows(operator.label, sources, counted=request.ttl_ms is not None)
        if plan.timers_are_known:
            tables["timers"] += table_rows.timer_rows(operator.label, sources)
    pieces = [*(p for sources in measured.values() for p in sources), *(p for plan in plans for p in plan.unread)]
    return Statistics(
        {**tables, "sizes": lambda: [row for of_operator in sizes for row in of_operator()]},
        tuple(dict.fromkeys(p.unread for p in pieces if p.unread)),
    )


def _measure(plans: Sequence[_Plan], each: Each) -> dict[str, list[Measured]]:
    """Return the measurements of each operator. Those whose headers turn out to complete each other are measured again."""
    measured = _run(plans, each)
    again = [plan for plan in plans if plan.describe()]
    if not again:
        return measured
    return measured | {plan.operator.label: [] for plan in again} | _run(again, each)


def _run(plans: Sequence[_Plan], each: Each) -> dict[str, list[Measured]]:
    measured: dict[str, list[Measured]] = defaultdict(list)
    tasks = [(plan, stored, task) for plan in plans for stored, task in plan.tasks]
    for (plan, stored, task), source in zip(tasks, each(measure, [task for *_, task in tasks]), strict=True):
        plan.take(stored, source)
        measured[task.operator].append(source)
    return measured


class _Plan:
    """Keyed state of one operator: the ``stored`` pieces, the ``tasks`` that measure them, and the ``unread`` ones.

    Headers of small pieces are read by the tasks, so that each file is opened once, also on a cluster. Only then is it known whether they
    have to complete each other: :meth:`describe` plans again if so.
    """

    def __init__(self, operator: OperatorInventory, request: StatisticsRequest) -> None:
        self.operator = operator
        self.request = request
        self.stored: list[StoredState] = []
        self.tasks: list[tuple[StoredState, MeasureTask]] = []
        self.unread: list[Measured] = []
        #: Headers that tasks have read.
        self._headers: dict[bytes, bytes] = {}
        #: Metadata slots with unreadable files.
        self.unread_slots: set[str] = set()
        #: Slots of which only a part was read, so that numbers of entries are not known.
        self.incomplete: set[str] = set()
        keyed = operator.keyed
        for slot, of_slot in (("managed keyed", lambda: keyed.managed), ("raw keyed", lambda: keyed.raw_timers)):
            try:
                self.stored += of_slot()
            except UNREAD as error:
                subtasks = {f.subtask for f in file_rows(operator) if f.slot == slot}
                self.unread += [self._unread(subtask, (), error) for subtask in sorted(subtasks)]
                self.unread_slots.add(slot)
        if "managed keyed" not in self.unread_slots:
            keyed.expect_files()
        self._unread_slots_only = list(self.unread)
        context = keyed.context_without_headers
        without_headers = [(stored, self._without_header(stored, context)) for stored in self.stored]
        #: Whether the context of the tasks is that of all headers.
        self.described = all(source is None for _, source in without_headers)
        if self.described:
            self._plan(lambda: keyed.context)
        else:
            self._plan(lambda: context, dict(without_headers))

    def _without_header(self, stored: StoredState, context: KeyedContext) -> KeyGroupReader | None:
        try:
            return stored.source_without_header(context, most_bytes=TARGET_BYTES)
        except UNREAD:  # also when it is planned with its header, which counts it as unread
            return None

    def _plan(
        self,
        context: Callable[[], KeyedContext],
        without_headers: Mapping[StoredState, KeyGroupReader | None] = MappingProxyType({}),
    ) -> None:
        for stored in self.stored:
            source = without_headers.get(stored)
            try:
                if source is None:
                    sources = stored.sources(context(), groups=None, target_bytes=TARGET_BYTES)
                    self.tasks += [(stored, self._task(s)) for s in sources]
                else:
                    self.tasks.append((stored, self._task(source, head=stored.head())))
            except UNREAD as error:
                self.incomplete.add(_slot_of(stored))
                groups = [g.key_group for g in stored.key_groups()]
                self.unread.append(self._unread(stored.place.subtask, groups, error))

    def _task(self, source: KeyGroupReader, head: tuple[Stream, int] | None = None) -> MeasureTask:
        return MeasureTask(
            source=source,
            operator=self.operator.label,
            field_names=column_names(self.operator, ()),
            most=self.request.largest,
            now_ms=self.request.now_ms,
            ttl_ms=self.request.ttl_ms,
            sample_bytes=SAMPLE_BYTES,
            head=head,
            may_help=not self.described,
        )

    def take(self, stored: StoredState, measured: Measured) -> None:
        """Take the header that a task has read, and raise the error of the task unless headers of other subtasks may help."""
        if measured.unread:
            self.incomplete.add(_slot_of(stored))
        if measured.header is not None:
            stored.raw_header = self._headers.setdefault(measured.header, measured.header)
        if measured.error is not None and not self._lacks_descriptions():
            raise measured.error

    def describe(self) -> bool:
        """Plan again if the headers of all subtasks are needed to read those of each, and return True if so."""
        if self.described or not self._lacks_descriptions():
            return False
        self.described = True
        self.tasks, self.unread, self.incomplete = [], list(self._unread_slots_only), set()
        self._plan(lambda: self.operator.keyed.context)
        return True

    def _lacks_descriptions(self) -> bool:
        try:
            return not self.operator.keyed.is_described_by_each
        except UNREAD:
            return True

    @property
    def keyed_is_known(self) -> bool:
        """Whether all managed keyed state was read. Otherwise the entries of states can only be counted in part."""
        return "managed keyed" not in self.unread_slots | self.incomplete

    @property
    def timers_are_known(self) -> bool:
        """Whether all timers were read, which some backends keep in raw keyed state."""
        return self.keyed_is_known and "raw keyed" not in self.unread_slots | self.incomplete

    def _unread(self, subtask: int, groups: Iterable[int], error: StatetoolError) -> Measured:
        return Measured.of(subtask, groups, unread=str(error.at(operator=self.operator.label)))


def _slot_of(stored: StoredState) -> str:
    return "raw keyed" if stored.place.raw else "managed keyed"


def _size_rows(
    operator: str, headers: Iterable[SizeRow], sources: Iterable[Measured], others: Iterable[SizeRow]
) -> list[SizeRow]:
    """Return the table of sizes of an operator, in which every state has a row per key group."""
    return [*headers, *(row for source in sources for row in table_rows.keyed_rows(operator, source)), *others]


def _keyed_surroundings(plan: _Plan, sources: Sequence[Measured]) -> tuple[list[SizeRow], list[SizeRow]]:
    """Return the headers of keyed state, and the other bytes of its files without entries: framing, overhead of databases and logs."""
    operator, label = plan.operator, plan.operator.label
    headers: list[SizeRow] = []
    framing: list[SizeRow] = []
    remaining: Counter[int] = Counter()
    in_group: Counter[tuple[int, int]] = Counter()
    for file in file_rows(operator):
        if file.slot == "managed keyed":
            remaining[file.subtask] += file.size_bytes
    for stored in plan.stored:
        subtask = stored.place.subtask
        if stored.place.raw:
            remaining[subtask] += sum(p.size_bytes or 0 for p in stored.key_groups())
        description = None if stored.place.raw else stored.description()
        if description is not None:
            remaining[subtask] -= len(description[0])
            headers.append(surrounding_row(label, "keyed", "header", subtask, len(description[0])))
        for group in stored.key_groups():
            if group.size_bytes is not None:
                in_group[subtask, group.key_group] += group.size_bytes
                remaining[subtask] -= group.size_bytes
    for source in sources:
        for key_group, size in zip(source.groups, source.bytes_of_groups().tolist(), strict=True):
            owner = (source.subtask, key_group)
            if owner in in_group:
                in_group[owner] -= size
            else:
                remaining[source.subtask] -= size
    unread = {(p.subtask, g) for p in sources if p.unread for g in p.groups}
    for (subtask, key_group), size in sorted(in_group.items()):
        if size:
            part: Part = "unread" if (subtask, key_group) in unread else "framing"
            framing.append(surrounding_row(label, "keyed", part, subtask, size, key_group))
    unplaced = {p.subtask for p in plan.unread}
    for subtask, size in sorted(remaining.items()):
        if size:
            mixed = subtask in unplaced or any(s == subtask and (s, g) not in in_group for s, g in unread)
            framing.append(surrounding_row(label, "keyed", "unread" if mixed else "framing", subtask, size))
    return headers, framing


def element_sizes(operator: OperatorInventory) -> Iterator[SizeRow]:
    """Yield the elements of operator state, by the offsets in its metadata, and the other bytes of its streams."""
    for stream in operator.elements.streams:
        remaining = stream.stream.size_bytes - stream.first
        yield surrounding_row(operator.label, "operator", "header", stream.subtask, stream.first)
        for name in stream.offsets:
            ranges = stream.ranges(name)
            size = sum(end - start for start, end in ranges)
            remaining -= size
            yield SizeRow(
                operator=operator.label,
                scope="operator",
                state=name,
                part="entries",
                subtask=stream.subtask,
                key_group=None,
                entries=len(ranges),
                keys=None,
                key_bytes=0,
                value_bytes=size,
                size_bytes=size,
            )
        if remaining:
            yield surrounding_row(operator.label, "operator", "framing", stream.subtask, remaining)


def _other_sizes(plan: _Plan) -> Iterator[SizeRow]:
    operator = plan.operator
    timers: Counter[int] = Counter()
    for stored in plan.stored:
        if stored.place.raw:
            timers[stored.place.subtask] += sum(p.size_bytes or 0 for p in stored.key_groups())
    others: Counter[tuple[Part, int]] = Counter()
    for row in file_rows(operator):
        if row.slot not in _MANAGED:
            unread: Part = "unread" if row.slot in plan.unread_slots else "raw"
            others["in flight" if row.slot.endswith("channel") else unread, row.subtask] += row.size_bytes
    for (part, subtask), stored_bytes in sorted(others.items()):
        size = stored_bytes - (timers[subtask] if part == "raw" else 0)
        if size:
            yield surrounding_row(operator.label, "keyed" if part == "unread" else "", part, subtask, size)
    coordinator = operator_row(operator).coordinator_bytes
    if coordinator:
        yield surrounding_row(operator.label, "", "coordinator", None, coordinator)


def surrounding_row(
    operator: str, scope: Scope, part: Part, subtask: int | None, size_bytes: int, key_group: int | None = None
) -> SizeRow:
    """Return the row of bytes outside of entries, or of bytes whose entries could not be read."""
    entries = None if part == "unread" else 0
    return SizeRow(
        operator=operator,
        scope=scope,
        state=None,
        part=part,
        subtask=subtask,
        key_group=key_group,
        entries=entries,
        keys=None,
        key_bytes=entries,
        value_bytes=entries,
        size_bytes=size_bytes,
    )
