"""One operator of a snapshot: its states and their types.

Read from the metadata and the first bytes of streams only; needs neither numpy, Arrow nor Spark.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property

from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.formats.described import learn_states, may_differ
from statetool.formats.keyed.described import learn_header
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.naming import check_columns, named_header, named_state
from statetool.formats.operator_state import read_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.io.cursor import Cursor
from statetool.plan.operator_headers import OperatorHeaders
from statetool.plan.state_info import StateInfo, state_info
from statetool.plan.state_tables import KEYED_STATE, TIMERS, Scope, state_tables
from statetool.serializers.base import Serializer
from statetool.serializers.context import reading_with
from statetool.types.options import Columns


class OperatorInventory(OperatorHeaders):
    """One operator of a snapshot: its states by name, joined over its subtasks."""

    @cached_property
    def keyed_states(self) -> Mapping[str, tuple[KeyedHeader, StateMeta]]:
        """Keyed states (and timers) by name, with the header of the first subtask that has each."""
        found: dict[str, tuple[KeyedHeader, StateMeta]] = {}
        for header in self._keyed_headers():
            for raw, base in self.descriptions:
                learn_header(header, read_keyed_header(Cursor(raw, base=base), end=len(raw)))
            for meta in header.states:
                found.setdefault(meta.name, (header, meta))
        return found

    def key_serializer(self) -> Serializer:
        """Return the serializer of the keys.

        Raises
        ------
        OptionError
            The operator has no keyed state.
        """
        for header, _ in self.keyed_states.values():
            return header.key
        raise OptionError(f"operator {self.label!r} has no keyed state, and so no type of keys")

    def value_serializer(self, name: str) -> Serializer:
        """Return the serializer of a state's values, of its elements where it is a list.

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

    @cached_property
    def operator_states(self) -> Mapping[str, StateMeta]:
        """Operator states by name."""
        found: dict[str, StateMeta] = {}
        seen: set[tuple[str, ...]] = set()
        for part in self.operator_parts:
            names = tuple(part.offsets)
            if names in seen and all(n in found for n in names):
                continue
            seen.add(names)
            for meta in self.operator_header(part).states:
                found.setdefault(meta.name, meta)
        if may_differ(found.values()):
            with reading_with(self.types):
                for raw, base in self.operator_descriptions:
                    learn_states(found.values(), read_operator_header(Cursor(raw, base=base), end=len(raw)).states)
        return found

    @property
    def state_tables(self) -> dict[str, tuple[Scope, str]]:
        """Scope and name of each state by the name of its table."""
        keyed = (name for name, (_, meta) in self.keyed_states.items() if meta.kind != "timers")
        return state_tables(keyed, self.operator_states)

    def state_table(self, table: str) -> tuple[Scope, str]:
        """Return scope and name of the state whose long form a table is.

        Raises
        ------
        UnknownNameError
            There is none.
        OptionError
            Keyed and operator state have this name.
        """
        found = self.state_tables
        if table in found:
            return found[table]
        same = [t for t, (_, name) in found.items() if name == table]
        if same:
            raise OptionError(f"more than one table could be called {table!r}", hint=f"say {' or '.join(same)}").at(
                operator=self.label
            )
        hint = suggest(table, [*found, KEYED_STATE, TIMERS])
        raise UnknownNameError(f"operator {self.label!r} has no state {table!r}", hint=hint).at(operator=self.label)

    def with_columns(self, columns: Columns) -> OperatorInventory:
        """Return the operator with names for the fields of rows.

        Raises
        ------
        OptionError
            A path that leads to no row, or other than one name a field.
        """
        if not columns:
            return self
        named = copy.copy(self)
        check_columns(columns, [*self.keyed_states, *self.operator_states])
        headers = {id(h): named_header(h, columns) for h, _ in self.keyed_states.values()}
        keyed: dict[str, tuple[KeyedHeader, StateMeta]] = {}
        for name, (header, _) in self.keyed_states.items():
            header = headers[id(header)]
            keyed[name] = header, next(m for m in header.states if m.name == name)
        elements = dict(self.operator_states)
        for path, names in columns:
            elements = {n: named_state(m, path, names) for n, m in elements.items()}
        named.__dict__.update(keyed_states=keyed, operator_states=elements)
        return named

    @cached_property
    def states(self) -> tuple[StateInfo, ...]:
        """All states, keyed first; what cannot be read says why."""
        infos = [
            state_info(self.label, meta, "keyed", key=header.key, key_found=self.key_found)
            for header, meta in self.keyed_states.values()
        ]
        infos += [state_info(self.label, meta, "operator") for meta in self.operator_states.values()]
        if self.own_raw_subtasks:
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
