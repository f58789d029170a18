"""Plan to remove all state of some keys, or of all other keys, and prove that it is gone.

The entries that would be removed are counted before anything is written, key group by key group. Operators without such entries are not
changed at all. In the others, only the key groups with such entries are written again. Files of RocksDB and ForSt may have versions of keys
that the job has deleted or replaced. For a list of keys, these are removed from all files, even if no entry of the keys is left to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from statetool.errors import (
    EncodeError,
    FormatError,
    OptionError,
    UnsupportedError,
    several,
)
from statetool.saving.composition import OperatorChange
from statetool.saving.remaining_copies import RemainingCopy, remaining_copies
from statetool.saving.streams.condition_rules import check_condition
from statetool.saving.streams.databases import has_databases
from statetool.saving.streams.filters import EntryFilter, KeyFilter
from statetool.saving.streams.in_place import streams_in_place
from statetool.saving.streams.predicates import PredicateFilter, is_key_predicate
from statetool.saving.streams.row_predicates import RowFilter, row_filter
from statetool.saving.tally import Map, Tally, tally
from statetool.serializers.opaque import OpaqueSerializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.option_text import Key
from statetool.tables.scan import key_forms, place_keys
from statetool.types.operators import OperatorRecord

Form = Literal["unchanged", "in place", "canonical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRow(OperatorRecord):
    """The removed entries of one state or timer queue.

    ``size_bytes`` counts the bytes of keys, namespaces and values.
    """

    operator_id: str
    state: str
    kind: str
    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedOperator(OperatorRecord):
    """One operator with keyed state.

    Attributes
    ----------
    keys
        Number of its keys that are removed.
    key_groups
        Number of key groups that change.
    form
        ``unchanged``: all bytes stay. ``in place``: key groups without removed entries keep their bytes, and so do blocks of table files of
        RocksDB and ForSt. ``canonical``: the keyed state is written as canonical savepoint, because its form does not allow the removal of
        entries.
    skipped
        The reason why the keys cannot be keys of this operator, empty if they can.
    """

    operator_id: str
    key_type: str
    keys: int
    key_groups: int
    form: Form
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of reading the new snapshot again before it is published.

    ``entries`` were read where the keys would be, and ``entries_of_keys`` of them belong to a removed key: always 0.
    """

    operators: int
    entries: int
    entries_of_keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan:
    """The entries to remove.

    Attributes
    ----------
    erased
        Removed entries by operator and state.
    operators
        All operators that were searched or skipped.
    copies
        Other places that may contain the removed data.
    requested_keys
        Number of the given keys, ``None`` for a condition.
    filters
        The filter of each operator that can have the keys, by operator id.
    """

    verb: Literal["erase", "keep"]
    where: str | None
    requested_keys: int | None
    erased: tuple[ErasedRow, ...]
    operators: tuple[ErasedOperator, ...]
    copies: tuple[RemainingCopy, ...]
    filters: Mapping[str, EntryFilter]
    changes: Mapping[str, OperatorChange]

    @property
    def entries(self) -> int:
        """Number of removed entries."""
        return sum(r.entries for r in self.erased)

    @property
    def size_bytes(self) -> int:
        """Bytes of removed entries."""
        return sum(r.size_bytes for r in self.erased)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChoice:
    """The keys to erase or to keep: either a list of plain values, or a SQL condition on the key and the states."""

    keys: tuple[Key, ...] | None
    where: str | None
    keep: bool

    @classmethod
    def of(cls, keys: Iterable[Key] | None, where: str | None, *, keep: bool) -> KeyChoice:
        """Check that either keys or a condition were given.

        Raises
        ------
        OptionError
            Neither or both were given, the list of keys is empty, or the condition is not an expression of one key with a lasting result.
        """
        if isinstance(keys, str | bytes):
            raise OptionError(f"keys= takes a list of keys, not one: keys=[{keys!r}]")
        listed = None if keys is None else tuple(keys)
        if (listed is None) == (where is None):
            raise OptionError("pass either keys or a condition", hint="pass --keys, --keys-from or --where")
        if listed is not None and not listed:
            raise OptionError("the list of keys is empty", hint="pass at least one key")
        if where is not None:
            check_condition(where)
        return cls(keys=listed, where=where, keep=keep)

    def filter(self, operator: OperatorInventory) -> EntryFilter:
        """Return the filter of the entries of an operator that the user named.

        Raises
        ------
        EncodeError
            A key does not have the type of the operator's keys.
        OptionError
            The condition does not fit the columns of ``keyed_state``.
        UnsupportedError
            The keys of the operator cannot be decoded.
        """
        serializer = operator.keyed.needed_key()
        if isinstance(serializer, OpaqueSerializer) or serializer.needs_frame:
            raise UnsupportedError(
                f"keys of type {serializer.type_name} cannot be decoded, so it is unknown which entries belong to the keys",
                hint="declare the class with --declare or --jar, or choose other operators with --uid",
            ).at(operator=operator.label)
        if self.where is not None:
            if is_key_predicate(self.where, serializer):
                return PredicateFilter(where=self.where, keep=self.keep)
            return row_filter(operator, self.where, keep=self.keep)
        assert self.keys is not None
        for key in self.keys:
            if not _fits(operator, key):
                raise EncodeError(f"keys are of type {serializer.type_name}, and {key!r} is not")
        return KeyFilter.of(place_keys(operator, serializer, self.keys), operator.state.max_parallelism, keep=self.keep)

    def fitting(self, operator: OperatorInventory) -> KeyChoice:
        """Return the choice without the keys that no operator of this key type can have, and the same choice if none is left."""
        if self.keys is None:
            return self
        serializer = operator.keyed.needed_key()
        if isinstance(serializer, OpaqueSerializer) or serializer.needs_frame:
            return self
        return replace(self, keys=tuple(key for key in self.keys if _fits(operator, key)) or self.keys)


