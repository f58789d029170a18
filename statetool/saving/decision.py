"""What a change does with each part of an operator's state: it stays as it is stored, is filtered in place, or is written anew, in which form.

Databases of RocksDB and ForSt differ only in their timers. A job finds raw timers wherever it keeps its timers, so state that gets into
databases for the first time has raw timers: both backends restore it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from statetool.errors import UnsupportedError, warn
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import ByteStreamHandle, IncrementalHandle, KeyGroupsHandle
from statetool.formats.state_meta import KEY_VALUE_V2
from statetool.saving.composition import Composition, OperatorChange, StreamWriteTask
from statetool.saving.forms import BaseForms, KeyedForm, layout_of, layouts_of
from statetool.saving.operator_plan import ElementPlan, KeyedPlan, Layout
from statetool.saving.plan_checks import needs_move
from statetool.saving.streams.kept_tables import KeptDatabase
from statetool.saving.streams.native import DATABASE_TAG
from statetool.saving.versions import Target
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import describe_operators

#: First version of the metadata whose readers all have native savepoints.
_NATIVE_VERSION: Final = 4


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
        changes = bool(self.change.added) or self.change.keys is not None
        return leaves or rewrites or changes or _filters_raw(self.operator, self.change)

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

    @cached_property
    def kept(self) -> Mapping[int, KeptDatabase]:
        """The table files that are not written again, by subtask."""
        return self.keyed.kept(self.operator) if self.writes_keyed else {}

    @property
    def keyed_task(self) -> StreamWriteTask | None:
        """The task that writes keyed state anew, ``None`` if there is nothing to write."""
        return self.keyed.task(self.operator, moves=self.moves, kept=self.kept) if self.writes_keyed else None

    @property
    def writes_elements(self) -> bool:
        """Whether operator state is written anew."""
        return self._spreads or self.elements.touches(self.operator)

    @property
    def carried(self) -> OperatorState:
        """The part of the operator that is carried over."""
        drops_raw, in_place, coordinator = self.drops_raw, self.in_place, self.change.coordinator
        filtered = () if in_place is None else in_place.streams.subtasks
        keyed = {s.index: None if s.index in filtered else s.managed_keyed for s in self.old.subtasks}
        if self.writes_keyed:
            keyed = {index: database.handle for index, database in self.kept.items()}
        return replace(
            self.old,
            parallelism=self.layout.parallelism,
            max_parallelism=self.layout.max_parallelism,
            coordinator=self.old.coordinator if coordinator is None else _inline(self.old, coordinator),
            subtasks=tuple(
                replace(
                    s,
                    managed_keyed=keyed.get(s.index),
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


def in_same_form(
    change: OperatorChange,
    operator: OperatorInventory | None,
    composition: Composition,
    release: Target,
    label: str,
) -> OperatorChange:
    """Return the change of an operator with the form that it has in the base, if a release reads that form.

    Parameters
    ----------
    operator
        The operator, ``None`` if it is new.

    Warns
    -----
    UserWarning
        The form of the base is native, and the release may be one that has no native savepoints.
    """
    if composition.form != "same" or change.form is not None:
        return change
    form = _form(change, operator, composition)
    if form == "canonical":
        return change
    if not _reads_native(release, composition.base, operator):
        warn(
            f"{describe_operators([label])} becomes canonical: Flink before 1.15 has no native savepoints, and the form of the base is one of a backend."
            " Pass the release of the job (--flink, flink_version=) if it is a later one"
        )
        return change
    return replace(change, form=form, keeps_form=True)


def _form(change: OperatorChange, operator: OperatorInventory | None, composition: Composition) -> KeyedForm:
    """Return the form of the base for an operator: its own, unless it has none yet or comes from a snapshot in another form."""
    own = "canonical" if operator is None else _stored_form(operator, change)
    if operator is not None and change.graft is None and layouts_of(operator):
        return own
    own_layout = "canonical" if operator is None else layout_of(operator)
    others = composition.base_forms.layouts
    if others == {"database"}:
        return own if own_layout == "database" else "forst"
    return own if others <= {own_layout} else "canonical"


def warn_of_other_backend(operator: OperatorInventory, base: BaseForms, label: str) -> None:
    """Warn of an operator of another snapshot whose unchanged files no backend restores together with the keyed state of the base."""
    own = operator.keyed.managed
    if not own or base.base is None:
        return
    heap, databases, convert = "the heap backend", "RocksDB or ForSt", "statetool convert SRC DST"
    in_databases = all(stored.database for stored in own)
    is_on_heap = not any(stored.database or stored.canonical for stored in own)
    # Only the last condition of each reads files.
    if is_on_heap and base.are_databases and "heap" in layouts_of(operator):
        first, second = heap, databases
    elif in_databases and base.are_on_heap:
        first, second = databases, heap
    elif any(stored.canonical for stored in own) and base.are_of_forst and "canonical" in layouts_of(operator):
        first, second = "a canonical savepoint", "ForSt"
    else:
        return
    if base.are_of_forst:
        convert += " --format native --backend forst"
    warn(
        f"{describe_operators([label])} keeps its files of {first}, and the other keyed state is of {second}: no backend restores both."
        f" Convert the snapshot that it comes from first: {convert}"
    )


def _stored_form(operator: OperatorInventory, change: OperatorChange) -> KeyedForm:
    """Return the form in which state of an operator is written so that it keeps that of its base; canonical for forms that are not written.

    Only ForSt has asynchronous state, which the operator may also get by its change.
    """
    layout = layout_of(operator)
    if layout != "database":
        return "heap" if layout == "heap" else "canonical"
    metas = {name: meta for name, (_, meta) in operator.keyed_states.items()}
    metas |= {name: c.meta for name, c in change.conversions.items() if name in metas}
    added = [m for a in change.added for name, (_, m) in a.source.operator.keyed_states.items() if name in a.names]
    return "forst" if any(meta.backend_type == KEY_VALUE_V2 for meta in (*metas.values(), *added)) else "rocksdb"


def _reads_native(release: Target, base: Inventory | None, operator: OperatorInventory | None) -> bool:
    """Return True if a release reads native savepoints. If it is unknown, a base of a release that has them shows it."""
    if release.release is not None:
        return release.highest_tag >= DATABASE_TAG
    if release.metadata_version >= _NATIVE_VERSION:
        return True
    stored = [] if operator is None else list(operator.state.subtasks)
    stored += [] if base is None else [s for o in base.metadata.operators for s in o.subtasks]
    handles = (s.managed_keyed for s in stored)
    return any(isinstance(h, IncrementalHandle | KeyGroupsHandle) and h.tag >= DATABASE_TAG for h in handles)
