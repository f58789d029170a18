"""The keys to erase or to keep: given keys, parsed by the type of each operator's keys, or a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from statetool.errors import EncodeError, MissingKeyError, OptionError, UnsupportedError, several
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.threads import Map
from statetool.saving.streams.condition_rules import check_condition, names_in
from statetool.saving.streams.filters import EntryFilter, KeyFilter, hashes_of_keys
from statetool.saving.streams.predicates import PredicateFilter, check_columns, is_key_predicate
from statetool.saving.streams.row_predicates import row_filter
from statetool.saving.streams.windows import WindowCondition, WindowFilter, condition_columns
from statetool.saving.verbs.tally import Tally, tally
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.keys.equal_keys import KeyPlace
from statetool.tables.keys.parser import KeyTypeError
from statetool.tables.keys.text import Key, show_key
from statetool.tables.kinds.window_layout import window_layout
from statetool.tables.kinds.windows import WINDOW_COLUMNS
from statetool.tables.scan import key_forms, place_keys
from statetool.types.operators import display_name

#: Keys that a message lists.
_LISTED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChoice:
    """The keys to erase or to keep: either a list of keys, or a SQL condition on the key and the states."""

    keys: tuple[Key, ...] | None
    where: str | None
    keep: bool

    @classmethod
    def of(cls, keys: Iterable[Key] | None, where: str | None, *, keep: bool) -> KeyChoice:
        """Check that either keys or a condition were given.

        Raises
        ------
        OptionError
            Neither or both were given, the list of keys is empty, or the result of the condition changes with each evaluation.
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

    def search(self, operator: OperatorInventory, in_tasks: Map) -> OperatorSearch:
        """Look for the keys in an operator.

        Raises
        ------
        OptionError
            The condition does not fit the columns of ``keyed_state``.
        UnsupportedError
            The keys of the operator cannot be decoded.
        """
        serializer = operator.keyed.needed_key()
        if isinstance(serializer, OpaqueSerializer) or serializer.needs_frame:
            raise UnsupportedError(
                f"keys of type {serializer.type_name} cannot be decoded, so it is unknown which entries belong to the keys",
                hint="pass the job's jar (--jar), declare the class (--declare), or choose other operators with --uid",
            ).at(operator=operator.label)
        if self.keys is None:
            entry_filter = self._condition(operator, serializer)
            return OperatorSearch(filter=entry_filter, removed=tally(operator, entry_filter, in_tasks))
        fitting, unfit, mismatch = _fit(operator, serializer, self.keys)
        own_keys = [self.keys[n] for n in fitting]
        placed = place_keys(operator, serializer, own_keys, exact=True, in_tasks=in_tasks)
        places = dict(zip(fitting, placed, strict=True))
        every_place = [place for forms in places.values() for place in forms]
        key_filter = KeyFilter.of(every_place, operator.state.max_parallelism, keep=self.keep)
        removed = tally(operator, key_filter, in_tasks) if fitting else Tally()
        return OperatorSearch(
            filter=key_filter,
            removed=removed,
            searched=tuple(fitting),
            found=_found(places, removed.named),
            unfit=unfit,
            mismatch=mismatch,
        )

    def _condition(self, operator: OperatorInventory, serializer: Serializer) -> EntryFilter:
        assert self.where is not None
        metas = {name: meta for name, (_, meta) in operator.keyed_states.items()}
        if names_windows(self.where) and not names_windows(metas):
            return _window_filter(operator, metas, WindowCondition(where=self.where, keep=self.keep), serializer)
        if is_key_predicate(self.where, serializer):
            return PredicateFilter(where=self.where, keep=self.keep)
        return row_filter(operator, self.where, keep=self.keep)


def names_windows(names: str | Iterable[str]) -> bool:
    """Return True if a condition, or one of some names, names the window of a state."""
    return any(name.lower() in WINDOW_COLUMNS for name in (names_in(names) if isinstance(names, str) else names))