def _fits(operator: OperatorInventory, key: Key) -> bool:
    """Return True if a plain value can be a key of an operator."""
    try:
        key_forms(operator, operator.keyed.needed_key(), key)
    except EncodeError:
        return False
    return True


def plan_erase(
    inventory: Inventory, choice: KeyChoice, operators: Sequence[str], in_tasks: Map, *, root: str | None = None
) -> ErasePlan:
    """Plan which entries to remove. Reads the key groups that can hold the keys, or all for a condition.

    Parameters
    ----------
    operators
        Uids or operator ids. By default all operators with keyed state whose key type fits.
    in_tasks
        Calls a function for each item of a list, in threads or tasks.
    root
        Directory in which to look for other snapshots.

    Raises
    ------
    OptionError
        No operator can have one of the keys.
    EncodeError
        A given operator has keys of another type than one of the keys.
    UnsupportedError
        The keys of an operator, or raw keyed state, cannot be decoded.
    """
    chosen = [inventory.operator(name) for name in dict.fromkeys(operators)] or list(inventory.operators.values())
    rows: list[ErasedRow] = []
    searched: list[ErasedOperator] = []
    filters: dict[str, EntryFilter] = {}
    changes: dict[str, OperatorChange] = {}
    used: set[int] = set()
    for operator in chosen:
        operator.check_listed("keyed")
        _refuse_own_raw(operator)
        if not operator.keyed_states:
            if operators:
                operator.keyed.needed_key()
            continue
        try:
            fitting = choice if operators else choice.fitting(operator)
            entry_filter = fitting.filter(operator)
            used |= {id(key) for key in fitting.keys or ()}
        except (EncodeError, OptionError) as error:
            if operators:
                raise error.at(operator=operator.label) from error.__cause__
            searched.append(_searched(operator, None, "unchanged", skipped=error.message))
            continue
        operator_id = operator.state.operator_id
        filters[operator_id] = entry_filter
        removed = tally(operator, entry_filter, in_tasks)
        form: Form = "unchanged"
        # Table files may have versions of the keys that the job has deleted or replaced.
        old_versions = isinstance(entry_filter, KeyFilter) and has_databases(operator) and not choice.keep
        if removed.entries or old_versions:
            narrowed = entry_filter if old_versions else _narrow(entry_filter, removed)
            form = form_of(operator, narrowed)
            if removed.entries or form == "in place":
                changes[operator_id] = OperatorChange(filter=narrowed)
            else:
                form = "unchanged"
        rows += _rows(operator, removed)
        searched.append(_searched(operator, removed, form))
    if not filters:
        reasons = "; ".join(f"{o.operator_name or o.operator}: {o.skipped}" for o in searched)
        raise OptionError(
            f"no operator can have these keys{': ' if reasons else ''}{reasons}", hint="run: statetool states SRC"
        )
    if unused := [key for key in choice.keys or () if id(key) not in used]:
        raise OptionError(
            f"no operator has keys of the type of {unused[0]!r}", hint="leave it out, or name the operators with --uid"
        )
    return ErasePlan(
        verb="keep" if choice.keep else "erase",
        where=choice.where,
        requested_keys=None if choice.keys is None else len(choice.keys),
        erased=tuple(rows),
        operators=tuple(searched),
        copies=tuple(remaining_copies(inventory, filters, root)),
        filters=filters,
        changes=changes,
    )


