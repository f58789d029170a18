"""Merging of the headers of several subtasks: each may know POJO subclasses that the others have not seen."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import all_parts
from statetool.serializers.subclasses import merge_subclasses
from statetool.serializers.typeutils.pojo import PojoSerializer


def learn_header(mine: KeyedHeader, other: KeyedHeader) -> bool:
    """Add the subclasses in another subtask's header to key and states; return True if there were new ones."""
    learned = merge_subclasses(mine.key, other.key)
    return learn_states(mine.states, other.states) or learned


def learn_states(mine: Iterable[StateMetaInfo], other: Iterable[StateMetaInfo]) -> bool:
    """Add another subtask's subclasses to states; return True if there were new ones."""
    known = {m.name: m.serializers for m in other}
    learned = False
    for meta in mine:
        theirs = known.get(meta.name, {})
        for role, serializer in meta.serializers.items():
            if role in theirs:
                learned |= merge_subclasses(serializer, theirs[role])
    return learned


def may_differ(states: Iterable[StateMetaInfo]) -> bool:
    """Return True if subtasks may have different metadata for these states: only POJO classes can have subclasses."""
    return any(
        isinstance(s, PojoSerializer) for m in states for root in m.serializers.values() for s in all_parts(root)
    )
