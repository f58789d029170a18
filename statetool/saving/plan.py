"""Plan a new snapshot without touching the target: which operators of a base stay unchanged, and how the others are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from statetool.errors import OptionError, StatetoolError, UnknownNameError, UnsupportedError, nearest, suggest
from statetool.formats.key_groups import check_max_parallelism
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState, SnapshotMetadata
from statetool.formats.metadata.handles import ByteStreamHandle
from statetool.formats.state_meta import StateMetaInfo
from statetool.hashing.formulas import HashFormula, user_classes
from statetool.hashing.prove import prove_hashes
from statetool.saving.bootstrap.model import ElementBootstrap, KeyedBootstrap, TableSchema
from statetool.saving.bootstrap.release import for_release
from statetool.saving.bootstrap.states import python_states
from statetool.saving.bootstrap.tables import element_metas, element_recipes, keyed_job, state_names
from statetool.saving.composition import Composition, OperatorChange, Runner, StateConversion, StreamWriteTask
from statetool.saving.streams.elements import element_streams
from statetool.saving.streams.keyed import CarriedEntries
from statetool.saving.uids import find_operator
from statetool.saving.versions import Target
from statetool.serializers.avro import AvroSerializer
from statetool.serializers.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory
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
    """

    uid: str
    max_parallelism: int
    parallelism: int
    old: OperatorState | None
    keyed: StreamWriteTask | None
    elements: StreamWriteTask | None

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
            if requested.new and old is not None:
                raise OptionError(f"operator {name!r} is there already", hint="leave new=True out to change it")
            if old is None:
                if not requested.new and composition.base is not None and _find(base, name) is None:
                    _check_meant(name, requested, composition.base.operators)
                planned.append(_plan_new(name, change, tables, composition, runner))
                continue
            if old.operator_id in changed:
                raise OptionError(f"operator {name!r} is changed twice, under two names")
            changed.add(old.operator_id)
            planned.append(_plan_change(name, old, change, tables, composition))
        except StatetoolError as error:
            raise error.at(operator=name) from error.__cause__
    return [o for o in remaining if o.operator_id not in changed], planned


def _find(operators: Sequence[OperatorState], name: str) -> OperatorState | None:
    try:
        return find_operator(operators, name)
    except UnknownNameError:
        return None


def _check_meant(uid: str, change: OperatorChange, base: Mapping[str, OperatorInventory]) -> None:
    """Refuse to add an operator whose name may be a typo for one of the base."""
    near = nearest(uid.lower(), [name.lower() for name in base], cutoff=_TYPING_ERROR)
    likes = [b.like.state for b in change.bootstraps if b.like is not None]
    meant = [name for name, operator in base.items() if name.lower() in near or operator.state in likes]
    if meant:
        raise UnknownNameError(
            f"no operator {uid!r}, but {' and '.join(map(repr, meant))}",
            hint=f"did you mean {' or '.join(meant)}? To add an operator, say with_operator({uid!r}, ..., new=True)",
        )


def _plan_new(
    uid: str, change: OperatorChange, tables: DescribedTables, composition: Composition, runner: Runner
) -> PlannedOperator:
    if change.without or change.renames:
        known = [] if composition.base is None else list(composition.base.operators)
        raise UnknownNameError(f"no operator {uid!r} whose states could be changed", hint=suggest(uid, known))
    if not uid:
        raise OptionError("an operator without a uid", hint="the uid is what Flink finds the state by")
    max_parallelism = change.max_parallelism or composition.max_parallelism
    parallelism = change.parallelism or min(max_parallelism, runner.parallelism)
    check_max_parallelism(max_parallelism, parallelism)
    plan = _Plan(uid, change, tables, max_parallelism, parallelism, composition.inline_bytes)
    return plan.planned(None, plan.keyed(None), plan.elements(None))


