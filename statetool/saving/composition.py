"""Description of a new snapshot, and the protocol of runners that write its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from statetool.saving.forms import DEFAULT_FORMAT, BaseForms, KeyedForm, SnapshotForm
from statetool.saving.publish import INLINE_BYTES, StagedFile, Staging
from statetool.types.options import whole_number

if TYPE_CHECKING:
    from statetool.formats.stream import Stream
    from statetool.java.hashing.formulas import HashFormula
    from statetool.saving.bootstrap import ElementBootstrap, ElementEncoder, KeyedBootstrap, RowEncoder, TableSchema
    from statetool.saving.recomputing.entries import ComputedEntries, Recomputation
    from statetool.saving.streams.conversion import KeyConversion, StateConversion
    from statetool.saving.streams.elements import ElementStreams
    from statetool.saving.streams.filters import EntryFilter
    from statetool.saving.streams.keyed import AddedEntries, CarriedEntries, KeyedStreams
    from statetool.saving.streams.output import NewStream, UnshuffledStreams
    from statetool.snapshot.inventory import Inventory
    from statetool.snapshot.operator import OperatorInventory

    Streams: TypeAlias = KeyedStreams | ElementStreams


@dataclass(frozen=True, slots=True)
class SourceOperator:
    """An operator whose bytes are taken, with its snapshot."""

    inventory: Inventory
    operator: OperatorInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedState:
    """Keyed state of another operator that is added to an operator.

    Attributes
    ----------
    names
        New state names (of timers too) by old names. Other states are left out.
    declared
        Hash functions of keys that the user declares, in case keys move to other key groups.
    """

    source: SourceOperator
    names: Mapping[str, str]
    declared: HashFormula | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierMigration:
    """An earlier snapshot of an operator, and the result of the same conversions of it, whose converted entries are reused.

    Attributes
    ----------
    before, migrated
        The operator in the earlier snapshot and in the result.
    """

    before: SourceOperator
    migrated: SourceOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """The change of one operator, or the description of a new one.

    Attributes
    ----------
    bootstraps
        New state (:mod:`statetool.saving.bootstrap`); states of an operator of the base that have the same names are replaced.
    max_parallelism, parallelism
        ``None`` keeps the value of the base. If they differ, keys move to other key groups, and key groups to other subtasks.
    new
        ``True`` if the base does not have the operator, ``False`` if it does. ``None`` accepts both, but refuses to add an operator whose
        name resembles one of the base.
    formula
        Hash function of moving keys whose serializer does not provide it.
    dropped_states, renames
        States of the base to leave out, and new state names by old names.
    form
        Form in which keyed state is written even if nothing in it changes: ``canonical``, or the native one of a backend. By default, state
        that changes is written in the form of the composition, and other state stays as it is.
    keeps_form
        ``form`` is that of the base, and only for state that changes.
    elements
        New elements (as bytes) of list and union states of the base, by state and subtask.
    moved_elements
        As ``elements``, with the same values, and other paths of files that only they name.
    coordinator
        New coordinator state, empty to remove it; ``None`` keeps that of the base.
    conversions
        Type conversions of states of the base, by old state name.
    graft
        The operator of another snapshot that is added with its bytes. All other changes apply to it as to an operator of the base.
    added
        Keyed state of other operators that is added. Keys move to the key groups of this operator.
    elements_from
        Operator whose operator state replaces that of the base.
    filter
        Chooses the entries of keyed state that stay.
    filtered_states
        The states of which the filter removes or changes entries, ``None`` if that can be any.
    earlier
        Conversions of an earlier snapshot; only entries that changed since then are converted.
    keys
        Change of the keys of all keyed state, timers included.
    recomputed
        Computation of all keyed state from that of the base.
    """

    bootstraps: tuple[Any, ...] = ()
    max_parallelism: int | None = None
    parallelism: int | None = None
    new: bool | None = None
    formula: HashFormula | None = None
    dropped_states: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    form: KeyedForm | None = None
    keeps_form: bool = False
    elements: Mapping[str, Mapping[int, tuple[bytes, ...]]] = field(default_factory=dict)
    moved_elements: Mapping[str, Mapping[int, tuple[bytes, ...]]] = field(default_factory=dict)
    coordinator: bytes | None = None
    conversions: Mapping[str, StateConversion] = field(default_factory=dict)
    graft: SourceOperator | None = None
    added: tuple[AddedState, ...] = ()
    elements_from: OperatorInventory | None = None
    filter: EntryFilter | None = None
    filtered_states: frozenset[str] | None = None
    earlier: EarlierMigration | None = None
    keys: KeyConversion | None = None
    recomputed: Recomputation | None = None

    @property
    def is_native(self) -> bool:
        """Whether keyed state is written in the native form of a backend."""
        return self.form not in (None, "canonical")


@dataclass(frozen=True, kw_only=True)
class Composition:
    """A new snapshot.

    Attributes
    ----------
    base
        The snapshot it is made from, if any. Everything not named below is carried over byte for byte.
    changes
        By uid (or operator id) in the base; unknown names add new operators.
    removed
        Operators of the base to leave out.
    uids
        New uids of the other operators of the base, by old uid.
    checkpoint_id
        ``None`` uses the highest one of all snapshots, or 0 without any.
    max_parallelism
        Default for new operators.
    reference
        Whether to reference files of the base in place instead of copying them.
    inline_bytes
        Streams with fewer bytes are stored in the metadata.
    form
        A native form is that of all keyed state. In the canonical form, only changed state is written, and other state keeps its own form. In
        the same form, changed state keeps the form of its operator too.
    """

    base: Inventory | None = None
    changes: Mapping[str, OperatorChange] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    uids: Mapping[str, str] = field(default_factory=dict)
    checkpoint_id: int | None = None
    max_parallelism: int = 128
    reference: bool = False
    inline_bytes: int = INLINE_BYTES
    form: SnapshotForm = DEFAULT_FORMAT

    def __post_init__(self) -> None:
        if self.checkpoint_id is not None:
            whole_number("checkpoint_id", self.checkpoint_id, least=0)

    @property
    def native(self) -> KeyedForm | None:
        """The native form of all keyed state, if there is one."""
        return None if self.form == "canonical" or self.form == "same" else self.form

    @cached_property
    def base_forms(self) -> BaseForms:
        """How the keyed state of the base is stored."""
        return BaseForms(self.base)

    @property
    def grafts(self) -> tuple[SourceOperator, ...]:
        """The grafted operators."""
        return tuple(change.graft for change in self.changes.values() if change.graft is not None)

    @property
    def snapshots(self) -> tuple[Inventory, ...]:
        """All snapshots whose bytes become part of the new one."""
        base = () if self.base is None else (self.base,)
        added = (a.source.inventory for change in self.changes.values() for a in change.added)
        return tuple(dict.fromkeys((*base, *(g.inventory for g in self.grafts), *added)))

    @property
    def new_checkpoint_id(self) -> int:
        """The checkpoint id of the new snapshot."""
        if self.checkpoint_id is not None:
            return self.checkpoint_id
        return max((snapshot.metadata.checkpoint_id for snapshot in self.snapshots), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWriteTask:
    """Keyed state or operator state of one operator: its new streams, and the entries to shuffle to them.

    Attributes
    ----------
    tables
        The user's tables, each with the recipe that turns its rows into entries.
    kept
        Entries of the base, and single entries that are added to them.
    """

    streams: Streams | UnshuffledStreams
    tables: tuple[tuple[Any, RowEncoder | ElementEncoder], ...] = ()
    kept: tuple[CarriedEntries | AddedEntries | ComputedEntries, ...] = ()


class Runner(Protocol):
    """Writer of streams, in this process or on Spark."""

    @property
    def parallelism(self) -> int:
        """Return the default parallelism of new operators."""
        ...

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> TableSchema:
        """Return the schemas of a bootstrap's tables and its timer services."""
        ...

    def run(self, tasks: Sequence[StreamWriteTask], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of each task."""
        ...

    def copy_all(self, streams: Sequence[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        ...
