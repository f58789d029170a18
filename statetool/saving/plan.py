"""Plan a new snapshot without touching the target: which operators of a base stay unchanged, and how the others are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from statetool.entries.joined_headers import join_headers
from statetool.errors import (
    DecodeError,
    FormatError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    nearest,
    suggest,
    warn,
)
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState, SnapshotMetadata
from statetool.formats.metadata.handles import ByteStreamHandle
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.declaring.classes import declared_classes
from statetool.java.hashing.formulas import HashFormula, user_classes
from statetool.java.hashing.prove import KeyProof, prove_hashes
from statetool.saving.bootstrap.model import ElementBootstrap, KeyedBootstrap, TableSchema
from statetool.saving.bootstrap.release import for_release
from statetool.saving.bootstrap.states import python_states
from statetool.saving.bootstrap.tables import element_metas, element_recipes, keyed_job, state_names
from statetool.saving.catch_up import with_origin
from statetool.saving.composition import Composition, OperatorChange, Runner, SourceOperator, StreamWriteTask
from statetool.saving.grafts import check_added, check_source, grafted_state
from statetool.saving.streams.conversion import StateConversion
from statetool.saving.streams.elements import element_streams
from statetool.saving.streams.in_place import streams_in_place
from statetool.saving.streams.keyed import AddedEntries, CarriedEntries
from statetool.saving.uids import find_operator
from statetool.saving.versions import Target
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.uids import find_all
from statetool.snapshot.unflushed_lists import UNFLUSHED
from statetool.types.declared import NOTHING_DECLARED, TypeContext

#: Minimum similarity (of ``nearest``) at which a name may be a typo for another.
_TYPING_ERROR: Final = 0.7
DescribedTables: TypeAlias = Sequence[tuple[KeyedBootstrap | ElementBootstrap, TableSchema]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperator:
    """One operator to write.

    Attributes
    ----------
    old
        The part that is carried over, if the base has the operator.
    keyed, elements
        New streams of its keyed state and its operator state.
    graft
        The operator of another snapshot whose files ``old`` names.
    """

    uid: str
    max_parallelism: int
    parallelism: int
    old: OperatorState | None
    keyed: StreamWriteTask | None
    elements: StreamWriteTask | None
    graft: SourceOperator | None = None

    @property
    def jobs(self) -> tuple[StreamWriteTask, ...]:
        """Return the jobs that write the operator."""
        return tuple(job for job in (self.keyed, self.elements) if job is not None)


def plan_composition(
    composition: Composition, runner: Runner, release: Target
) -> tuple[list[OperatorState], list[PlannedOperator]]:
    """Return the unchanged operators of the base, and the operators to write for the target release.

    Raises
    ------
    OptionError, UnknownNameError, UnsupportedError
        The composition is not possible.
    """
    base = () if composition.base is None else composition.base.metadata.operators
    removed = {find_operator(base, name).operator_id for name in composition.removed}
    remaining = [o for o in base if o.operator_id not in removed]
    planned: list[PlannedOperator] = []
    changed: set[str] = set()
    for name, requested in composition.changes.items():
        try:
            change = replace(requested, bootstraps=tuple(for_release(b, release) for b in requested.bootstraps))
            tables = [(b, runner.describe(b)) for b in change.bootstraps]
            old = _find(remaining, name)
            for added in change.added:
                if added.source.inventory is not composition.base:
                    check_source(added.source, release)
            if requested.new and old is not None:
                raise OptionError(f"operator {name!r} already exists", hint="omit new=True to change it")
            if change.graft is not None:
                planned.append(_plan_graft(name, old, change, change.graft, tables, composition, release))
                continue
            if old is None:
                if _find(base, name) is None:
                    existing = {} if composition.base is None else composition.base.operators
                    _check_meant(name, requested, existing)
                planned.append(_plan_new(name, change, tables, composition, runner))
                continue
            if old.operator_id in changed:
                raise OptionError(f"operator {name!r} is changed twice, under two names")
            changed.add(old.operator_id)
            assert composition.base is not None
            source = SourceOperator(composition.base, composition.base.operator(name))
            planned.append(_plan_change(source.operator.label, old, change, tables, composition, source))
        except StatetoolError as error:
            raise error.at(operator=name) from error.__cause__
    unchanged = {o.operator_id: o for o in remaining if o.operator_id not in changed}
    if composition.base is not None:
        for operator in composition.base.operators.values():
            # Flink cannot restore them as they are stored.
            if operator.state.operator_id in unchanged and operator.elements.are_unflushed and _can_rewrite(operator):
                old = unchanged.pop(operator.state.operator_id)
                source = SourceOperator(composition.base, operator)
                planned.append(_plan_change(operator.label, old, OperatorChange(), [], composition, source))
    return list(unchanged.values()), planned


def _can_rewrite(operator: OperatorInventory) -> bool:
    """Return True if lists with wrong offsets can be written with right ones; otherwise warn that they stay as they are."""
    try:
        return bool(operator.elements.streams)
    except (FormatError, DecodeError, UnsupportedError) as error:
        warn(
            f"{operator.label.display} is carried as it is stored, and Flink will not restore it: {UNFLUSHED}. Its elements cannot be "
            f"decoded ({error}). Pass the job's jar (--jar) or declare their classes (--declare), and run: statetool convert SRC DST"
        )
        return False


def _find(operators: Sequence[OperatorState], name: str) -> OperatorState | None:
    try:
        return find_operator(operators, name, exact=True)
    except UnknownNameError:
        return None


def _check_meant(uid: str, change: OperatorChange, base: Mapping[str, OperatorInventory]) -> None:
    """Refuse to add an operator that should exist, or whose name may be a typo for one of the base."""
    if change.new:
        return
    near = nearest(uid.lower(), [name.lower() for name in base], cutoff=_TYPING_ERROR)
    likes = [b.like.state for b in change.bootstraps if b.like is not None]
    by_name = find_all([o.label for o in base.values()], uid)
    meant = [
        operator.label
        for name, operator in base.items()
        if name.lower() in near or operator.state in likes or operator.label in by_name
    ]
    if meant:
        raise UnknownNameError(
            f"no operator has the uid {uid!r}, but there is {' and '.join(repr(o.display) for o in meant)}",
            hint=f"did you mean {' or '.join(meant)}? A typo in the uid would add a new operator instead of changing the existing one. "
            f"To add an operator, call with_operator({uid!r}, ..., new=True)",
        )
    if change.new is False:
        raise UnknownNameError(f"no operator has the uid {uid!r}", hint=suggest(uid, base))


def _plan_new(
    uid: str, change: OperatorChange, tables: DescribedTables, composition: Composition, runner: Runner
) -> PlannedOperator:
    if change.dropped_states or change.renames:
        known = [] if composition.base is None else list(composition.base.operators)
        raise UnknownNameError(f"cannot change states of operator {uid!r}: it does not exist", hint=suggest(uid, known))
    if not uid:
        raise OptionError("the uid of an operator is empty", hint="pass the uid by which Flink finds the state")
    max_parallelism = change.max_parallelism or composition.max_parallelism
    parallelism = change.parallelism or min(max_parallelism, runner.parallelism)
    check_max_parallelism(max_parallelism, parallelism)
    layout, keyed, elements = _plans(uid, change, tables, composition, NOTHING_DECLARED, max_parallelism, parallelism)
    return layout.planned(None, keyed.job(None), elements.job(None))


def _plan_graft(
    name: str,
    old: OperatorState | None,
    change: OperatorChange,
    graft: SourceOperator,
    tables: DescribedTables,
    composition: Composition,
    release: Target,
) -> PlannedOperator:
    """Plan an operator of another snapshot, which keeps its bytes if its key groups stay."""
    if old is not None:
        raise OptionError(
            f"operator {name!r} already exists",
            hint="remove it first, graft the other one under another uid, or merge the two snapshots",
        )
    check_source(graft, release)
    number = change.max_parallelism or graft.operator.state.max_parallelism
    parallelism = change.parallelism or min(graft.operator.state.parallelism, number)
    check_max_parallelism(number, parallelism)
    proof = prove_moves(graft.operator, number, change.formula or HashFormula.declared({}))
    change = replace(change, max_parallelism=number, parallelism=parallelism, formula=proof.formula)
    state = grafted_state(composition, name, graft)
    return replace(_plan_change(name, state, change, tables, composition, graft), graft=graft)


def prove_moves(operator: OperatorInventory, max_parallelism: int, declared: HashFormula) -> KeyProof:
    """Return the proof of the hash formula by which an operator's keys move to other key groups.

    Nothing is read if no hash code is needed: if key groups stay, or the new max parallelism divides the old one.

    Raises
    ------
    UnsupportedError, OptionError
        As for :func:`statetool.java.hashing.prove.prove_hashes`.
    """
    if operator.state.max_parallelism % max_parallelism == 0:
        return KeyProof()
    header = operator.keyed.joined_header(raw=True)
    if header is None:
        return KeyProof()
    try:
        return prove_hashes(operator.keyed.sources(raw=True), header.key, declared)
    except StatetoolError as error:
        raise error.at(operator=operator.label) from None


def _plan_change(
    label: str,
    old: OperatorState,
    change: OperatorChange,
    tables: DescribedTables,
    composition: Composition,
    source: SourceOperator,
) -> PlannedOperator:
    """Plan a change of an operator of the base, or of another snapshot; ``old`` is the operator under its new name."""
    operator = source.operator
    max_parallelism = change.max_parallelism or old.max_parallelism
    parallelism = change.parallelism or old.parallelism
    check_moves(source.inventory.metadata, operator, max_parallelism, parallelism)
    edited = bool(change.elements or change.added) or change.coordinator is not None
    if change.filter is not None and (change.bootstraps or change.added):
        raise OptionError(
            "keys cannot be erased while states of the operator get new values",
            hint="write two savepoints, one after the other",
        )
    if old.fully_finished and (change.bootstraps or edited):
        raise OptionError(f"operator {operator.label.display!r} had finished: Flink restores no state of it")
    if (tables or edited) and any(s.finished for s in old.subtasks):
        raise UnsupportedError(
            "some subtasks have finished and hold no state",
            hint="let the job finish, or take a savepoint before it does",
        )
    layout, keyed_plan, element_plan = _plans(
        label, change, tables, composition, operator.types, max_parallelism, parallelism
    )
    _check_names(operator, keyed_plan, element_plan)
    # If keys move, timers in raw keyed state become managed ones. Raw keyed state contains nothing else (check_moves, check_added).
    moves = needs_move(old, max_parallelism, parallelism) or bool(change.added) or _filters_raw(operator, change)
    drops_raw = moves or _drops_raw_timers(operator, keyed_plan.gone | change.renames.keys())
    writes_keyed = moves or change.canonical or keyed_plan.touches(operator)
    in_place = None if writes_keyed else keyed_plan.in_place(operator)
    writes_keyed = writes_keyed or (change.filter is not None and in_place is None)
    keyed = with_origin(keyed_plan.job(operator, moves=moves), source, change) if writes_keyed else in_place
    filtered = () if in_place is None else in_place.streams.subtasks
    spreads = any(p.subtask >= parallelism for p in operator.elements.streams) or (
        parallelism > old.parallelism and any(m.kind == "broadcast" for m in operator.operator_states.values())
    )
    writes_elements = spreads or element_plan.touches(operator)
    elements = element_plan.job(operator) if writes_elements else None
    carried = replace(
        old,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        coordinator=old.coordinator if change.coordinator is None else _inline(old, change.coordinator),
        subtasks=tuple(
            replace(
                s,
                managed_keyed=None if writes_keyed or s.index in filtered else s.managed_keyed,
                managed_operator=None if writes_elements else s.managed_operator,
                raw_keyed=None if drops_raw else s.raw_keyed,
            )
            for s in old.subtasks
            if s.index < parallelism
        ),
    )
    return layout.planned(carried, keyed, elements)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The change of one operator, and how its new state is distributed."""

    label: str
    change: OperatorChange
    max_parallelism: int
    parallelism: int
    inline_bytes: int
    types: TypeContext

    def touches(self, names: Collection[str]) -> bool:
        """Return True if some of these states are left out, renamed or converted."""
        change = self.change
        return any(name in names for name in (*change.dropped_states, *change.renames, *change.conversions))

    def planned(
        self, old: OperatorState | None, keyed: StreamWriteTask | None, elements: StreamWriteTask | None
    ) -> PlannedOperator:
        return PlannedOperator(
            uid=self.label,
            max_parallelism=self.max_parallelism,
            parallelism=self.parallelism,
            old=old,
            keyed=keyed,
            elements=elements,
        )