def prove(inventory: Inventory, plan: ErasePlan, in_tasks: Map) -> Proof:
    """Read a new snapshot again and check that it has no entry of the removed keys.

    Raises
    ------
    FormatError
        It has.
    """
    entries = 0
    by_id = {o.state.operator_id: o for o in inventory.operators.values()}
    for operator_id, entry_filter in plan.filters.items():
        found = tally(by_id[operator_id], entry_filter, in_tasks)
        if found.entries:
            raise FormatError(
                f"the new snapshot would still have {several(found.entries, 'entry', 'entries')} of the removed keys",
                hint="nothing was published; report this as a bug",
            ).at(operator=by_id[operator_id].label, file=inventory.metadata_file)
        entries += found.entries_read
    return Proof(operators=len(plan.filters), entries=entries, entries_of_keys=0)


def form_of(operator: OperatorInventory, entry_filter: EntryFilter) -> Form:
    """Return how the keyed state of an operator is written."""
    if operator.keyed.raw_timer_states:
        return "canonical"
    return "canonical" if streams_in_place(operator, entry_filter, 0) is None else "in place"


def _narrow(entry_filter: EntryFilter, removed: Tally) -> EntryFilter:
    """Return the filter for the key groups that have entries to remove."""
    if isinstance(entry_filter, KeyFilter) and not entry_filter.keep:
        return replace(entry_filter, groups=entry_filter.groups & removed.groups)
    if isinstance(entry_filter, PredicateFilter | RowFilter):
        return entry_filter.within(frozenset(removed.groups))
    return entry_filter


def _refuse_own_raw(operator: OperatorInventory) -> None:
    if operator.keyed.own_raw_subtasks:
        raise UnsupportedError(
            "raw keyed state that is not timers: only the operator that wrote it knows its keys",
            hint="choose other operators with --uid",
        ).at(operator=operator.label)


def _rows(operator: OperatorInventory, removed: Tally) -> list[ErasedRow]:
    kinds = {name: meta.kind for name, (_, meta) in operator.keyed_states.items()}
    return [
        ErasedRow(
            operator=operator.label,
            operator_id=operator.state.operator_id,
            state=name,
            kind=kinds[name],
            entries=count.entries,
            size_bytes=count.size_bytes,
        )
        for name, count in removed.states.items()
    ]


def _searched(operator: OperatorInventory, removed: Tally | None, form: Form, skipped: str = "") -> ErasedOperator:
    return ErasedOperator(
        operator=operator.label,
        operator_id=operator.state.operator_id,
        key_type=operator.keyed.needed_key().type_name,
        keys=0 if removed is None else removed.keys,
        key_groups=0 if removed is None else len(removed.groups),
        form=form,
        skipped=skipped,
    )
