"""Plan of a comparison: pairs of operators, pairs of states, and the unit of each task.

A key is in key group ``hash % max parallelism``. Key groups of both sides that are equal modulo a common divisor of the two max
parallelisms hold the same keys. Units are therefore key groups modulo the greatest common divisor: with equal max
parallelisms, single key groups.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, Final, TypeVar

from statetool.analysis.comparison.elements import ElementUnit, element_units
from statetool.analysis.comparison.keyed import KeyedUnit
from statetool.analysis.comparison.meaning import Meaning, key_meaning, uncompared_reason
from statetool.analysis.comparison.records import NotComparedError, StructureDifference
from statetool.analysis.comparison.side import SideRequest
from statetool.analysis.comparison.structure import description_notes, operator_differences
from statetool.analysis.comparison.texts import EXACT, EXACT_VALUES
from statetool.entries.form import TARGET_BYTES, KeyGroupReader
from statetool.errors import UNREAD, OptionError, StatetoolError, UnknownNameError, suggest
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.uids import find_operator
from statetool.tables.scan import column_names, encode_keys
from statetool.types.options import ReadOptions

T = TypeVar("T")
Unit = KeyedUnit | ElementUnit
#: Target size of a task: approximate bytes of both sides.
UNIT_BYTES: Final = TARGET_BYTES // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """Scope of a comparison: names of operators and of states (``None`` for all), plain keys, and whether last access times count."""

    operators: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    keys: tuple[Any, ...] | None = None
    access_times: bool = True

    @property
    def options(self) -> ReadOptions:
        """Options for reading values."""
        return EXACT if self.access_times else EXACT_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """The differences in descriptions, and the units of tasks. ``unread`` has the reasons for state that is in no unit."""

    structure: tuple[StructureDifference, ...]
    units: tuple[Unit, ...]
    unread: tuple[StatetoolError, ...] = ()


def plan_comparison(before: Inventory, after: Inventory, request: ComparisonRequest) -> ComparisonPlan:
    """Plan a comparison. Reads headers only.

    Raises
    ------
    UnknownNameError
        Neither side has such an operator or state.
    EncodeError
        A key does not fit the type of the operator's keys.
    """
    structure: list[StructureDifference] = []
    units: list[Unit] = []
    before, after = before.with_names_of(after), after.with_names_of(before)
    pairs = _operators(before, after, request.operators)
    _check_states(pairs, request.states)
    if request.keys is not None and len(pairs) > 1 and request.operators is None:
        raise OptionError("keys need one operator", hint="name it: operators=[...], --uid UID")
    unread: dict[str, StatetoolError] = {}
    for old, new in pairs:
        operator = (old or new).label  # type: ignore[union-attr]
        if old is not None and new is not None:
            _take(structure, description_notes(old, new, request.states), operator, unread)
            old, new = old.learning_from(new), new.learning_from(old)
        for differences in operator_differences(old, new, request.states):
            _take(structure, differences, operator, unread)
        options = _options(old, new, request)
        _take(units, keyed_units(old, new, request, options), operator, unread)
        if request.keys is None:
            _take(units, element_units(old, new, request.states, options), operator, unread)
    return ComparisonPlan(structure=tuple(structure), units=tuple(units), unread=tuple(unread.values()))


def _options(old: OperatorInventory | None, new: OperatorInventory | None, request: ComparisonRequest) -> ReadOptions:
    """Return the options for reading values, with the names of a compiled plan if they are the same on both sides."""
    names = [column_names(o, ()) for o in (old, new) if o is not None]
    return replace(request.options, columns=names[0]) if len(set(names)) == 1 else request.options


def _take(into: list[T], items: Iterable[T], operator: str, unread: dict[str, StatetoolError]) -> None:
    """Add items until one cannot be read by statetool; its error is added to ``unread``."""
    try:
        for item in items:
            into.append(item)  # keep the items before the error
    except UNREAD as error:
        unread.setdefault(str(error.at(operator=operator)), error)


Pair = tuple[OperatorInventory | None, OperatorInventory | None]


def _operators(before: Inventory, after: Inventory, wanted: Sequence[str] | None) -> list[Pair]:
    """Return the pairs of operators with the same id."""
    old = {o.state.operator_id: o for o in before.operators.values()}
    new = {o.state.operator_id: o for o in after.operators.values()}
    pairs: list[Pair] = [(old.get(i), new.get(i)) for i in dict.fromkeys((*old, *new))]
    if wanted is None:
        return pairs
    labels = list({label.operator_id: label for label in (*after.labels, *before.labels)}.values())
    ids = [find_operator(labels, name).operator_id for name in wanted]
    return [(old.get(i), new.get(i)) for i in dict.fromkeys(ids)]


def _check_states(pairs: Sequence[Pair], wanted: Sequence[str] | None) -> None:
    operators = [o for pair in pairs for o in pair if o is not None]
    known = {n for o in operators for n in (*o.listed_keyed, *o.listed_elements)}
    for name in wanted or ():
        if name not in known and not any(o.unread for o in operators):
            raise UnknownNameError(f"neither snapshot has a state {name!r}", hint=suggest(name, known))


def keyed_units(
    old: OperatorInventory | None, new: OperatorInventory | None, request: ComparisonRequest, options: ReadOptions
) -> Iterator[KeyedUnit]:
    """Yield the units of an operator's keyed state."""
    operators = [o for o in (old, new) if o is not None]
    names = dict.fromkeys(n for o in operators for n in o.keyed_states)
    states = tuple(n for n in names if request.states is None or n in request.states)
    if not states:
        return
    common = gcd(*(o.state.max_parallelism for o in operators))
    sides = [_Groups(o, request.keys, common) if o is not None else None for o in (old, new)]
    classes: dict[int, int] = {}
    for side in sides:
        for number, size in (side.sizes if side is not None else {}).items():
            classes[number] = classes.get(number, 0) + size
    for run in _runs(classes):
        requests = [
            SideRequest(sources=side.of(run), states=states, keys=side.keys)
            if side is not None
            else SideRequest(sources=(), states=states, keys=None)
            for side in sides
        ]
        yield KeyedUnit(
            operator=operators[0].label,
            before=requests[0],
            after=requests[1],
            options=options,
            learned=any(o.learned_from_other for o in operators),
            uncompared=tuple(_uncompared(old, new, states)),
        )


