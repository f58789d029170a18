"""What a change does with each part of an operator's state: it stays as it is stored, is filtered in place, or is written anew."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

from statetool.errors import UnsupportedError
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import ByteStreamHandle
from statetool.saving.composition import OperatorChange, StreamWriteTask
from statetool.saving.operator_plan import ElementPlan, KeyedPlan, Layout
from statetool.saving.plan_checks import needs_move
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True)
class Decision:
    """The decision about one operator of the base, or of another snapshot.

    Attributes
    ----------
    old
        The operator under its new name.
    """

    operator: OperatorInventory
    old: OperatorState
    change: OperatorChange
    layout: Layout
    keyed: KeyedPlan
    elements: ElementPlan

    @cached_property
    def moves(self) -> bool:
        """Whether timers in raw keyed state become entries like managed ones, with which they move to other key groups and subtasks.

        Raw keyed state contains nothing else (``check_moves``, ``check_added``).
        """
        leaves = needs_move(self.old, self.layout.max_parallelism, self.layout.parallelism)
        raw = self.operator.keyed.raw_timer_states
        # The form of the base is kept beside its raw timers, unless others would be written over them.
        rewrites = self.change.is_native and bool(raw) and (not self.change.keeps_form or self._has_other_timers(raw))
        return leaves or rewrites or bool(self.change.added) or _filters_raw(self.operator, self.change)

    def _has_other_timers(self, raw: Collection[str]) -> bool:
        """Return True if the operator has, or gets, timers that are not in raw keyed state."""
        stored = any(m.kind == "timers" and name not in raw for name, (_, m) in self.operator.keyed_states.items())
        return stored or any(getattr(b, "timers", None) is not None for b in self.change.bootstraps)

    @cached_property
    def drops_raw(self) -> bool:
        """Whether raw keyed state is not carried over."""
        return self.moves or _drops_raw_timers(self.operator, self.keyed.gone | self.change.renames.keys())

    @cached_property
    def in_place(self) -> StreamWriteTask | None:
        """The task that filters keyed state in place, ``None`` if it is written anew or stays as it is."""
        return None if self._needs_new_keyed else self.keyed.in_place(self.operator)

    @property
    def writes_keyed(self) -> bool:
        """Whether keyed state is written anew."""
        return self._needs_new_keyed or (self.change.filter is not None and self.in_place is None)

    @property
    def writes_elements(self) -> bool:
        """Whether operator state is written anew."""
        return self._spreads or self.elements.touches(self.operator)

    @property
    def carried(self) -> OperatorState:
        """The part of the operator that is carried over."""
        drops_raw, in_place, coordinator = self.drops_raw, self.in_place, self.change.coordinator
        filtered = () if in_place is None else in_place.streams.subtasks
        return replace(
            self.old,
            parallelism=self.layout.parallelism,
            max_parallelism=self.layout.max_parallelism,
            coordinator=self.old.coordinator if coordinator is None else _inline(self.old, coordinator),
            subtasks=tuple(
                replace(
                    s,
                    managed_keyed=None if self.writes_keyed or s.index in filtered else s.managed_keyed,
                    managed_operator=None if self.writes_elements else s.managed_operator,
                    raw_keyed=None if drops_raw else s.raw_keyed,
                )
                for s in self.old.subtasks
                if s.index < self.layout.parallelism
            ),
        )

    @cached_property
    def _needs_new_keyed(self) -> bool:
        forms_anew = self.change.form is not None and not self.change.keeps_form
        return self.moves or forms_anew or self.keyed.touches(self.operator)

    @cached_property
    def _spreads(self) -> bool:
        """Whether subtasks with operator state go, or new ones need broadcast state."""
        operator, parallelism = self.operator, self.layout.parallelism
        return any(p.subtask >= parallelism for p in operator.elements.streams) or (
            parallelism > self.old.parallelism and any(m.kind == "broadcast" for m in operator.operator_states.values())
        )


def _inline(old: OperatorState, coordinator: bytes) -> ByteStreamHandle | None:
    """Return the handle of coordinator state, which is always stored inline in the metadata."""
    if not coordinator:
        return None
    name = old.coordinator.name if isinstance(old.coordinator, ByteStreamHandle) else f"coordinator-{old.operator_id}"
    return ByteStreamHandle(name=name, data=coordinator)


def _drops_raw_timers(operator: OperatorInventory, gone: Collection[str]) -> bool:
    """Return True if all timers in raw keyed state (RocksDB with timers on heap) are replaced or removed.

    Raises
    ------
    UnsupportedError
        Only some of them are.
    """
    raw = operator.keyed.raw_timer_states
    if not raw & set(gone):
        return False
    if raw - set(gone):
        raise UnsupportedError(
            f"only some of the timers in raw keyed state change: {', '.join(sorted(raw & set(gone)))}",
            hint="replace all timers of the operator, or none",
        )
    return True


def _filters_raw(operator: OperatorInventory, change: OperatorChange) -> bool:
    """Return True if entries are filtered, and some of them are timers in raw keyed state.

    Raises
    ------
    UnsupportedError
        Raw keyed state of user code.
    """
    if change.filter is None:
        return False
    if operator.keyed.own_raw_subtasks:
        raise UnsupportedError(
            f"raw keyed state of subtask {operator.keyed.own_raw_subtasks[0]} without timers: only the operator that wrote it knows its keys",
            hint=f"choose other operators with --uid, or run: statetool drop SRC DST --uid {operator.label}",
        ).at(operator=operator.label)
    return bool(operator.keyed.raw_timer_states)
