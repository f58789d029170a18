"""Bring together the headers of several subtasks: each may know subclasses of POJOs that the others have not met."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMeta
from statetool.serializers.base import all_parts
from statetool.serializers.pojo import PojoSerializer
from statetool.serializers.subclasses import learn


def learn_header(mine: KeyedHeader, other: KeyedHeader) -> bool:
    """Add the subclasses that another subtask's header describes to key and states; return whether there were new ones."""
    learned = learn(mine.key, other.key)
    return learn_states(mine.states, other.states) or learned


def learn_states(mine: Iterable[StateMeta], other: Iterable[StateMeta]) -> bool:
    """Add the subclasses that another subtask describes to states; return whether there were new ones."""
    known = {m.name: m.serializers for m in other}
    learned = False
    for meta in mine:
        theirs = known.get(meta.name, {})
        for role, serializer in meta.serializers.items():
            if role in theirs:
                learned |= learn(serializer, theirs[role])
    return learned


def may_differ(states: Iterable[StateMeta]) -> bool:
    """Tell whether subtasks may describe these states differently: only classes of POJOs can have subclasses."""
    return any(
        isinstance(s, PojoSerializer) for m in states for root in m.serializers.values() for s in all_parts(root)
    )