@dataclass(frozen=True, slots=True)
class _KeyedPlan:
    """The change of an operator's keyed state, with the schemas of its tables."""

    layout: _Layout
    tables: list[tuple[KeyedBootstrap, TableSchema]]

    @property
    def gone(self) -> frozenset[str]:
        """Return the states of the base that are left out or replaced."""
        return self.layout.change.dropped_states | state_names(self.tables)

    def touches(self, operator: OperatorInventory) -> bool:
        """Return True if states of the base change, or new ones are added to them."""
        return bool(self.tables or self.layout.change.added) or self.layout.touches(operator.keyed_states)

    def job(self, operator: OperatorInventory | None, *, moves: bool = False) -> StreamWriteTask | None:
        """Plan the keyed state; ``None`` if there is none."""
        layout = self.layout
        header, gone, renames = None, self.gone, layout.change.renames
        if operator is not None:
            header = operator.keyed.joined_header(raw=moves, without=gone)
        if header is not None:
            base = NOTHING_DECLARED if operator is None else operator.types
            metas = _convert_states(header, base, layout.change.conversions)
            header = replace(header, states=tuple(_rename_state(m, renames) for m in metas))
        own = () if header is None else tuple(m.name for m in header.states)
        header = self._with_added(operator, header)
        if not self.tables and not (header is not None and header.states):
            return None
        job = keyed_job(
            layout.label,
            self.tables,
            header,
            parallelism=layout.parallelism,
            max_parallelism=layout.max_parallelism,
            inline_bytes=layout.inline_bytes,
            formula_of=_formula_of,
            types=layout.types,
        )
        if header is None:
            return job
        new_ids = {m.name: i for i, m in enumerate(header.states)}
        kept: list[CarriedEntries | AddedEntries] = []
        ids = {old: new_ids[new] for old, new in renames.items() if new in own}
        ids |= {name: new_ids[name] for name in own if name not in renames.values()}
        if operator is not None and own:
            groups = _remaining_groups(operator, layout.change)
            kept += self._entries(operator, ids, layout.change.formula, raw=moves, groups=groups)
        for added in layout.change.added:
            other = added.source.operator
            proof = prove_moves(other, layout.max_parallelism, added.declared or HashFormula.declared({}))
            other_ids = {old: new_ids[new] for old, new in added.names.items() if new in new_ids}
            kept += self._entries(other, other_ids, proof.formula, raw=True)
        if own and layout.change.filter is not None and layout.change.filter.added:
            kept.append(AddedEntries(added=layout.change.filter.added, ids=ids))
        return replace(job, kept=tuple(kept))

    def _entries(
        self,
        operator: OperatorInventory,
        ids: Mapping[str, int],
        formula: HashFormula | None,
        *,
        raw: bool,
        groups: Collection[int] | None = None,
    ) -> Iterator[CarriedEntries]:
        change = self.layout.change
        for source in operator.keyed.sources(groups=groups, raw=raw):
            yield CarriedEntries(
                source=source,
                ids=ids,
                max_parallelism=self.layout.max_parallelism,
                formula=formula,
                conversions=change.conversions,
                filter=None if change.filter is None else change.filter.for_task(list(source.group_sizes())),
            )

    def _with_added(self, operator: OperatorInventory | None, header: KeyedHeader | None) -> KeyedHeader | None:
        """Return the header with the states of other operators."""
        headers = [] if header is None else [header]
        for added in self.layout.change.added:
            assert operator is not None
            check_added(operator, added)
            other = added.source.operator.keyed.joined_header(raw=True)
            if other is not None:
                states = tuple(replace(m, name=added.names[m.name]) for m in other.states if m.name in added.names)
                headers.append(replace(other, states=states))
        if not self.layout.change.added or not headers:
            return header
        hint = "migrate one of them first, so that both have the same types (statetool migrate)"
        try:
            return join_headers(headers, self.layout.types, of="two operators", hint=hint)
        except UnsupportedError as error:
            raise error.at(operator=None if operator is None else operator.label) from error.__cause__

    def in_place(self, operator: OperatorInventory) -> StreamWriteTask | None:
        """Plan to filter the keyed state in place; ``None`` if there is no filter, or the form of the state does not allow it."""
        if self.layout.change.filter is None:
            return None
        streams = streams_in_place(operator, self.layout.change.filter, self.layout.inline_bytes)
        return None if streams is None else StreamWriteTask(streams=streams)


