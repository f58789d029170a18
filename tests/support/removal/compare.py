"""Comparison of the contents of a snapshot after a command with the expected ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from statetool.formats.metadata.handles import ChangelogHandle, ChangesHandle, Handle, streams_of
from statetool.formats.metadata.model import operator_handles
from statetool.snapshot.operator import OperatorInventory
from tests.support.removal.rows import Element, OperatorRows, Row


@dataclass
class Expected:
    """What a command leaves.

    Attributes
    ----------
    rows, elements
        The entries and elements of operators that may change, by operator id. All others must keep theirs.
    removed
        Operators that must be gone.
    free
        Operator states that are compared by their rows elsewhere, by operator id and name.
    """

    rows: dict[str, Counter[Row]] = field(default_factory=dict)
    elements: dict[str, Counter[Element]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    free: set[tuple[str, str]] = field(default_factory=set)
    free_rest: set[str] = field(default_factory=set)
    #: States that the command drops, by operator id.
    dropped: dict[str, set[str]] = field(default_factory=dict)


def show(rows: Counter[Any]) -> str:
    """Return the first of some rows."""
    first = sorted(rows, key=repr)[:2]
    return f"{sum(rows.values())}: " + "; ".join(repr(row)[:160] for row in first)


def differences(
    before: Mapping[str, OperatorRows], after: Mapping[str, OperatorRows], expected: Expected
) -> Iterator[str]:
    """Yield what is not as expected."""
    if set(after) != set(before) - expected.removed:
        yield f"operators are {sorted(set(after) ^ (set(before) - expected.removed))} too many or too few"
    for operator, new in after.items():
        old = before[operator]
        wanted = expected.rows.get(operator, old.rows)
        label = old.inventory.label.display
        if old.unread or new.unread:
            if old.unread != new.unread or stored(old.inventory) != stored(new.inventory):
                yield f"{label}: keyed state that cannot be decoded changed"
        elif new.rows != wanted:
            if lost := wanted - new.rows:
                yield f"{label}: rows lost, {show(lost)}"
            if left := new.rows - wanted:
                yield f"{label}: rows left or changed, {show(left)}"
        keep = {n for n in old.metas if n not in expected.dropped.get(operator, ())}
        if set(new.metas) != keep:
            yield f"{label}: states {sorted(set(new.metas) ^ keep)} too many or too few"
        elements = expected.elements.get(operator, old.elements)
        free = {name for of, name in expected.free if of == operator}
        a, b = (Counter({e: n for e, n in x.items() if e.state not in free}) for x in (elements, new.elements))
        if a != b:
            yield f"{label}: operator state lost {show(a - b)}, added {show(b - a)}"
        for what, value in old.rest.items():
            if new.rest[what] != value and operator not in expected.free_rest:
                yield f"{label}: {what} was {value!r:.100}, is {new.rest[what]!r:.100}"
        if old.key is not None and new.key is not None and old.key.type_name != new.key.type_name:
            yield f"{label}: keys are of type {new.key.type_name}"


def stored(operator: OperatorInventory) -> list[str]:
    """Return a digest of the content of each handle of an operator, except change logs."""
    handles = operator_handles(operator.state)
    return sorted(_digest(operator, s) for handle in handles for s in streams_of(handle) if not _is_log(handle))


def _is_log(handle: Handle) -> bool:
    """Return True for change logs: the size in their handles is not that of their files."""
    return isinstance(handle, ChangelogHandle | ChangesHandle)


def _digest(operator: OperatorInventory, handle: Any) -> str:
    stream = operator.resolve(handle)
    if stream is None:
        return ""
    with stream.open() as f:
        return hashlib.sha1(bytes(f.read_at(0, stream.size_bytes)), usedforsecurity=False).hexdigest()


def key_group_contents(operator: OperatorInventory) -> dict[int, list[bytes]] | None:
    """Return the stored bytes of each key group, ``None`` if they are not ranges of streams."""
    found: dict[int, list[bytes]] = {}
    for state in operator.keyed.managed:
        ranges = state.key_group_bytes(operator.keyed.context)
        if ranges is None:
            return None
        with ranges.stream.open() as f:
            for group in ranges.ranges:
                found.setdefault(group.number, []).append(bytes(f.read_at(group.offset, group.size_bytes)))
    return found
