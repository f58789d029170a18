"""One operator of a snapshot: its states and their types.

Only the metadata and the first bytes of streams are read. Neither numpy, Arrow nor Spark is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from statetool.entries.form import OperatorReadContext
from statetool.errors import NO_FINDING, OptionError, StatetoolError, UnknownNameError, suggest
from statetool.formats.channel_state import Channel, channels_of
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.metadata import OperatorState
from statetool.formats.metadata.handles import StreamHandle
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.serializers.base import Serializer
from statetool.snapshot.elements import ElementInventory
from statetool.snapshot.keyed import KeyedInventory
from statetool.snapshot.locate import Locator
from statetool.snapshot.state_info import StateInfo, state_info, unread_info
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS, Scope, state_tables
from statetool.snapshot.views import views_of
from statetool.types.declared import NOTHING_DECLARED, TypeContext

_NO_STATES: Final[Mapping[str, Any]] = MappingProxyType({})


class OperatorInventory:
    """One operator of a snapshot.

    Parameters
    ----------
    given_key
        The key type, if the user declared it.
    types
        Type information from outside of the snapshot.
    """

    def __init__(
        self,
        state: OperatorState,
        uid: str,
        locator: Locator,
        given_key: Serializer | None = None,
        types: TypeContext = NOTHING_DECLARED,
    ) -> None:
        self.state = state
        self.uid = uid
        self.types = types
        self._locator = locator
        self._given_key = given_key
        around = OperatorReadContext(
            operator=self.label,
            max_parallelism=state.max_parallelism,
            types=types,
            resolve=self.resolve,
            metadata_file=locator.metadata_file,
            given_key=given_key,
        )
        self.keyed = KeyedInventory(state, around)
        self.elements = ElementInventory(state, around)

    def as_described(self) -> OperatorInventory:
        """Return the operator as the snapshot alone describes it, without subclasses of POJOs declared by the user."""
        classes = tuple(replace(c, extends=()) for c in self.types.classes)
        if classes == self.types.classes:
            return self
        types = replace(self.types, classes=classes)
        return OperatorInventory(self.state, self.uid, self._locator, self._given_key, types)

    @property
    def label(self) -> str:
        """The uid, or the operator id if the uid is not known."""
        return self.uid or self.state.operator_id

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
        raise UnknownNameError(f"operator {self.label!r} has no state {name!r}", hint=suggest(name, [*keyed, *others]))

    @property
    def state_tables(self) -> dict[str, tuple[Scope, str]]:
        """Scope and name of each state by the name of its table."""
        keyed = (name for name, (_, meta) in self.listed_keyed.items() if meta.kind != "timers")
        return state_tables(keyed, self.listed_elements, self.views)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The operator's views, out of :data:`~statetool.snapshot.views.VIEWS`."""
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
            raise OptionError(f"more than one table could be called {table!r}", hint=f"say {' or '.join(same)}").at(
                operator=self.label
            )
        self.check_listed(*self.unread)
        hint = suggest(table, [*tables, KEYED_STATE, TIMERS, *self.views])
        raise UnknownNameError(f"operator {self.label!r} has no state {table!r}", hint=hint).at(operator=self.label)

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
                    reason="written by the operator itself, and no timers",
                )
            )
        return tuple(infos)