@dataclass(frozen=True, slots=True)
class _ElementPlan:
    """The change of an operator's operator state, with the schemas of its tables."""

    layout: _Layout
    tables: list[tuple[ElementBootstrap, TableSchema]]

    @property
    def gone(self) -> frozenset[str]:
        """Return the states of the base that are left out or replaced."""
        return self.layout.change.dropped_states | {b.name for b, _ in self.tables}

    def touches(self, operator: OperatorInventory) -> bool:
        """Return True if states of the base change, or new ones are added to them."""
        change = self.layout.change
        given = any(name in operator.operator_states for name in (*change.elements, *change.moved_elements))
        edited = given or change.elements_from is not None
        unflushed = operator.elements.are_unflushed
        return bool(self.tables) or edited or unflushed or self.layout.touches(operator.operator_states)

    def job(self, operator: OperatorInventory | None) -> StreamWriteTask | None:
        """Plan the operator state; ``None`` if there is none."""
        layout = self.layout
        streams = element_streams(
            layout.change.elements_from or operator,
            element_metas(self.tables),
            label=layout.label,
            parallelism=layout.parallelism,
            without=self.gone,
            renames=layout.change.renames,
            new_elements={**layout.change.moved_elements, **layout.change.elements},
            conversions=layout.change.conversions,
            inline_bytes=layout.inline_bytes,
            types=layout.types,
        )
        if streams is None:
            return None
        recipes = element_recipes(streams, (b for b, _ in self.tables), layout.parallelism)
        return StreamWriteTask(streams=streams, tables=recipes)