def _uncompared(
    old: OperatorInventory | None, new: OperatorInventory | None, states: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the states whose differing bytes may be equal values, with the reason.

    Raises
    ------
    NotComparedError
        This is true of keys, so that nothing can be matched.
    """
    if old is None or new is None:
        return
    for name in states:
        if name in old.keyed_states and name in new.keyed_states:
            sides = [(o.types, *o.keyed_states[name]) for o in (old, new)]
            if reason := uncompared_reason(*(key_meaning(header, meta, types) for types, header, meta in sides)):
                raise NotComparedError.of(name, f"the keys differ, and {reason}")
            if reason := uncompared_reason(*(Meaning((meta.value,), types) for types, _, meta in sides)):
                yield name, reason


class _Groups:
    """The sources of an operator, by classes of key groups that are equal modulo ``common``."""

    def __init__(self, operator: OperatorInventory, keys: Sequence[Any] | None, common: int) -> None:
        self.common = common
        self.keys: tuple[bytes, ...] | None = None
        groups = None
        if keys is not None:
            self.keys, groups = encode_keys(operator, operator.keyed.key, keys)
        # Sources are as large as possible: units cut them, at the same key groups on both sides.
        self.sources = operator.keyed.sources(groups=groups, raw=True, target_bytes=sys.maxsize)
        self.sizes: dict[int, int] = {}
        for source in self.sources:
            for group, size in source.group_sizes().items():
                self.sizes[group % common] = self.sizes.get(group % common, 0) + size

    def of(self, classes: frozenset[int]) -> tuple[KeyGroupReader, ...]:
        """Return the sources of some classes of key groups."""
        sources = []
        for source in self.sources:
            groups = [g for g in source.group_sizes() if g % self.common in classes]
            source_part = source.within(groups) if groups else None
            if source_part is not None:
                sources.append(source_part)
        return tuple(sources)


def _runs(sizes: Mapping[int, int]) -> Iterator[frozenset[int]]:
    """Cut classes of key groups into runs of about :data:`UNIT_BYTES`."""
    run: list[int] = []
    total = 0
    for number in sorted(sizes):
        if run and total + sizes[number] > UNIT_BYTES:
            yield frozenset(run)
            run, total = [], 0
        run.append(number)
        total += sizes[number]
    if run:
        yield frozenset(run)
