"""The plan of one operator to write: the new streams of its keyed state and its operator state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from statetool.entries.database import in_files
from statetool.entries.joined_headers import join_headers
from statetool.errors import StatetoolError, UnsupportedError, warn
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.java.declaring.flink_types import timer
from statetool.java.hashing.formulas import HashFormula
from statetool.saving.bootstrap.formulas import formula_of
from statetool.saving.bootstrap.model import ElementBootstrap, KeyedBootstrap, TableSchema
from statetool.saving.bootstrap.states import python_states
from statetool.saving.bootstrap.tables import element_metas, element_recipes, keyed_job, state_names
from statetool.saving.composition import Composition, OperatorChange, SourceOperator, StreamWriteTask
from statetool.saving.forms import KeyedForm
from statetool.saving.grafts import check_added
from statetool.saving.plan_checks import check_native, has_timers, needs_move, prove_moves, writes_raw_timers
from statetool.saving.recomputing.entries import ComputedEntries, computed_entries
from statetool.saving.streams.conversion import StateConversion
from statetool.saving.streams.databases import streams_in_place
from statetool.saving.streams.elements import element_streams
from statetool.saving.streams.filters import ReplaceFilter
from statetool.saving.streams.kept_tables import KeptDatabase, StateChange, kept_databases
from statetool.saving.streams.keyed import AddedEntries, CarriedEntries, KeyedStreams, parse_keyed_header
from statetool.saving.streams.native import HeapForm, NativeForm
from statetool.serializers.core.base import Serializer, all_parts
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.operators import describe_operators

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
    def tasks(self) -> tuple[StreamWriteTask, ...]:
        """Return the tasks that write the operator."""
        return tuple(task for task in (self.keyed, self.elements) if task is not None)


@dataclass(frozen=True, slots=True)
class Layout:
    """The change of one operator, and how its new state is distributed."""

    label: str
    change: OperatorChange
    max_parallelism: int
    parallelism: int
    inline_bytes: int
    checkpoint_id: int
    types: TypeContext

    @classmethod
    def of(
        cls,
        label: str,
        change: OperatorChange,
        tables: DescribedTables,
        composition: Composition,
        base: TypeContext,
        max_parallelism: int,
        parallelism: int,
    ) -> Layout:
        """Return the layout of an operator; ``base`` has the declarations of the base."""
        # Declarations for new state: those of conversions, of the operator in ``like``, or of the base.
        likes = [b.like.types for b, _ in tables if b.like is not None]
        types = next(iter([*(c.types for c in change.conversions.values()), *likes]), base)
        python = tuple(p for b, _ in tables if isinstance(b, KeyedBootstrap) for p in python_states(b))
        types = replace(types, python=(*types.python, *python)) if python else types
        return cls(
            label, change, max_parallelism, parallelism, composition.inline_bytes, composition.new_checkpoint_id, types
        )

    def touches(self, names: Collection[str]) -> bool:
        """Return True if some of these states are left out, renamed or converted."""
        change = self.change
        return any(name in names for name in (*change.dropped_states, *change.renames, *change.conversions))

    def planned(
        self, old: OperatorState | None, keyed: StreamWriteTask | None, elements: StreamWriteTask | None
    ) -> PlannedOperator:
        """Return the operator with the tasks that write it."""
        return PlannedOperator(
            uid=self.label,
            max_parallelism=self.max_parallelism,
            parallelism=self.parallelism,
            old=old,
            keyed=keyed,
            elements=elements,
        )


@dataclass(frozen=True, slots=True)
class KeyedPlan:
    """The change of an operator's keyed state, with the schemas of its tables."""

    layout: Layout
    tables: list[tuple[KeyedBootstrap, TableSchema]]

    @classmethod
    def of(cls, layout: Layout, tables: DescribedTables) -> KeyedPlan:
        """Return the plan of the tables of keyed state."""
        return cls(layout, [(b, t) for b, t in tables if isinstance(b, KeyedBootstrap)])

    @property
    def gone(self) -> frozenset[str]:
        """Return the states of the base that are left out or replaced."""
        return self.layout.change.dropped_states | state_names(self.tables)

    def touches(self, operator: OperatorInventory) -> bool:
        """Return True if states of the base change, or new ones are added to them."""
        change = self.layout.change
        return bool(self.tables or change.added or change.keys or change.recomputed) or self.layout.touches(
            operator.keyed_states
        )

    def kept(self, operator: OperatorInventory) -> dict[int, KeptDatabase]:
        """Return the table files that the operator's databases keep, by subtask.

        They keep none if their form may change, keys move to other key groups or subtasks, or all state is computed anew.

        Raises
        ------
        FormatError
            A kept file is damaged.
        """
        change, layout = self.layout.change, self.layout
        old = operator.state
        moves = needs_move(old, layout.max_parallelism, layout.parallelism) or change.keys is not None
        if change.form not in ("rocksdb", "forst") or not change.keeps_form or moves or change.recomputed is not None:
            return {}
        changes = dict(self._changes(operator))
        try:
            return kept_databases(operator, changes, layout.parallelism)
        except StatetoolError as error:
            raise error.at(operator=operator.label) from error.__cause__

    def _changes(self, operator: OperatorInventory) -> Iterator[tuple[str, StateChange]]:
        """Yield the states that stay, except those whose entries all get other values or another place, with the key groups that change."""
        change = self.layout.change
        written = self.gone | change.conversions.keys() | {new for a in change.added for new in a.names.values()}
        raw_timers = self._writes_raw_timers(operator, change.form)
        entry_filter, filtered = change.filter, change.filtered_states
        groups: frozenset[int] = frozenset()
        if entry_filter is not None:
            groups = frozenset(g for g in range(operator.state.max_parallelism) if entry_filter.may_change(g))
            if isinstance(entry_filter, ReplaceFilter):
                filtered = frozenset(entry_filter.removed) | {entry.state for entry in entry_filter.added}
        for name, (_, meta) in operator.keyed_states.items():
            new = change.renames.get(name, name)
            if name in written or new in written or (raw_timers and meta.kind == "timers"):
                continue
            changes = filtered is None or name in filtered
            yield name, StateChange(name=new, groups=groups if changes else frozenset())

    def _writes_raw_timers(self, operator: OperatorInventory | None, form: KeyedForm | None) -> bool:
        """Return True if new timers are written as raw keyed state beside a database."""
        added = (a.source.operator for a in self.layout.change.added)
        raw_timers = writes_raw_timers(form, () if operator is None else (operator, *added))
        # The first timers of an operator show nothing of where its job keeps timers.
        keeps = self.layout.change.keeps_form
        return raw_timers or (form == "rocksdb" and keeps and operator is not None and not has_timers(operator))

    def task(
        self,
        operator: OperatorInventory | None,
        *,
        moves: bool = False,
        kept: Mapping[int, KeptDatabase] = MappingProxyType({}),
    ) -> StreamWriteTask | None:
        """Plan the keyed state; ``None`` if there is none. ``kept`` are the table files of databases that are not written again."""
        layout = self.layout
        if layout.change.recomputed is not None:
            return self._recomputed(operator)
        header, gone, renames = None, self.gone, layout.change.renames
        if operator is not None:
            header = operator.keyed.joined_header(raw=moves, without=gone)
        if header is not None:
            base = NOTHING_DECLARED if operator is None else operator.types
            metas = _convert_states(header, base, layout.change.conversions)
            header = replace(header, states=tuple(_rename_state(m, renames) for m in metas))
            if layout.change.keys is not None:
                header = _with_key(header, layout.change.keys.key)
        own = () if header is None else tuple(m.name for m in header.states)
        header = self._with_added(operator, header)
        if not self.tables and not (header is not None and header.states):
            return None
        if header is not None and layout.change.is_native:
            header = replace(header, compressed=False)
        task = keyed_job(
            layout.label,
            self.tables,
            header,
            parallelism=layout.parallelism,
            max_parallelism=layout.max_parallelism,
            inline_bytes=layout.inline_bytes,
            formula_of=formula_of,
            types=layout.types,
        )
        task = self._with_keys(self._in_form(task, operator, kept))
        if header is None:
            return task
        new_ids = {m.name: i for i, m in enumerate(header.states)}
        entries: list[CarriedEntries | AddedEntries | ComputedEntries] = []
        ids = {old: new_ids[new] for old, new in renames.items() if new in own}
        ids |= {name: new_ids[name] for name in own if name not in renames.values()}
        if operator is not None and own:
            groups = _remaining_groups(operator, layout.change)
            rekeyed = task.streams if isinstance(task.streams, KeyedStreams) and task.streams.keys else None
            carried = self._entries(operator, ids, layout.change.formula, raw=moves, groups=groups)
            parts = (part for one in carried for part in _to_read(one, kept))
            entries += [replace(part, rekeyed=rekeyed) for part in parts]
        for added in layout.change.added:
            other = added.source.operator
            proof = prove_moves(other, layout.max_parallelism, added.declared or HashFormula.declared({}))
            other_ids = {old: new_ids[new] for old, new in added.names.items() if new in new_ids}
            entries += self._entries(other, other_ids, proof.formula, raw=True)
        if own and layout.change.filter is not None and layout.change.filter.added:
            entries.append(AddedEntries(added=layout.change.filter.added, ids=ids))
        return replace(task, kept=tuple(entries))

    def _recomputed(self, operator: OperatorInventory | None) -> StreamWriteTask:
        """Plan keyed state that is computed from all of that of the base."""
        change, layout = self.layout.change.recomputed, self.layout
        assert change is not None
        assert operator is not None
        header = operator.keyed.joined_header()
        assert header is not None
        compressed = header.compressed and not layout.change.is_native
        new = replace(change.header, compressed=compressed)
        task = keyed_job(
            layout.label,
            (),
            new,
            parallelism=layout.parallelism,
            max_parallelism=layout.max_parallelism,
            inline_bytes=layout.inline_bytes,
            formula_of=formula_of,
            types=change.types,
        )
        task = self._in_form(task, operator, {})
        assert isinstance(task.streams, KeyedStreams)
        sources, number = operator.keyed.sources(raw=True), layout.max_parallelism
        kept = computed_entries(sources, change.rule, task.streams.header, change.types, number)
        return replace(task, kept=tuple(kept))

    def _with_keys(self, task: StreamWriteTask) -> StreamWriteTask:
        """Return the task with the change of keys, if there is one."""
        keys, streams = self.layout.change.keys, task.streams
        if keys is None:
            return task
        assert isinstance(streams, KeyedStreams)
        return replace(task, streams=replace(streams, keys=keys, lists=keys.shuffled_states(streams.parsed)))

    def _in_form(
        self, task: StreamWriteTask, operator: OperatorInventory | None, kept: Mapping[int, KeptDatabase]
    ) -> StreamWriteTask:
        """Return the task with the native form of the change, if it has one.

        Raises
        ------
        UnsupportedError
            The form cannot hold a state.

        Warns
        -----
        UserWarning
            State of the heap backend that was to keep its form becomes canonical.
        """
        form, streams, keeps = self.layout.change.form, task.streams, self.layout.change.keeps_form
        if form is None or form == "canonical":
            return task
        assert isinstance(streams, KeyedStreams)
        raw_timers = self._writes_raw_timers(operator, form)
        try:
            check_native(form, streams.parsed, operator, self.layout.label, raw_timers=raw_timers)
            if form == "heap" and keeps and self.layout.change.conversions:
                # Whoever reads the copy may not have the classes of the new job.
                stored = parse_keyed_header(
                    streams.header, replace(streams.types, classes=(), source=None, renewed=False)
                )
                check_native(form, stored, operator, self.layout.label, raw_timers=raw_timers)
        except UnsupportedError as error:
            is_asynchronous = any(meta.backend_type == KEY_VALUE_V2 for meta in streams.parsed.states)
            if not keeps or form != "heap" or is_asynchronous:
                raise
            # Its job restores canonical state too.
            warn(
                f"{describe_operators([self.layout.label])} becomes canonical, which the heap backend restores: {error}"
            )
            return task
        native: NativeForm | HeapForm = HeapForm()
        if form != "heap":
            native = NativeForm.like(operator, self.layout.checkpoint_id, raw_timers=raw_timers)
            native = replace(native, kept={subtask: database.tables for subtask, database in kept.items()})
        return replace(task, streams=replace(streams, native=native))

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
class ElementPlan:
    """The change of an operator's operator state, with the schemas of its tables."""

    layout: Layout
    tables: list[tuple[ElementBootstrap, TableSchema]]

    @classmethod
    def of(cls, layout: Layout, tables: DescribedTables) -> ElementPlan:
        """Return the plan of the tables of operator state."""
        return cls(layout, [(b, t) for b, t in tables if isinstance(b, ElementBootstrap)])

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

    def task(self, operator: OperatorInventory | None) -> StreamWriteTask | None:
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


