"""Samples of one snapshot. By default they come from its metadata alone."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from statetool.connectors.lag import lag_rows
from statetool.connectors.rows import sink_row, source_row, split_rows
from statetool.connectors.sinks import sinks_of
from statetool.connectors.sources import Source, source_of
from statetool.connectors.tables import readable_operators
from statetool.errors import UnknownNameError
from statetool.formats.metadata.handles import streams_of
from statetool.reporting.openmetrics.families import Samples
from statetool.reporting.openmetrics.targets import Target
from statetool.snapshot.elements import element_ends
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import coordinator_bytes, slot_bytes
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import operator_name

if TYPE_CHECKING:
    from statetool.analysis.statistics.statistics import Each

#: State that a collection reads, besides the metadata: all entries of keyed state, or the operator state of sources and sinks.
Read: TypeAlias = Literal["keyed", "connectors"]
READS: Final[tuple[Read, ...]] = ("keyed", "connectors")
#: Returns the end offsets of a source's splits, ``None`` if there are none.
Ends: TypeAlias = Callable[[Source], Mapping[str, int | str] | None]
_STATUSES: Final = ("held", "assigned", "unassigned", "finished")
#: Offsets are 64-bit numbers. Larger ones are sequence numbers, which a gauge cannot hold.
_OFFSETS: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The samples of a snapshot, and its sources, for their lag."""

    samples: Samples
    sources: tuple[Source, ...] = field(default=(), repr=False)
    #: Why some state could not be read. Its samples are left out.
    unread: tuple[str, ...] = ()


def collect(inventory: Inventory, target: Target, read: Sequence[Read], each: Each) -> Collected:
    """Return the samples of a snapshot.

    Parameters
    ----------
    read
        State to read. By default only the metadata is read.
    each
        Calls a function for each item, to read keyed state.

    Raises
    ------
    FormatError, DecodeError
        Bytes are damaged.
    """
    samples, job = Samples(), job_labels(target)
    operators = list(inventory.operators.values())
    total = 0
    for operator in operators:
        total += _operator_samples(samples, operator, job | _operator_labels(operator.label))
    file = target.metadata_file
    modified_ms = None if file is None else file.modified_ms
    samples.add("statetool_checkpoint_id", inventory.metadata.checkpoint_id, **job)
    samples.add("statetool_checkpoint_bytes", total, **job)
    if file is not None:
        samples.add("statetool_metadata_bytes", file.size_bytes, **job)
    if modified_ms is not None:
        samples.add("statetool_checkpoint_timestamp_seconds", modified_ms / 1000, **job)
    unread: list[str] = []
    sources: list[Source] = []
    if "keyed" in read:
        unread += _keyed_samples(samples, operators, job, modified_ms, each)
    if "connectors" in read:
        sources, undecoded = _connector_samples(samples, operators, job)
        unread += undecoded
    return Collected(samples=samples, sources=tuple(sources), unread=tuple(unread))


def job_labels(target: Target) -> dict[str, str]:
    """Return the labels of a job."""
    return {"job_id": target.job_id, "job_name": target.job_name}


def _operator_labels(operator: str) -> dict[str, str]:
    return {"operator": str(operator), "operator_name": operator_name(operator)}


def _operator_samples(samples: Samples, operator: OperatorInventory, labels: Mapping[str, str]) -> int:
    """Add the sizes of an operator, and the elements of its operator state. Return its bytes."""
    state = operator.state
    by_slot: Counter[str] = Counter()
    by_subtask: Counter[int] = Counter()
    for subtask in state.subtasks:
        for slot, size in slot_bytes(subtask):
            by_slot[slot] += size
            by_subtask[subtask.index] += size
    by_slot["coordinator"] = coordinator_bytes(operator)
    for slot, size in by_slot.items():
        if size:
            samples.add("statetool_operator_bytes", size, slot=slot, **labels)
    samples.add("statetool_operator_largest_subtask_bytes", max(by_subtask.values(), default=0), **labels)
    samples.add("statetool_operator_parallelism", state.parallelism, **labels)
    samples.add("statetool_operator_max_parallelism", state.max_parallelism, **labels)
    lengths: dict[str, list[int]] = defaultdict(list)
    for subtask in state.subtasks:
        if (handle := subtask.managed_operator) is not None:
            offsets = {s.name: s.offsets for s in handle.states}
            ends = element_ends(offsets, sum(stream.size_bytes for stream in streams_of(handle)))
            for name, starts in offsets.items():
                lengths[name] += (ends[start] - start for start in starts)
    for name, sizes in lengths.items():
        of_state = {**labels, "scope": "operator", "state": name}
        samples.add("statetool_state_entries", len(sizes), **of_state)
        samples.add("statetool_state_bytes", sum(sizes), **of_state)
        samples.add("statetool_state_largest_value_bytes", max(sizes, default=0), **of_state)
    return sum(by_slot.values())


