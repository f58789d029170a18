"""Rows of statistics from measured sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.analysis.statistics.extremes import top
from statetool.analysis.statistics.records import (
    AgeRow,
    DistributionRow,
    LargestRow,
    OperatorSizeRow,
    SizeRow,
    SkewRow,
    StateSizeRow,
    TimerRow,
)
from statetool.analysis.statistics.source import Measured, Times
from statetool.analysis.statistics.spans import AGE_EDGES, SIZE_CLASSES, TIMER_EDGES, class_bounds, spans
from statetool.formats.key_groups import owner_of, range_for
from statetool.kernels.entries.measures import ENTRIES, KEY_BYTES
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo
from statetool.snapshot.state_tables import timer_names

_MEASURES: Final = ("key_bytes", "value_bytes", "length")


def keyed_rows(operator: str, source: Measured) -> Iterator[SizeRow]:
    """Yield a row for each combination of state and key group of a source that has entries."""
    states, groups = np.nonzero(source.counts[:, :, 0])
    counts = source.counts[states, groups].tolist()
    for i, j, (entries, keys, key_bytes, value_bytes) in zip(states.tolist(), groups.tolist(), counts, strict=True):
        yield SizeRow(
            operator=operator,
            scope="keyed",
            state=source.states[i],
            part="entries",
            subtask=source.subtask,
            key_group=source.groups[j],
            entries=entries,
            keys=keys or None,
            key_bytes=key_bytes,
            value_bytes=value_bytes,
            size_bytes=key_bytes + value_bytes,
        )


def operator_size_row(
    operator: OperatorInventory, others: Sequence[SizeRow], sources: Sequence[Measured], *, is_known: bool
) -> OperatorSizeRow:
    """Return an operator as a row.

    Parameters
    ----------
    others
        Sizes of everything but entries of keyed state.
    is_known
        Whether all keyed state was read.
    """
    by_part: Counter[str] = Counter()
    for row in others:
        by_part[row.part] += row.size_bytes
    by_part["entries"] += sum(int(p.bytes_of_groups().sum()) for p in sources)
    plain, packed = (sum(p.snappy[i] for p in sources) for i in range(2))
    keys_known = bool(sources) and all(p.keys_known for p in sources)
    own_columns = ("entries", "header", "framing", "unread")
    return OperatorSizeRow(
        operator=operator.label,
        parallelism=operator.state.parallelism,
        max_parallelism=operator.state.max_parallelism,
        size_bytes=sum(by_part.values()),
        entries_bytes=by_part["entries"] if is_known else None,
        header_bytes=by_part["header"],
        framing_bytes=by_part["framing"],
        unread_bytes=by_part["unread"],
        other_bytes=sum(size for part, size in by_part.items() if part not in own_columns),
        entries=sum(r.entries or 0 for r in others) + sum(int(p.counts[:, :, ENTRIES].sum()) for p in sources)
        if is_known
        else None,
        keys=sum(int(p.key_counts.sum()) for p in sources) if keys_known and is_known else None,
        snappy_ratio=round(packed / plain, 4) if plain else None,
    )


def state_rows(
    operator: OperatorInventory, others: Sequence[SizeRow], sources: Sequence[Measured], *, keyed_is_known: bool
) -> list[StateSizeRow]:
    """Return the states of an operator, largest first, including those without entries.

    ``others`` as in :func:`operator_size_row`. The numbers of keyed state are ``None`` unless all of it was read.
    """
    counts: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
    largest: Counter[tuple[str, str]] = Counter()
    for source in sources:
        for name, of_state, value in zip(
            source.states, source.counts.sum(axis=1), source.largest_value.tolist(), strict=True
        ):
            state = "keyed", name
            counts[state] = counts[state] + of_state if state in counts else of_state
            largest[state] = max(largest[state], value)
    for stream in operator.elements.streams:
        for name in stream.offsets:
            lengths = [end - start for start, end in stream.ranges(name)]
            largest["operator", name] = max([largest["operator", name], *lengths])
    for row in others:
        if row.state is not None:
            of_row = np.array([row.entries or 0, 0, row.key_bytes or 0, row.value_bytes or 0])
            state = row.scope, row.state
            counts[state] = counts[state] + of_row if state in counts else of_row
    total = int(sum(c[KEY_BYTES:].sum() for c in counts.values()))
    unread_bytes = sum(r.size_bytes for r in others if r.part == "unread")
    rows = []
    for info in operator.states:
        if info.kind == "raw":
            continue
        state = info.scope, info.name
        if info.scope == "keyed" and (info.kind == "unread" or not keyed_is_known):
            rows.append(_unknown_row(operator, info, unread_bytes if info.kind == "unread" else None))
            continue
        entries, keys, key_bytes, value_bytes = counts[state].tolist() if state in counts else (0, 0, 0, 0)
        size = key_bytes + value_bytes
        rows.append(
            StateSizeRow(
                operator=operator.label,
                scope=info.scope,
                state=info.name,
                kind=info.kind,
                entries=entries,
                keys=keys or None,
                key_bytes=key_bytes,
                value_bytes=value_bytes,
                size_bytes=size,
                mean_value=round(value_bytes / entries, 1) if entries else 0.0,
                largest_value=largest[state],
                share=(round(size / total, 4) if total else 0.0) if keyed_is_known else None,
            )
        )
    return sorted(rows, key=lambda r: -(r.size_bytes or 0))


def _unknown_row(operator: OperatorInventory, info: StateInfo, size_bytes: int | None) -> StateSizeRow:
    return StateSizeRow(
        operator=operator.label,
        scope=info.scope,
        state=info.name,
        kind=info.kind,
        entries=None,
        keys=None,
        key_bytes=None,
        value_bytes=None,
        size_bytes=size_bytes,
        mean_value=None,
        largest_value=None,
        share=None,
    )


def largest_rows(operator: str, sources: Sequence[Measured], most: int) -> Iterator[LargestRow]:
    """Yield the largest items over all sources; all entries of a key are in one source."""
    for what in ("key", "value", "list", "map"):
        for e in top((e for p in sources for e in p.extremes.get(what, ())), most):
            yield LargestRow(
                operator=operator,
                what=what,
                state=e.state,
                key=e.shown,
                key_bytes=e.key.hex(),
                key_group=e.group,
                subtask=e.subtask,
                length=e.length,
                size_bytes=e.size,
            )


def distribution_rows(operator: str, sources: Iterable[Measured]) -> Iterator[DistributionRow]:
    """Yield the size distribution of keys, values, lists and maps."""
    total: dict[str, npt.NDArray[np.int64]] = {}
    for source in sources:
        for name, sizes in zip(source.states, source.sizes, strict=True):
            total[name] = total[name] + sizes if name in total else sizes
    for name, sizes in total.items():
        for i, digits in np.ndindex(len(_MEASURES), SIZE_CLASSES):
            if sizes[i, digits]:
                low, high = class_bounds(digits)
                yield DistributionRow(
                    operator=operator,
                    state=name,
                    what=_MEASURES[i],
                    at_least=low,
                    at_most=high,
                    count=int(sizes[i, digits]),
                )


def skew_rows(operator: OperatorInventory, sources: Iterable[Measured], wished: int | None) -> Iterator[SkewRow]:
    """Yield the share of each subtask, with key groups distributed at the current parallelism and at a requested one."""
    max_parallelism = operator.state.max_parallelism
    in_group: dict[int, tuple[int, int]] = {}
    for source in sources:
        entries_of_groups = source.counts[:, :, ENTRIES].sum(axis=0).tolist()
        for key_group, n, size in zip(source.groups, entries_of_groups, source.bytes_of_groups().tolist(), strict=True):
            if n:
                so_far = in_group.get(key_group, (0, 0))
                in_group[key_group] = so_far[0] + n, so_far[1] + size
    if not in_group:
        return
    today = min(operator.state.parallelism, max_parallelism)
    for parallelism in dict.fromkeys((today, min(wished or today, max_parallelism))):
        entries, size_bytes = Counter[int](), Counter[int]()
        for key_group, (n, size) in in_group.items():
            subtask = owner_of(key_group, parallelism, max_parallelism)
            entries[subtask] += n
            size_bytes[subtask] += size
        mean = sum(size_bytes.values()) / parallelism
        for subtask in range(parallelism):
            yield SkewRow(
                operator=operator.label,
                parallelism=parallelism,
                subtask=subtask,
                key_groups=len(range_for(subtask, parallelism, max_parallelism)),
                entries=entries[subtask],
                size_bytes=size_bytes[subtask],
                of_mean=round(size_bytes[subtask] / mean, 3) if mean else 0.0,
            )


def _times_by_state(sources: Iterable[dict[str, Times]]) -> dict[str, Times]:
    total: dict[str, Times] = {}
    for times_by_state in sources:
        for name, times in times_by_state.items():
            if name not in total:
                total[name] = Times(np.zeros_like(times.counts))
            total[name].add(times)
    return total


def age_rows(operator: str, sources: Iterable[Measured], *, counted: bool) -> Iterator[AgeRow]:
    """Yield values by age of last access; the first row of each state counts all values, and the expired ones."""
    for name, times in _times_by_state(p.ages for p in sources).items():
        yield AgeRow(
            operator=operator,
            state=name,
            age_at_least_ms=None,
            age_below_ms=None,
            count=int(times.counts.sum()),
            expired=times.expired if counted else None,
        )
        for (low, high), count in zip(spans(AGE_EDGES), times.counts.tolist(), strict=True):
            if count:
                yield AgeRow(
                    operator=operator, state=name, age_at_least_ms=low, age_below_ms=high, count=count, expired=None
                )


def timer_rows(operator: str, sources: Iterable[Measured]) -> Iterator[TimerRow]:
    """Yield timers by firing time; the first row of each timer state counts all timers."""
    for name, times in _times_by_state(p.timers for p in sources).items():
        domain, _ = timer_names(name)
        total: list[tuple[tuple[int | None, int | None], int]] = [((None, None), int(times.counts.sum()))]
        counted = [(span, n) for span, n in zip(spans(TIMER_EDGES), times.counts.tolist(), strict=True) if n]
        for (low, high), count in total + counted:
            yield TimerRow(
                operator=operator,
                state=name,
                domain=domain,
                in_at_least_ms=low,
                in_below_ms=high,
                count=count,
                first_ms=times.first_ms,
                last_ms=times.last_ms,
            )
