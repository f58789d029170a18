"""Plan to change, remove and add elements of one operator state: a list, a union list or a broadcast state.

Elements stay in their subtask, so that their order and their distribution over subtasks do not change. Operator state is in the memory of a
job, and in that of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from statetool.columns.types import table_column
from statetool.columns.values import decode_framed, unreadable
from statetool.connectors.elements import Element, OperatorBytes
from statetool.connectors.sources import READER_STATE
from statetool.errors import (
    MissingKeyError,
    OptionError,
    StatetoolError,
    UnknownNameError,
    UnsupportedError,
    several,
    suggest,
)
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.saving.streams.condition_rules import check_condition
from statetool.saving.streams.predicates import OPTIONS, matching_rows
from statetool.saving.verbs.set_values import change_value, decode, encode
from statetool.saving.verbs.value_paths import ValuePath, check_texts, plain_of
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.types.display import display_value
from statetool.types.operators import OperatorRecord

_VALUE: Final = "value"
_COUNT_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementEdits:
    """The changes of an operator state.

    Attributes
    ----------
    where
        A SQL condition on the columns ``value``, ``key`` (broadcast) and ``subtask`` (list and union) of the elements to change or to
        remove.
    change
        New values by path: ``value``, or a part of it such as ``value.offset``.
    remove
        Whether the elements are removed.
    add
        Elements to add, as JSON values. Those of a broadcast state are objects with ``key`` and ``value``.
    subtask
        The subtask that gets added elements, or ``"all"``.
    remove_copies
        Whether elements of a union list are removed that equal an earlier one.
    """

    where: str | None
    change: Mapping[str, Any]
    remove: bool
    add: Sequence[Any]
    subtask: int | Literal["all"] | None
    remove_copies: bool

    def __post_init__(self) -> None:
        if self.where is not None:
            check_condition(self.where)
        if bool(self.change) + self.remove > 1:
            raise OptionError("elements cannot be both changed and removed", hint="write two copies one after another")
        if (bool(self.change) or self.remove) != (self.where is not None):
            raise OptionError(
                "elements are chosen by a condition, and changed or removed",
                hint="pass --where SQL (TRUE for all) with --set or --remove",
            )
        if not (self.change or self.remove or self.add or self.remove_copies):
            raise OptionError("nothing to change", hint="pass --where with --set or --remove, --add or --remove-copies")
        if self.subtask is not None and not self.add:
            raise OptionError("a subtask, but no element to add", hint="pass --add")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRow(OperatorRecord):
    """One change of an element, as text. ``subtask`` is ``None`` for a broadcast state, whose copies all change."""

    state: str
    kind: str
    subtask: int | None
    change: Literal["set", "removed", "copy removed", "added"]
    key: str | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementsPlan:
    """The changes of an operator state, and all its new elements by subtask."""

    operator: str
    changes: tuple[ElementRow, ...]
    elements: Mapping[str, Mapping[int, tuple[bytes, ...]]]


def plan_set_elements(operator: OperatorInventory, state: str, edits: ElementEdits) -> ElementsPlan:
    """Plan to change the elements of an operator state. Reads all of them.

    Raises
    ------
    UnknownNameError
        The operator has no such state.
    MissingKeyError
        No element fulfills the condition, or no element has a copy.
    OptionError, EncodeError
        The condition, a path or a value does not fit the state.
    UnsupportedError
        Elements cannot be decoded, would not keep their other parts, or copies of a broadcast state differ.
    """
    operator.check_listed("operator")
    metas = operator.operator_states
    if state not in metas:
        raise UnknownNameError(f"no operator state {state!r}", hint=suggest(state, metas)).at(operator=operator.label)
    try:
        return _Edit(operator, metas[state], edits).run()
    except StatetoolError as error:
        raise error.at(operator=operator.label, state=state) from error.__cause__


class _Edit:
    """The edit of one state."""

    def __init__(self, operator: OperatorInventory, meta: StateMetaInfo, edits: ElementEdits) -> None:
        if meta.name == READER_STATE:
            raise UnsupportedError("splits of a source belong to its enumerator too", hint="run: statetool sources set")
        if unreadable(meta.value, tail=meta.kind != "broadcast"):
            raise UnsupportedError(
                f"elements of type {meta.value.type_name} cannot be decoded",
                hint="pass the job's jar (--jar), or declare the class (--declare)",
            )
        if edits.remove_copies and meta.kind != "union":
            raise OptionError(f"a {meta.kind} state has no copies to remove", hint="only union lists may have them")
        if edits.subtask is not None and meta.kind == "broadcast":
            raise OptionError("all subtasks have a broadcast state", hint="leave out --subtask")
        self.operator, self.meta, self.edits = operator, meta, edits
        self.rows: list[ElementRow] = []

    def run(self) -> ElementsPlan:
        broadcast = self.meta.kind == "broadcast"
        new = self._broadcast() if broadcast else self._lists()
        return ElementsPlan(operator=self.operator.label, changes=tuple(self.rows), elements={self.meta.name: new})

    def _lists(self) -> dict[int, tuple[bytes, ...]]:
        stored = [(element.subtask, element.data) for element in self._stored()]
        matching = self._matching(
            [data for _, data in stored], None, pa.array([subtask for subtask, _ in stored], pa.int32())
        )
        new: dict[int, list[bytes]] = {}
        seen: set[bytes] = set()
        for number, (subtask, old) in enumerate(stored):
            data = self._changed(old, subtask, None) if number in matching else old
            if data is not None and self.edits.remove_copies:
                if data in seen:
                    self._record("copy removed", subtask, None, data, None)
                    continue
                seen.add(data)
            if data is not None:
                new.setdefault(subtask, []).append(data)
        if self.edits.remove_copies and not any(row.change == "copy removed" for row in self.rows):
            raise MissingKeyError("no two elements are equal", hint="nothing was written")
        for value in self.edits.add:
            data = self._encoded(self.meta.value, value)
            for subtask in self._subtasks_to_add(stored, new):
                new.setdefault(subtask, []).append(data)
                self._record("added", subtask, None, None, data)
        return {subtask: tuple(elements) for subtask, elements in new.items()}

    def _subtasks_to_add(self, stored: Sequence[tuple[int, bytes]], new: Mapping[int, Sequence[bytes]]) -> list[int]:
        """Return the subtasks that get an added element."""
        parallelism = self.operator.state.parallelism
        match self.edits.subtask:
            case "all":
                return list(range(parallelism))
            case int(number):
                if not 0 <= number < parallelism:
                    raise OptionError(f"no subtask {number}", hint=f"pass 0 to {parallelism - 1}")
                return [number]
        own = [sorted(data for subtask, data in stored if subtask == n) for n in range(parallelism)]
        if self.meta.kind == "union" and parallelism > 1 and own[0] and all(part == own[0] for part in own):
            raise OptionError(
                "each subtask has the same elements, so each may have to get the new one",
                hint="pass --subtask all, or the number of one subtask",
            )
        return [min(range(parallelism), key=lambda n: len(new.get(n, ())))]

    def _broadcast(self) -> dict[int, tuple[bytes, ...]]:
        copies = {element.subtask: self._entries(element.data) for element in self._stored()}
        first = next(iter(copies.values()), {})
        if any(entries != first for entries in copies.values()):
            raise UnsupportedError(
                "the copies of the broadcast state differ between subtasks, so that it is unknown which one is right",
                hint="compare them: statetool head PATH OPERATOR STATE --subtask",
            )
        matching = self._matching(list(first.values()), list(first), None)
        new: dict[bytes, bytes] = {}
        for number, (key, old) in enumerate(first.items()):
            data = self._changed(old, None, key) if number in matching else old
            if data is not None:
                new[key] = data
        for value in self.edits.add:
            if not isinstance(value, dict) or set(value) != {"key", "value"}:
                raise OptionError(f"{value!r} is not an entry", hint='pass --add \'{"key": 1, "value": "a"}\'')
            key, data = self._encoded(self._key, value["key"]), self._encoded(self.meta.value, value["value"])
            if key in new:
                raise OptionError(
                    f"the key {_text(self._key, key)} already exists", hint="change its value: --set value=..."
                )
            new[key] = data
            self._record("added", None, key, None, data)
        raw = len(new).to_bytes(_COUNT_BYTES, "big") + b"".join(part for pair in new.items() for part in pair)
        return dict.fromkeys(copies or range(self.operator.state.parallelism), (raw,))

    @property
    def _key(self) -> Serializer:
        return self.meta.serializers["KEY_SERIALIZER"]

    def _entries(self, data: bytes) -> dict[bytes, bytes]:
        """Return the entries of a copy of a broadcast state as bytes."""
        c = Cursor(memoryview(data))
        entries: dict[bytes, bytes] = {}
        for _ in range(c.count("entries")):
            start = c.pos
            self._key.skip(c)
            middle = c.pos
            self.meta.value.skip(c)
            entries[data[start:middle]] = data[middle : c.pos]
        c.expect_end("the entries")
        return entries

    def _stored(self) -> Iterator[Element]:
        return OperatorBytes(self.operator).elements(self.meta.name)

    def _matching(self, values: Sequence[bytes], keys: Sequence[bytes] | None, subtasks: pa.Array | None) -> set[int]:
        """Return the numbers of the elements that fulfil the condition.

        Raises
        ------
        MissingKeyError
            There are none.
        """
        if self.edits.where is None:
            return set()
        columns: dict[str, pa.Array] = {}
        parts = [] if keys is None else [("key", self._key, keys)]
        for name, serializer, encoded in (*parts, (_VALUE, self.meta.value, values)):
            ends = np.cumsum([0, *map(len, encoded)])
            data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            column = table_column(serializer.logical, OPTIONS)
            decoded = decode_framed(serializer, data, ends[:-1], ends[1:], OPTIONS)
            columns |= zip((f.name for f in column.fields(name)), column.arrays(decoded), strict=True)
        if subtasks is not None:
            columns["subtask"] = subtasks
        found = set(matching_rows(pa.table(columns), self.edits.where).tolist())
        if not found:
            raise MissingKeyError(
                f"none of {several(len(values), 'element')} fulfills the condition", hint="nothing was written"
            )
        return found

    def _changed(self, old: bytes, subtask: int | None, key: bytes | None) -> bytes | None:
        """Return the new bytes of an element that fulfils the condition, ``None`` if it is removed."""
        if self.edits.remove:
            self._record("removed", subtask, key, old, None)
            return None
        new = old
        for path, value in self.edits.change.items():
            new = change_value(self.meta.value, new, ValuePath.parse(path, [_VALUE]).steps, value, 0)
        if new != old:
            self._record("set", subtask, key, old, new)
        return new

    def _encoded(self, serializer: Serializer, value: Any) -> bytes:
        check_texts(value)
        return encode(serializer, plain_of(serializer.logical, value, now_ms=0))

    def _record(
        self,
        change: Literal["set", "removed", "copy removed", "added"],
        subtask: int | None,
        key: bytes | None,
        before: bytes | None,
        after: bytes | None,
    ) -> None:
        self.rows.append(
            ElementRow(
                operator=self.operator.label,
                state=self.meta.name,
                kind=self.meta.kind,
                subtask=subtask,
                change=change,
                key=None if key is None else _text(self._key, key),
                before=None if before is None else _text(self.meta.value, before),
                after=None if after is None else _text(self.meta.value, after),
            )
        )


def _text(serializer: Serializer, raw: bytes) -> str:
    return display_value(decode(serializer, raw), serializer.logical)