def _plan_change(
    name: str, old: OperatorState, change: OperatorChange, tables: DescribedTables, composition: Composition
) -> PlannedOperator:
    assert composition.base is not None
    operator = composition.base.operator(name)
    max_parallelism = change.max_parallelism or old.max_parallelism
    parallelism = change.parallelism or old.parallelism
    check_moves(composition.base.metadata, operator, max_parallelism, parallelism)
    edited = bool(change.elements) or change.coordinator is not None
    if old.fully_finished and (change.bootstraps or edited):
        raise OptionError(f"operator {operator.label!r} had finished: Flink restores no state of it")
    if (tables or edited) and any(s.finished for s in old.subtasks):
        raise UnsupportedError(
            "some subtasks had finished, and hold no state from then on",
            hint="let the job finish, or take a savepoint before it does",
        )
    plan = _Plan(operator.label, change, tables, max_parallelism, parallelism, composition.inline_bytes)
    plan.check_names(operator)
    moves = needs_move(old, max_parallelism, parallelism)
    # If keys move, timers in raw keyed state become managed ones. Raw keyed state contains nothing else (check_moves).
    drops_raw = moves or _drops_raw_timers(operator, plan.gone | change.renames.keys())
    writes_keyed = moves or change.canonical or plan.touches(operator.keyed_states)
    keyed = plan.keyed(operator, moves=moves) if writes_keyed else None
    spreads = any(p.subtask >= parallelism for p in operator.elements.streams) or (
        parallelism > old.parallelism and any(m.kind == "broadcast" for m in operator.operator_states.values())
    )
    writes_elements = spreads or plan.touches(operator.operator_states, elements=True)
    elements = plan.elements(operator) if writes_elements else None
    carried = replace(
        old,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        coordinator=old.coordinator if change.coordinator is None else _inline(old, change.coordinator),
        subtasks=tuple(
            replace(
                s,
                managed_keyed=None if writes_keyed else s.managed_keyed,
                managed_operator=None if writes_elements else s.managed_operator,
                raw_keyed=None if drops_raw else s.raw_keyed,
            )
            for s in old.subtasks
            if s.index < parallelism
        ),
    )
    return plan.planned(carried, keyed, elements)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The change of one operator, with the schemas of its tables."""

    label: str
    change: OperatorChange
    tables: DescribedTables
    max_parallelism: int
    parallelism: int
    inline_bytes: int

    @property
    def keyed_tables(self) -> list[tuple[KeyedBootstrap, TableSchema]]:
        return [(b, t) for b, t in self.tables if isinstance(b, KeyedBootstrap)]

    @property
    def element_tables(self) -> list[tuple[ElementBootstrap, TableSchema]]:
        return [(b, t) for b, t in self.tables if isinstance(b, ElementBootstrap)]

    @property
    def gone(self) -> frozenset[str]:
        """Return the keyed states of the base that are left out or replaced."""
        return self.change.without | state_names(self.keyed_tables)

    @property
    def element_names(self) -> frozenset[str]:
        return frozenset(b.name for b, _ in self.element_tables)

    def check_names(self, operator: OperatorInventory) -> None:
        """Refuse names of unknown states, and two states with the same name."""
        change = self.change
        known = {*operator.keyed_states, *operator.operator_states}
        for name in (*change.without, *change.renames, *change.elements, *change.conversions):
            if name not in known:
                raise UnknownNameError(f"operator {self.label!r} has no state {name!r}", hint=suggest(name, known))
        in_both = operator.keyed_states.keys() & operator.operator_states.keys()
        for name in in_both & {*change.without, *change.renames, *change.conversions}:
            raise OptionError(
                f"operator {self.label!r} has a keyed state and an operator state {name!r}, which nothing here tells apart",
                hint="bootstrap the one that changes anew",
            )
        for name in change.renames:
            if name in (self.gone if name in operator.keyed_states else change.without | self.element_names):
                raise OptionError(f"state {name!r} is renamed, and left out or replaced", hint="say one thing of it")
        stay = known - self.gone - self.element_names - change.renames.keys()
        for name in change.renames.values():
            if name in stay or list(change.renames.values()).count(name) > 1:
                raise OptionError(f"operator {self.label!r} would have two states {name!r}")

    def touches(self, names: Collection[str], *, elements: bool = False) -> bool:
        """Return True if states of the base change, or new ones are added to them."""
        new = self.element_tables if elements else self.keyed_tables
        edits = self.change.elements if elements else ()
        change = self.change
        return bool(new) or any(n in names for n in (*change.without, *change.renames, *change.conversions, *edits))

    def types(self, base: TypeContext) -> TypeContext:
        """Return the declarations for new state: those of conversions, of the operator in ``like``, or of the base."""
        likes = [b.like.types for b, _ in self.tables if b.like is not None]
        types = next(iter([*(c.types for c in self.change.conversions.values()), *likes]), base)
        python = tuple(p for b, _ in self.keyed_tables for p in python_states(b))
        return replace(types, python=(*types.python, *python)) if python else types

    def keyed(self, operator: OperatorInventory | None, *, moves: bool = False) -> StreamWriteTask | None:
        """Plan the keyed state; ``None`` if there is none."""
        header, gone, renames = None, self.gone, self.change.renames
        if operator is not None:
            header = operator.keyed.joined_header(raw=moves, without=gone)
        if header is not None:
            base = NOTHING_DECLARED if operator is None else operator.types
            metas = _convert_states(header, base, self.change.conversions)
            header = replace(header, states=tuple(_rename_state(m, renames) for m in metas))
        if not self.keyed_tables and not (header is not None and header.states):
            return None
        job = keyed_job(
            self.label,
            self.keyed_tables,
            header,
            parallelism=self.parallelism,
            max_parallelism=self.max_parallelism,
            inline_bytes=self.inline_bytes,
            formula_of=_formula_of,
            types=self.types(NOTHING_DECLARED if operator is None else operator.types),
        )
        if operator is None or header is None or not header.states:
            return job
        new_ids = {m.name: i for i, m in enumerate(header.states)}
        ids = {old: new_ids[new] for old, new in renames.items() if new in new_ids}
        ids |= {name: i for name, i in new_ids.items() if name not in renames.values()}
        kept = (
            CarriedEntries(
                source=s,
                ids=ids,
                max_parallelism=self.max_parallelism,
                formula=self.change.formula,
                conversions=self.change.conversions,
            )
            for s in operator.keyed.sources(raw=moves)
        )
        return replace(job, kept=tuple(kept))

    def elements(self, operator: OperatorInventory | None) -> StreamWriteTask | None:
        """Plan the operator state; ``None`` if there is none."""
        streams = element_streams(
            operator,
            element_metas(self.element_tables),
            label=self.label,
            parallelism=self.parallelism,
            without=self.change.without | self.element_names,
            renames=self.change.renames,
            new_elements=self.change.elements,
            conversions=self.change.conversions,
            inline_bytes=self.inline_bytes,
            types=self.types(NOTHING_DECLARED if operator is None else operator.types),
        )
        if streams is None:
            return None
        recipes = element_recipes(streams, (b for b, _ in self.element_tables), self.parallelism)
        return StreamWriteTask(streams=streams, tables=recipes)

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
    declared = HashFormula.declared(bootstrap.hashes)
    if bootstrap.like is not None:
        try:
            return prove_hashes(bootstrap.like.keyed.sources(), key, declared).formula
        except UnsupportedError:
            if bootstrap.key_group is None:
                raise
            return declared
    if bootstrap.key_group is None and (missing := [name for name in classes if declared.of(name) is None]):
        example = "avro[1, 10]()" if isinstance(classes[missing[0]], AvroSerializer) else "Objects.hash(a, b)"
        raise OptionError(
            f"the hash code of {', '.join(missing)}, the type of a key, lies in user code",
            hint=f'declare it, as in hashes={{"{missing[0]}": "{example}"}}, or take it from an operator with like=',
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
            f"some of the timers that lie together in raw keyed state: {', '.join(sorted(raw & set(gone)))}",
            hint="replace all timers of the operator, or none",
        )
    return True


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
                "the checkpoint is unaligned: records in flight were dealt to the old key groups", hint=stops
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
                f"subtask {s.index} had finished, so its place cannot be given to others", hint=stops
            ).at(operator=operator.label)
        if s.index in operator.keyed.own_raw_subtasks:
            raise UnsupportedError(
                "raw keyed state that is no timers: the operator itself wrote it, and only the operator can deal it out again",
                hint="leave the operator's max parallelism and parallelism as they are",
            ).at(operator=operator.label)
