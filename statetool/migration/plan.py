"""Plan of a migration: states that get another type, derived from a snapshot and a snapshot of the new job. Stored as editable JSON.

A plan stores the new descriptions of states and the user's :class:`~statetool.migration.choices.Choices`. Its steps are computed again
whenever it is read, so they always match the snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.states import Job, check_elements, check_keyed
from statetool.compatibility.verdicts import Level
from statetool.entries.joined_headers import meta_bytes
from statetool.errors import OptionError, UnknownNameError, UnsupportedError, article, suggest
from statetool.formats.state_meta import StateMetaInfo
from statetool.migration.choices import Choices, Step
from statetool.migration.compiling import NO_ACCESS
from statetool.migration.conversion import TypeConversion, are_of_both_apis, can_become, compile_state
from statetool.migration.keys import KeyMigration
from statetool.migration.occurring import Occurring, changed_objects
from statetool.migration.sql_changes import OperatorStep, change_key_columns, operator_steps
from statetool.migration.sql_states import change_states
from statetool.migration.state_api import StateApi, as_state_of
from statetool.saving.composition import OperatorChange
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.equal_types import snapshot_bytes
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope
from statetool.sql_plans.aggregates import (
    added_distinct,
    changed_key,
    changed_rows,
    changed_view,
    moved_views,
    unnamed_rows,
    unplanned_view,
)

if TYPE_CHECKING:
    from statetool.saving.recomputing.entries import Recomputation

#: Backend assumed for checks: RocksDB migrates less than the heap backend. The release does not matter.
_JOB: Final = Job(backend="rocksdb")
_UNCHANGED: Final = (Level.AS_IS, Level.RECONFIGURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMigration:
    """Migration of one state to another type.

    Attributes
    ----------
    before, after
        The types, as readable text.
    steps
        Steps in the order of the new fields.
    failure
        Reason why a value cannot be converted, if values were tried (:func:`~statetool.migration.trial.try_conversions`).
    """

    uid: str
    state: str
    scope: Scope
    before: str
    after: str
    conversion: TypeConversion
    steps: tuple[Step, ...]
    failure: str = ""

    @property
    def choices(self) -> Choices:
        """The user's choices for the state."""
        return self.conversion.choices

    @property
    def name(self) -> str:
        """``uid.state``, the prefix of the names of its steps."""
        return f"{self.uid}.{self.state}"

    @property
    def unaccepted(self) -> tuple[Step, ...]:
        """Steps that cannot be performed, or that lose something and were not accepted."""
        return tuple(
            s
            for s in self.steps
            if s.change == "impossible" or (s.loses and (s.path, s.change) not in self.choices.accept)
        )

    def accepted_as(self, step: Step) -> str:
        """Return the name under which a step is accepted: its path, followed by its change if two steps lose something at the path."""
        unique = sum(s.loses and s.path == step.path for s in self.steps) < 2
        return f"{self.name}.{step.path}" + ("" if unique or not step.loses else f":{step.change}")

    def with_choices(self, choices: Choices) -> StateMigration:
        """Return the migration with other choices, and the resulting steps."""
        return migration_of(self.uid, self.scope, replace(self.conversion, choices=choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step as readable text. ``step`` is the name under which it is accepted."""

    step: str
    change: str
    text: str
    needs: Literal["nothing", "acceptance", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """Migrations of states to other types.

    Attributes
    ----------
    metadata_version
        Metadata version of the snapshot of the new job.
    refused
        Differences that cannot be migrated: of keys, namespaces, kinds of state.
    keys
        Changes of keys.
    operators
        Changes of operators as a whole, by the compiled plans of SQL jobs.
    recomputed
        Operators whose whole keyed state is computed from the old one, by uid.
    scales
        New max parallelism, and parallelism, of operators beside an aggregation that gets a single group.
    """

    states: tuple[StateMigration, ...]
    metadata_version: int
    refused: tuple[str, ...] = ()
    keys: tuple[KeyMigration, ...] = ()
    operators: tuple[OperatorStep, ...] = ()
    scales: Mapping[str, int] = field(default_factory=dict)
    recomputed: Mapping[str, Recomputation] = field(default_factory=dict)

    @property
    def rows(self) -> list[StepRow]:
        """Return all steps."""
        return [
            StepRow(step=s.accepted_as(step), change=step.change, text=step.text, needs=_needs(s, step))
            for s in self.states
            for step in s.steps
        ] + [*self._rows_of_keys(), *self._rows_of_operators()]

    def _rows_of_operators(self) -> Iterator[StepRow]:
        for one in self.operators:
            needs: Literal["nothing", "acceptance"] = "acceptance" if one.is_open else "nothing"
            yield StepRow(step=one.step, change=one.change, text=one.text, needs=needs)

    def _rows_of_keys(self) -> Iterator[StepRow]:
        for one in self.keys:
            yield StepRow(step=f"{one.uid}.key", change="key", text=one.text, needs="nothing")
        kept = dict.fromkeys(uid for one in self.keys for uid in one.kept)
        for uid in kept:
            text = (
                "keys of the old type stay: an operator that gets its records by the same keyBy needs the same change"
            )
            yield StepRow(step=f"{uid}.key", change="unchanged", text=text, needs="nothing")

    def accepting(self, names: Collection[str]) -> MigrationPlan:
        """Return the plan with steps accepted by their names in :attr:`rows`.

        Raises
        ------
        UnknownNameError
            A step does not exist.
        OptionError
            Two states have a step with this name.
        """
        known: list[Mapping[str, object]] = [{s.accepted_as(step): step for step in s.steps} for s in self.states]
        known += [{one.step: one} for one in self.operators]
        for name in names:
            count = sum(name in steps for steps in known)
            if not count:
                every = [n for steps in known for n in steps]
                raise UnknownNameError(f"the plan has no step {name!r}", hint=suggest(name, every))
            _check_unique(name, count)
        states = []
        for s in self.states:
            steps = {(step.path, step.change) for step in s.steps if s.accepted_as(step) in names}
            states.append(s.with_choices(replace(s.choices, accept=s.choices.accept | steps)) if steps else s)
        operators = (replace(one, accepted=True) if one.step in names else one for one in self.operators)
        return replace(self, states=tuple(states), operators=tuple(operators))

    def renaming(self, names: Mapping[str, str]) -> MigrationPlan:
        """Return the plan with renamed fields: old names by the new field's path, as in names of steps.

        Raises
        ------
        UnknownNameError
            A state does not exist.
        """
        plan = self
        for name, old in names.items():
            state = self._state_of(name)
            plan = plan.with_choices(state, sources={name.removeprefix(f"{state}."): old})
        return plan

    def filling(self, values: Mapping[str, Any]) -> MigrationPlan:
        """Return the plan with values of added fields (as in JSON), by the new field's path, as in names of steps.

        Raises
        ------
        UnknownNameError
            A state does not exist.
        """
        plan = self
        for name, value in values.items():
            state = self._state_of(name)
            plan = plan.with_choices(state, fills={name.removeprefix(f"{state}."): value})
        return plan

    def with_last_access(self, epoch_ms: int) -> MigrationPlan:
        """Return the plan with the last access of all values that get a time to live, and that have none yet."""
        states = (
            s.with_choices(replace(s.choices, last_access_ms=epoch_ms))
            if any(t.text == NO_ACCESS for t in s.steps)
            else s
            for s in self.states
        )
        return replace(self, states=tuple(states))

    def _state_of(self, field: str) -> str:
        known = [s.name for s in self.states]
        state = max((n for n in known if field.startswith(f"{n}.")), key=len, default=None)
        if state is None:
            raise UnknownNameError(f"no state of the plan has a field {field!r}", hint=suggest(field, known))
        return state

    def with_choices(
        self,
        state: str,
        *,
        sources: Mapping[str, str] | None = None,
        fills: Mapping[str, Any] | None = None,
        constants: Mapping[str, Mapping[str, str]] | None = None,
        last_access_ms: int | None = None,
    ) -> MigrationPlan:
        """Return the plan with more choices for one state (``uid.state``), by paths inside it.

        Parameters
        ----------
        sources, fills
            Old names of renamed fields, and values of added fields.
        constants
            New names of an enum's constants, by their old names.
        last_access_ms
            Last access of values that get a time to live.

        Raises
        ------
        UnknownNameError
            The state does not exist.
        OptionError
            Two states have this name.
        """
        known = [s.name for s in self.states]
        if state not in known:
            raise UnknownNameError(f"the plan has no state {state!r}", hint=suggest(state, known))
        _check_unique(state, known.count(state))
        old = self.states[known.index(state)].choices
        choices = replace(
            old,
            sources={**old.sources, **(sources or {})},
            fills={**old.fills, **(fills or {})},
            constants={**old.constants, **(constants or {})},
            last_access_ms=old.last_access_ms if last_access_ms is None else last_access_ms,
        )
        return replace(self, states=tuple(s.with_choices(choices) if s.name == state else s for s in self.states))

    def check(self) -> None:
        """Refuse a plan with steps that cannot be performed, or that lose something and were not accepted.

        Raises
        ------
        UnsupportedError
            The error names every such step.
        """
        unsettled = [row for row in self.rows if row.needs != "nothing"]
        lines = [*self.refused, *(f"{row.step}: {row.change}: {row.text}" for row in unsettled)]
        if lines:
            accepted = all(row.needs == "acceptance" for row in unsettled) and not self.refused
            hint = "accept the steps by name, or give the old name of a field (--rename) or its value (--fill)"
            raise UnsupportedError(
                f"the migration {'would lose values' if accepted else 'cannot be done'}: {'; '.join(lines)}", hint=hint
            )

    def for_catching_up(self) -> MigrationPlan:
        """Return the plan with what cannot be reused from an earlier migration refused: changes of keys, and states that move."""
        moved = [one.step for one in self.operators if one.new_state is not None or one.drops]
        changed = [f"{one.uid}.key" for one in self.keys] + moved + [f"{uid}.states" for uid in self.recomputed]
        refused = tuple(
            f"{name}: cannot be caught up with: migrate the later snapshot (statetool migrate)" for name in changed
        )
        return replace(self, refused=(*self.refused, *refused))

    @property
    def is_open(self) -> bool:
        """Whether :meth:`check` would refuse the plan."""
        return bool(self.refused) or any(row.needs != "nothing" for row in self.rows)

    @property
    def changes(self) -> dict[str, OperatorChange]:
        """The conversions of each operator's states, by uid."""
        by_uid: dict[str, dict[str, TypeConversion]] = {}
        for s in self.states:
            by_uid.setdefault(s.uid, {})[s.state] = s.conversion
        keys = {one.uid: one.change for one in self.keys}
        moves: dict[str, dict[str, str]] = {}
        drops: dict[str, set[str]] = {}
        for one in self.operators:
            if one.new_state is not None:
                moves.setdefault(one.uid, {})[one.name] = one.new_state
            elif one.drops:
                drops.setdefault(one.uid, set()).add(one.name)
        return {
            uid: OperatorChange(
                conversions=by_uid.get(uid, {}),
                keys=keys.get(uid),
                max_parallelism=self.scales.get(uid),
                parallelism=self.scales.get(uid),
                renames=moves.get(uid, {}),
                dropped_states=frozenset(drops.get(uid, ())),
                recomputed=self.recomputed.get(uid),
            )
            for uid in dict.fromkeys((*by_uid, *keys, *moves, *drops, *self.scales, *self.recomputed))
        }


def _check_unique(name: str, count: int) -> None:
    if count > 1:
        raise OptionError(f"two states of the plan have {name!r}", hint="edit the plan's JSON for each state")


def _needs(state: StateMigration, step: Step) -> Literal["nothing", "acceptance", "correction"]:
    if step.change == "impossible":
        return "correction"
    return "acceptance" if step in state.unaccepted else "nothing"


#: States that the code of the new job declares otherwise than its snapshot has them, by operator id, scope and name.
_Declared: TypeAlias = "Mapping[tuple[str, Scope, str], StateMetaInfo]"


def plan_migration(
    old: Inventory,
    new: Inventory,
    state_api: StateApi | None = None,
    declared: _Declared = MappingProxyType({}),
    keys: tuple[KeyMigration, ...] = (),
) -> MigrationPlan:
    """Plan the migration of a snapshot's states to their types in a snapshot of the new job.

    States whose values Flink reads unchanged are not migrated. Neither are states of operators that the new job does not have.

    Parameters
    ----------
    state_api
        The API of all keyed states in the new job, by default that of its snapshot.
    declared
        Descriptions of states in the new job that count instead of those of its snapshot.
    keys
        Changes of keys.

    Raises
    ------
    FormatError, UnknownSerializerError
        A header cannot be read.
    """
    new_operators = {o.state.operator_id: o for o in new.operators.values()}
    states: list[StateMigration] = []
    refused: list[str] = []
    made: list[KeyMigration] = []
    operators: list[OperatorStep] = []
    recomputed: dict[str, Recomputation] = {}
    is_one_group = False
    for operator in old.operators.values():
        successor = new_operators.get(operator.state.operator_id)
        if successor is None:
            continue
        of_both = [
            (scope, before, declared.get((operator.state.operator_id, scope, before.name), after))
            for scope, before, after in _state_pairs(operator, successor)
        ]
        changed = next((one for one in keys if one.uid == operator.label), None)
        whole = change_states(operator, successor)
        if whole is not None and changed is None:
            refused += [f"{operator.label}: {whole.refusal}"] if whole.refusal else []
            operators += whole.steps
            if whole.recomputation is not None:
                recomputed[operator.label] = whole.recomputation
            states += _migrations(operator, successor, (s for s in of_both if s[0] == "operator"), state_api)
            continue
        columns = None if changed is not None else change_key_columns(operator, successor)
        if columns is not None and columns.keys is not None:
            changed = columns.keys
            made.append(changed)
            operators += columns.steps
            is_one_group |= columns.is_one_group
        refused += _refusal(operator, successor, of_both, changed, "" if columns is None else columns.refusal)
        states += _migrations(operator, successor, of_both, state_api)
        operators += operator_steps(operator, successor)
    return MigrationPlan(
        states=tuple(states),
        metadata_version=new.metadata.version,
        refused=tuple(refused),
        keys=(*keys, *made),
        operators=tuple(operators),
        scales=_single_scales(old, new_operators) if is_one_group else {},
        recomputed=recomputed,
    )


def _single_scales(old: Inventory, new: Mapping[str, OperatorInventory]) -> dict[str, int]:
    """Return the operators that run in one task in the new job, and did not, such as those in the chain of an aggregation of one group."""
    pairs = ((o.label, o.state, new.get(o.state.operator_id)) for o in old.operators.values())
    return {
        label: 1
        for label, state, successor in pairs
        if successor is not None and successor.state.max_parallelism == 1 != state.max_parallelism
    }


_StatePair: TypeAlias = tuple[Scope, StateMetaInfo, StateMetaInfo]


def _state_pairs(old: OperatorInventory, new: OperatorInventory) -> Iterator[_StatePair]:
    moved = moved_views(old.plan_aggregates, new.plan_aggregates, tuple(old.keyed_states))
    for name, (_, meta) in old.keyed_states.items():
        after = moved.get(name, name)
        if after is not None and after in new.keyed_states and meta.kind != "timers":
            yield "keyed", meta, replace(new.keyed_states[after][1], name=name)
    for name, meta in old.operator_states.items():
        if name in new.operator_states:
            yield "operator", meta, new.operator_states[name]


def _migrations(
    old: OperatorInventory, new: OperatorInventory, states: Iterable[_StatePair], state_api: StateApi | None
) -> Iterator[StateMigration]:
    for scope, before, described in states:
        after = described if state_api is None else as_state_of(described, state_api)
        names, new_names = changed_rows(old.plan_aggregates, new.plan_aggregates, before.name)
        if not can_become(before, after):
            continue
        occurring = changed_objects(old, scope, before, new.types)
        if not names and occurring == Occurring() and _stays(before, after, old, new):
            continue
        conversion = TypeConversion(
            before=meta_bytes(before),
            before_types=old.types,
            after=meta_bytes(after),
            types=new.types,
            choices=Choices(),
            names=names,
            new_names=new_names,
            objects=occurring.objects,
            more_objects=occurring.more,
        )
        yield migration_of(old.label, scope, conversion)


def migration_of(uid: str, scope: Scope, conversion: TypeConversion) -> StateMigration:
    """Derive the steps of a state's conversion from its types and the user's choices."""
    before, after = conversion.old, conversion.meta
    compiler = conversion.compiler()
    compile_state(before, after, compiler)
    steps = [*compiler.steps, *compiler.unused()] or [
        Step(path="value", change="positions", text="columns are matched by the names of the compiled plans")
        if conversion.names
        else Step(path="value", change="rewrite", text="same values, written with the new serializer")
    ]
    return StateMigration(
        uid=uid,
        state=before.name,
        scope=scope,
        before=before.value.type_name,
        after=after.value.type_name,
        conversion=conversion,
        steps=tuple(steps),
    )


def _stays(before: StateMetaInfo, after: StateMetaInfo, old: OperatorInventory, new: OperatorInventory) -> bool:
    """Return True if Flink reads the values of a state without migration."""
    if are_of_both_apis(before, after):
        return False
    if before.kind == after.kind and _are_thrift(before, after):
        return True
    kryo = old.types.kryo != new.types.kryo and any(map(_has_kryo, before.serializers.values()))
    if kryo or before.kind != after.kind or _other_classes(before, after):
        return False
    if {n: snapshot_bytes(s) for n, s in before.serializers.items()} == {
        n: snapshot_bytes(s) for n, s in after.serializers.items()
    }:
        return True
    check = check_keyed if before.namespace is not None else check_elements
    resolution = check(before, after, _JOB)
    return resolution.level in _UNCHANGED and not resolution.warnings


def _are_thrift(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if all that Kryo writes, and all that differs, are Thrift structs of the same classes.

    They have the same bytes in all releases of Kryo, and their new class reads these or fails. They cannot be written here.
    """
    parts = [
        pair
        for name, old in before.serializers.items()
        if (new := after.serializers.get(name)) is None or _has_kryo(old) or snapshot_bytes(old) != snapshot_bytes(new)
        for pair in zip_longest(all_parts(old), () if new is None else all_parts(new))
    ]
    return any(isinstance(a, KryoSerializer) for a, _ in parts) and all(map(_are_alike, parts))


def _has_kryo(serializer: Serializer) -> bool:
    return any(isinstance(part, KryoSerializer) for part in all_parts(serializer))


def _are_alike(parts: tuple[Serializer | None, Serializer | None]) -> bool:
    old, new = parts
    if not isinstance(old, KryoSerializer) or not isinstance(new, KryoSerializer):
        return type(old) is type(new) and not isinstance(old, PojoSerializer)
    found = [p.context.find(p.type_class) for p in (old, new)]
    return old.type_class == new.type_class and all(d is not None and d.kind == "thrift" for d in found)


def _other_classes(before: StateMetaInfo, after: StateMetaInfo) -> bool:
    """Return True if both jobs declare classes of the values, and differently."""
    for name, serializer in before.serializers.items():
        if (old := serializer.declarations()) and name in after.serializers:
            new = after.serializers[name].declarations()
            if new and old != new:
                return True
    return False


#: The reason against the conversion of broadcast state.
_BROADCAST: Final = (
    "Broadcast state is a map that each subtask stores whole, and Flink divides the elements of lists among the subtasks: "
    "write the new state with bootstrap_list_state or bootstrap_broadcast_state"
)


def _refusal(
    old: OperatorInventory,
    new: OperatorInventory,
    states: Iterable[_StatePair],
    keys: KeyMigration | None,
    why_not: str,
) -> Iterator[str]:
    """Yield the differences that cannot be migrated."""
    if old.keyed.key is not None and new.keyed.key is not None:
        resolution = resolve(old.keyed.key if keys is None else keys.change.key, new.keyed.key)
        if resolution.level not in _UNCHANGED and not why_not and (keys is not None or not _is_same_key(old, new)):
            changed = "" if keys is None else "after their change, "
            yield f"{old.label}: keys: {changed}{resolution.reason.rstrip('.')}"
    if keys is None and (key := changed_key(old.plan_aggregates, new.plan_aggregates)):
        if why_not:
            yield f"{old.label}: {key}, and {why_not}"
            return
        yield f"{old.label}: {key}. Change them with --key (keys=), or keep the columns of GROUP BY or of the join"
    for name in added_distinct(old.plan_aggregates, new.plan_aggregates):
        yield f"{old.label}: {name} is new, and the distinct values that the state has seen are not added to it"
    for name, moved in moved_views(old.plan_aggregates, new.plan_aggregates, tuple(old.keyed_states)).items():
        if moved is not None and moved not in new.keyed_states:
            yield f"{old.label}.{name}: the new job has no state {moved!r}"
    for _, before, after in states:
        if view := changed_view(old.plan_aggregates, new.plan_aggregates, before.name):
            yield f"{old.label}.{before.name}: {view}. Keep such aggregates at their positions in the query, and add others after them"
        if unnamed := unnamed_rows(old.plan_aggregates, new.plan_aggregates, before.name):
            yield f"{old.label}.{before.name}: {unnamed}. Pass the plan of each snapshot's job, or no plan to keep the positions"
        unplanned = unplanned_view(old.plan_aggregates, new.plan_aggregates, before.name)
        if unplanned and can_become(before, after) and not _stays(before, after, old, new):
            yield f"{old.label}.{before.name}: {unplanned}. Pass the plan of each snapshot's job"
        yield from refusals_of_state(f"{old.label}.{before.name}", before, after)


def _is_same_key(old: OperatorInventory, new: OperatorInventory) -> bool:
    """Return True if nothing that is known of the keys differs. They keep their bytes, and a check says what their classes leave open."""
    before, after = old.keyed.key, new.keyed.key
    if before is None or after is None or old.types.kryo != new.types.kryo:
        return False
    known = before.declarations(), after.declarations()
    return snapshot_bytes(before) == snapshot_bytes(after) and (not all(known) or known[0] == known[1])


def refusals_of_state(name: str, before: StateMetaInfo, after: StateMetaInfo) -> Iterator[str]:
    """Yield the differences between two descriptions of a state that cannot be migrated."""
    if "broadcast" in (before.kind, after.kind) and before.kind != after.kind:
        yield f"{name}: {article(before.kind)} state became {article(after.kind)} state. {_BROADCAST}"
    elif not can_become(before, after):
        yield f"{name}: {article(before.kind)} state became {article(after.kind)} state, or a state of another API"
    elif before.namespace is not None and after.namespace is not None:
        resolution = resolve(before.namespace, after.namespace)
        if resolution.level not in _UNCHANGED:
            yield f"{name}: namespaces: {resolution.reason.rstrip('.')}"