def _keyed_samples(
    samples: Samples,
    operators: Sequence[OperatorInventory],
    job: Mapping[str, str],
    modified_ms: int | None,
    each: Each,
) -> tuple[str, ...]:
    """Read all keyed state, and add its entries, keys and timers. Return why some could not be read."""
    from statetool.analysis.statistics.statistics import (  # Arrow, which sizes do not need
        StatisticsRequest,
        statistics_of,
    )

    now_ms = time.time_ns() // 1_000_000 if modified_ms is None else modified_ms
    statistics = statistics_of(operators, StatisticsRequest.of(largest=0, now_ms=now_ms), each)
    for row in statistics.rows("operators"):
        labels = {**job, **_operator_labels(row.operator)}
        samples.add("statetool_operator_keys", row.keys, **labels)
        samples.add("statetool_operator_unread_bytes", row.unread_bytes, **labels)
    for row in statistics.rows("states"):
        if row.scope != "keyed" or row.kind == "unread":
            continue
        labels = {**job, **_operator_labels(row.operator), "scope": row.scope, "state": row.state}
        samples.add("statetool_state_entries", row.entries, **labels)
        samples.add("statetool_state_keys", row.keys, **labels)
        samples.add("statetool_state_bytes", row.size_bytes, **labels)
        samples.add("statetool_state_largest_value_bytes", row.largest_value, **labels)
    for row in statistics.rows("timers"):
        labels = {**job, **_operator_labels(row.operator), "state": row.state, "domain": row.domain}
        if row.in_at_least_ms is None and row.in_below_ms is None:
            samples.add("statetool_timers", row.count, **labels)
            earliest = row.first_ms / 1000 if row.count else None
            samples.add("statetool_timers_earliest_timestamp_seconds", earliest, **labels)
            # Whether an event-time timer is overdue depends on the watermark, which is not stored.
            samples.add("statetool_timers_overdue", 0 if row.domain == "processing" else None, **labels)
        elif row.in_below_ms is not None and row.in_below_ms <= 0 and row.domain == "processing":
            samples.add("statetool_timers_overdue", row.count, **labels)
    return statistics.unread


def _connector_samples(
    samples: Samples, operators: Sequence[OperatorInventory], job: Mapping[str, str]
) -> tuple[list[Source], list[str]]:
    """Read the operator state of sources and sinks, and add their splits and transactions.

    Return the sources, and why some state could not be read.
    """
    readable, unreadable = readable_operators(operators)
    unread: dict[str, str] = {}
    for operator, reason in unreadable:
        samples.add("statetool_connector_readable", 0, **job, **_operator_labels(operator.label))
        unread[operator.label] = reason
    sources = [source for operator in readable if (source := source_of(operator)) is not None]
    decoded: dict[str, bool] = {}
    for source in sources:
        row = source_row(source)
        labels = {**job, **_operator_labels(row.operator), "connector": row.connector}
        for status in _STATUSES:
            samples.add("statetool_source_splits", getattr(row, status), status=status, **labels)
        samples.add("statetool_source_problems", row.problems, **labels)
        for split, position in _positions(source).items():
            samples.add("statetool_source_position", position, split=split, **labels)
        decoded[row.operator] = not row.undecoded
        if row.undecoded:
            unread[row.operator] = row.note
    for sink in sinks_of(readable):
        sink_state = sink_row(sink)
        labels = {**job, **_operator_labels(sink_state.operator)}
        labels |= {"connector": sink_state.connector, "role": sink_state.role}
        samples.add("statetool_sink_pending_transactions", sink_state.pending, **labels)
        samples.add("statetool_sink_open_transactions", sink_state.open, **labels)
        samples.add("statetool_sink_oldest_pending_checkpoint_id", sink_state.oldest_checkpoint, **labels)
        whole = sink_state.pending is not None and not sink_state.undecoded
        if not whole:
            unread[sink_state.operator] = sink_state.note
        decoded[sink_state.operator] = whole and decoded.get(sink_state.operator, True)
    for operator_label, whole in decoded.items():
        samples.add("statetool_connector_readable", whole, **job, **_operator_labels(operator_label))
    return sources, [f"operator {operator}: {reason or 'not decoded'}" for operator, reason in unread.items()]


def _positions(source: Source) -> dict[str, int]:
    """Return the next offset of each split, the smallest if several readers hold it."""
    found: dict[str, int] = {}
    for row in split_rows(source):
        digits = row.position or ""
        if row.split_id is not None and digits.isdecimal() and int(digits) < _OFFSETS:
            found[row.split_id] = min(int(digits), found.get(row.split_id, _OFFSETS))
    return found


def lag_samples(sources: Sequence[Source], target: Target, ends: Ends) -> Samples:
    """Return the lag of the splits of sources.

    Raises
    ------
    UnknownNameError
        There are end offsets, but for no split of any source.
    StatetoolError
        The end offsets cannot be found.
    """
    samples, unmatched = Samples(), list[UnknownNameError]()
    matched = False
    for source in sources:
        given = ends(source)
        if given is None:
            continue
        try:
            rows = lag_rows(source, given)
        except UnknownNameError as error:
            unmatched.append(error)
            continue
        matched = True
        lags: dict[str, int] = {}
        for row in rows:
            if row.lag is not None:
                lags[row.split_id] = max(row.lag, lags.get(row.split_id, row.lag))
        for split, lag in lags.items():
            labels = {**job_labels(target), **_operator_labels(source.label), "connector": source.name}
            samples.add("statetool_source_lag", lag, split=split, **labels)
    if unmatched and not matched:
        raise unmatched[0]
    return samples