def _plans(
    label: str,
    change: OperatorChange,
    tables: DescribedTables,
    composition: Composition,
    base: TypeContext,
    max_parallelism: int,
    parallelism: int,
) -> tuple[_Layout, _KeyedPlan, _ElementPlan]:
    """Return the plans of an operator's keyed state and operator state, from the declarations of the base."""
    keyed = [(b, t) for b, t in tables if isinstance(b, KeyedBootstrap)]
    elements = [(b, t) for b, t in tables if isinstance(b, ElementBootstrap)]
    # Declarations for new state: those of conversions, of the operator in ``like``, or of the base.
    likes = [b.like.types for b, _ in tables if b.like is not None]
    types = next(iter([*(c.types for c in change.conversions.values()), *likes]), base)
    python = tuple(p for b, _ in keyed for p in python_states(b))
    types = replace(types, python=(*types.python, *python)) if python else types
    layout = _Layout(label, change, max_parallelism, parallelism, composition.inline_bytes, types)
    return layout, _KeyedPlan(layout, keyed), _ElementPlan(layout, elements)


def _check_names(operator: OperatorInventory, keyed: _KeyedPlan, elements: _ElementPlan) -> None:
    """Refuse names of unknown states, and two states with the same name."""
    change, label = keyed.layout.change, keyed.layout.label
    known = {*operator.keyed_states, *operator.operator_states}
    for name in (*change.dropped_states, *change.renames, *change.elements, *change.conversions):
        if name not in known:
            raise UnknownNameError(f"operator {label!r} has no state {name!r}", hint=suggest(name, known))
    in_both = operator.keyed_states.keys() & operator.operator_states.keys()
    for name in in_both & {*change.dropped_states, *change.renames, *change.conversions}:
        raise OptionError(
            f"operator {label!r} has a keyed state and an operator state {name!r}: the name is ambiguous",
            hint="bootstrap the one that changes with its new values",
        )
    for name in change.renames:
        if name in (keyed.gone if name in operator.keyed_states else elements.gone):
            raise OptionError(
                f"state {name!r} cannot be both renamed and dropped or replaced", hint="give it one change"
            )
    stay = known - keyed.gone - elements.gone - change.renames.keys()
    for name in change.renames.values():
        if name in stay or list(change.renames.values()).count(name) > 1:
            raise OptionError(f"operator {label!r} would have two states {name!r}")


