"""Plan to remove expired values, overdue timers, empty lists and obsolete windows. Flink itself removes expired values only when it reads or
compacts them, and a window only by its timer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statetool.columns.values import StateLayout
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, suggest
from statetool.io.threads import Map
from statetool.saving.composition import OperatorChange
from statetool.saving.forms import DEFAULT_FORMAT, SnapshotForm
from statetool.saving.streams.expired import ExpiredFilter
from statetool.saving.streams.filters import FilterChain
from statetool.saving.streams.windows import ObsoleteWindows, WindowFilter
from statetool.saving.verbs.erase import Form, form_of
from statetool.saving.verbs.tally import Count, tally_each
from statetool.saving.verbs.transform import has_ttl
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.window_layout import window_layout
from statetool.types.operators import OperatorRecord

_NO_WINDOWS: Final = ObsoleteWindows()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRequest:
    """The entries to remove; see :class:`statetool.saving.streams.expired.ExpiredFilter`.

    ``windows`` says which windows are removed.
    """

    ttl_ms: Mapping[str, int]
    now_ms: int
    timers_before_ms: Mapping[str, int]
    empty: bool
    windows: ObsoleteWindows = _NO_WINDOWS

    def __post_init__(self) -> None:
        if self.windows.size_ms is not None and self.windows == replace(_NO_WINDOWS, size_ms=self.windows.size_ms):
            raise OptionError("a size of windows, but no windows to remove", hint="pass --windows-before")
        if not self.ttl_ms and not self.timers_before_ms and not self.empty and not self.removes_windows:
            raise OptionError(
                "nothing to purge",
                hint="pass --ttl STATE=7d, --event-timers-before, --processing-timers-before, --windows-before,"
                " --windows-without-timer or --empty",
            )

    @property
    def removes_windows(self) -> bool:
        """Whether windows are removed."""
        return self.windows.before_ms is not None or self.windows.without_timer

    @property
    def filter(self) -> ExpiredFilter:
        """The filter of entries."""
        return ExpiredFilter(
            ttl_ms=self.ttl_ms, now_ms=self.now_ms, timers_before_ms=self.timers_before_ms, empty=self.empty
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedRow(OperatorRecord):
    """One state or timer queue before and after. Bytes are those of keys, namespaces and values.

    ``left_timers`` are the timers of windows that were to be removed, but stay.
    """

    state: str
    kind: str
    entries: int
    removed_entries: int
    size_bytes: int
    removed_bytes: int
    form: Form
    left_timers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedWindows(OperatorRecord):
    """The removed windows of one operator. If its windows cannot be judged, ``left`` is the reason, and all stay."""

    removed_windows: int
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """The states to purge, and the windows of each operator that has windows, if some were to be removed."""

    states: tuple[PurgedRow, ...]
    changes: Mapping[str, OperatorChange]
    windows: tuple[PurgedWindows, ...] = ()

    @property
    def left_timers(self) -> int:
        """Number of timers of windows that stay."""
        return sum(row.left_timers for row in self.states)


def plan_purge(
    inventory: Inventory,
    request: PurgeRequest,
    operators: Sequence[str],
    in_tasks: Map,
    *,
    target: SnapshotForm = DEFAULT_FORMAT,
) -> PurgePlan:
    """Plan the entries to remove. Reads the keyed state of operators that have such states or timers.

    Parameters
    ----------
    operators
        Uids or operator ids. By default all.
    in_tasks
        Calls a function for each item of a list, in threads or tasks.
    target
        The form of the copy.

    Raises
    ------
    UnknownNameError
        No operator has a state.
    OptionError
        A state has no time to live.
    UnsupportedError
        The values of a state cannot be decoded.
    """
    chosen = [inventory.operator(name) for name in dict.fromkeys(operators)] or list(inventory.operators.values())
    known = {name: meta for operator in chosen for name, (_, meta) in operator.listed_keyed.items()}
    for name in request.ttl_ms:
        if name not in known:
            raise UnknownNameError(f"no operator has a keyed state {name!r}", hint=suggest(name, known))
    rows: list[PurgedRow] = []
    windows: list[PurgedWindows] = []
    changes: dict[str, OperatorChange] = {}
    for operator in chosen:
        own = _windows_of(operator, request) if request.removes_windows else None
        if isinstance(own, str):
            windows.append(PurgedWindows(operator=operator.label, removed_windows=0, left=own))
        window_filter = own if isinstance(own, WindowFilter) else None
        change, purged, removed = _plan_operator(operator, request, window_filter, in_tasks, target)
        if change is not None:
            changes[operator.state.operator_id] = change
        if window_filter is not None:
            windows.append(PurgedWindows(operator=operator.label, removed_windows=removed))
        rows += purged
    return PurgePlan(states=tuple(rows), changes=changes, windows=tuple(windows))


def _windows_of(operator: OperatorInventory, request: PurgeRequest) -> WindowFilter | str | None:
    """Return the filter of an operator's windows, or the reason why all stay; ``None`` if it has none."""
    layout = window_layout({name: meta for name, (_, meta) in operator.listed_keyed.items()})
    if layout is None or isinstance(layout, str):
        return layout
    rule = request.windows
    if layout.shares_slices and rule.size_ms is None and not rule.without_timer:
        return "slices may be part of later windows, whose size is not stored (pass --window-size)"
    return WindowFilter(layout=layout, rule=rule, sources=tuple(operator.keyed.sources(raw=True)))


