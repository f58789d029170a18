"""One operator of a snapshot: its states and their types.

Only the metadata and the first bytes of streams are read. Neither numpy, Arrow nor Spark is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import NO_FINDING, FormatError, OptionError, StatetoolError, UnknownNameError, suggest
from statetool.formats.channel_state import Channel, channels_of
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import StreamHandle, file_streams
from statetool.formats.metadata.model import operator_handles
from statetool.formats.stream import Stream
from statetool.snapshot.locate import Locator
from statetool.snapshot.state_info import StateInfo, state_info, unread_info
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS, Scope, state_tables
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.operators import OperatorLabel

if TYPE_CHECKING:
    from statetool.entries.form import OperatorReadContext
    from statetool.formats.keyed.header import KeyedHeader
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.serializers.core.base import Serializer
    from statetool.snapshot.elements import ElementInventory
    from statetool.snapshot.keyed import KeyedInventory
    from statetool.sql_plans.aggregates import PlanAggregates
    from statetool.sql_plans.compiled_plan import CompiledPlan
    from statetool.sql_plans.outlines import NodeOutline

_NO_STATES: Final[Mapping[str, Any]] = MappingProxyType({})


class OperatorInventory:
    """One operator of a snapshot.

    Parameters
    ----------
    given_key
        The key type, if the user declared it.
    types
        Type information from outside of the snapshot.
    plan
        The compiled plan of the SQL job, for names of columns.
    learned
        Headers of another snapshot of the operator, for POJO subclasses that this one does not describe.
    """

    def __init__(
        self,
        state: OperatorState,
        label: OperatorLabel,
        locator: Locator,
        given_key: Serializer | None = None,
        types: TypeContext = NOTHING_DECLARED,
        plan: CompiledPlan | None = None,
        learned: Mapping[Scope, tuple[tuple[bytes, int], ...]] | None = None,
    ) -> None:
        self.state = state
        #: The uid, or the operator id if the uid is not known, with the name.
        self.label = label
        self.types = types
        self._locator = locator
        self._given_key = given_key
        self._plan = plan
        self._learned = learned or {}
        #: Whether :meth:`learning_from` added the key type or subclasses of another snapshot.
        self.learned_from_other = False

    @cached_property
    def _context(self) -> OperatorReadContext:
        from statetool.entries.form import OperatorReadContext

        return OperatorReadContext(
            operator=self.label,
            max_parallelism=self.state.max_parallelism,
            types=self.types,
            resolve=self.resolve,
            expect=self._locator.expect,
            metadata_file=self._locator.metadata_file,
            given_key=self._given_key,
            learned=self._learned.get("keyed", ()),
            learned_elements=self._learned.get("operator", ()),
        )

    @cached_property
    def keyed(self) -> KeyedInventory:
        """The keyed state. Listing operators does not need the serializers that this imports."""
        from statetool.snapshot.keyed import KeyedInventory

        return KeyedInventory(self.state, self._context)

    @cached_property
    def elements(self) -> ElementInventory:
        """The operator state."""
        from statetool.snapshot.elements import ElementInventory

        return ElementInventory(self.state, self._context)

    def as_described(self) -> OperatorInventory:
        """Return the operator as the snapshot alone describes it, without subclasses of POJOs declared by the user."""
        classes = tuple(replace(c, extends=()) for c in self.types.classes)
        source = None if self.types.source is None else self.types.source.without_subclasses()
        if (classes, source) == (self.types.classes, self.types.source):
            return self
        return self.with_types(replace(self.types, classes=classes, source=source))

    def with_types(self, types: TypeContext) -> OperatorInventory:
        """Return the operator read with other type information."""
        return OperatorInventory(self.state, self.label, self._locator, self._given_key, types, self._plan)

    def learning_from(self, other: OperatorInventory) -> OperatorInventory:
        """Return the operator with the key type and the POJO subclasses that another snapshot of it describes and this one does not."""
        learned: dict[Scope, tuple[tuple[bytes, int], ...]] = {}
        if other.listed_keyed and any(_may_have_subclasses(h.states, h.key) for h, _ in self.listed_keyed.values()):
            learned["keyed"] = self.keyed.undescribed_in(other.keyed.stored_headers)
        if other.listed_elements and _may_have_subclasses(self.listed_elements.values()):
            learned["operator"] = self.elements.undescribed_in(other.elements.stored_headers)
        key = self._given_key
        if key is None and self.listed_keyed and self._stored_key is None:
            key = other._stored_key
        if key is self._given_key and not any(learned.values()):
            return self
        learner = OperatorInventory(self.state, self.label, self._locator, key, self.types, self._plan, learned)
        learner.learned_from_other = True
        return learner

    @property
    def _stored_key(self) -> Serializer | None:
        """The key type that the snapshot stores or the user declares, ``None`` if it is unknown or was inferred."""
        from statetool.serializers.core.opaque import OpaqueSerializer

        key = self.keyed.key if self.listed_keyed else None
        return None if self.keyed.key_found or isinstance(key, OpaqueSerializer) else key

    def stored_bytes(self, most_files: int) -> int | None:
        """Return the bytes of the operator's files by the metadata alone; ``None`` if it has at most ``most_files`` files."""
        streams = (stream for handle in operator_handles(self.state) for stream, _ in file_streams(handle))
        first = list(islice(streams, most_files + 1))
        return sum(s.size_bytes for s in chain(first, streams)) if len(first) > most_files else None

    @property
    def uid(self) -> str:
        """The uid, empty if it is not known."""
        return self.label.uid

    @property
    def metadata_file(self) -> str:
        """The metadata file of the snapshot."""
        return self._locator.metadata_file

    def resolve(self, handle: StreamHandle) -> Stream | None:
        """Return the location of a stream handle's bytes, ``None`` for a null or empty handle. Errors name the operator."""
        try:
            return self._locator.resolve(handle)
        except StatetoolError as error:
            raise error.at(operator=self.label) from None

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels with in-flight data (unaligned checkpoints), by subtask."""
        subtasks = sorted(self.state.subtasks, key=lambda s: s.index)
        try:
            return tuple(c for s in subtasks for c in channels_of(s, self.resolve))
        except StatetoolError as error:
            raise error.at(operator=self.label, file=self._locator.metadata_file) from None

    @property
    def keyed_states(self) -> Mapping[str, tuple[KeyedHeader, StateMetaInfo]]:
        """Keyed states (and timers) by name, with the header of the first subtask that has each."""
        return self.keyed.states

    @property
    def operator_states(self) -> Mapping[str, StateMetaInfo]:
        """Operator states by name."""
        return self.elements.states

    @cached_property
    def unread(self) -> Mapping[Scope, StatetoolError]:
        """Reasons why keyed or operator state cannot be listed: a header is damaged, missing, or of a class of unknown length."""
        readers: dict[Scope, Callable[[], object]] = {
            "keyed": lambda: (self.keyed_states, self.keyed.own_raw_subtasks),
            "operator": lambda: self.operator_states,
        }
        errors: dict[Scope, StatetoolError] = {}
        for scope, read in readers.items():
            try:
                read()
            except NO_FINDING:
                raise
            except StatetoolError as error:
                errors[scope] = error.at(operator=self.label)
        return MappingProxyType(errors)

    def check_listed(self, *scopes: Scope) -> None:
        """Raise the error for keyed or operator state that cannot be listed."""
        for scope in scopes:
            if scope in self.unread:
                raise self.unread[scope]

    @property
    def listed_keyed(self) -> Mapping[str, tuple[KeyedHeader, StateMetaInfo]]:
        """:attr:`keyed_states`, empty if they cannot be listed."""
        return _NO_STATES if "keyed" in self.unread else self.keyed_states

    @property
    def listed_elements(self) -> Mapping[str, StateMetaInfo]:
        """:attr:`operator_states`, empty if they cannot be listed."""
        return _NO_STATES if "operator" in self.unread else self.operator_states

    @cached_property
    def plan_columns(self) -> Mapping[str, list[str]]:
        """Names from the compiled plan for the fields of SQL rows, by the path of each row. Empty without a plan or such rows.

        Raises
        ------
        OptionError
            The plan does not have the operator, or does not fit it.
        """
        return MappingProxyType({}) if self._plan is None or not self.has_sql_rows else self.columns_of(self._plan)

    @cached_property
    def plan_aggregates(self) -> PlanAggregates | None:
        """Names from the compiled plan that can be compared with those of another plan, ``None`` without a plan or SQL rows.

        Raises
        ------
        OptionError
            The plan does not have the operator, or does not fit it.
        """
        if self._plan is None or not self.has_sql_rows:
            return None
        from statetool.sql_plans.aggregates import PlanAggregates

        key, metas = self._key_and_metas()
        try:
            node = self._plan.node_of(*self._planned_as)
            columns = self._plan.columns(node, metas, key, expressions=True)
            names = {path: tuple(of_row) for path, of_row in columns.items()}
            return PlanAggregates(
                columns=names,
                views=self._plan.views(node),
                query=self._plan.query(node),
                settings=self._plan.settings(node),
                kind=self._plan.kind(node),
                join=self._plan.join(node),
                rank=self._plan.rank(node),
                single=self._plan.single(node),
            )
        except (OptionError, FormatError) as error:
            raise error.at(operator=self.label) from error.__cause__

    @property
    def _planned_as(self) -> tuple[str, str, str]:
        """The operator id, the uid and the name of the operator in the job that wrote the snapshot."""
        label = self.label.former or self.label
        return label.operator_id, label.uid, label.name

    @property
    def has_plan(self) -> bool:
        """Whether the compiled plan of the job is known."""
        return self._plan is not None

    @cached_property
    def plan_node(self) -> tuple[str, NodeOutline] | None:
        """The operator's uid in the compiled plan, empty if it is not known, and the outline of its node.

        ``None`` without a plan, or if the plan has no such operator.

        Raises
        ------
        OptionError
            The plan does not fit the operator.
        FormatError
            The plan lacks a member that such a node has.
        """
        if self._plan is None:
            return None
        from statetool.sql_plans.outlines import outline_of

        label = self.label
        try:
            node = self._plan.find_node(*self._planned_as)
            if node is None:
                return None
            if self.has_sql_rows:
                self.columns_of(self._plan, node)  # raises an error if the rows are not those of the node
            operator_id, uid, _ = self._planned_as
            return uid or self._plan.uid_of(operator_id), outline_of(self._plan, node)
        except (OptionError, FormatError) as error:
            raise error.at(operator=label) from error.__cause__

    @property
    def has_sql_rows(self) -> bool:
        """Whether keys or values of its state are rows of SQL."""
        from statetool.serializers.naming import rows_of
        from statetool.serializers.sql.rowdata import RowDataSerializer

        key, metas = self._key_and_metas()
        serializers = [*([] if key is None else [key]), *(meta.value for meta in metas)]
        return any(isinstance(row, RowDataSerializer) for s in serializers for _, row in rows_of(s))

    def _key_and_metas(self) -> tuple[Serializer | None, list[StateMetaInfo]]:
        key = next((header.key for header, _ in self.listed_keyed.values()), None)
        return key, [*(meta for _, meta in self.listed_keyed.values()), *self.listed_elements.values()]

    def columns_of(self, plan: CompiledPlan, node: int | None = None) -> dict[str, list[str]]:
        """Return names from a compiled plan, as ``columns=`` takes them. ``node`` defaults to the operator's node in the plan.

        Raises
        ------
        OptionError
            The plan does not have the operator or the node, or does not fit the operator.
        FormatError
            The plan lacks a member that such a node has.
        """
        key, metas = self._key_and_metas()
        try:
            if node is None:
                node = plan.node_of(*self._planned_as)
            return plan.columns(node, metas, key)
        except (OptionError, FormatError) as error:
            raise error.at(operator=self.label) from error.__cause__

    def value_serializer(self, name: str) -> Serializer:
        """Return the serializer of a state's values, or of its elements if it is a list.

        Raises
        ------
        UnknownNameError
            The operator has no such state.
        """
        keyed, others = self.keyed_states, self.operator_states
        if name in keyed:
            meta = keyed[name][1]
            return meta.parts[0] if meta.kind == "list" and meta.parts else meta.value
        if name in others:
            return others[name].value
        raise UnknownNameError(
            f"operator {self.label.display!r} has no state {name!r}", hint=suggest(name, [*keyed, *others])
        )

    @property
    def state_tables(self) -> dict[str, tuple[Scope, str]]:
        """Scope and name of each state by the name of its table."""
        keyed = (name for name, (_, meta) in self.listed_keyed.items() if meta.kind != "timers")
        return state_tables(keyed, self.listed_elements, self.views)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The operator's views, out of :data:`~statetool.snapshot.views.VIEWS`."""
        from statetool.snapshot.views import views_of

        return views_of({name: meta for name, (_, meta) in self.listed_keyed.items()}, self.listed_elements)

    def state_table(self, table: str) -> tuple[Scope, str]:
        """Return scope and name of the state whose long form is this table.

        Raises
        ------
        UnknownNameError
            No state has this table.
        OptionError
            Both keyed and operator state have this name.
        StatetoolError
            No listed state has this table, and some states cannot be listed. The error gives the reason.
        """
        tables = self.state_tables
        if table in tables:
            return tables[table]
        same = [t for t, (_, name) in tables.items() if name == table]
        if same:
            raise OptionError(f"ambiguous table {table!r}", hint=f"pass {' or '.join(same)}").at(operator=self.label)
        self.check_listed(*self.unread)
        hint = suggest(table, [*tables, KEYED_STATE, TIMERS, *self.views])
        raise UnknownNameError(f"operator {self.label.display!r} has no state {table!r}", hint=hint).at(
            operator=self.label
        )

    @cached_property
    def states(self) -> tuple[StateInfo, ...]:
        """All states, keyed first. Unreadable states have a reason."""
        infos = [
            state_info(self.label, meta, "keyed", key=header.key, key_found=self.keyed.key_found)
            for header, meta in self.listed_keyed.values()
        ]
        infos += [state_info(self.label, meta, "operator") for meta in self.listed_elements.values()]
        infos += [unread_info(self.label, scope, str(error)) for scope, error in self.unread.items()]
        if "keyed" not in self.unread and self.keyed.own_raw_subtasks:
            infos.append(
                StateInfo(
                    operator=self.label,
                    name="(raw keyed state)",
                    scope="keyed",
                    kind="raw",
                    key_type=None,
                    namespace_type=None,
                    value_type="bytes",
                    ttl=False,
                    readable=False,
                    reason="written by the operator's code; not timers",
                )
            )
        return tuple(infos)


def _may_have_subclasses(states: Iterable[StateMetaInfo], key: Serializer | None = None) -> bool:
    from statetool.serializers.core.base import all_parts
    from statetool.serializers.typeutils.pojo import PojoSerializer

    roots = [*(s for meta in states for s in meta.serializers.values()), *([] if key is None else [key])]
    return any(isinstance(part, PojoSerializer) for root in roots for part in all_parts(root))
