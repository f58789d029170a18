"""Plan to remove all state of some keys, or of all other keys, and prove that it is gone.

The entries that would be removed are counted before anything is written, key group by key group. Operators without such entries are not
changed at all. In the others, only the key groups with such entries are written again. Files of RocksDB and ForSt may have versions of keys
that the job has deleted or replaced. For a list of keys, these are removed from all files, even if no entry of the keys is left to count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from statetool.errors import EncodeError, FormatError, OptionError, StatetoolError, UnsupportedError, nearest, several
from statetool.io.threads import Map
from statetool.saving.composition import OperatorChange
from statetool.saving.forms import DEFAULT_FORMAT, SnapshotForm
from statetool.saving.streams.condition_rules import names_in
from statetool.saving.streams.databases import has_databases, streams_in_place
from statetool.saving.streams.filters import EntryFilter, KeyFilter
from statetool.saving.streams.predicates import PredicateFilter
from statetool.saving.streams.row_predicates import RowFilter
from statetool.saving.streams.windows import WindowFilter
from statetool.saving.verbs.key_choice import Allowed, KeyChoice, OperatorSearch, check_found
from statetool.saving.verbs.remaining_copies import RemainingCopy, remaining_copies
from statetool.saving.verbs.tally import Tally, tally
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.keys.parser import kind_of
from statetool.tables.keys.text import Key, show_key
from statetool.types.operators import OperatorRecord, display_name

Form = Literal["unchanged", "in place", "rewritten"]


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
class UnfitKeys:
    """The given keys that cannot be keys of an operator for one reason, by their numbers from 1."""

    reason: str
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenKey:
    """A given key, its number from 1 in the order of the list, and the names of the operators that have it."""

    number: int
    key: Key
    found_in: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedOperator(OperatorRecord):
    """One operator with keyed state.

    Attributes
    ----------
    keys
        Number of its keys that are removed.
    searched_keys, found_keys
        Numbers of the given keys that can be keys of the operator, and of those that are. ``None`` for a condition.
    unfit_keys, unfit
        Number of the given keys that cannot, and their numbers by reason.
    key_groups
        Number of key groups that change.
    form
        ``unchanged``: all bytes stay. ``in place``: key groups without removed entries keep their bytes, and so do blocks of table files of
        RocksDB and ForSt. ``rewritten``: all keyed state is written again in the format of the copy, because its form does not allow the
        removal of entries. Table files of RocksDB and ForSt without changed states and key groups are carried.
    skipped
        The reason why the keys cannot be keys of this operator, empty if they can.
    """

    operator_id: str
    key_type: str
    keys: int
    key_groups: int
    form: Form
    skipped: str = ""
    searched_keys: int | None = None
    found_keys: int | None = None
    unfit_keys: int | None = None
    unfit: tuple[UnfitKeys, ...] = ()


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
    keys
        The given keys, ``None`` for a condition.
    filters
        The filter of each operator that can have the keys, by operator id.
    """

    verb: Literal["erase", "keep"]
    where: str | None
    keys: tuple[GivenKey, ...] | None
    erased: tuple[ErasedRow, ...]
    operators: tuple[ErasedOperator, ...]
    copies: tuple[RemainingCopy, ...]
    filters: Mapping[str, EntryFilter]
    changes: Mapping[str, OperatorChange]

    @property
    def missing_keys(self) -> tuple[GivenKey, ...]:
        """The given keys that no operator has."""
        return tuple(key for key in self.keys or () if not key.found_in)

    @property
    def entries(self) -> int:
        """Number of removed entries."""
        return sum(r.entries for r in self.erased)

    @property
    def size_bytes(self) -> int:
        """Bytes of removed entries."""
        return sum(r.size_bytes for r in self.erased)