def _plan_operator(
    operator: OperatorInventory,
    request: PurgeRequest,
    window_filter: WindowFilter | None,
    in_tasks: Map,
    target: SnapshotForm,
) -> tuple[OperatorChange | None, list[PurgedRow], int]:
    """Return the change of an operator, its states, and the number of its windows to remove."""
    expired, timers = request.filter, replace(request.filter, of_windows=True)
    metas = [meta for _, meta in operator.listed_keyed.values()]
    concerned = [meta for meta in metas if expired.concerns(meta)]
    others = [
        meta for meta in metas
        if meta not in concerned
        and (timers.concerns(meta) or (window_filter is not None and window_filter.layout.concerns(meta.name)))
    ]  # fmt: skip
    if not concerned and not others:
        return None, [], 0
    operator.check_listed("keyed")
    for meta in concerned:
        if meta.name in request.ttl_ms:
            _check_ttl(operator, meta.name)
    filters: tuple[ExpiredFilter | WindowFilter, ...] = (
        (expired,) if window_filter is None else (window_filter, expired)
    )
    whole = FilterChain(filters)
    with_timers = FilterChain((*filters, timers))
    total, overdue, *of_windows = tally_each(operator, (whole, with_timers, *filters[:-1]), in_tasks)
    change: OperatorChange | None = None
    form: Form = "unchanged"
    if total.groups:
        narrowed = FilterChain(tuple(f.within(total.groups) for f in filters))
        change = OperatorChange(filter=narrowed, filtered_states=frozenset(total.states))
        form = form_of(operator, narrowed, target)
    nothing = Count(0, 0)
    rows = []
    for meta in (*concerned, *others):
        held = total.read.get(meta.name, nothing)
        removed = total.states.get(meta.name, nothing)
        if held.entries:
            rows.append(
                PurgedRow(
                    operator=operator.label,
                    state=meta.name,
                    kind=meta.kind,
                    entries=held.entries,
                    removed_entries=removed.entries,
                    size_bytes=held.size_bytes,
                    removed_bytes=removed.size_bytes,
                    form=form,
                    left_timers=(overdue.states.get(meta.name, nothing) - removed).entries,
                )
            )
    return change, rows, sum(tally.windows for tally in of_windows)


def _check_ttl(operator: OperatorInventory, name: str) -> None:
    _, meta = operator.keyed_states[name]
    shape = StateLayout(meta)
    if shape.framed_bytes or shape.packed is not None:
        raise UnsupportedError(
            f"values of type {meta.value.type_name} cannot be decoded",
            hint="pass the job's jar (--jar), or declare the class (--declare)",
        ).at(operator=operator.label, state=name)
    if not has_ttl(meta):
        raise OptionError(
            f"the values of state {name!r} have no time to live", hint="run: statetool states SRC, column ttl"
        ).at(operator=operator.label)