def _window_filter(
    operator: OperatorInventory, metas: Mapping[str, StateMetaInfo], rule: WindowCondition, key: Serializer
) -> WindowFilter:
    """Return the filter of windows that a condition chooses.

    Raises
    ------
    OptionError
        The operator has no windows with an end, or the condition names other columns.
    """
    layout = window_layout(metas)
    if layout is None or isinstance(layout, str):
        raise OptionError(f"the condition names a window: {layout or 'the operator has no windows'}")
    if layout.shares_contents:
        raise OptionError(
            "the condition names a window: window aggregates of SQL store parts of several windows at once"
        )
    check_columns(condition_columns(key, layout), rule.where)
    return WindowFilter(layout=layout, rule=rule, sources=tuple(operator.keyed.sources(raw=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSearch:
    """The keys that were found in an operator. Keys are numbered from 0 in the order in which they were given.

    Attributes
    ----------
    searched, found
        The keys that can be keys of the operator, and those that are.
    unfit
        The keys that cannot, by reason.
    mismatch
        The error of the first of these.
    """

    filter: EntryFilter
    removed: Tally
    searched: tuple[int, ...] = ()
    found: tuple[int, ...] = ()
    unfit: Mapping[str, Sequence[int]] = field(default_factory=dict)
    mismatch: EncodeError | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether none of the given keys can be a key of the operator."""
        return self.mismatch is not None and not self.searched

    @property
    def is_emptied(self) -> bool:
        """Whether all entries are removed."""
        return 0 < self.removed.entries == self.removed.entries_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Findings that are not errors: given keys that no operator has, or a condition that no key fulfills, and operators that :func:`keep` empties."""

    missing: bool = False
    empty: bool = False


def check_found(choice: KeyChoice, searches: Mapping[str, OperatorSearch], allowed: Allowed) -> None:
    """Refuse keys that are missing, and operators without any key.

    Parameters
    ----------
    searches
        The searched operators by name.

    Raises
    ------
    MissingKeyError
        A key is in none of the operators, no key fulfills the condition, or an operator would be left without any key.
    """
    names = ", ".join(display_name(name) for name in searches)
    if not allowed.missing:
        missing = missing_keys(choice, searches)
        if missing and choice.keys is not None:
            raise MissingKeyError(
                f"{len(missing):,} of {several(len(choice.keys), 'key')} {'is' if len(missing) == 1 else 'are'} missing: "
                f"{list_keys([choice.keys[n] for n in missing])}{_reason(choice.keys, missing, searches)} [searched: {names}]",
                hint="nothing was written. --allow-missing (allow_missing=True) goes on without them",
            )
        if choice.where is not None and not choice.keep and not any(s.removed.entries for s in searches.values()):
            raise no_key_fulfills([display_name(name) for name in searches])
    if choice.keep and not allowed.empty:
        emptied = [display_name(name) for name, search in searches.items() if search.is_emptied]
        if emptied:
            raise MissingKeyError(
                f"the keys to keep leave without any key: {', '.join(emptied)}",
                hint="nothing was written. Choose operators with --uid, or pass --allow-empty (allow_empty=True)",
            )


def no_key_fulfills(searched: Sequence[str]) -> MissingKeyError:
    """Return the error about a condition that no key of these operators fulfills."""
    return MissingKeyError(
        f"no key fulfills the condition [searched: {', '.join(searched)}]",
        hint="nothing was written. --allow-missing (allow_missing=True) writes an unchanged copy",
    )


def missing_keys(choice: KeyChoice, searches: Mapping[str, OperatorSearch]) -> list[int]:
    """Return the numbers of the given keys that no operator has."""
    found = {number for search in searches.values() for number in search.found}
    return [number for number in range(len(choice.keys or ())) if number not in found]


def list_keys(keys: Sequence[Key]) -> str:
    """Return the first keys as text."""
    return ", ".join(map(show_key, keys[:_LISTED])) + (
        f" and {len(keys) - _LISTED:,} more" if len(keys) > _LISTED else ""
    )


def _reason(keys: Sequence[Key], missing: Sequence[int], searches: Mapping[str, OperatorSearch]) -> str:
    """Return why missing keys were not searched, if no operator can have one."""
    searched = {number for search in searches.values() for number in search.searched}
    unfit = [number for number in missing if number not in searched]
    if not unfit:
        return ""
    reasons = (reason for s in searches.values() for reason, numbers in s.unfit.items() if unfit[0] in numbers)
    counted = "1 key fits" if len(unfit) == 1 else f"{len(unfit):,} keys fit"
    return f"; {counted} the type of no operator: {show_key(keys[unfit[0]])} is {', '.join(dict.fromkeys(reasons))}"


def _fit(
    operator: OperatorInventory, serializer: Serializer, keys: Sequence[Key]
) -> tuple[list[int], dict[str, list[int]], EncodeError | None]:
    """Return the numbers of the keys that can be keys of an operator, those of the others by reason, and the first error.

    Reasons name no key, because the report for an auditor contains them.
    """
    fitting: list[int] = []
    unfit: dict[str, list[int]] = {}
    first: EncodeError | None = None
    for number, key in enumerate(keys):
        try:
            key_forms(operator, serializer, key)
        except EncodeError as error:
            reason = error.reason if isinstance(error, KeyTypeError) else ""
            unfit.setdefault(reason or "not a value of the type", []).append(number)
            first = first or error
        else:
            fitting.append(number)
    return fitting, unfit, first


def _found(places: Mapping[int, Sequence[KeyPlace]], named: frozenset[int]) -> tuple[int, ...]:
    """Return the numbers of the keys of which one form is among the hashes of the keys that a filter names."""
    raw = list({raw: None for forms in places.values() for raw, _ in forms})
    hashes = dict(zip(raw, hashes_of_keys(raw).tolist(), strict=True))
    return tuple(number for number, forms in places.items() if any(hashes[raw] in named for raw, _ in forms))
