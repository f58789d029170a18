"""Plan to remove expired values, overdue timers and empty lists. Flink itself removes expired values only when it reads or compacts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from statetool.columns.values import StateLayout
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, suggest
from statetool.io.threads import Map
from statetool.saving.composition import OperatorChange
from statetool.saving.forms import DEFAULT_FORMAT, SnapshotForm
from statetool.saving.streams.expired import ExpiredFilter
from statetool.saving.verbs.erase import Form, form_of
from statetool.saving.verbs.tally import Count, tally_each
from statetool.saving.verbs.transform import has_ttl
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRequest:
    """The entries to remove; see :class:`statetool.saving.streams.expired.ExpiredFilter`."""

    ttl_ms: Mapping[str, int]
    now_ms: int
    timers_before_ms: Mapping[str, int]
    empty: bool

    def __post_init__(self) -> None:
        if not self.ttl_ms and not self.timers_before_ms and not self.empty:
            raise OptionError(
                "nothing to purge",
                hint="pass --ttl STATE=7d, --event-timers-before, --processing-timers-before or --empty",
            )

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
class PurgePlan:
    """The states to purge."""

    states: tuple[PurgedRow, ...]
    changes: Mapping[str, OperatorChange]

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
    changes: dict[str, OperatorChange] = {}
    for operator in chosen:
        changed, purged = _plan_operator(operator, request, in_tasks, target)
        changes |= changed
        rows += purged
    return PurgePlan(states=tuple(rows), changes=changes)


def _plan_operator(
    operator: OperatorInventory, request: PurgeRequest, in_tasks: Map, target: SnapshotForm
) -> tuple[dict[str, OperatorChange], list[PurgedRow]]:
    entry_filter, windows = request.filter, replace(request.filter, of_windows=True)
    metas = [meta for _, meta in operator.listed_keyed.values()]
    concerned = [meta for meta in metas if entry_filter.concerns(meta)]
    of_windows = [meta for meta in metas if windows.concerns(meta)]
    if not concerned and not of_windows:
        return {}, []
    operator.check_listed("keyed")
    for meta in concerned:
        if meta.name in request.ttl_ms:
            _check_ttl(operator, meta.name)
    total, left = tally_each(operator, (entry_filter, windows), in_tasks)
    form: Form = "unchanged"
    changes = {}
    if total.groups:
        narrowed = entry_filter.within(total.groups)
        changes[operator.state.operator_id] = OperatorChange(filter=narrowed)
        form = form_of(operator, narrowed, target)
    rows = []
    nothing = Count(0, 0)
    for meta in (*concerned, *of_windows):
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
                    left_timers=left.states.get(meta.name, nothing).entries,
                )
            )
    return changes, rows


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