def _inline(old: OperatorState, coordinator: bytes) -> ByteStreamHandle | None:
    """Return the handle of coordinator state, which is always stored inline in the metadata."""
    if not coordinator:
        return None
    name = old.coordinator.name if isinstance(old.coordinator, ByteStreamHandle) else f"coordinator-{old.operator_id}"
    return ByteStreamHandle(name=name, data=coordinator)


def _formula_of(bootstrap: KeyedBootstrap, key: Serializer) -> HashFormula | None:
    """Return the hash function of keys: the declared one, or the one that the keys of the operator in ``like`` prove.

    Raises
    ------
    OptionError, UnsupportedError
        It is neither declared nor proved, and no column contains the key groups.
    """
    classes = user_classes(key)
    if not classes:
        return None
    source = JarClasses(bootstrap.jars).open() if bootstrap.jars else None
    types = TypeContext(classes=declared_classes(), source=source)
    declared = HashFormula.declared(bootstrap.hashes).with_types(classes, types)
    if bootstrap.like is not None:
        try:
            return prove_hashes(bootstrap.like.keyed.sources(), key, declared).formula
        except UnsupportedError:
            if bootstrap.key_group is None:
                raise
            return declared
    if bootstrap.key_group is None and (missing := [name for name in classes if declared.of(name) is None]):
        example = "avro[1, 10]()" if isinstance(classes[missing[0]], AvroSerializer) else "Objects.hash(a, b)"
        reason = types.hash_reason(missing[0])
        raise OptionError(
            f"the hash code of {', '.join(missing)}, the type of a key, is computed by user code{reason and f': {reason}'}",
            hint=f'declare it, as in hashes={{"{missing[0]}": "{example}"}}, pass the job\'s jar with jars=[...], or take it from an '
            "operator with like=",
        )
    return declared