def plan_erase(
    inventory: Inventory,
    choice: KeyChoice,
    operators: Sequence[str],
    in_tasks: Map,
    *,
    root: str | None = None,
    allowed: Allowed,
    target: SnapshotForm = DEFAULT_FORMAT,
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
    allowed
        Findings that are not errors.
    target
        The form of the copy.

    Raises
    ------
    MissingKeyError
        As for :func:`statetool.saving.verbs.key_choice.check_found`.
    OptionError
        No operator can have one of the keys, or operators with keys of different types have it.
    EncodeError
        A given operator has keys of another type than all keys.
    UnsupportedError
        The keys of an operator, or raw keyed state, cannot be decoded.
    """
    chosen = [inventory.operator(name) for name in dict.fromkeys(operators)] or list(inventory.operators.values())
    searched: list[tuple[OperatorInventory, OperatorSearch | StatetoolError]] = []
    for operator in chosen:
        operator.check_listed("keyed")
        _refuse_own_raw(operator)
        if not operator.keyed_states:
            if operators:
                operator.keyed.needed_key()
            continue
        try:
            search = choice.search(operator, in_tasks)
            if search.is_skipped and operators and search.mismatch is not None:
                raise search.mismatch
            searched.append((operator, search))
        except (EncodeError, OptionError) as error:
            if operators:
                raise error.at(operator=operator.label) from error.__cause__
            searched.append((operator, error))
    found = [(o, search) for o, search in searched if isinstance(search, OperatorSearch) and not search.is_skipped]
    if not found:
        raise _nothing_searched(choice, searched)
    if not operators:
        _refuse_several_types(choice, found)
    check_found(choice, {operator.label: search for operator, search in found}, allowed)
    changes = {operator.state.operator_id: _change(operator, search, choice, target) for operator, search in found}
    filters = {operator.state.operator_id: search.filter for operator, search in found}
    return ErasePlan(
        verb="keep" if choice.keep else "erase",
        where=choice.where,
        keys=None if choice.keys is None else tuple(_given_keys(choice.keys, found)),
        erased=tuple(row for operator, search in found for row in _rows(operator, search.removed)),
        operators=tuple(
            _searched(
                operator,
                search,
                changes[operator.state.operator_id][0] if (operator, search) in found else _unchanged(target),
            )
            for operator, search in searched
        ),
        copies=tuple(remaining_copies(inventory, filters, root)),
        filters=filters,
        changes={operator_id: change for operator_id, (_, change) in changes.items() if change is not None},
    )


def _change(
    operator: OperatorInventory, search: OperatorSearch, choice: KeyChoice, target: SnapshotForm
) -> tuple[Form, OperatorChange | None]:
    """Return how an operator is written, and its change if it has one."""
    # Table files may have versions of the keys that the job has deleted or replaced.
    old_versions = isinstance(search.filter, KeyFilter) and has_databases(operator) and not choice.keep
    if not search.removed.entries and not old_versions:
        return _unchanged(target), None
    narrowed = search.filter if old_versions else _narrow(search.filter, search.removed)
    form = form_of(operator, narrowed, target)
    # Any state may have old versions of the keys, so it is not said which states the filter changes.
    return form, OperatorChange(filter=narrowed)


def _refuse_several_types(choice: KeyChoice, found: Sequence[tuple[OperatorInventory, OperatorSearch]]) -> None:
    """Refuse a key that several operators have as keys of different types, such as the text 456 as a number and as a string.

    Raises
    ------
    OptionError
        There is one.
    """
    kinds: dict[int, dict[str, str]] = {}
    for operator, search in found:
        serializer = operator.keyed.needed_key()
        name = f"{display_name(operator.label)} ({serializer.type_name})"
        for number in search.found:
            kinds.setdefault(number, {}).setdefault(kind_of(serializer), name)
    several_types = {number: names for number, names in kinds.items() if len(names) > 1}
    if several_types and choice.keys is not None:
        number, names = next(iter(several_types.items()))
        raise OptionError(
            f"the key {show_key(choice.keys[number])} is a key of different types: {', '.join(names.values())}",
            hint="name the operators with --uid, or give the key as JSON: '[456]' is a number, '[\"456\"]' a string",
        )


def _given_keys(keys: Sequence[Key], found: Sequence[tuple[OperatorInventory, OperatorSearch]]) -> Iterator[GivenKey]:
    names: dict[int, list[str]] = {}
    for operator, search in found:
        for number in search.found:
            names.setdefault(number, []).append(display_name(operator.label))
    for number, key in enumerate(keys):
        yield GivenKey(number=number + 1, key=key, found_in=tuple(names.get(number, ())))


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


def _unchanged(target: SnapshotForm) -> Form:
    """Return how keyed state without changes is written: a native form is that of all operators."""
    return "unchanged" if target in ("same", "canonical") else "rewritten"


def form_of(operator: OperatorInventory, entry_filter: EntryFilter, target: SnapshotForm) -> Form:
    """Return how the changed keyed state of an operator is written into a copy in a form."""
    if target not in ("same", "canonical") or operator.keyed.raw_timer_states:
        return "rewritten"
    if target == "canonical" and has_databases(operator):
        return "rewritten"
    return "rewritten" if streams_in_place(operator, entry_filter, 0) is None else "in place"


def _narrow(entry_filter: EntryFilter, removed: Tally) -> EntryFilter:
    """Return the filter for the key groups that have entries to remove."""
    if isinstance(entry_filter, KeyFilter) and not entry_filter.keep:
        return replace(entry_filter, groups=entry_filter.groups & removed.groups)
    if isinstance(entry_filter, PredicateFilter | RowFilter | WindowFilter):
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


def _nothing_searched(
    choice: KeyChoice, searched: Sequence[tuple[OperatorInventory, OperatorSearch | StatetoolError]]
) -> OptionError:
    """Return the error for keys or a condition that fit no operator: each reason once, with its operators."""
    by_reason: dict[str, list[str]] = {}
    for operator, search in searched:
        by_reason.setdefault(_why_skipped(search), []).append(display_name(operator.label))
    hint = "run: statetool states SRC"
    if choice.where is not None and by_reason:
        known = {"key", *(name for operator, _ in searched for name in operator.keyed_states)}
        lower = {name.lower() for name in known}
        unknown = sorted(name for name in names_in(choice.where) if name.lower() not in lower)
        if unknown and (near := nearest(unknown[0], known)):
            hint = f"did you mean {' or '.join(near)}? {hint}"
        if len(by_reason) == 1:
            return OptionError(next(iter(by_reason)), hint=hint)
    reasons = "; ".join(f"{reason} ({', '.join(names)})" for reason, names in by_reason.items())
    what = "no operator can have these keys" if choice.where is None else "the condition fits no operator"
    return OptionError(f"{what}{': ' if reasons else ''}{reasons}", hint=hint)


def _why_skipped(search: OperatorSearch | StatetoolError) -> str:
    """Return why an operator was not searched, without the key; empty if it was."""
    if isinstance(search, StatetoolError):
        return search.message
    return ", ".join(search.unfit) if search.is_skipped else ""


def _searched(operator: OperatorInventory, search: OperatorSearch | StatetoolError, form: Form) -> ErasedOperator:
    counts: dict[str, Any] = {}
    removed = search.removed if isinstance(search, OperatorSearch) else Tally()
    if isinstance(search, OperatorSearch) and isinstance(search.filter, KeyFilter):
        counts = {
            "searched_keys": len(search.searched),
            "found_keys": len(search.found),
            "unfit_keys": sum(map(len, search.unfit.values())),
            "unfit": tuple(
                UnfitKeys(reason=r, keys=tuple(n + 1 for n in numbers)) for r, numbers in search.unfit.items()
            ),
        }
    return ErasedOperator(
        operator=operator.label,
        operator_id=operator.state.operator_id,
        key_type=operator.keyed.needed_key().type_name,
        keys=removed.keys,
        key_groups=len(removed.groups),
        form=form,
        skipped=_why_skipped(search),
        **counts,
    )
