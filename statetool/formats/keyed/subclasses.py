"""Merging of the headers of several subtasks: each may know POJO subclasses that the others have not seen."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.core.base import Serializer, all_parts
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


def merge_subclasses(mine: Serializer, other: Serializer) -> bool:
    """Add to a serializer the subclasses in another subtask's serializer of the same state.

    Returns
    -------
    bool
        True if subclasses were added.
    """
    return _learn_nested(mine, other)[0]


def _learn_nested(mine: Serializer, other: Serializer) -> tuple[bool, bool]:
    """Return whether subclasses were added, and whether the snapshot of ``mine`` changed."""
    if type(mine) is not type(other):
        return False, False
    learned = False
    if isinstance(mine, PojoSerializer) and isinstance(other, PojoSerializer):
        if mine.pojo_class != other.pojo_class:
            return False, False
        learned = mine.add_subclasses(other)
    theirs = dict(other.children())
    inner = [_learn_nested(child, theirs[step]) for step, child in mine.children() if step in theirs]
    learned |= any(added for added, _ in inner)
    rewritten = any(nested_rewritten for _, nested_rewritten in inner)
    if isinstance(mine, PojoSerializer):
        rewritten = mine.finalize(changed=learned or rewritten)
    return learned, rewritten