def _to_read(entries: CarriedEntries, kept: Mapping[int, KeptDatabase]) -> Iterator[CarriedEntries]:
    """Yield the entries of the base that are written again, besides those in kept table files."""
    database = kept.get(entries.source.subtask)
    if database is None:
        yield entries
    elif (rest := in_files(entries.source, database.rest)) is not None:
        yield replace(entries, source=rest)


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


def _with_key(header: KeyedHeader, key: Serializer) -> KeyedHeader:
    """Return a header whose keys, also those of timers, have another serializer."""
    states = []
    for meta in header.states:
        if meta.kind == "timers":
            (_, _), (_, namespace) = meta.value.children()
            meta = replace(meta, serializers={**meta.serializers, "VALUE_SERIALIZER": timer(key, namespace)})
        states.append(meta)
    return replace(header, key=key, states=tuple(states))


def _rename_state(meta: StateMetaInfo, renames: Mapping[str, str]) -> StateMetaInfo:
    return replace(meta, name=renames[meta.name]) if meta.name in renames else meta


def _remaining_groups(operator: OperatorInventory, change: OperatorChange) -> frozenset[int] | None:
    """Return the key groups of an operator that have entries after filtering, ``None`` for all."""
    if change.filter is None:
        return None
    return frozenset(g for g in range(operator.state.max_parallelism) if not change.filter.removes(g))