def _convert_states(
    header: KeyedHeader, base: TypeContext, conversions: Mapping[str, StateConversion]
) -> tuple[StateMetaInfo, ...]:
    """Return the descriptions of a header's states, with the new descriptions of converted states.

    Raises
    ------
    UnsupportedError
        Some values are converted to another version of Kryo and others are not. The release would read all with the new version.
    """
    kryo = {c.types.kryo for c in conversions.values()}
    if kryo - {base.kryo}:
        staying = {m.name: m.value for m in header.states if m.name not in conversions} | {"its keys": header.key}
        for name, serializer in staying.items():
            if any(isinstance(nested, KryoSerializer) for nested in all_parts(serializer)):
                raise UnsupportedError(
                    f"{name}: {serializer.type_name} would stay as Kryo {base.kryo} wrote it, while others get Kryo {min(filter(None, kryo))}",
                    hint="migrate all states that Kryo wrote together; keys cannot be migrated",
                )
    return tuple(conversions[m.name].meta if m.name in conversions else m for m in header.states)


def _rename_state(meta: StateMetaInfo, renames: Mapping[str, str]) -> StateMetaInfo:
    return replace(meta, name=renames[meta.name]) if meta.name in renames else meta


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


def _remaining_groups(operator: OperatorInventory, change: OperatorChange) -> frozenset[int] | None:
    """Return the key groups of an operator that have entries after filtering, ``None`` for all."""
    if change.filter is None:
        return None
    return frozenset(g for g in range(operator.state.max_parallelism) if not change.filter.removes(g))


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


def needs_move(operator: OperatorState, max_parallelism: int, parallelism: int) -> bool:
    """Return True if keys move to other key groups, or key groups to other subtasks."""
    return (max_parallelism, parallelism) != (operator.max_parallelism, operator.parallelism)


def check_moves(
    metadata: SnapshotMetadata, operator: OperatorInventory, max_parallelism: int, parallelism: int
) -> None:
    """Refuse state that cannot move to other key groups or subtasks.

    Raises
    ------
    UnsupportedError
        Key groups or subtasks change, and the operator has in-flight data, custom raw state, or finished subtasks.
    """
    state = operator.state
    if not needs_move(state, max_parallelism, parallelism):
        return
    stops = "stop the job with a savepoint (flink stop) and use that: it holds no such data"
    for other in metadata.operators:
        if any(s.input_channels or s.output_channels for s in other.subtasks):
            raise UnsupportedError(
                "the checkpoint is unaligned: its in-flight records belong to the old key groups", hint=stops
            ).at(operator=other.uid or other.operator_id)
    keyed = any(s.managed_keyed is not None for s in state.subtasks)
    for s in state.subtasks:
        if s.index >= parallelism and s.raw_operator is not None:
            raise UnsupportedError(
                f"raw operator state of subtask {s.index}, which is one too many for parallelism {parallelism}",
                hint="keep the parallelism, at least the number of subtasks that hold such state",
            ).at(operator=operator.label)
        if s.finished and (keyed or parallelism != state.parallelism):
            raise UnsupportedError(
                f"subtask {s.index} had finished, so its state cannot be redistributed", hint=stops
            ).at(operator=operator.label)
        if s.index in operator.keyed.own_raw_subtasks:
            raise UnsupportedError(
                "raw keyed state without timers: only the operator that wrote it can redistribute it",
                hint="keep the max parallelism and parallelism of the operator",
            ).at(operator=operator.label)
