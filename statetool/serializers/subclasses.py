"""Merging of POJO subclasses across subtasks: a subclass that one subtask describes makes values of the others readable.

``PojoSerializer`` finds unregistered subclasses at run time, so each subtask's snapshot lists those that it has seen. The bytes contain the
class name, so the metadata of any subtask can be used.
"""

from __future__ import annotations

from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.pojo import PojoSerializer


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
